"""The edges of shaping, joining, padding, choosing and creating."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import gradsmith as gs
from tests.rules import harness
from tests.rules.cases import indexing, joining, shaping


def curved(case):
    """The case followed by a square: most rules here are linear, and so to second order
    their transposes would never be differentiated."""

    def fn(*args, **kwargs):
        return gs.core.trees.map(lambda y: np.multiply(y, y), case.fn(*args, **kwargs))

    return harness.Case(fn, case.args, case.kwargs, float32=False, name=case.name)


@pytest.mark.parametrize(
    "case", [*map(curved, shaping.CASES + joining.CASES + indexing.CASES)], ids=str
)
def test_second_order_of_linear_rules(case):
    harness.check(case)


@pytest.mark.parametrize(
    "case",
    [
        c
        for c in shaping.CASES + joining.CASES + indexing.CASES
        if "copy" not in c.kwargs
    ],
    ids=str,
)
def test_layout_and_precision_do_not_matter(case):
    """Read-only Fortran-ordered arrays of float16 get the gradients that others get."""
    half = gs.core.trees.map(_to_half, list(case.args))
    odd = gs.core.trees.map(_frozen_fortran, half)
    results = []
    for args in (half, odd):
        fn, xs = harness.as_function(harness.Case(case.fn, args, case.kwargs))
        ys, pull = gs.vjp(fn, *xs)
        dxs = pull([np.ones_like(y) for y in ys])
        assert [dx.dtype for dx in dxs] == [x.dtype for x in xs]
        assert [dx.shape for dx in dxs] == [x.shape for x in xs]
        results.append(dxs)
    for dx, other in zip(*results, strict=True):
        np.testing.assert_array_equal(dx, other)


def _to_half(x):
    is_real = isinstance(x, np.ndarray) and x.dtype.kind == "f"
    return x.astype(np.float16) if is_real else x


def _frozen_fortran(x):
    if isinstance(x, np.ndarray):
        x = np.repeat(x.ravel("F"), 2)[::2].reshape(x.shape, order="F")
        x.flags.writeable = False
    return x


@pytest.mark.parametrize("order", ["A", "K"])
def test_orders_that_follow_the_memory_raise(order):
    x = np.ones((2, 3))
    with pytest.raises(gs.UnsupportedOperationError, match=f"order='{order}'"):
        gs.grad(lambda t: np.sum(np.ravel(t, order=order)))(x)


def test_reshape_without_copy_pushes_tangents_that_need_one():
    x, dx = np.ones((2, 3)), np.ones((3, 2)).T
    _, dy = gs.jvp(lambda t: np.reshape(t, 6, copy=False), (x,), (dx,))
    np.testing.assert_array_equal(dy, np.ones(6))


def test_casts():
    x = np.array([1.5, 2.5], np.float32)
    assert gs.grad(lambda t: np.sum(t.astype(np.float64) ** 2))(x).dtype == np.float32
    assert gs.grad(lambda t: np.sum(np.astype(t, np.float16)))(x).dtype == np.float32
    z = np.array([1 + 2j, 3 - 1j])
    with pytest.warns(np.exceptions.ComplexWarning):
        dz = gs.grad(lambda t: np.sum(t.astype(float) ** 2))(z)
    np.testing.assert_array_equal(dz, [2, 6])
    dx = gs.grad(lambda t: np.sum(np.abs(np.multiply(t, t, dtype=complex))))(x)
    np.testing.assert_allclose(dx, 2 * x, rtol=1e-6)


def test_real_if_close():
    z = np.array([1 + 1e-16j, 2])
    y, pull = gs.vjp(np.real_if_close, z)
    assert y.dtype == float
    np.testing.assert_array_equal(pull(np.ones(2))[0], [1, 1])
    _, dy = gs.jvp(np.real_if_close, (z,), (z * 1j,))
    np.testing.assert_array_equal(dy, [-1e-16, 0])


def test_one_of_several_outputs():
    f = lambda x: np.sum(np.split(x, 3)[1] ** 2)
    np.testing.assert_array_equal(gs.grad(f)(np.arange(3.0)), [0, 2, 0])


def test_thousands_of_pieces():
    x = np.ones(3000)
    dx = gs.grad(lambda t: np.sum(np.concatenate(np.split(t, len(x)))))(x)
    np.testing.assert_array_equal(dx, x)
    total = lambda t: sum(t, start=0.0)
    np.testing.assert_array_equal(gs.grad(total)(x), x)


def test_lists_within_lists_are_arrays():
    def f(x):
        return np.sum(np.concatenate([[x[0], 2 * x[1]], x]))

    np.testing.assert_array_equal(gs.grad(f)(np.ones(2)), [2, 3])


def test_tensors_as_positions():
    x, where = gs.Tensor([1.0, 2.0, 3.0]), gs.Tensor([1])
    with gs.GradientTape(persistent=True) as tape:
        tape.watch(x)
        deleted = np.sum(np.delete(x, where) ** 2)
        inserted = np.sum(np.insert(x, where, x[:1]) ** 2)
        repeated = np.sum(np.repeat(x, gs.Tensor([0, 1, 2])))
        rolled = np.sum(np.roll(x, where, axis=0)[0])
    np.testing.assert_array_equal(tape.gradient(deleted, x).numpy(), [2, 0, 6])
    np.testing.assert_array_equal(tape.gradient(inserted, x).numpy(), [4, 4, 6])
    np.testing.assert_array_equal(tape.gradient(repeated, x).numpy(), [0, 1, 2])
    np.testing.assert_array_equal(tape.gradient(rolled, x).numpy(), [0, 0, 1])


def test_inserted_values_take_the_dtype_of_the_array():
    x, v = np.ones(2, np.float32), np.ones(1)
    y, pull = gs.vjp(lambda a, b: np.insert(a, 1, b), x, v)
    assert y.dtype == np.float32
    assert [dx.dtype for dx in pull(y)] == [np.float32, np.float64]


def test_numpys_own_errors():
    x = gs.Tensor(np.ones((2, 2)))
    with pytest.raises(ValueError, match="non-negative"):
        np.resize(x, (-1, 2))
    with pytest.raises(ValueError, match="can't extend empty axis"):
        np.pad(gs.Tensor(np.ones(0)), 1, "mean")
    with pytest.raises(ValueError, match="not supported"):
        np.pad(x, 1, "no such mode")
    with pytest.raises(ValueError, match="unsupported keyword"):
        np.pad(x, 1, "edge", constant_values=3)
    with pytest.raises(TypeError, match="integral"):
        np.pad(x, 1.5)
    with pytest.raises(ValueError, match="iteration dimensions are 0"):
        np.apply_along_axis(np.sum, 0, gs.Tensor(np.ones((2, 0))))
    with pytest.raises(ValueError, match="correct shape"):
        np.apply_over_axes(lambda a, axis: np.sum(a), x, 0)
    with pytest.raises(np.exceptions.AxisError):
        np.rollaxis(x, 2)


def test_pad_refuses_what_it_cannot_follow():
    x = np.ones(3)
    with pytest.raises(gs.UnsupportedOperationError, match="function as its mode"):
        gs.grad(lambda t: np.sum(np.pad(t, 1, lambda *_: None)))(x)
    with pytest.raises(gs.UnsupportedOperationError, match="options"):
        gs.grad(lambda t: np.sum(np.pad(t, 1, constant_values=t[0])))(x)


def test_python_numbers_stay_weak():
    x = np.array(2.0, np.float32)
    for f in (
        lambda t: np.linspace(t, 3.0, 4),
        lambda t: np.logspace(t, 1.0, 4),
        lambda t: np.select([t > 0], [t], 1.0),
        lambda t: np.where(t > 0, t, 1.0),
    ):
        y, dy = gs.jvp(f, (x,), (x,))
        assert y.dtype == dy.dtype == np.float32
        assert gs.vjp(f, x)[1](y)[0].dtype == np.float32


def test_arrays_of_python_objects():
    """The rules run on any element type, e.g. numbers with certified bounds."""
    x = np.array([[Fraction(1, 2), Fraction(1, 3)], [Fraction(2), Fraction(5)]])
    f = lambda t: np.pad(np.tril(t)[::-1].T, 1, "reflect") * t[[0, 0, 1, 1], :1]
    y, pull = gs.vjp(f, x)
    (dx,) = pull(y)
    assert all(isinstance(entry, (Fraction, int)) for entry in dx.ravel())
    _, pull = gs.vjp(f, x.astype(float))
    np.testing.assert_allclose(dx.astype(float), *pull(y.astype(float)), rtol=1e-12)


def test_full_like_differentiates_what_fills_it():
    x = np.ones((2, 2))
    da, db = gs.grad(lambda a, b: np.sum(np.full_like(a, b) * a), (0, 1))(
        x, np.array(3.0)
    )
    np.testing.assert_array_equal(da, 3 * x)
    assert db == 4
