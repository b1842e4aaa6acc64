"""What Triton kernels call: functions written in Triton, the head of each source.

Those for float32 have no branches, which would cost more than the few instructions
that they skip. They are made of the processor's approximations (`ex2.approx`,
`rcp.approx`), which are within 1 or 2 ULP. Without ".ftz" these take three more
instructions to treat numbers below the normal ones, so ".ftz" stands where none comes.
The quick ones lose digits that a result of 16 bits has not.
"""

from __future__ import annotations

HEAD = '''\
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def greatest(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def least(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def add_both(a, b, c, d):
    return a + c, b + d


@triton.jit
def root(x):
    return tl.sqrt_rn(x) if x.dtype == tl.float32 else tl.sqrt(x)


@triton.jit
def once(condition):
    """1 if it holds in some row, for a loop: LLVM turns branches into selects."""
    return tl.max(tl.max(condition.to(tl.int32), 1), 0)


@triton.jit
def quick_inverse(x):
    """1 / x, where neither of them is below the normal numbers: those count as 0."""
    return tl.inline_asm_elementwise(
        "rcp.approx.ftz.f32 $0, $1;", "=f,f", [x],
        dtype=tl.float32, is_pure=True, pack=1,
    )


@triton.jit
def inverse(x):
    """1 / x, within 1 ULP: the processor's own is off by 2, its rounded one slow."""
    if x.dtype != tl.float32:
        return 1.0 / x
    else:
        return tl.inline_asm_elementwise(
            "rcp.approx.f32 $0, $1;", "=f,f", [x],
            dtype=tl.float32, is_pure=True, pack=1,
        )


@triton.jit
def over(a, b):
    """a / b, rounded."""
    r = inverse(b)
    q = a * r
    y = tl.fma(tl.fma(-q, b, a), r, q)
    return tl.where(y == y, y, a / b)


@triton.jit
def near_over(a, b):
    """The same where neither is near the ends of what float32 holds: 11 instructions
    less."""
    r = quick_inverse(b)
    q = a * r
    return tl.fma(tl.fma(-q, b, a), r, q)


@triton.jit
def over_number(a, b: tl.constexpr):
    r = 1 / b
    q = a * r
    y = tl.fma(tl.fma(-q, b, a), r, q)
    return tl.where(y == y, y, q)


@triton.jit
def over_row(a, b):
    """a / b for one b of many a: a product, 1 ULP worse, with 1 / b a normal number."""
    size = tl.abs(b)
    scale = tl.where(size < 2.0**-60, 2.0**64, tl.where(size > 2.0**60, 2.0**-64, 1.0))
    return a * (1.0 / (b * scale)) * scale


# exp(x) is 2^n 2^r, with n the whole part of x log2(e), held to -126..126: x log2(e) /
# 252 + 1/2 is held to 0..1 as it is rounded, and 252 times that added to 1.5 2^23 + 1,
# whose last bits are then those of 2^n. Beyond, r is no longer from 0 to 1, and 2^r is
# 0, infinite, or below 1, so that the product is right.
@triton.jit
def exp(x):
    if x.dtype != tl.float32:
        return libdevice.exp(x)
    else:
        return tl.inline_asm_elementwise(
            """{.reg .f32 k, n, r, p; .reg .b32 i;
            fma.rn.sat.f32 k, $1, 0f3BBB989E, 0f3F000000;
            fma.rm.f32 k, k, 0f437C0000, 0f4B400001;
            sub.f32 n, k, 0f4B40007F; neg.f32 n, n;
            fma.rn.f32 r, $1, 0f3FB8AA3B, n; fma.rn.f32 r, $1, 0f32A57060, r;
            mov.b32 i, k; shl.b32 i, i, 23; mov.b32 p, i;
            ex2.approx.ftz.f32 r, r; mul.f32 $0, r, p;}""",
            "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1,
        )


@triton.jit
def exp_times(x, y):
    """exp(x) y, to all digits where exp(x) is below the normal numbers."""
    if x.dtype != tl.float32:
        return libdevice.exp(x) * y
    else:
        return tl.inline_asm_elementwise(
            """{.reg .f32 k, n, r, p; .reg .b32 i;
            fma.rn.sat.f32 k, $1, 0f3BBB989E, 0f3F000000;
            fma.rm.f32 k, k, 0f437C0000, 0f4B400001;
            sub.f32 n, k, 0f4B40007F; neg.f32 n, n;
            fma.rn.f32 r, $1, 0f3FB8AA3B, n; fma.rn.f32 r, $1, 0f32A57060, r;
            mov.b32 i, k; shl.b32 i, i, 23; mov.b32 p, i;
            ex2.approx.ftz.f32 r, r; mul.f32 r, r, $2; mul.f32 $0, r, p;}""",
            "=f,f,f", [x, y], dtype=tl.float32, is_pure=True, pack=1,
        )


@triton.jit
def in_rows(x, counts):
    """x of 16 bits as float32 in rows that count, and 0 in others: two at once."""
    kept = tl.broadcast_to(tl.where(counts, -1, 0).to(tl.int16), x.shape)
    if x.dtype == tl.bfloat16:
        return tl.inline_asm_elementwise(
            """{.reg .b32 s; and.b32 s, $3, 0x5400; xor.b32 s, s, 0x4444;
            prmt.b32 $0, $2, 0, s; and.b32 s, $3, 0xffff0000; and.b32 $1, $2, s;}""",
            "=r,=r,r,r", [x, kept], dtype=tl.float32, is_pure=True, pack=2,
        )
    return tl.inline_asm_elementwise(
        """{.reg .b16 a, b; .reg .b32 s; and.b32 s, $2, $3; mov.b32 {a, b}, s;
        cvt.f32.f16 $0, a; cvt.f32.f16 $1, b;}""",
        "=r,=r,r,r", [x, kept], dtype=tl.float32, is_pure=True, pack=2,
    )


@triton.jit
def word_of(a, b):
    """Two numbers of 32 bits as a word that is not 0."""
    first, second = bits_of(a), bits_of(b)
    first = tl.where(first == -1, 0x7FFFFFFF, first)  # both are NaN
    return ~((first.to(tl.int64) << 32) | (second.to(tl.int64) & 0xFFFFFFFF))


@triton.jit
def bits_of(x):
    return x.to(tl.int32, bitcast=True) if x.dtype == tl.float32 else x.to(tl.int32)


@triton.jit
def first_whole(word):
    return (~word >> 32).to(tl.int32)


@triton.jit
def second_whole(word):
    return (~word).to(tl.int32)


@triton.jit
def first_float(word):
    return first_whole(word).to(tl.float32, bitcast=True)


@triton.jit
def second_float(word):
    return second_whole(word).to(tl.float32, bitcast=True)


@triton.jit
def pause(N: tl.constexpr):
    """Wait for some N nanoseconds."""
    tl.inline_asm_elementwise(
        "nanosleep.u32 $1; mov.b32 $0, 0;", "=r,r", [N],
        dtype=tl.int32, is_pure=False, pack=1,
    )


@triton.jit
def finite_top(top):
    """A top of minus infinity stands for 0."""
    return tl.where(top == float("-inf"), 0.0, top)


@triton.jit
def off_top(x, top):
    """x - top; 0 where x is the top, also an infinite one."""
    return tl.where(x == top, 0.0, x - top)


@triton.jit
def below_top(e, x, top):
    """e where x is less than the top."""
    return tl.where(x == top, 0.0, e)


@triton.jit
def power_of_2(x):
    """2^x, which is 0 below the normal numbers."""
    return tl.inline_asm_elementwise(
        "ex2.approx.ftz.f32 $0, $1;", "=f,f", [x],
        dtype=tl.float32, is_pure=True, pack=1,
    )


@triton.jit
def log_to_2(x):
    return tl.inline_asm_elementwise(
        "lg2.approx.ftz.f32 $0, $1;", "=f,f", [x],
        dtype=tl.float32, is_pure=True, pack=1,
    )


@triton.jit
def quick_exp(x):
    return power_of_2(x * 1.4426950408889634)


@triton.jit
def exp_of(x, QUICK: tl.constexpr):
    return quick_exp(x) if QUICK else exp(x)


@triton.jit
def quick_exp_times(x, y):
    """In two factors, of which neither is 0 where the product is a normal number."""
    e = power_of_2(x * 0.7213475204444817)
    return e * y * e


@triton.jit
def log1p_held(x):
    """log(1 + x) for x above -1, up to 2^60.

    With 2^-e (1 + x) = 1 + m from 3/4 to 3/2 it is e log(2) + log(1 + m), and m is
    2^-e x + (2^-e - 1), of which the second part is exact.
    """
    u = 1.0 + x
    e = (u.to(tl.int32, bitcast=True) - 0x3F400000) & -0x800000
    scale = (0x3F800000 - e).to(tl.float32, bitcast=True)
    m = tl.fma(x, scale, scale - 1.0)
    p = tl.fma(m, -0.044909581542015076, 0.10448328405618668)
    p = tl.fma(p, m, -0.131622314453125)
    p = tl.fma(p, m, 0.14482061564922333)
    p = tl.fma(p, m, -0.16647766530513763)
    p = tl.fma(p, m, 0.19990606606006622)
    p = tl.fma(p, m, -0.250000536441803)
    p = tl.fma(p, m, 0.3333345353603363)
    p = tl.fma(p, m, -0.5)
    near = tl.fma(m * m, p, m)
    return tl.fma(e.to(tl.float32), 8.262958294867817e-08, near)  # log(2) / 2^23


@triton.jit
def log1p(x):
    if x.dtype != tl.float32:
        return libdevice.log1p(x)
    else:
        usual = (x > -1.0) & (x < 2.0**60)
        y = tl.where(usual, log1p_held(x), log_to_2(1.0 + x) * 0.6931471805599453)
        return tl.where(x == 0, x, y)


@triton.jit
def quick_log1p(x):
    near = x * tl.fma(x, tl.fma(x, 0.3333333, -0.5), 1.0)
    far = log_to_2(1.0 + x) * 0.6931471805599453
    return tl.where(tl.abs(x) < 0.03, near, far)


@triton.jit
def quick_log1p_to_1(x):
    """For x from 0 to 1, within 2^-16: a processor has few units for logarithms, and
    what computes one of an exponential waits for these."""
    p = tl.fma(x, -0.023869076743721962, 0.10122209787368774)
    p = tl.fma(p, x, -0.21004852652549744)
    p = tl.fma(p, x, 0.32520660758018494)
    p = tl.fma(p, x, -0.4993613660335541)
    return x * tl.fma(p, x, 0.9999915957450867)


@triton.jit
def tanh(x):
    if x.dtype != tl.float32:
        return libdevice.tanh(x)
    else:
        size, square = tl.abs(x), x * x
        e = power_of_2(size * 2.8853900817779268)
        far = tl.fma(-2.0, quick_inverse(e + 1.0), 1.0)
        p = tl.fma(square, -0.005895157810300589, 0.020795971155166626)
        p = tl.fma(p, square, -0.053783830255270004)
        p = tl.fma(p, square, 0.13331924378871918)
        p = tl.fma(p, square, -0.33333298563957214)
        near = tl.fma(x * square, p, x)
        return tl.where(size < 0.6, near, tl.where(x < 0, -far, far))


@triton.jit
def quick_tanh(x):
    """1 - 2 / (exp(2 x) + 1), and x - x^3 / 3 where that has no digits."""
    far = tl.fma(-2.0, quick_inverse(power_of_2(x * 2.8853900817779268) + 1.0), 1.0)
    near = x * tl.fma(x * x, -0.3333333, 1.0)
    return tl.where(tl.abs(x) < 0.1, near, far)


@triton.jit
def reread(x):
    """x as float32, computed each time, so that nothing made of it is kept."""
    if x.dtype == tl.float32:
        return tl.inline_asm_elementwise(
            "mov.b32 $0, $1;", "=r,r", [x], dtype=tl.float32, is_pure=False, pack=1
        )
    if x.dtype == tl.bfloat16:
        return tl.inline_asm_elementwise(
            "shl.b32 $0, $2, 16; and.b32 $1, $2, 0xffff0000;",
            "=r,=r,r", [x], dtype=tl.float32, is_pure=False, pack=2,
        )
    return tl.inline_asm_elementwise(
        "{.reg .b16 a, b; mov.b32 {a, b}, $2; cvt.f32.f16 $0, a; cvt.f32.f16 $1, b;}",
        "=r,=r,r", [x], dtype=tl.float32, is_pure=False, pack=2,
    )

'''

INFIX = {
    "add": "+", "subtract": "-", "multiply": "*", "less": "<", "less_equal": "<=",
    "greater": ">", "greater_equal": ">=", "equal": "==", "not_equal": "!=",
    "and": "&", "or": "|", "xor": "^", "right_shift": ">>",
}  # fmt: skip
CALLS = {
    "absolute": "tl.abs({0})", "maximum": "greatest({0}, {1})",
    "minimum": "least({0}, {1})", "negative": "-{0}", "positive": "{0}",
    "spread": "{0}", "square": "{0} * {0}", "reciprocal": "inverse({0})",
    "divide": "({0} / {1})", "where": "tl.where({0}, {1}, {2})",
    "not": "({0} == 0)", "isnan": "({0} != {0})",
    "isfinite": '(tl.abs({0}) < float("inf"))',
    "isinf": '(tl.abs({0}) == float("inf"))', "sqrt": "root({0})",
    "fma": "tl.fma({0}, {1}, {2})",
    "floor": "tl.floor({0})",
    "ceil": "tl.ceil({0})", "trunc": "libdevice.trunc({0})",
    "rint": "libdevice.rint({0})", "copysign": "libdevice.copysign({0}, {1})",
    "sign": "tl.where({0} > 0, 1.0, tl.where({0} < 0, -1.0, {0}))",
    **{
        name: f"libdevice.{name}({{0}})"
        for name in (
            "expm1", "log", "erf", "erfc", "sin", "cos", "exp2", "log2", "log10",
        )
    },
    "exp": "exp({0})", "exp_times": "exp_times({0}, {1})", "log1p": "log1p({0})",
    "tanh": "tanh({0})",
    "power": "libdevice.pow({0}, {1})",
}  # fmt: skip
# In their place where all that is read and written has 16 bits
QUICK = {
    "exp": "quick_exp({0})", "exp_times": "quick_exp_times({0}, {1})",
    "log": "tl.log({0})", "log1p": "quick_log1p({0})", "tanh": "quick_tanh({0})",
}  # fmt: skip
