"""Every form of index, against its dense Jacobian; and what counts and chooses."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import gradsmith as gs
from gradsmith.rules import indexing

from .harness import NUMPY, Case, check


@st.composite
def arrays(draw, elements, shape, dtype):
    size = int(np.prod(shape))
    flat = draw(st.lists(elements, min_size=size, max_size=size))
    return np.array(flat, dtype).reshape(shape)


@st.composite
def parts(draw, n, several):
    """The part of a key for an axis of length n; arrays get the shape `several`."""
    kind = draw(st.sampled_from(["number", "slice", "slice", "numbers", "mask"]))
    if kind == "slice":
        return draw(st.slices(n))
    if kind == "mask":
        return draw(arrays(st.booleans(), (n,), bool))
    assume(n)
    numbers = st.integers(-n, n - 1)
    return draw(numbers if kind == "number" else arrays(numbers, several, int))


@st.composite
def shapes_and_keys(draw):
    """A shape of up to three axes, and a key: basic, integer, boolean or mixed."""
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
    if draw(st.integers(0, 9)) == 0:
        return shape, draw(arrays(st.booleans(), shape, bool))
    several = draw(st.sampled_from([(), (1,), (3,), (2, 3), (0,)]))
    key = [draw(parts(n, several)) for n in shape[: draw(st.integers(0, len(shape)))]]
    for extra in draw(st.sampled_from([[], [None], [Ellipsis], [None, Ellipsis]])):
        key.insert(draw(st.integers(0, len(key))), extra)
    return shape, key[0] if len(key) == 1 and draw(st.booleans()) else tuple(key)


def jacobian_of(key, shape):
    """The matrix of x -> x[key]: what the key makes of each unit vector."""
    units = np.eye(int(np.prod(shape)))
    columns = [unit.reshape(shape)[key].ravel() for unit in units]
    return np.array(columns).reshape(len(units), np.zeros(shape)[key].size).T


@given(shapes_and_keys(), st.sampled_from([0, indexing.FEW]))
@settings(max_examples=400)
def test_any_key(shape_and_key, few):
    shape, key = shape_and_key
    x = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
    try:
        y = np.asarray(x[key])
    except IndexError:
        assume(False)
    jacobian = jacobian_of(key, shape)
    u, v = np.sin(1 + y), np.cos(x)
    with patch.object(indexing, "FEW", few):
        value, pull = gs.vjp(lambda t: t[key], x)
        np.testing.assert_array_equal(value, y)
        np.testing.assert_allclose(
            pull(u)[0].ravel(), jacobian.T @ u.ravel(), atol=1e-12
        )
        assert pull(u)[0].shape == shape
        _, dy = gs.jvp(lambda t: t[key], (x,), (v,))
        np.testing.assert_array_equal(dy, v[key])
        # the Hessian of sum(y**3) is J' diag(6 y) J
        expected = jacobian.T @ (6 * y.ravel() * (jacobian @ v.ravel()))
        cube = lambda t: np.sum(t[key] ** 3)
        hvp = gs.hvp(cube, (x,), (v,))
        np.testing.assert_allclose(hvp.ravel(), expected, atol=1e-9)
        twice = gs.grad(lambda t: np.sum(gs.grad(cube)(t) * v))(x)
        np.testing.assert_allclose(twice.ravel(), expected, atol=1e-9)


@pytest.mark.parametrize(
    "key",
    [
        ([0, 2, 0],),
        [0, 2, 0],
        [],
        [[True, False, True], [True, True, False], [False] * 3],
        (np.uint8(1), [0, 0]),
        (np.array(1, np.uint64), np.array([0, 0], np.uint8)),
        (True, [0, 0]),
        (False,),
        (slice(None, None, -2), [[0], [0]]),
        ([1, 1], None, [2, 2]),
        (None, np.array(True), [1, 1]),
    ],
    ids=str,
)
@pytest.mark.parametrize("few", [0, indexing.FEW])
def test_unusual_keys(key, few):
    x = np.arange(9.0).reshape(3, 3)
    u = np.sin(1 + x[key])
    with patch.object(indexing, "FEW", few):
        _, pull = gs.vjp(lambda t: t[key], x)
        expected = jacobian_of(key, x.shape).T @ u.ravel()
        np.testing.assert_allclose(pull(u)[0].ravel(), expected)


@pytest.mark.parametrize(
    "key",
    [
        gs.Tensor([1, 1, 0]),
        (gs.Tensor([1, 1, 0]), 0),
        (slice(None), gs.Tensor(1)),
        gs.Tensor([True, False]),
        (slice(gs.Tensor(1), None), [0, 0]),
        [gs.Tensor(1), 1],
    ],
    ids=str,
)
@pytest.mark.parametrize("persistent", [False, True])
def test_tensors_as_keys(key, persistent):
    x = gs.Tensor([[1.0, 2.0], [3.0, 4.0]])
    with gs.GradientTape(persistent=persistent) as tape:
        tape.watch(x)
        y = np.sum(x[key] * 2)
    plain = gs.core.tensor.unwrap(key)
    expected = 2 * jacobian_of(plain, x.shape).sum(0).reshape(2, 2)
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), expected)


def test_comparison_as_key():
    x = np.array([-1.0, 2.0, 3.0])
    dx = gs.grad(lambda t: np.sum(t[t > 0] ** 2))(x)
    np.testing.assert_array_equal(dx, [0.0, 4.0, 6.0])


def test_numbers_are_not_a_list_of_numbers_on_any_tape():
    x = np.arange(9.0).reshape(3, 3)
    _, pull = gs.vjp(lambda t: t[0, 1], x)  # a persistent tape
    assert pull(1.0)[0][0, 1] == 1
    assert pull(1.0)[0].sum() == 1


def test_float16_sums_of_many_terms():
    x = np.ones(2, np.float16)
    dx = gs.grad(lambda t: np.sum(t[np.zeros(4000, int)], dtype=np.float32))(x)
    assert dx.dtype == np.float16
    assert dx[0] == 4000


def test_iteration_is_one_operation():
    x = gs.Tensor(np.arange(3.0))
    with gs.GradientTape() as tape:
        tape.watch(x)
        first, _, last = x
        y = first * last
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), [2.0, 0.0, 0.0])


def test_read_only_and_strided_arrays():
    x = np.arange(12.0).reshape(3, 4)[:, ::2]
    x.flags.writeable = False
    dx = gs.grad(lambda t: np.sum(t[[0, 0]] ** 2))(x)
    np.testing.assert_array_equal(dx, [[0.0, 8.0], [0.0, 0.0], [0.0, 0.0]])


def test_object_arrays():
    key = np.arange(600) % 3
    y = indexing.scatter(np.ones(600, object), key, (3,))
    np.testing.assert_array_equal(y, [200, 200, 200])


@pytest.mark.parametrize("trim", ["f", "b", "fb"])
def test_trim_zeros(trim):
    x = np.array([0.0, 0.0, 1.0, 0.0, 2.0, 0.0])
    y, pull = gs.vjp(lambda t: np.trim_zeros(t, trim), x)
    np.testing.assert_array_equal(y, np.trim_zeros(x, trim))
    start = 2 if "f" in trim else 0
    stop = 5 if "b" in trim else 6
    np.testing.assert_array_equal(
        pull(np.ones_like(y))[0],
        np.r_[[0.0] * start, [1.0] * (stop - start), [0.0] * (6 - stop)],
    )


@pytest.mark.skipif(NUMPY < (2, 2), reason="NumPy's is for vectors before 2.2")
def test_trim_zeros_of_matrices():
    x = np.zeros((4, 5))
    x[1:3, 2] = 1
    for axis in (None, 0, (1,), ()):
        y = gs.vjp(lambda t: np.trim_zeros(t, axis=axis), x)[0]  # noqa: B023
        np.testing.assert_array_equal(y, np.trim_zeros(x, axis=axis))
    y = gs.vjp(np.trim_zeros, np.zeros((2, 2)))[0]
    assert y.shape == np.trim_zeros(np.zeros((2, 2))).shape
    with pytest.raises(ValueError, match="unexpected"):
        gs.vjp(lambda t: np.trim_zeros(t, "x"), x)


def test_one_argument_where_returns_positions():
    x = gs.Tensor([0.0, 2.0])
    with gs.GradientTape() as tape:
        tape.watch(x)
        (found,) = np.where(x)
        y = np.sum(found * 1.0)
    np.testing.assert_array_equal(found.numpy(), [1])
    assert tape.gradient(y, x) is None
    assert "np.where" in tape.explain(y, x)


def test_where_keeps_a_masked_branch_out():
    dx = gs.grad(lambda t: np.sum(np.where(t > 0, np.sqrt(t), 0)))(np.array([0.0, 4.0]))
    np.testing.assert_array_equal(dx, [0.0, 0.25])


def test_piecewise_conditions_overlap():
    x = np.array([-1.0, 0.5, 2.0])
    f = lambda t: np.sum(np.piecewise(t, [t > 0, t > 1], [np.sin, np.exp, 3.0]))
    np.testing.assert_allclose(gs.grad(f)(x), [0, np.cos(0.5), np.exp(2.0)])
    with pytest.raises(ValueError, match="2 or 3 functions"):
        np.piecewise(gs.Tensor(x), [x > 0, x > 1], [np.sin])


def test_histogram_counts_unless_it_is_weighted():
    x = gs.Tensor([0.1, 0.2, 0.9])
    with gs.GradientTape() as tape:
        tape.watch(x)
        counts, edges = np.histogram(x, 2)
        y = np.sum(counts) + np.sum(edges)  # the edges are 0.1, 0.5 and 0.9
    np.testing.assert_array_equal(counts.numpy(), [2, 1])
    np.testing.assert_allclose(tape.gradient(y, x), [1.5, 0, 1.5])


@pytest.mark.parametrize("bins", [3, [0.0, 0.2, 1.0], [0.5, 0.6]])
def test_weights_of_a_histogram(bins):
    a = np.array([0.0, 0.2, 0.5, 0.99, 1.0, 1.5, -1.0])
    w = np.arange(1.0, 8.0)
    y, pull = gs.vjp(lambda t: np.histogram(a, bins, weights=t)[0], w)
    np.testing.assert_array_equal(y, np.histogram(a, bins, weights=w)[0])
    u = np.arange(1.0, 1 + len(y))
    units = np.eye(7)
    expected = [np.histogram(a, bins, weights=e)[0] @ u for e in units]
    np.testing.assert_allclose(pull(u)[0], expected)


@pytest.mark.parametrize("bins", [4, "auto", "fd", [0.0, 0.3, 1.0]])
@pytest.mark.parametrize("limits", [None, (0.05, 0.95)])
@pytest.mark.parametrize("density", [False, True])
def test_edges_of_a_histogram_move_with_the_data_and_the_limits(bins, limits, density):
    x = np.random.default_rng(0).uniform(size=20)
    parts = [x] if limits is None else [x, np.array(limits)]
    kind = bins if isinstance(bins, (int, str)) else None
    parts = parts if kind else [*parts, np.array(bins)]

    def f(*parts):
        edges = bins if kind else parts[-1]
        given = None if limits is None else (parts[1][0], parts[1][1])
        y, edges = np.histogram(parts[0], edges, given, density=density)
        return np.concatenate([y * 1.0, edges, edges**2])

    check(Case(f, parts))
    for weights in (None,) if kind in ("auto", "fd") else (None, np.arange(20.0)):
        got = np.histogram(gs.Tensor(x), bins, limits, density, weights)
        expected = np.histogram(x, bins, limits, density, weights)
        for part, other in zip(got, expected, strict=True):
            np.testing.assert_array_equal(gs.core.tensor.unwrap(part), other)


SAMPLE = np.random.default_rng(1).uniform(-1, 1, (20, 2))


@pytest.mark.parametrize("density", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bins", [3, (2, 4), ([-1, 0, 0.4], 3), [-0.5, 0, 0.5, 1]])
def test_histograms_of_two_dimensions(density, weighted, bins):
    w, traced = (
        x(np.linspace(1, 2, 20)) if weighted else None for x in (abs, gs.Tensor)
    )
    options = {"bins": bins, "density": density}
    expected = np.histogram2d(*SAMPLE.T, weights=w, **options)
    xs = [gs.Tensor(x) for x in SAMPLE.T]
    for got in (
        np.histogram2d(*xs, weights=w, **options),
        np.histogram2d(*SAMPLE.T, weights=traced, **options),
    ):
        for part, other in zip(got, expected, strict=True):
            np.testing.assert_array_equal(gs.core.tensor.unwrap(part), other)


def test_a_tensor_or_a_list_of_tensors_as_the_sample():
    expected, edges = np.histogramdd(SAMPLE, 3)
    for sample in (gs.Tensor(SAMPLE), [gs.Tensor(x) for x in SAMPLE.T]):
        counts, found = np.histogramdd(sample, 3)
        np.testing.assert_array_equal(counts.numpy(), expected)
        np.testing.assert_array_equal(found[1].numpy(), edges[1])
    counts, _ = np.histogramdd(SAMPLE, [gs.Tensor([-1.0, 0.0, 1.0]), 2])
    np.testing.assert_array_equal(counts.numpy().sum(), 20)


def test_bincount_without_weights():
    y = np.bincount(gs.Tensor([0, 2, 2]))
    np.testing.assert_array_equal(y.numpy(), [1, 0, 2])
