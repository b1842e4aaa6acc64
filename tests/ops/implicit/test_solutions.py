"""What counts as a solution: near in any units, never a divergence or a maximum."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith import ops

CBRT = 2 ** (1 / 3)


def arrays(name):
    """What makes an array of a framework, in float32 or as it is given."""
    if name == "numpy":
        return np.array
    module = pytest.importorskip(name)
    return module.numpy.array if name == "jax" else module.tensor


FRAMEWORKS = ("numpy", "jax", "torch")


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("start", [100.0, 1000.0])
def test_a_root_far_from_where_the_search_begins(framework, start):
    x = ops.root(lambda x: x**3 - 2, arrays(framework)(start))
    assert float(x) == pytest.approx(CBRT, rel=1e-6)


@pytest.mark.parametrize("unit", [1e-200, 1e-15, 1.0, 1e15, 1e150])
def test_the_units_of_f_and_of_x_do_not_matter(unit):
    root = ops.root(lambda x: unit * (x**2 - 2), np.array(1.0))
    assert root == pytest.approx(2**0.5, rel=1e-14)
    if 1e-100 < unit < 1e100:
        small = ops.root(lambda x: x**2 - 2 * unit**2, np.array(1.5 * unit))
        assert small == pytest.approx(2**0.5 * unit, rel=1e-14)
        low = ops.argmin(lambda x: unit * ((x - 1) ** 4 + (x - 1) ** 2), np.array(9.0))
        assert low == pytest.approx(1)


def test_a_small_root_from_a_large_start():
    assert ops.root(lambda x: x**2 - 1e-24, np.array(1e3)) == pytest.approx(1e-12)
    jnp = pytest.importorskip("jax").numpy
    x = ops.root(lambda x, p: x**2 - p, jnp.array(0.02), jnp.array(1e-4))
    assert float(x) == pytest.approx(0.01, rel=1e-6)


def test_a_root_at_zero_is_as_close_as_rounding():
    for f in (np.sin, lambda x: (x + 1) - 1 + np.sin(x)):
        np.testing.assert_allclose(ops.root(f, np.array([1e-5, 0.3])), 0, atol=1e-15)
    # What rounding leaves of x here is more than a tolerance beside |x|
    i = np.arange(8)
    hilbert = 1 / (1 + i[:, None] + i)
    b = hilbert @ np.ones(8)
    x = ops.root(lambda x: hilbert @ x - b, np.zeros(8))
    np.testing.assert_allclose(x, 1, atol=1e-5)


def test_exponentials_from_far_away():
    x0 = np.array(40.0)
    assert ops.root(lambda x: np.exp(x) - 2, x0) == pytest.approx(np.log(2))
    assert ops.argmin(lambda x: np.exp(x) - 2 * x, x0) == pytest.approx(np.log(2))


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_minimum_far_from_where_the_search_begins(framework):
    x0 = arrays(framework)(1000.0)
    x = ops.argmin(lambda x: (x - 1) ** 4 / 4 + (x - 1) ** 2, x0)
    assert float(x) == pytest.approx(1, rel=1e-6)


def test_what_a_given_solver_returns_is_judged_in_its_own_units():
    def root(x):
        return ops.root(
            lambda x: x**3 - 2, np.array(1e4), solver=lambda f, x0: 0 * x0 + x
        )

    with pytest.raises(gs.GradsmithError, match="given solver found no solution"):
        root(20.0)
    assert root(CBRT + 1e-9) == pytest.approx(CBRT, rel=1e-14)


# Fixed points


@pytest.mark.parametrize("g", [lambda x: 2 * x + 1, lambda x: x * x + 1])
def test_divergence_is_no_fixed_point(g):
    with (
        np.errstate(all="ignore"),
        pytest.raises(gs.GradsmithError, match="no fixed point was found"),
    ):
        ops.fixed_point(g, np.array([3.0]), max_steps=2000)


def test_a_map_that_hardly_contracts():
    def once(x, p):
        return x - 1e-4 * (x**2 - p)

    # A step of 1e-4 is within 1e3 roundings of float32
    x = ops.fixed_point(once, np.array(1.0, np.float32), np.array(2.0, np.float32))
    assert x == pytest.approx(2**0.5, rel=1e-4)
    assert ops.fixed_point(lambda x: np.sin(x) / 2, np.array(1.0)) == 0


# Minima


def hill(x):
    return -np.sum(x**2)


@pytest.mark.parametrize(
    ("f", "x0", "words"),
    [
        (hill, [1.0, 2.0], "curvature is negative"),
        (hill, [0.0, 0.0], "curvature is negative"),
        (lambda x: x[0] ** 2 - x[1] ** 2, [1.0, 0.0], "a maximum or a saddle"),
        (lambda x: np.sum(np.sin(x)), [1.5], "curvature is negative"),
    ],
)
def test_a_maximum_is_no_minimum(f, x0, words):
    with pytest.raises(gs.GradsmithError, match=f"(?s)no minimum was found.*{words}"):
        ops.argmin(f, np.array(x0), max_steps=1)


def test_a_given_solver_that_finds_a_maximum():
    with pytest.raises(gs.GradsmithError, match="curvature is negative"):
        ops.argmin(hill, np.ones(2), solver=lambda f, x0: 0 * x0)


def test_a_minimum_above_what_the_search_has_seen():
    # Descent goes down the cubic's end; Newton's method, back to the minimum
    def cubic(x):
        return x**3 - 3 * x

    with (
        np.errstate(all="ignore"),
        pytest.raises(gs.GradsmithError, match="no minimum was found"),
    ):
        ops.argmin(cubic, np.array(-1.5))
    assert ops.argmin(cubic, np.array(0.5)) == pytest.approx(1)


# Compiled by XLA, where asserts do nothing


@pytest.mark.parametrize(
    "problem",
    [
        lambda x: ops.root(lambda x: x**2 + 1, x / 3, max_steps=9),
        lambda x: ops.fixed_point(lambda x: 2 * x + 1, x),
        lambda x: ops.argmin(lambda x: -gnp.sum(x**2), x),
        lambda x: ops.linear_solve(lambda x: 0 * x, x),
        lambda x: ops.linear_solve(gnp.ones((2, 2), like=x), x),
    ],
)
def test_what_xla_finds_no_solution_of_is_nan(problem):
    tf = pytest.importorskip("tensorflow")
    compiled = tf.function(problem, jit_compile=True, autograph=False)
    x = tf.constant([1.0, 1.5], tf.float64)
    assert np.isnan(compiled(x)).all()


def test_a_graph_names_the_numbers_it_says():
    tf = pytest.importorskip("tensorflow")
    f = tf.function(lambda x: ops.root(lambda x: x**2 + 1, x / 3), autograph=False)
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        f(tf.ones(1))
    assert "{" not in str(error.value).split("assertion failed:")[1].split("[[")[0]
    assert "|f(x)| is (residual)" in str(error.value)
