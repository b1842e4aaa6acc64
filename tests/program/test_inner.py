"""Matrix products that a loop nest computes, beside what makes or takes the matrix."""

from importlib import import_module
from typing import Any

import numpy as np
import pytest

import gradsmith as gs
from benchmarks.gradbench.libraries import ours
from gradsmith.core import trees
from gradsmith.program import regions
from gradsmith.program.inner import with_inner, without_inner

pytest.importorskip("llvmlite")

N = 1_003  # no multiple of anything
OPS = {"powers", "product", "totals"}


def matrix(*shape, seed=0, dtype: Any = float):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def ops_of(fn, *args):
    """What kernels compute of products, and NumPy's steps."""
    steps = regions.fused(gs.compile(fn).program(*args)).steps
    nests = [
        step.fn.kernel.nest for step in steps if isinstance(step.fn, regions.Fused)
    ]
    inner = {node.op for nest in nests for node in nest.nodes} & OPS
    return inner, {step.fn for step in steps}


def require_same(fn, *args, rtol=1e-12):
    """That compiled code gives what NumPy does, with kernels and without."""
    compiled = gs.compile(fn)
    with np.errstate(all="ignore"):
        expected = fn(*args)
    found = [compiled(*args), compiled(*args)]
    with gs.kernels(False):
        found.append(gs.compile(fn)(*args))
    expected = trees.leaves(expected)
    for each in map(trees.leaves, found):
        for x, y in zip(each, expected, strict=True):
            assert (x.shape, x.dtype) == (y.shape, y.dtype)
            finite = y[np.isfinite(y)] if y.dtype.kind == "f" else y
            size = np.max(np.abs(finite), initial=0)
            np.testing.assert_allclose(x, y, rtol, rtol * float(size))


@pytest.fixture
def no_short_rows(monkeypatch):
    """So that rows of 16 numbers become no loops of their own."""
    monkeypatch.setattr(regions, "lengths_of", lambda program: [])


def nearest(points, centers):
    """The centers' numbers of points and their sums, as a step of k-means has them."""
    d = np.sum(points**2, 1)[:, None] + np.sum(centers**2, 1) - 2 * points @ centers.T
    mine = (d == np.min(d, axis=1)[:, None]) * 1.0
    return np.sum(mine, axis=0), mine.T @ points


def fit(x, t, s):
    r = s - np.vander(t, len(x), increasing=True) @ x
    return r, r @ np.vander(t, len(x), increasing=True)


def fit_decreasing(x, t, s):
    a = np.vander(t, len(x))
    r = s - a @ x
    return np.sum(r * r), (2 * r) @ a


@pytest.mark.parametrize("problem", ["kmeans", "llsq"])
def test_benchmarks_have_no_large_arrays(problem):
    """60 us where it was 260, and 0.6 ms where it was 1.2."""
    module = import_module(f"benchmarks.gradbench.{problem}")
    size = module.SIZES[-1]
    inputs = module.inputs(np.random.default_rng(0), **size)
    program = gs.compile(module.in_numpy(ours(), **size)).program(*inputs)
    steps = regions.fused(program).steps
    most = max(x.size for x in program.inputs)
    assert max(y.size for step in steps for y in step.outputs) <= most
    assert not {np.vander, np.matmul} & {step.fn for step in steps}


@pytest.mark.parametrize("columns", [33, 39, 40, 100])
@pytest.mark.parametrize("narrow", [1, 2, 8, 16])
def test_products_of_narrow_matrices(columns, narrow):
    points, centers = matrix(N, narrow), matrix(columns, narrow, seed=1)
    require_same(nearest, points, centers)
    assert ops_of(nearest, points, centers)[0] == {"product", "totals"}


@pytest.mark.parametrize("columns", [16, 19, 128, 131])
@pytest.mark.parametrize("fn", [fit, fit_decreasing])
def test_powers(fn, columns):
    t = np.linspace(-1, 1, N)
    args = matrix(columns), t, matrix(N, seed=1)
    require_same(fn, *args)
    inner, others = ops_of(fn, *args)
    assert inner == {"powers", "totals"}
    assert np.vander not in others


def test_powers_that_are_infinite_zero_or_nan():
    t = np.array([0.0, -0.0, 1e-200, 1e200, -1e200, np.inf, -np.inf, np.nan, -1.0])
    t = np.resize(t, N)
    along = lambda x, t: np.vander(t, len(x), increasing=True) @ x
    require_same(along, np.ones(24), t)
    require_same(along, -np.ones(24), t[t == t])
    for x in t[:9]:  # each alone, since one NaN makes all sums NaN
        across = lambda s, t: (s * 2) @ np.vander(t, 24, increasing=True)
        require_same(across, np.ones(N), np.where(np.arange(N) == 5, x, 0.5))


def test_invalid_numbers_in_narrow_matrices():
    for x in (np.inf, -np.inf, np.nan):
        points, centers = matrix(N, 3), matrix(40, 3, seed=1)
        points[7, 1] = x
        require_same(nearest, points, centers)
        centers[5, 2] = x
        require_same(nearest, matrix(N, 3), centers)


@pytest.mark.parametrize("place", [5, N - 5, N - 1])
def test_infinite_rows_stay_infinite_in_sums(place):
    """Several rows are added up at once, and the last ones are fewer."""

    def sums(x, w, p):
        z = np.maximum(x @ w, 0)
        return z.T @ p, np.sum(z, axis=0)

    x, w, p = (np.abs(matrix(*s)) for s in ((N, 4), (4, 40), (N, 3)))
    x[place, 1] = np.inf
    require_same(sums, x, w, p)
    assert ops_of(sums, x, w, p)[0] == {"product", "totals"}


def test_kernels_are_written_down():
    program = gs.compile(nearest).program(matrix(N, 2), matrix(40, 2, seed=1))
    fns = [step.fn for step in regions.fused(program).steps]
    text = "\n".join(str(fn.kernel) for fn in fns if isinstance(fn, regions.Fused))
    for line in ("[r, 1]", "[1, c]", "= product(", "[:, c] += "):
        assert line in text


def test_float32():
    layer = lambda x, w, b: np.maximum(x @ w + b, 0)
    args = [matrix(*s, dtype=np.float32) for s in ((N, 5), (5, 33), (33,))]
    require_same(layer, *args, rtol=1e-5)
    assert ops_of(layer, *args)[0] == {"product"}


def test_views():
    points, centers = matrix(2 * N, 12)[::-2, 1:9], matrix(8, 50, seed=1).T[3:40]
    require_same(nearest, points, centers)
    x, t = matrix(48)[::2], matrix(3 * N, seed=1)[::3] / 4
    require_same(fit, x, t, matrix(N, 2, seed=2)[:, 1])


def test_captured_arrays():
    points, centers = matrix(N, 4), matrix(40, 4, seed=1)
    require_same(lambda c: nearest(points, c), centers)
    require_same(lambda p: nearest(p, centers), points)
    ones = np.ones((N, 4))
    require_same(lambda c: nearest(ones, c), centers)


def test_matrices_that_have_more_than_one_part(no_short_rows):
    """As factor and element by element, in the shape of the result too."""
    w = matrix(16, 16, seed=1)
    require_same(lambda x: np.exp(-np.abs(x @ w)) * x, matrix(N, 16))
    require_same(lambda x: np.exp(-np.abs((x * 2) @ w)) * (x * 2), matrix(N, 16))
    require_same(lambda x: np.tanh((x @ w) + (x @ w.T)) - x, matrix(N, 16))
    require_same(lambda x, y: (x @ x[:4]) * y, matrix(N, 4)[:, :4], matrix(N, 4))
    narrow = lambda x, v: (np.sum(x * 2, 1)[:, None] + np.exp(x @ v), x * 2)
    require_same(narrow, matrix(N, 4), matrix(4, 40))


def test_what_is_needed_as_a_whole_is_left_to_blas():
    for fn in (
        lambda x, w: (x @ w, (x @ w) * 2),
        lambda x, w: np.tanh(x @ w).T @ (x @ w),
        lambda x, w: (np.tanh(x @ w), np.tanh(x @ w).T @ x),
    ):
        args = matrix(N, 4), matrix(4, 40)
        require_same(fn, *args)
        assert np.matmul in ops_of(fn, *args)[1]
    whole = lambda x, t: (np.vander(t, 16, increasing=True) @ x, np.vander(t, 16))
    require_same(whole, np.ones(16), matrix(N) / 4)
    table = lambda x, t: np.sum(np.vander(t, 16, increasing=True) * x, axis=1)
    require_same(table, np.ones(16), matrix(N) / 4)


def test_small_or_short_arrays_are_left_to_numpy():
    few = [(matrix(n, 4), matrix(c, 4)) for n, c in ((20, 30), (N, 3), (1, 16))]
    for points, centers in few:
        require_same(nearest, points, centers)
        assert not ops_of(nearest, points, centers)[0]
    none = lambda x, w: np.tanh(x @ w) * 2
    require_same(none, np.ones((0, 4)), np.ones((4, 16)))
    require_same(none, np.ones((N, 0)), np.ones((0, 16)))


def test_programs_are_as_before_where_no_kernel_is():
    args = matrix(N, 4), matrix(40, 4, seed=1)
    program = gs.compile(nearest).program(*args)
    same = without_inner(with_inner(program))
    for x, y in zip(same(*args), program(*args), strict=True):
        np.testing.assert_allclose(x, y, 1e-12)
    fit_program = gs.compile(fit).program(matrix(20), matrix(N), matrix(N))
    assert without_inner(with_inner(fit_program)) == fit_program


def test_many_columns_are_too_many_to_be_near():
    args = matrix(N, 16), matrix(900, 16, seed=1)
    require_same(nearest, *args)
    assert "totals" not in ops_of(nearest, *args)[0]


def test_gradients():
    loss = lambda w, x: np.sum(np.tanh(x @ w) ** 2)
    require_same(gs.grad(loss), matrix(6, 30) / 4, matrix(N, 6, seed=1))
    fitted = lambda x, t: np.sum(fit(x, t, 0.5 * t)[0] ** 4)
    require_same(gs.value_and_grad(fitted), matrix(30), np.linspace(-1, 1, N))


UNARY = [np.tanh, np.abs, np.negative, lambda a: a * 0.5, lambda a: np.exp(-a * a)]
BINARY = [np.add, np.subtract, np.multiply, np.maximum]
ROWS = [np.min, np.max, np.sum, np.mean]


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(no_short_rows, seed):
    """Steps on matrices, rows and columns, with products of all kinds."""
    rng = np.random.default_rng(seed)
    n, m, c = int(rng.integers(700, 1200)), int(rng.integers(1, 17)), 16
    c += int(rng.integers(0, 30))
    plan = [(int(rng.integers(7)), rng.integers(1 << 30, size=4)) for _ in range(9)]
    last = rng.integers(1 << 30, size=2)

    def program(p, h, t, v):
        full, rows, out = [np.tanh(p @ h)], [t], []
        for what, (i, j, k, f) in plan:
            a, b = full[i % len(full)], full[j % len(full)]
            row = rows[k % len(rows)]
            if what < 2:
                full.append(UNARY[f % 5](a))
            elif what == 2:
                full.append(BINARY[f % 4](a, b))
            elif what == 3:
                full.append(BINARY[f % 3](a, (row[:, None], v)[f % 2]))
            elif what == 4:
                rows.append(ROWS[f % 4](a, axis=1) / c)
            elif what == 5:
                full.append(np.where(a > row[:, None], b, 0))
            else:
                powers = np.vander(t, c, increasing=bool(f % 2))
                rows.append(powers @ v / c)
                out.append((row * 2) @ powers)
        x, y, row = full[last[0] % len(full)], full[last[1] % len(full)], rows[-1]
        return (*out, x.T @ p, np.sum(y, axis=0), row * 1.0)

    args = matrix(n, m), matrix(m, c), np.linspace(-1, 1, n), matrix(c, seed=seed)
    require_same(program, *args, rtol=1e-10)
    assert "product" in ops_of(program, *args)[0]
