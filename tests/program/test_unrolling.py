"""Loops over rows of few numbers, each in registers."""

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.program.fusion import NotFusedError
from gradsmith.program.kernels.kernel import Kernel
from gradsmith.program.regions import Fused, fused
from gradsmith.program.unrolling import groups_of, lengths_of, unrolled_nest

pytest.importorskip("llvmlite")

N = 4_003  # no multiple of what fits into a register


def rows(*shape, dtype=float, seed=0):
    return np.random.default_rng(seed).normal(size=(N, *shape)).astype(dtype)


def loop(fn, *args):
    """The kernel of a function, as one loop over rows."""
    program = gs.compile(fn).program(*args)
    return Kernel(program, nest=unrolled_nest(program, len(args[0])))


def require_one_loop(fn, *args, rtol=1e-13):
    found, expected = loop(fn, *args)(*args), fn(*args)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol, 1e-15)
    np.testing.assert_allclose(gs.compile(fn)(*args), expected, rtol, 1e-15)


def loops_of(fn, *args):
    """The loops over rows in a compiled function, and how many steps it has."""
    steps = fused(gs.compile(fn).program(*args)).steps
    found = [step.fn.kernel.nest for step in steps if isinstance(step.fn, Fused)]
    return [nest for nest in found if nest.places is not None], len(steps)


SHAPING = {
    "slices": lambda x: x[:, :2] * x[:, 2:] + x[:, 1:2],
    "from the end": lambda x: x[..., -1:] * x[..., ::-1] + x[:, 0:1],
    "one column": lambda x: x[:, 1][:, None] * x + 1,
    "joined": lambda x: np.concatenate((x * 2, x[:, :1] + 1), axis=1),
    "stacked": lambda x: np.stack([x * x[:, :1], x + 1], axis=1),
    "stacked behind": lambda x: np.stack([x * x[:, :1], x + 1], axis=-1),
    "transposed": lambda x: (
        np.swapaxes(x[:, :, None] * x[:, None, :3], 1, 2)
        + np.transpose(x[:, None, :3] * x[:, :, None], (0, 2, 1))
    ),
    "reshaped": lambda x: np.reshape(x * x[:, :1], (N, 2, 2)) + 1,
}


@pytest.mark.parametrize("name", SHAPING)
def test_axes_behind_the_first(name):
    require_one_loop(SHAPING[name], rows(4))


REDUCED = {
    "sum": lambda x: np.sum(x**2, axis=1, keepdims=True) * x,
    "mean": lambda x: x - np.mean(x * 2, axis=-1, keepdims=True),
    "max": lambda x: x - np.max(x + 0, axis=1, keepdims=True),
    "min": lambda x: x - np.min(x + 0, axis=1, keepdims=True),
    "count": lambda x: x * np.count_nonzero(x > 0, axis=1, keepdims=True),
    "any": lambda x: np.where(np.any(x > 2, axis=1, keepdims=True), x, 0) + 1,
    "all": lambda x: np.where(np.all(x > -1, axis=1, keepdims=True), x, 0) + 1,
    "two axes": lambda x: np.sum((x[:, :, None] * x[:, None, :]), axis=(1, 2)) + 1,
    "between": lambda x: np.sum((x[:, :, None] * x[:, None, :]), axis=1) * x,
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", REDUCED)
def test_reductions_of_rows(name, dtype):
    rtol = 1e-5 if dtype == np.float32 else 1e-13
    require_one_loop(REDUCED[name], rows(4, dtype=dtype), rtol=rtol)


def test_extremes_are_nan_where_there_is_one():
    x = rows(4)
    x[3, 1] = x[5, 0] = np.nan
    require_one_loop(REDUCED["max"], x)
    require_one_loop(REDUCED["min"], x)


def test_cross_products():
    require_one_loop(lambda x, y: np.cross(x, y) * x[:, :1], rows(3), rows(3, seed=1))
    pairs = lambda x, y: np.cross(x[:, None, :], y[:, :, None] * x[:, None, :])
    require_one_loop(pairs, rows(3), rows(2, seed=1))


def test_an_array_for_all_rows():
    weights, bias = np.array([[1.0, 2.0, 3.0]]), np.array([3.0, 1.0, 0.5])
    require_one_loop(lambda x: x[:, :1] * weights + bias * x, rows(3))
    given = lambda x, w: x[:, :1] * w + x
    require_one_loop(given, rows(3), bias)
    require_one_loop(given, rows(3), weights)


def test_constants_with_rows():
    known = rows(3, seed=4)
    require_one_loop(lambda x: x * known + x[:, :1], rows(3))
    repeated = np.broadcast_to(np.array([0.0, 1.0, 2.0]), (N, 3))
    require_one_loop(lambda x: x * repeated + x[:, :1], rows(3))


def test_other_dtypes_in_memory():
    x = rows(3)
    require_one_loop(lambda x: (x > 0) & (x[:, :1] < 1), x)
    flags = rows(3, seed=1) > 0
    require_one_loop(lambda x, f: np.where(f, x, x[:, :1]), x, flags)
    counts = np.arange(3 * N).reshape(N, 3)
    require_one_loop(lambda x, i: x * i + x[:, :1], x, counts)


@pytest.mark.parametrize("n", [256, 257, 263])
def test_the_last_rows(n):
    x = rows(5)[:n]
    f = lambda x: np.concatenate((x[:, 1:] * x[:, :1], np.exp(x)), axis=1) * 2
    for array in (x, x.astype(np.float32)):
        require_one_loop(f, array, rtol=1e-5)


def test_gradients_of_slices_and_joins():
    """Their transposes are zeros with a part, and slices."""

    def loss(x):
        unit = x[:, :3] / np.sqrt(np.sum(x[:, :3] ** 2, axis=1, keepdims=True))
        turned = np.cross(unit, x[:, 3:6]) * np.sin(x[:, 6:])
        return np.sum(np.concatenate((turned, unit), axis=1) ** 3)

    x = rows(7)
    compiled = gs.compile(gs.grad(loss))
    np.testing.assert_allclose(compiled(x), gs.grad(loss)(x), rtol=1e-11, atol=1e-13)
    found, steps = loops_of(gs.grad(loss), x)
    assert len(found) == steps == 1


def test_what_does_not_fit_cuts_the_loop_in_two():
    def f(x):
        y = x * x[:, :1] + np.sum(x, axis=1, keepdims=True)
        total = np.sum(y, axis=0)  # of all rows
        return (y - total) * y[:, :1] + np.sum(y, axis=1, keepdims=True)

    x = rows(3)
    assert len(loops_of(f, x)[0]) == 2
    np.testing.assert_allclose(gs.compile(f)(x), f(x), rtol=1e-11)


def test_a_result_is_computed_where_it_is_needed():
    """f is larger than what it is made of, and only the second group reads it."""

    def fn(x, w):
        small = np.sum(x**2, axis=1)
        f = small[:, None] + w
        return f - (x * small[:, None]) @ (w[:2, None] * w)

    program = gs.compile(fn).program(rows(2), np.ones(8))
    steps = program.steps
    name = {i: step.fn.__name__ for i, step in enumerate(steps)}
    has_rows = lambda step: step.outputs[0].shape[:1] == (N,)
    fits = [has_rows(step) and step.fn is not np.matmul for step in steps]
    first, second = groups_of(program, fits)
    assert [name[i] for i in second][-1] == "subtract"
    assert "add" in [name[i] for i in second]
    assert "add" not in [name[i] for i in first]


def test_long_programs_are_cut():
    w = rows(3, seed=1)

    def f(x):
        for _ in range(300):
            x = x + 0.01 * np.cross(x, w)
        return x

    found, steps = loops_of(f, rows(3))
    assert len(found) == steps == 2
    np.testing.assert_allclose(gs.compile(f)(rows(3)), f(rows(3)), rtol=1e-11)


def test_rows_that_are_long_or_few_are_left():
    assert lengths_of(gs.trace(lambda x: x[:, :20] * 2 + 1, np.ones((10, 30)))) == []
    assert lengths_of(gs.trace(lambda x: x * 2 + 1, np.ones((300, 40)))) == []
    assert lengths_of(gs.trace(lambda x: x * 2 + 1, np.ones((300, 4)))) == [300]


REFUSED = {
    "rows taken": lambda x: x[1:] * 2,
    "rows turned": lambda x: np.transpose(x),
    "rows joined": lambda x: np.concatenate((x, x)),
    "rows summed": lambda x: np.sum(x, axis=0),
    "rows moved": lambda x: np.reshape(x, (4, N)),
    "fortran": lambda x: np.reshape(x[:, None], (N, 4), order="F") * 2,
    "chosen": lambda x: x[:, [0, 2]] * 2,
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_loop_over_rows(name):
    program = gs.trace(REFUSED[name], rows(4))
    with pytest.raises(NotFusedError):
        unrolled_nest(program, N)
    fn = REFUSED[name]
    np.testing.assert_allclose(gs.compile(fn)(rows(4)), fn(rows(4)))


def test_the_listing_names_places():
    text = str(loop(lambda x: x[:, :2] * x[:, 2:], rows(3)))
    assert "x0[c * 3 + 2]" in text
    assert "y0[c * 2 + 1] = " in text


COLUMNS = {
    "product": lambda x: np.sum(x[:, 0] * x[:, 1]),
    "length": lambda x: np.sum(np.sqrt(x[:, 0] ** 2 + x[:, -1] ** 2 + 1)),
    "rosenbrock": lambda x: np.sum((1 - x[:, 0]) ** 2 + (x[:, 1] - x[:, 0] ** 2) ** 2),
    "one of many": lambda x: np.sum(np.sin(x)[:, 1] * x[:, 0]),
}


@pytest.mark.parametrize("columns", [2, 3, 8])
@pytest.mark.parametrize("name", COLUMNS)
def test_gradients_of_columns(name, columns):
    fn, x = COLUMNS[name], rows(columns)[:300]
    expected = gs.grad(fn)(x)
    for found in (gs.compile(gs.grad(fn))(x), gs.grad(gs.compile(fn))(x)):
        np.testing.assert_allclose(found, expected, 1e-13, 1e-15)
