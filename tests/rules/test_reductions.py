"""Edges of the reductions: zeros, empty and masked slices, ties of none, options."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import gradsmith as gs
from gradsmith.core.rule import RULES
from gradsmith.rules.statistics import shifted, without_offset

from .harness import difference, inner, random_like

RNG = np.random.default_rng(3)


def gradient(fn, *xs):
    """The gradient of the sum of a function, without leaving NaN or inf in it."""
    dxs = gs.grad(lambda *a: np.sum(fn(*a)), tuple(range(len(xs))))(*xs)
    assert all(np.isfinite(dx).all() for dx in dxs)
    return dxs if len(dxs) > 1 else dxs[0]


# Products with zeros


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ([2.0, 3.0, 4.0], [12.0, 8.0, 6.0]),
        ([2.0, 0.0, 4.0], [0.0, 8.0, 0.0]),
        ([0.0, 0.0, 4.0], [0.0, 0.0, 0.0]),
        ([0.0], [1.0]),
        ([], []),
    ],
)
def test_prod_with_zeros(x, expected):
    np.testing.assert_array_equal(gradient(np.prod, np.array(x)), expected)


def test_prod_of_two_zeros_has_a_second_derivative():
    h = gs.hessian(np.prod)(np.array([0.0, 0.0, 3.0, 2.0]))
    assert h[0, 1] == h[1, 0] == 6
    assert np.count_nonzero(h) == 2


def test_prod_in_a_wider_dtype():
    x = np.full(3, 1e20, np.float32)
    dx = gradient(lambda x: np.prod(x, dtype=np.float64) * 1e-30, x)
    np.testing.assert_allclose(dx, 1e10, rtol=1e-6)
    assert dx.dtype == np.float32


@pytest.mark.parametrize("n", [1, 2, 5, 64, 65, 1000])
def test_cumprod_agrees_with_a_loop(n):
    x, dy = 1 + 0.1 * RNG.standard_normal(n), RNG.standard_normal(n)
    x[n // 2] = 0
    expected = np.zeros(n)
    for i in range(n):
        others = x.copy()
        others[i] = 1
        expected[i] = np.sum((dy * np.cumprod(others))[i:])
    _, pull = gs.vjp(np.cumprod, x)
    np.testing.assert_allclose(pull(dy)[0], expected, rtol=1e-10, atol=1e-14)


def test_cumprod_of_many_elements_is_quick():
    x = np.ones(300_000)
    np.testing.assert_allclose(gradient(np.cumprod, x), np.arange(300_000, 0, -1.0))


# Spread of equal elements


@pytest.mark.parametrize("fn", [np.std, np.nanstd])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_std_of_equal_elements(fn, dtype):
    x = np.ones((2, 3), dtype)
    dx = gradient(lambda x: fn(x, axis=1), x)
    np.testing.assert_array_equal(dx, np.zeros((2, 3)))
    assert dx.dtype == dtype
    assert np.isfinite(gs.hessian(lambda x: np.sum(fn(x, axis=1)))(x)).all()


def _nearly(reals, dtype, *, steps=0):
    """Rows of six times one number, the last one a few roundings larger."""
    x = np.repeat(np.asarray(reals, dtype)[:, None], 6, axis=1)
    x[:, -1] += steps * np.spacing(x[:, -1])
    return x


TENTHS = np.arange(1, 100) / 10


@pytest.mark.parametrize("fn", [np.std, np.nanstd])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_equal_elements_whose_mean_is_rounded(fn, dtype):
    """NumPy's own deviations are then one rounding, and not 0."""
    rows = _nearly(TENTHS, dtype)
    for axis, x in ((1, rows), (0, rows.T), ((0, 2), rows.T[:, :, None])):
        loss = lambda x, axis=axis: np.sum(fn(x, axis=axis))
        np.testing.assert_array_equal(gs.grad(loss)(x), np.zeros(x.shape))
        np.testing.assert_array_equal(gs.jvp(loss, (x,), (RNG.random(x.shape),))[1], 0)
        np.testing.assert_array_equal(gs.hvp(loss, (x,), (x,)), np.zeros(x.shape))
        np.testing.assert_array_equal(gs.compile(gs.grad(loss))(x), np.zeros(x.shape))


@pytest.mark.parametrize("fn", [np.std, np.nanstd])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_elements_that_differ_by_roundings(fn, dtype):
    """Their slopes are those of elements that differ by whole numbers."""
    x = _nearly(TENTHS, dtype, steps=3)
    expected = gradient(lambda x: fn(x, axis=1), np.array([[0.0] * 5 + [3]] * len(x)))
    tolerance = 10 * np.finfo(dtype).eps
    dx = gradient(lambda x: fn(x, axis=1), x)
    np.testing.assert_allclose(dx, expected, rtol=tolerance, atol=tolerance)


def test_equal_elements_of_those_that_are_looked_at():
    x = _nearly(TENTHS, np.float32)
    where = np.ones(x.shape, bool)
    x[:, 0], where[:, 0] = -9e9, False
    zero = np.zeros(x.shape)
    dx = gradient(lambda x: np.std(x, axis=1, where=where), x)
    np.testing.assert_array_equal(dx, zero)
    x[:, 0] = np.nan
    np.testing.assert_array_equal(gradient(lambda x: np.nanstd(x, axis=1), x), zero)
    np.testing.assert_array_equal(gradient(lambda x: np.nanvar(x, axis=1), x), zero)


def test_correlations_with_equal_elements():
    """As those with a variable that does not vary at all; without NumPy's warning."""
    x = RNG.random((3, 6))
    x[0] = 0.1
    assert np.cov(x)[0, 0] != 0  # NumPy's mean is rounded
    for i in range(3):
        dx = gradient(lambda x, i=i: np.corrcoef(x)[0, i], x)
        np.testing.assert_array_equal(dx, np.zeros(x.shape))
    np.testing.assert_array_equal(gradient(lambda x: np.cov(x)[0, 0], x), 0 * x)
    np.testing.assert_array_equal(gradient(lambda x: np.corrcoef(x[0]), x), 0 * x)


def test_usual_rows_are_neither_copied_nor_recorded():
    x = RNG.random((50, 6))
    assert shifted(x, 1, True, False) is x
    tensor = gs.Tensor(x)
    assert without_offset(tensor, 1) is tensor


def test_values_are_those_of_numpy():
    x = np.concatenate([_nearly(TENTHS, np.float64, steps=2**24), RNG.random((9, 6))])
    x[3:5] = -x[3:5]
    assert np.count_nonzero(np.any(shifted(x, 1, True, False) != x, axis=1)) == len(
        TENTHS
    )
    for fn in (np.var, np.std, np.nanvar, np.nanstd):
        tensor = fn(gs.Tensor(x), axis=1)
        np.testing.assert_array_equal(tensor.numpy(), fn(x, axis=1))
    for fn in (np.cov, np.corrcoef):
        np.testing.assert_array_equal(fn(gs.Tensor(x)).numpy(), fn(x))


def test_std_of_one_element():
    assert gradient(np.std, np.array([2.0])) == [0]
    assert gradient(np.std, np.array(2.0)) == 0


@pytest.mark.parametrize("fn", [np.var, np.nanvar, np.std])
def test_no_degree_of_freedom_gives_zero(fn):
    with pytest.warns(RuntimeWarning):
        dx = gradient(lambda x: fn(x, axis=1, ddof=2), RNG.standard_normal((3, 2)))
    np.testing.assert_array_equal(dx, np.zeros((3, 2)))


def test_ddof_and_correction_exclude_one_another():
    with pytest.raises(ValueError, match="ddof or correction"):
        np.var(gs.Tensor([1.0, 2.0]), ddof=1, correction=1)


def test_variance_of_complex_numbers_is_that_of_both_parts():
    z = RNG.standard_normal(4) + 1j * RNG.standard_normal(4)
    both = gradient(np.var, z.real) + 1j * gradient(np.var, z.imag)
    np.testing.assert_allclose(gradient(np.var, z), both)


# Empty and masked slices


def test_empty_arrays():
    for fn in (np.sum, np.prod, np.cumsum, np.cumprod, np.nansum):
        assert gradient(fn, np.zeros((0, 3))).shape == (0, 3)
    with pytest.warns(RuntimeWarning):
        assert gradient(np.mean, np.zeros((0, 3))).shape == (0, 3)
    with pytest.warns(RuntimeWarning):
        assert gradient(lambda x: np.mean(x, axis=1), np.zeros((3, 0))).shape == (3, 0)


@pytest.mark.parametrize("fn", [np.mean, np.var, np.std])
def test_a_slice_that_nothing_is_taken_from(fn):
    where = np.array([[True, True, False], [False, False, False]])
    with pytest.warns(RuntimeWarning):
        dx = gradient(lambda x: fn(x, axis=1, where=where), RNG.standard_normal((2, 3)))
    assert (np.any(dx[0]), np.any(dx[1]), dx[0, 2]) == (True, False, 0)


@pytest.mark.parametrize("fn", [np.nanmean, np.nanvar, np.nanstd])
def test_a_slice_of_nan(fn):
    x = np.array([[1.0, np.nan, 4.0], [np.nan, np.nan, np.nan]])
    with pytest.warns(RuntimeWarning):
        dx = gradient(lambda x: fn(x, axis=1), x)
    assert (np.any(dx[0]), np.any(dx[1]), dx[0, 1]) == (True, False, 0)


@pytest.mark.parametrize("fn", [np.nansum, np.nanprod, np.nancumsum, np.nancumprod])
def test_nan_gets_no_gradient(fn):
    dx = gradient(fn, np.array([2.0, np.nan, 3.0]))
    np.testing.assert_array_equal(dx != 0, [True, False, True])


def test_a_mask_may_be_a_tensor():
    x = np.array([1.0, -2.0, 3.0])
    for fn in (np.sum, np.mean, np.var, np.prod, np.max):
        options = {"initial": 0.0} if fn is np.max else {}
        dx = gradient(lambda x, fn=fn, o=options: fn(x, where=x > 0, **o), x)
        assert dx[1] == 0
        h = gs.hessian(lambda x, fn=fn, o=options: fn(x, where=x > 0, **o))(x)
        assert np.isfinite(h).all()


# Cost and precision


def test_the_cotangent_of_a_sum_is_a_view():
    call = (np.ones((3, 1000)),), {"axis": 1}
    pull = RULES[np.sum].pullback([0], call, np.ones(3))
    assert pull(np.ones(3), None)[0].strides == (8, 0)


def test_float16_means_of_many_elements():
    dx = gradient(np.mean, np.ones(100_000, np.float16))
    assert dx.dtype == np.float16
    np.testing.assert_allclose(dx.astype(float), 1e-5, rtol=0.01)


# Methods of ufuncs


def test_methods_reduce_the_first_axis():
    x = RNG.standard_normal((2, 3))
    for ufunc in (np.add, np.multiply, np.maximum, np.minimum, np.logaddexp, np.hypot):
        t = gs.Tensor(x)
        np.testing.assert_array_equal(ufunc.reduce(t).numpy(), ufunc.reduce(x))
        np.testing.assert_array_equal(
            ufunc.reduce(t, None).numpy(), ufunc.reduce(x, None)
        )
        np.testing.assert_array_equal(
            ufunc.reduce(t, -1, None, None, True).numpy(),
            ufunc.reduce(x, -1, keepdims=True),
        )
    np.testing.assert_array_equal(
        np.add.accumulate(gs.Tensor(x)).numpy(), np.add.accumulate(x)
    )


def test_logaddexp_of_nothing_but_minus_infinity():
    x = np.array([[-np.inf, -np.inf], [-np.inf, 1.0]])
    dx = gradient(lambda x: np.where([False, True], np.logaddexp.reduce(x, 1), 0), x)
    np.testing.assert_array_equal(dx, [[0, 0], [0, 1]])


def test_hypot_of_zeros():
    np.testing.assert_array_equal(gradient(np.hypot.reduce, np.zeros(3)), np.zeros(3))


def test_a_method_without_a_rule_is_refused():
    with pytest.raises(gs.UnsupportedOperationError, match=r"np\.subtract\.reduce"):
        gs.grad(lambda x: np.subtract.reduce(x))(np.ones(3))


# Options that are refused


def test_out_is_refused():
    x = gs.Tensor([1.0, 2.0])
    for fn in (np.sum, np.var, np.std, np.cumprod, np.nanmean):
        with pytest.raises(gs.UnsupportedOperationError, match="existing array"):
            fn(x, out=np.zeros(()))
    with pytest.raises(gs.UnsupportedOperationError, match="existing array"):
        np.sum(x, 0, None, np.zeros(()))


def test_a_followed_initial_is_refused():
    with pytest.raises(gs.UnsupportedOperationError, match="options"):
        gs.grad(lambda x: np.sum(x, initial=x[0]))(np.ones(3))


def test_weights_that_sum_to_zero():
    with pytest.raises(ZeroDivisionError):
        np.average(gs.Tensor([1.0, 2.0]), weights=[1, -1])
    with pytest.raises(TypeError, match="axis"):
        np.average(gs.Tensor(np.ones((2, 3))), weights=[1, 1, 1])
    with pytest.raises(ValueError, match="don't fit"):
        np.average(gs.Tensor(np.ones((2, 3))), axis=0, weights=[1, 1, 1])


def test_weights_in_a_list_of_tensors():
    a = gs.Tensor([1.0, 5.0])
    dx = gs.grad(lambda w: np.average(a, weights=[w[0], w[1]]))
    np.testing.assert_allclose(dx(np.array([1.0, 3.0])), [-0.75, 0.25])


# Correlations


def test_a_variable_that_does_not_vary():
    x = np.array([[1.0, 2.0, 4.0], [3.0, 3.0, 3.0]])
    with np.errstate(all="ignore"):
        dx = gradient(np.corrcoef, x)
    assert dx.shape == x.shape


def test_too_few_observations():
    with pytest.warns(RuntimeWarning), np.errstate(all="ignore"):
        dx = gradient(np.cov, np.ones((2, 1)))
    np.testing.assert_array_equal(dx, np.zeros((2, 1)))


def test_methods_of_a_tensor():
    x = RNG.standard_normal((3, 4))
    for name, options in (
        ("sum", {"axis": 0}),
        ("prod", {"axis": 1}),
        ("mean", {}),
        ("std", {"ddof": 1}),
        ("var", {"axis": 0, "keepdims": True}),
        ("cumsum", {"axis": 1}),
        ("cumprod", {}),
        ("max", {"axis": 0}),
        ("min", {"initial": 0.0}),
        ("clip", {"min": 0.0}),
    ):
        y = getattr(gs.Tensor(x), name)(**options)
        np.testing.assert_array_equal(y.numpy(), getattr(x, name)(**options))


# dtype= given: y has that type, and dx that of x, in both modes

WITH_DTYPE = {
    "sum": np.sum, "mean": np.mean, "prod": np.prod, "var": np.var, "std": np.std,
    "cumsum": np.cumsum, "cumprod": np.cumprod, "trace": np.trace,
    "nansum": np.nansum, "nanmean": np.nanmean, "nanprod": np.nanprod,
    "nanvar": np.nanvar, "nanstd": np.nanstd, "nancumsum": np.nancumsum,
    "nancumprod": np.nancumprod, "linalg.trace": np.linalg.trace, "cov": np.cov,
    "var about a mean": lambda x, dtype: np.var(
        x, axis=0, dtype=dtype, mean=np.mean(x, axis=0, keepdims=True)
    ),
    "add.reduce": np.add.reduce, "multiply.accumulate": np.multiply.accumulate,
    "exp": np.exp,
    "add": lambda x, dtype: np.add(x, x, dtype=dtype),
    "concatenate": lambda x, dtype: np.concatenate([x, x], dtype=dtype),
    "full_like": lambda x, dtype: np.full_like(x, x[0, 0], dtype=dtype),
}  # fmt: skip
FLOATS = ["f4", "f8", "c8", "c16"]
WIDE = {"f": np.float64, "c": np.complex128}


@pytest.mark.parametrize("name", WITH_DTYPE)
@settings(max_examples=25)
@given(
    of=st.sampled_from(FLOATS),
    dtype=st.sampled_from([None, *FLOATS]),
    seed=st.integers(0, 2**16),
)
def test_both_modes_agree_with_differences_for_any_dtype(name, of, dtype, seed):
    if dtype and of[0] == "c" and dtype[0] == "f":
        dtype = "c" + dtype[1:].replace("8", "16").replace("4", "8")
    rng = np.random.default_rng(seed)
    x, v = (each + 2 for each in random_like(rng, [np.empty((3, 3), of)] * 2))
    f = lambda x, dtype=dtype: WITH_DTYPE[name](x, dtype=dtype and np.dtype(dtype))
    try:
        plain = f(x)
    except np.exceptions.ComplexWarning:
        reject()  # NumPy itself loses a part
    y, pull = gs.vjp(f, x)
    assert (y.dtype, y.shape) == (plain.dtype, plain.shape)
    (u,) = random_like(rng, [y])
    (dx,) = pull(u)
    assert dx.dtype == x.dtype
    dy = gs.jvp(f, (x,), (v,))[1]
    assert dy.dtype == y.dtype
    wide = dtype and WIDE[dtype[0]]
    x, dx, v = (each.astype(WIDE[of[0]]) for each in (x, dx, v))
    truth, error = difference(lambda t: inner([u], [f(x + t * v, wide)]), 1e-3)
    eps = max(np.finfo(t).eps for t in (of, dtype or of))
    terms = abs(inner([abs(dx)], [abs(v)])) + abs(inner([abs(u)], [abs(dy)]))
    noise = 1e4 * np.finfo(float).eps * inner([abs(u)], [abs(y)])  # over the step
    bound = error + 100 * eps * (1 + terms) + noise
    assert abs(inner([dx], [v]) - truth) <= bound
    assert abs(inner([u], [dy]) - truth) <= bound


def test_mean_with_a_mask_that_is_broadcast():
    x, mask = np.arange(6.0).reshape(2, 3), np.array([True, False, True])
    for axis in (None, 1, (0, 1)):
        dx = gs.grad(lambda x, axis=axis: np.sum(np.mean(x, axis=axis, where=mask)))(x)
        count = {None: 4, 1: 2, (0, 1): 4}[axis]
        np.testing.assert_allclose(dx, np.broadcast_to(mask, (2, 3)) / count)
