"""A slope that is too large for its dtype is infinite, as its rounding is.

It is never 0, which would say that the function is flat, and never NaN: where 0 comes
in, 0 comes back. At a pole itself the rule gives 0.
"""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import gradsmith as gs

flint = pytest.importorskip("flint")

# Each with its slope, in flint's arb, and the x at which it is defined
SLOPES = {
    "reciprocal": (np.reciprocal, lambda x: -1 / (x * x), lambda x: x != 0),
    "1/x": (lambda x: 1 / x, lambda x: -1 / (x * x), lambda x: x != 0),
    "x/1e-3": (lambda x: x / 1e-3, lambda x: 1 / flint.arb(1e-3), lambda x: True),
    "x**-1.5": (
        lambda x: x**-1.5,
        lambda x: flint.arb(-1.5) * x ** flint.arb(-2.5),
        lambda x: x > 0,
    ),
    "x**-2": (lambda x: x**-2.0, lambda x: -2 / x**3, lambda x: x != 0),
    "x**3": (lambda x: x**3, lambda x: 3 * x * x, lambda x: True),
    "3**x": (
        lambda x: 3.0**x,
        lambda x: flint.arb(3) ** x * flint.arb(3).log(),
        lambda x: abs(x) < 1e6,
    ),
    "exp": (np.exp, lambda x: x.exp(), lambda x: abs(x) < 1e6),
    "exp2": (
        np.exp2,
        lambda x: flint.arb(2) ** x * flint.arb(2).log(),
        lambda x: abs(x) < 1e6,
    ),
    "expm1": (np.expm1, lambda x: x.exp(), lambda x: abs(x) < 1e6),
    "sinh": (np.sinh, lambda x: x.cosh(), lambda x: abs(x) < 1e6),
    "cosh": (np.cosh, lambda x: x.sinh(), lambda x: abs(x) < 1e6),
    "log": (np.log, lambda x: 1 / x, lambda x: x > 0),
    "log2": (np.log2, lambda x: 1 / x / flint.arb(2).log(), lambda x: x > 0),
    "log10": (np.log10, lambda x: 1 / x / flint.arb(10).log(), lambda x: x > 0),
    "sqrt": (np.sqrt, lambda x: 1 / (2 * x.sqrt()), lambda x: x > 0),
    "cbrt": (
        np.cbrt,
        lambda x: 1 / (3 * abs(x) ** (flint.arb(2) / 3)),
        lambda x: x != 0,
    ),
    "arctan2": (
        lambda x: np.arctan2(x, x),  # by x1 and by x2: they cancel
        lambda x: flint.arb(0),
        lambda x: abs(x) > 1e-4,  # else both overflow
    ),
    "arctan2(x, 0)": (
        lambda x: np.arctan2(0 * x, x) + np.arctan2(x, np.zeros_like(x)),
        lambda x: flint.arb(0),
        lambda x: x != 0,
    ),
}
DTYPES = [np.float16, np.float32, np.float64]


def agree(got, truth, dtype, y=0.0):
    """Whether this is a true slope as this dtype has it, up to a few roundings.

    Where the value y has overflown, so has a slope that is made of it: that of 2**x is
    0.69 * y.
    """
    info = np.finfo(dtype)
    largest, rtol = float(info.max), 64 * float(info.eps)
    if np.isinf(got):
        return np.sign(got) * truth > largest * (0.69 if np.isinf(y) else 1 - rtol)
    atol = 4 * float(info.smallest_subnormal)
    return abs(got - truth) <= rtol * abs(truth) + atol


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)
@pytest.mark.parametrize("name", SLOPES)
def test_slopes_round_as_ieee_says(name, dtype):
    fn, slope, defined = SLOPES[name]
    info = np.finfo(dtype)

    @example(float(info.smallest_subnormal))
    @example(float(info.tiny))
    @example(float(info.tiny) ** 0.6)
    @example(1000.0)
    @example(float(info.maxexp))  # 2**x overflows, and 0.69 * 2**x does not
    @settings(max_examples=25)
    @given(st.floats(allow_nan=False, allow_infinity=False, width=info.bits))
    def check(x):
        with np.errstate(all="ignore"):
            x = dtype(x)
            if not np.isfinite(x) or not defined(x):
                return
            flint.ctx.prec = 200
            truth = slope(flint.arb(float(x)))
            one = np.array([x, x])
            dx = gs.grad(lambda x: np.sum(fn(x)))(one)
            y, dy = gs.jvp(fn, [one], [np.ones_like(one)])
            (zero,) = gs.vjp(fn, one)[1](np.zeros_like(one))
            scalar = gs.grad(fn)(x)
        for got in (dx[0], dy[0], scalar):
            assert agree(float(got), truth, dtype, y[0]), (x, got, truth)
        assert not zero.any()
        assert type(dx) is type(dy) is np.ndarray
        assert dx.dtype == dtype

    check()


TINY = 1e-200
MASKED = [
    lambda x: 1 / np.maximum(x, 2 * TINY),
    lambda x: 1 / np.clip(x, 2 * TINY, None),
    lambda x: 1 / np.where(x > 1, x, TINY),
    lambda x: np.maximum(1 / x, 1e300),
    lambda x: np.where(x > 1, 1 / x, 0),
    lambda x: 0 * np.exp(1 / x * 0) + np.abs(0 / x),
    lambda x: np.reciprocal(np.where(x > 1, x, 0 * x + TINY)),
    lambda x: np.exp(np.maximum(1000.0, x)),
]


@pytest.mark.parametrize("fn", MASKED)
def test_what_is_masked_or_clipped_stays_flat(fn):
    x = np.array([TINY, 3.0])
    slope = gs.grad(lambda x: np.sum(fn(x)))

    def push(x):
        return gs.jvp(fn, [x], [np.ones(2)])[1]

    with np.errstate(all="ignore"):
        assert gs.grad(fn)(TINY) == 0
        for each in (slope, push):
            assert each(x)[0] == 0
            for on in (True, False):
                with gs.kernels(on):
                    np.testing.assert_allclose(gs.compile(each)(x), each(x), rtol=1e-15)


ROUTES = {
    "broadcasting": lambda x: x * np.ones((3, 1)),
    "concatenate": lambda x: np.concatenate([x, x + 1]),
    "split": lambda x: np.split(x, 2)[0],
    "stack": lambda x: np.stack([x, x + 1], axis=1),
    "sum": lambda x: np.sum(x.reshape(1, 2), axis=(0,)),
    "mean": lambda x: np.mean(x[:1]),
    "prod": lambda x: np.prod(x[:1]),
    "max": lambda x: np.min(x),
    "slice": lambda x: x[0:1],
    "element": lambda x: x[0] + x[0],
    "take": lambda x: x[[0, 1, 1]],
    "matmul": lambda x: x @ np.eye(2),
    "dot": lambda x: np.dot(np.eye(2), x),
    "einsum": lambda x: np.einsum("i,ij->j", x, np.eye(2)),
    "tensordot": lambda x: np.tensordot(x, np.eye(2), 1),
}


@pytest.mark.parametrize("name", ROUTES)
def test_infinite_cotangents_go_through_all_functions(name):
    x, fn = np.array([TINY, 3.0]), ROUTES[name]
    with np.errstate(all="ignore"):
        slope = gs.grad(lambda x: np.sum(1 / fn(x)))
        flat = gs.grad(lambda x: np.sum(1 / fn(np.maximum(x, 2 * TINY))))
        _, push = gs.jvp(lambda x: 1 / fn(x), [x], [np.ones(2)])
        assert slope(x)[0] == -np.inf
        assert flat(x)[0] in (0, -1)  # -1 by way of x + 1
        assert flat(x)[1] == slope(x)[1] == slope(np.array([1.0, 3.0]))[1] <= 0
        assert not np.isnan(push).any()


def test_sums_of_infinite_numbers_have_their_sign_or_none():
    a = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0], [1.0, -1.0, 0.0]])
    with np.errstate(all="ignore"):
        _, pull = gs.vjp(lambda x: a.T @ (1 / x), np.array([TINY, -TINY, 1.0]))
        _, pull2 = gs.vjp(lambda x: 1 / (a.T @ x), TINY * np.array([1.0, 2.0, 1.0]))
        (dx,), (both,) = pull(np.array([1.0, 0, 0])), pull2(np.ones(3))
    np.testing.assert_array_equal(dx, [-np.inf, 0, -1])
    np.testing.assert_array_equal(both, [-np.inf, -np.inf, np.nan])


def test_a_gradient_that_is_found_is_an_ordinary_array():
    x = np.array([TINY])
    slope = gs.grad(lambda x: np.sum(1 / x))
    with np.errstate(all="ignore"):
        for times_zero in (lambda x: slope(x) * 0, gs.compile(lambda x: slope(x) * 0)):
            assert np.isnan(times_zero(x))


def test_complex_slopes_keep_their_direction():
    z = TINY * np.array([1, 1j, 1 + 1j, -1 + 1j])
    with np.errstate(all="ignore"):
        _, pull = gs.vjp(np.reciprocal, z)
        (dz,) = pull(np.ones(4, complex))
        (zero,) = pull(np.zeros(4, complex))
        _, dy = gs.jvp(np.reciprocal, [z], [np.ones(4, complex)])
    truth = -1 / (z / TINY) ** 2
    assert not np.isnan(dz).any()
    assert not zero.any()
    for part in (np.real, np.imag):  # each infinite, or 0
        np.testing.assert_array_equal(np.sign(part(dz)), np.sign(part(np.conj(truth))))
        np.testing.assert_array_equal(np.sign(part(dy)), np.sign(part(truth)))
        assert (np.isinf(part(dz)) | (part(dz) == 0)).all()


SECOND = {
    "1/x": (lambda x: 1 / x, TINY, np.inf),
    "log": (np.log, TINY, -np.inf),
    "exp": (np.exp, 1000.0, np.inf),
    "x**-0.5": (lambda x: x**-0.5, TINY, np.inf),
    "sinh": (np.sinh, -1000.0, -np.inf),
}


@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives_overflow_too(name):
    fn, at, truth = SECOND[name]
    slope = gs.grad(lambda x: np.sum(fn(x)))
    with np.errstate(all="ignore"):
        for x in (at, np.array([at])):
            assert gs.grad(lambda x: np.sum(slope(x)))(x) == truth
            assert gs.jvp(slope, [x], [np.ones_like(x)])[1] == truth


@pytest.mark.parametrize("n", [3, 300_000])
def test_large_arrays_are_as_small_ones(n):
    x = np.full(n, TINY)
    x[1], x[2] = 0, 2.0
    with np.errstate(all="ignore"):
        for fn, slope in (
            (np.reciprocal, -0.25),
            (np.log, 0.5),
            (lambda x: 1 / x, -0.25),
        ):
            dx = gs.grad(lambda x, fn=fn: np.sum(fn(x)))(x)
            assert type(dx) is np.ndarray
            want = np.sign(slope) * np.inf if fn is not np.log else 1 / TINY
            assert dx[:3].tolist() == [want, 0, slope]


def test_compiled_code_rounds_alike():
    x = np.array([TINY, 5e-324, 0.0, 1.0, 800.0])
    with np.errstate(all="ignore"):
        for fn in (np.reciprocal, np.log, np.exp, np.sinh, lambda x: 2.0 / x):
            slope = gs.grad(lambda x, fn=fn: np.sum(fn(x)))
            np.testing.assert_allclose(gs.compile(slope)(x), slope(x), rtol=1e-15)


def test_a_custom_rule_sees_a_plain_array():
    seen = []

    @gs.custom_gradient
    def same(x):
        def grad(dy):
            seen.append(dy)
            return dy

        return x, grad

    with np.errstate(all="ignore"):
        dx = gs.grad(lambda x: np.sum(1 / same(x)))(np.array([TINY]))
    assert dx == -np.inf
    assert type(seen[0]) is np.ndarray


def test_special_functions_overflow_inside_their_domain():
    sp = pytest.importorskip("scipy.special")
    with np.errstate(all="ignore"):
        for fn, x in ((sp.gamma, 200.0), (sp.i0, 800.0), (sp.erfi, 50.0)):
            assert gs.grad(fn)(x) == np.inf
        for fn, x in ((sp.k1, 1e-200), (sp.k0, 1e-310)):
            assert gs.grad(fn)(x) == -np.inf
        assert gs.grad(sp.ndtri)(5e-324) == np.inf
        for fn in (sp.k0, sp.y0, sp.ndtri, sp.gamma, sp.expi):
            assert gs.grad(fn)(0.0) == 0  # a pole
