"""exp, log and their kin on lanes: polynomials of our own, and no branches.

LLVM has no code of its own for these functions: it calls the C library's, number by
number. Each is within 1 ULP in float32 and float64 where the docstring says nothing
else, and right at zeros, infinities, NaN and below the normal numbers.
"""

from __future__ import annotations

from math import inf, nan

from .lanes import Lane, abs_, copysign, fma, maximum, minimum, where

# log(2) in two parts: the first has zeros at its end, so that k times it is exact. Both
# are positive, so that an infinite k times them is no NaN.
_LN2 = {
    "f32": (0.693145751953125, 1.428606820309417e-06),
    "f64": (0.6931471803691238, 1.9082149292705877e-10),
}
_LOG2E = 1.4426950408889634
_SHIFT = {"f32": 1.5 * 2**23, "f64": 1.5 * 2**52}
_MANTISSA = {"f32": 23, "f64": 52}
_BIAS = {"f32": 127, "f64": 1023}

# (exp(r) - 1 - r) / r^2 for |r| < log(2) / 2, off by 6.2e-8 and 1.0e-16
_EXP = {
    "f32": (
        0.5000000026949164, 0.16666576966565452, 0.04166637515549869,
        0.008363181893478186, 0.0013941122293861343,
    ),
    "f64": (
        0.5000000000000001, 0.16666666666666674, 0.04166666666662412,
        0.008333333333322207, 0.0013888888917217457, 0.00019841269886591,
        2.4801521290973345e-05, 2.7557242336680357e-06, 2.7620090518499427e-07,
        2.5110049895858716e-08,
    ),
}  # fmt: skip
# The same for |r| < log(2) / 32: off by 1.6e-9 of exp(r)
_EXP_NEAR = (0.50001619, 0.16667031)
_SHIFT_16 = 1.5 * 2**19  # as _SHIFT, for 16ths
# (2 atanh(s) / s - 2) / z, where z = s^2 < 0.04, off by 4.8e-7 and 2.5e-17: of the
# logarithm that is 0.02 times as much at most
_LOG = {
    "f32": (0.6666671416795085, 0.3997885939000143, 0.29959567012308214),
    "f64": (
        0.6666666666666666, 0.4000000000000791, 0.28571428567294127,
        0.22222223044565945, 0.18181737971958095, 0.15388852380155565,
        0.13210038595888274, 0.1360631516051909,
    ),
}  # fmt: skip
# For the first four bits of m, which is from 3/4 to 3/2: m times the first is 1 + r,
# with r from -1/16 to 1/8; the second is minus the log of the first, in units of 2^-16,
# to 2e-10. Where m is near 1, r is m - 1, which is exact.
_LOG_TABLE = (
    (
        1.0, 1.0, 0.86289614, 0.8242486, 0.7845498, 0.74152845, 0.71087205, 0.6792614,
        1.3020586, 1.2577115, 1.2099724, 1.1691363, 1.1174376, 1.0800376, 1.0, 1.0,
    ),
    (
        0, 0, 9664, 12667, 15902, 19598, 22365, 25346,
        -17298, -15027, -12491, -10241, -7277, -5046, 0, 0,
    ),
)  # fmt: skip
# (log(1 + r) - r) / r^2 for these r, off by 2.9e-9 of log(1 + r)
_LOG_NEAR = (
    -0.4999998543726487, 0.3333347234486211, -0.2501236194870256, 0.20006389695746896,
    -0.1445640193540109,
)  # fmt: skip


def _polynomial(t: Lane, c: tuple[float, ...]) -> Lane:
    y = fma(t, c[-1], c[-2])
    for each in c[-3::-1]:
        y = fma(y, t, each)
    return y


def _reduced(x: Lane, shift: float) -> tuple[Lane, Lane, Lane]:
    """k and r with x = k log(2) + r, where k is whole, and the last bits of the third.

    Added to a great number, `shift`, the whole part of a number is in the last bits; to
    a smaller one, so many 16ths.
    """
    bits = fma(x, _LOG2E, shift)
    k = bits - shift
    high, low = _LN2[x.kind]
    return k, fma(k, -low, fma(k, -high, x)), bits


def _whole(bits: Lane) -> Lane:
    shift = bits.code.number(_SHIFT[bits.kind], bits.kind, bits.width)
    return bits.as_bits() - shift.as_bits()


def _has_avx512(x: Lane) -> bool:
    return x.code.scales and x.width * int(x.kind[1:]) == 512


def _by_table(x: Lane) -> bool:
    """Whether a register has 16 numbers, and chooses from as many."""
    return x.kind == "f32" and _has_avx512(x)


def _scaled(y: Lane, k: Lane, bits: Lane) -> Lane:
    """y 2^k."""
    if _has_avx512(y):
        return y.code.scaled(y, k)
    # In two steps: the power itself may be out of range
    n = _whole(bits)
    half = n >> 1
    return y * _power(half, y.kind) * _power(n - half, y.kind)


def _power(n: Lane, kind: str) -> Lane:
    """2^n, for n that is in range."""
    return ((n + _BIAS[kind]) << _MANTISSA[kind]).reinterpreted(kind)


# Beyond them exp is 0 or infinite, and so is its product with 2^-64 to 2^64
_HELD = {"f32": (-104.0, 89.0), "f64": (-746.0, 710.0)}
_FURTHER = 45.0
_EVERYWHERE = (-inf, inf)


def exp(x: Lane, within: tuple[float, float] = _EVERYWHERE) -> Lane:
    """`within` is where x is known to lie."""
    return _scaled(*_exp_parts(x, within))


def exp_times(x: Lane, y: Lane, within: tuple[float, float] = _EVERYWHERE) -> Lane:
    """exp(x) y, within 2 ULP, for |y| from 2^-64 to 2^64."""
    e, k, bits = _exp_parts(x, within)
    return _scaled(e * y, k, bits)


def _exp_parts(x: Lane, within: tuple[float, float]) -> tuple[Lane, Lane, Lane]:
    """exp(x) is the first times 2 to the second; x is held beyond what that can be.

    By the same bounds for `exp` and `exp_times`, which then have their parts in common
    where a kernel needs both: silu and its gradient take 0.7 of the time with AVX2.
    """
    low, high = _HELD[x.kind]
    low, high = low - _FURTHER, high + _FURTHER
    by_table = _by_table(x)
    # AVX-512 multiplies by any power of 2, whose exponent is exact up to here
    far = 1e5 if by_table else 1e6
    least, most = (-far, far) if _has_avx512(x) else (low, high)
    if within[0] < least:
        x = maximum(x, low)
    if within[1] > most:
        x = minimum(x, high)
    if by_table:
        return _exp_by_table(x)
    k, r, bits = _reduced(x, _SHIFT[x.kind])
    return fma(r * r, _polynomial(r, _EXP[x.kind]), r) + 1, k, bits


def _exp_by_table(x: Lane) -> tuple[Lane, Lane, Lane]:
    """The same for k in 16ths, of which `scaled` takes the whole part.

    The last four bits choose their power of 2 from a register: 0.83 of the time.
    """
    k, r, bits = _reduced(x, _SHIFT_16)
    t = x.code.chosen([2 ** (i / 16) for i in range(16)], bits.as_bits())
    return fma(t, fma(r * r, _polynomial(r, _EXP_NEAR), r), t), k, bits


def expm1(x: Lane) -> Lane:
    """exp(x) - 1, within 1.5 ULP."""
    low, high = _HELD[x.kind]
    x_held = minimum(maximum(x, low), high)
    _, r, bits = _reduced(x_held, _SHIFT[x.kind])
    y = fma(r * r, _polynomial(r, _EXP[x.kind]), r)
    n = _whole(bits)
    # Half of 2^k in between, which is in range where 2^k is not
    half = _power(maximum(n - 1, -_BIAS[x.kind]), x.kind)
    z = fma(half, y, half - 0.5)
    return where(n.equals(0), where(x.equals(0), x, y), z + z)


def _log_parts(x: Lane) -> tuple[Lane, Lane]:
    """e and m with x = m 2^e and m from 3/4 to 3/2, for normal numbers x."""
    if _has_avx512(x):
        return x.code.log2_parts(x)
    bits, n = x.as_bits(), _MANTISSA[x.kind]
    start = x.code.number(0.75, x.kind, x.width).as_bits()
    off = bits - start
    e = off >> n
    m = (bits - (e << n)).reinterpreted(x.kind)
    return e.converted(x.kind), m


def _log_of(f: Lane, e: Lane, more: Lane | None = None) -> Lane:
    """log(1 + f) + e log(2), and `more`, which is small."""
    s = f / (f + 2)
    z = s * s
    half = f * f * 0.5
    high, low = _LN2[f.kind]
    # log(1 + f) = f - half + s (half + z L(z))
    rest = s * fma(z, _polynomial(z, _LOG[f.kind]), half)
    tail = fma(e, low, rest)
    if more is not None:
        tail = tail + more
    return fma(e, high, f - (half - tail))


def _log_by_table(x: Lane, lost: Lane | None = None) -> Lane:
    """log(x), or log(x + lost), right for all numbers x, by two tables in registers.

    There is no division that the rest would wait for. What is added last is exact.
    """
    e, m = _log_parts(x)
    places = m.as_bits().unsigned_shift(_MANTISSA[x.kind] - 4)
    factors, logs = _LOG_TABLE
    c = x.code.chosen(factors, places)
    log_c = x.code.chosen([n * 2.0**-16 for n in logs], places)
    r = fma(m, c, -1.0)
    if lost is not None:
        finite = minimum(-e, 200.0)  # where x is 0, and nothing lost
        r = fma(x.code.scaled(lost, finite), c, r)
    c0, c1, c2, c3, c4 = _LOG_NEAR
    square = r * r
    near = fma(square, fma(square, c4, fma(r, c3, c2)), fma(r, c1, c0))
    high, low = _LN2[x.kind]
    return fma(e, high, log_c) + fma(square, near, fma(e, low, r))


def _log_of_parts(x: Lane, e: Lane, m: Lane, lost: Lane | None) -> Lane:
    f = m - 1
    if lost is None:
        return _log_of(f, e)
    near = e.equals(0)
    nothing = near | lost.equals(0)
    more = where(nothing, 0.0, lost / x)
    return _log_of(where(near, f + lost, f), e, more)


def log(x: Lane, lost: Lane | None = None) -> Lane:
    """The logarithm of x, or of x + lost, of which |lost| is half an ULP at most."""
    if _by_table(x):
        return _log_by_table(x, lost)
    if _has_avx512(x):  # whose parts are right for all numbers: 0.5 of the time
        return _log_of_parts(x, *_log_parts(x), lost)
    n = _MANTISSA[x.kind] + 2
    smallest = 2.0 ** (1 - _BIAS[x.kind])
    small = x < smallest
    e, m = _log_parts(where(small, x * 2.0**n, x))
    e = where(small, e - n, e)
    y = _log_of_parts(x, e, m, lost)
    y = where(x < inf, y, x)  # infinite, or NaN
    return where(x > 0, y, where(x.equals(0), -inf, where(x < 0, nan, x)))


def log1p(x: Lane) -> Lane:
    u = x + 1
    # What rounding took from u, of which the greater part is known
    lost = where(x > 1, 1 - (u - x), x - (u - 1))
    if _by_table(x):
        y = _log_by_table(u, lost)
    else:
        y = _log_of_parts(u, *_log_parts(u), lost)
    y = where(x < inf, y, x)
    y = where(x > -1, y, where(x.equals(-1), -inf, where(x < -1, nan, x)))
    return where(x.equals(0), x, y)


def tanh(x: Lane) -> Lane:
    """Within 2 ULP."""
    t = expm1(minimum(abs_(x), 25.0) * 2)
    return copysign(t / (t + 2), x)


# erfc(u) exp(u^2) (1 + 2 u) as a polynomial in (u - 5/2) / (u + 5/2), off by 4.5e-9 for
# u < 10.2, and by 1.7e-17 for u < 28
_ERFC = {
    "f32": (
        1.264838180919176, -0.1223566991083718, -0.09902418454531711,
        0.15762788066730551, -0.10297371517933582, 0.03277706980901611,
        0.0009798881616732075, -0.004419896626658823, 0.0003429295930624538,
        0.0006142569664392496, 7.950829465425777e-05,
    ),
    "f64": (
        1.2648381843668615, -0.12235676308240401, -0.09902453957360843,
        0.1576299190231839, -0.10296705603817416, 0.03276089326987839,
        0.0009318928079833041, -0.0043820783604469025, 0.000491865926351174,
        0.0006321245279594732, -8.84800471360718e-05, -0.00011352343220970695,
        6.269655431546083e-06, 2.2703609589825716e-05, 2.5983227109288184e-06,
        -4.2278272315922605e-06, -1.5649821361841886e-06, 5.440412739622881e-07,
        5.084495546342924e-07, 1.3743596536409755e-08, -1.0663868258583637e-07,
        -2.661253467992333e-08, 1.1296131763445985e-08, 4.644632228012203e-09,
    ),
}  # fmt: skip
# erf(x) / x for x^2 < 1, off by 1.2e-9 and 7.1e-18
_ERF = {
    "f32": (
        1.1283791659138993, -0.37612627135528626, 0.1128360016912614,
        -0.026854444237171003, 0.0051895345933877166, -0.0008020834298678889,
        7.889095510477581e-05,
    ),
    "f64": (
        1.1283791670955126, -0.3761263890318355, 0.11283791670945252,
        -0.026866170643276073, 0.005223977607422502, -0.0008548325989661416,
        0.00012055295319730584, -1.492474465356765e-05, 1.6447517609499445e-06,
        -1.6209175731923008e-07, 1.3722976770798816e-08, -7.801191888341914e-10,
    ),
}  # fmt: skip
_NOTHING = {"f32": 10.2, "f64": 28.0}  # beyond them erfc is 0


def _erfc_of_size(u: Lane) -> Lane:
    """erfc(u) for u from 0 on."""
    u = minimum(u, _NOTHING[u.kind])
    # a is u without its last bits, so that a^2 is exact; u^2 in two parts.
    bits = _MANTISSA[u.kind] // 2 + 1
    a = (u.as_bits() & -(1 << bits)).reinterpreted(u.kind)
    rest = (u - a) * (u + a)
    high = a * a + rest
    low = (a * a - high) + rest
    e = exp(-high)
    e = e - e * low
    return e * (_polynomial((u - 2.5) / (u + 2.5), _ERFC[u.kind]) / (u * 2 + 1))


def _erf_near(x: Lane) -> Lane:
    """erf(x) for |x| < 1."""
    first, *rest = _ERF[x.kind]
    return fma(x, _polynomial(x * x, (first - 1, *rest)), x)


def erfc(x: Lane) -> Lane:
    """1 - erf(x), within 4 ULP."""
    size = abs_(x)
    y = _erfc_of_size(size)
    return where(size < 0.5, 1 - _erf_near(x), where(x < 0, 2 - y, y))


def erf(x: Lane) -> Lane:
    size = abs_(x)
    far = copysign(1 - _erfc_of_size(size), x)
    return where(size < 1, _erf_near(x), far)
