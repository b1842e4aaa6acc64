"""The parts `calculus` and `compiled`: the same meaning in every framework."""

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.core.arrays import FRAMEWORKS

X = np.array([0.5, -1.0, 2.0])


@pytest.fixture(params=("numpy", "tensorflow", "jax", "torch", "mlx"))
def framework(request):
    pytest.importorskip(FRAMEWORKS[request.param].module)
    return FRAMEWORKS[request.param]


def given(framework, *xs, dtype="float32"):
    return [framework.arrays.array(x, dtype) for x in xs]


def values(framework, arrays):
    numpy = framework.arrays.numpy
    return [None if x is None else numpy(x) for x in arrays]


def polynomial(xs):
    x, y = xs
    return [x * x * y, x * 2.0]


@pytest.mark.parametrize("how", [{}, {"nested": True}, {"eager": True}])
def test_vjp(framework, how):
    xs = given(framework, X, X + 1)
    dys = given(framework, np.ones(3), np.full(3, 10.0))
    ys, pull = framework.calculus.vjp(polynomial, xs, **how)
    np.testing.assert_allclose(values(framework, ys)[0], X * X * (X + 1))
    for _ in range(2):  # as often as one likes
        dx, dy = values(framework, pull(dys))
        np.testing.assert_allclose(dx, 2 * X * (X + 1) + 20)
        np.testing.assert_allclose(dy, X * X)


def test_jvp_and_value(framework):
    xs = given(framework, X, X + 1)
    dxs = given(framework, np.ones(3), np.zeros(3))
    ys = framework.calculus.value(polynomial, xs)
    for nested in (False, True):
        again, dys = framework.calculus.jvp(polynomial, xs, dxs, nested=nested)
        np.testing.assert_allclose(values(framework, again), values(framework, ys))
        np.testing.assert_allclose(values(framework, dys)[0], 2 * X * (X + 1))
        np.testing.assert_allclose(values(framework, dys)[1], 2.0)


def test_second(framework):
    xs, dys, vs = (given(framework, *each) for each in ((X, X), (X, X), (X, 0 * X)))
    by_xs, by_dys = framework.calculus.second(polynomial, xs, dys, vs)
    # <pull(dys), vs> = sum (2 x y dy0 + 2 dy1) v
    np.testing.assert_allclose(values(framework, by_xs), [2 * X**3, 2 * X**3], 1e-6)
    np.testing.assert_allclose(values(framework, by_dys), [2 * X**3, 2 * X], 1e-6)


def test_what_is_not_connected(framework):
    xs, dys = given(framework, X, X), given(framework, X)
    _, pull = framework.calculus.vjp(lambda xs: [xs[0] * 3.0], xs)
    found = values(framework, pull(dys))[1]
    assert found is None or not found.any()
    _, pull = framework.calculus.vjp(lambda xs: [xs[0] * 3.0], xs, nested=True)
    assert not values(framework, pull(dys))[1].any()


@pytest.mark.parametrize("how", [{}, {"nested": True}, {"eager": True}])
def test_gradients_of_complex_numbers_are_of_one_convention(framework, how):
    z, dy, w = X + 1j, X - 2j, 0.5 + 0.25j
    zs, dys, ws = (given(framework, x, dtype="complex64") for x in (z, dy, w * z / z))
    _, pull = framework.calculus.vjp(lambda zs: [zs[0] * ws[0]], zs, **how)
    np.testing.assert_allclose(values(framework, pull(dys))[0], np.conj(w) * dy, 1e-6)


def test_a_nested_vjp_is_differentiated_again(framework):
    calculus = framework.calculus
    dys = given(framework, np.ones(3))

    def slope(xs):
        return calculus.vjp(lambda xs: [xs[0] * xs[0] * xs[0]], xs, nested=True)[1](dys)

    _, pull = calculus.vjp(slope, given(framework, X), nested=True)
    np.testing.assert_allclose(values(framework, pull(dys))[0], 6 * X, 1e-6)


def test_indices_and_shapes(framework):
    xs = given(framework, X)
    assert framework.calculus.in_bounds(lambda xs: [xs[0][2]], xs)
    assert framework.calculus.abstract(lambda xs: [xs[0] * 2.0], xs) in (True, False)


def test_jax_tells_of_an_index_out_of_bounds():
    jnp = pytest.importorskip("jax.numpy")
    outside = lambda xs: [xs[0][jnp.array([5])]]
    assert not FRAMEWORKS["jax"].calculus.in_bounds(outside, [jnp.ones(3)])


def test_compiled_and_vectorized(framework):
    compiled, calculus = framework.compiled, framework.calculus
    gradient = lambda xs, dys: calculus.vjp(polynomial, list(xs), nested=True)[1](dys)
    if not compiled.JIT:
        with pytest.raises(gs.UnsupportedOperationError, match="compiles nothing"):
            compiled.jit(gradient)
        with pytest.raises(gs.UnsupportedOperationError, match="vectorizes nothing"):
            compiled.vmap(gradient, [], [])
        return
    xs, dys = given(framework, X, X + 1), given(framework, X, X)
    found = values(framework, compiled.jit(gradient)(xs, dys))
    np.testing.assert_allclose(found[1], X**3, 1e-6)
    found = values(framework, compiled.vmap(gradient, xs, dys))
    np.testing.assert_allclose(found[1], X**3, 1e-6)


def test_loops_and_demands(framework):
    compiled = framework.compiled
    (start,) = given(framework, np.float32(1.0))
    with compiled.unrecorded():
        state = compiled.loop(lambda s: s[0] < 100, lambda s: [s[0] * 2.0], [start])
    assert framework.arrays.numpy(state[0]) == 128
    (x,) = given(framework, X)
    assert compiled.insist(x, state[0] > 100, "{size} is small", size=start) is x
    with pytest.raises(gs.GradsmithError, match=r"^1\.0 is small"):
        compiled.insist(x, state[0] < 100, "{size} is small", size=start)


def test_columns_and_captured_arrays(framework):
    (b,) = given(framework, X)
    columns = framework.compiled.columns(lambda v: v * b, b)
    np.testing.assert_allclose(framework.arrays.numpy(columns), np.diag(X))
    fn, arrays = framework.compiled.converted(lambda x, arrays: x * b, b, [])
    np.testing.assert_allclose(framework.arrays.numpy(fn(b, arrays)), X * X)
