"""Compiled functions: their results, their memory, and when they are traced anew."""

from __future__ import annotations

import threading
import warnings
from collections import namedtuple
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradsmith as gs
from gradsmith.core import trees
from tests.rules import cases, harness

X = np.linspace(-1.0, 2.0, 12).reshape(3, 4)
PARAMS = {"w": np.linspace(0.0, 1.0, 8).reshape(4, 2), "b": np.array([0.1, -0.2])}


def same(got, expected, rtol=1e-13):
    trees.map(
        lambda y, e: np.testing.assert_allclose(y, e, rtol=rtol, atol=1e-14),
        got,
        expected,
    )


def loss(params, x, *, power=2):
    h = np.tanh(x @ params["w"] + params["b"])
    return np.sum((h - np.mean(h, axis=0)) ** power) + np.max(h[1:])


def test_value_and_gradient_of_trees(kernels):
    fn = gs.value_and_grad(loss)
    compiled = gs.compile(fn)
    for scale in (1.0, 2.0, -0.5):  # buffers are used again
        params = {name: scale * x for name, x in PARAMS.items()}
        same(compiled(params, X), fn(params, X))
    value, dx = compiled(PARAMS, X)
    assert type(dx) is dict
    assert isinstance(value, np.float64)


@pytest.fixture(params=[False, True], ids=["NumPy", "kernels"])
def kernels(request):
    """With kernels, which round differently, and without, to the last bit."""
    with gs.kernels(request.param):
        yield request.param


MASKED = [
    lambda x: np.where(x > 0, np.sin(x), 0) + 1,
    lambda x: np.where(x > 0, -1.5, np.sin(x)),
    lambda x: [np.where(x > 0, 0, y := np.sin(x)), y],  # both are results
    lambda x: np.where(x > 0, x, np.inf),  # the argument stays as it is
    lambda x: np.where(x > 0, 0, (y := np.sin(x))) * y,  # y is needed again
    lambda x: np.where(x[0] > 0, np.sin(x), 2),
    lambda x: np.where(x > 0, np.sin(x[0]), 2),
    lambda x: np.where(x > 0, np.float32(2), np.sin(x)),
    lambda x: np.where(x > 0, np.sin(x).astype(np.float32), np.float64(2)),
    lambda x: np.where(x > 0, x > 1, True),
    lambda x: np.where(x, np.sin(x), 0),
    lambda x: np.where(x > 0, np.sin(x).T.reshape(3, 4), 0),
]


@pytest.mark.parametrize("fn", MASKED)
def test_numbers_are_written_over_what_is_not_needed(fn, kernels):
    compiled, x = gs.compile(fn), X.copy()
    for _ in range(2):
        same(compiled(x), fn(x))
        assert np.asarray(compiled(x)).dtype == np.asarray(fn(x)).dtype
    np.testing.assert_array_equal(x, X)


@pytest.mark.parametrize("case", cases.ALL[::7], ids=str)
def test_rules(case):
    with gs.kernels(False):
        _check_rule(case)


@pytest.mark.parametrize("case", cases.ALL[::101], ids=str)
def test_rules_with_kernels(case):
    with gs.kernels(True):
        _check_rule(case)


def _check_rule(case):
    from tests.program.test_rules import REFUSED, REFUSED_DERIVATIVES

    if REFUSED.match(str(case)) or REFUSED_DERIVATIVES.match(str(case)):
        return
    rng = np.random.default_rng(0)
    fn, xs = harness.as_function(case)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        us = harness.random_like(rng, fn(*xs))
        both = lambda xs, us: (fn(*xs), gs.vjp(fn, *xs)[1](us))
        expected = trees.leaves(both(xs, us))
        compiled = gs.compile(both)
        first, again = (trees.leaves(compiled(xs, us)) for _ in range(2))
    for y, z, e in zip(first, again, expected, strict=True):
        assert (np.shape(y), np.asarray(y).dtype) == (np.shape(e), np.asarray(e).dtype)
        np.testing.assert_array_equal(y, z)
        np.testing.assert_allclose(y, e, rtol=1e-10, atol=1e-12)


_UNARY = (np.sin, np.exp, np.negative, np.tanh, np.square, np.transpose, np.ravel)
_BINARY = (np.add, np.multiply, np.subtract, np.maximum)


@given(st.data())
def test_any_program_gives_what_its_function_gives(data):
    with gs.kernels(False):
        _check_program(data, np.testing.assert_array_equal)


@settings(max_examples=10)
@given(st.data())
def test_any_program_with_kernels(data):
    with gs.kernels(True):
        _check_program(data, partial(np.testing.assert_allclose, rtol=1e-13))


def _check_program(data, compare):
    """Steps at random, of earlier values at random, some of them views."""
    plan = data.draw(
        st.lists(
            st.tuples(
                st.sampled_from([*_UNARY, *_BINARY, "row", "sum", "stack"]),
                st.integers(0, 30),
                st.integers(0, 30),
            ),
            min_size=1,
            max_size=12,
        )
    )
    outputs = data.draw(st.lists(st.integers(0, 30), min_size=1, max_size=4))

    def fn(x):
        values = [x, np.cos(x)]
        for op, i, j in plan:
            a, b = values[i % len(values)], values[j % len(values)]
            if op == "row":
                values.append(a[:1] if a.ndim else a)
            elif op == "sum":
                values.append(np.sum(a, axis=-1, keepdims=True) if a.ndim else a)
            elif op == "stack":
                values.append(np.reshape(np.stack([a, a]), (2, -1))[0])
            elif op in _UNARY:
                values.append(op(a))
            elif np.shape(a) == np.shape(b):
                values.append(op(a, b))
        return [values[k % len(values)] for k in outputs]

    x = np.linspace(-0.4, 0.5, 9).reshape(3, 3)
    given = x.copy()
    with np.errstate(all="ignore"):
        expected = [np.array(y) for y in fn(x)]
    compiled = gs.compile(fn)
    first = compiled(x)
    second = compiled(x + 1.0)
    for y, e in zip(first, expected, strict=True):
        compare(y, e)
    for y in (*first, *second):
        y[...] = 7.0  # nobody else's
    for y, e in zip(compiled(x), expected, strict=True):
        compare(y, e)
    np.testing.assert_array_equal(x, given)


def test_results_are_new_arrays(kernels):
    compiled = gs.compile(lambda x: (x, x.T, np.sin(x), np.sin(x)[0], np.ones((2, 50))))
    first = compiled(X)
    kept = [y.copy() for y in first]
    second = compiled(X + 1)
    for i, y in enumerate((*first, *second)):
        for z in (X, *(*first, *second)[:i]):
            assert not np.shares_memory(y, z)
    for y, k in zip(first, kept, strict=True):
        np.testing.assert_array_equal(y, k)


def test_intermediate_results_share_memory():
    with gs.kernels(False):
        _check_sharing()


def _check_sharing():
    compiled = gs.compile(lambda x: np.sum(np.exp(np.sin(x * 2) + 1) * 3))
    compiled(np.ones(1000))
    (code,) = compiled._codes.values()
    assert len(code._specs) == 1


def test_traced_once_for_each_signature():
    runs = []

    def fn(x, scale=1.0):
        runs.append(1)
        return x * scale

    compiled = gs.compile(fn)
    for x in (X, X + 1, X.astype("f4"), X[0], X.astype("f4")):
        np.testing.assert_array_equal(compiled(x), x)
    assert len(runs) == 3
    for scale in (2, 2.0, 2.0, -0.0, 0.0, 0.0):
        np.testing.assert_array_equal(
            np.signbit(compiled(X, scale)), np.signbit(X * scale)
        )
    assert len(runs) == 3 + 4


def test_growing_shapes_are_told_once():
    compiled = gs.compile(lambda x: x + 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(12):
            compiled(np.ones(n))
    assert len(caught) == 1
    assert "traced for 8 signatures" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_a_tape_sees_through_it():
    compiled = gs.compile(np.sin)
    np.testing.assert_array_equal(gs.grad(lambda x: np.sum(compiled(x)))(X), np.cos(X))
    assert gs.trace(compiled, X) == gs.trace(np.sin, X)


def test_trees_of_all_kinds():
    Pair = namedtuple("Pair", "a b")
    fn = lambda p: {"sum": p.a + p.b, "all": [Pair(p.b, (p.a * 2, "text", 3))]}
    p = Pair(X, X + 1)
    got = gs.compile(fn)(p)
    assert got["all"][0].b[1:] == ("text", 3)
    np.testing.assert_array_equal(got["all"][0].b[0], X * 2)
    np.testing.assert_array_equal(got["all"][0].a, X + 1)


def test_threads_have_their_own_memory(kernels):
    fn = lambda x: np.sum(np.exp(np.sin(x) * 2.0) + np.tanh(x))
    compiled, wrong = gs.compile(gs.grad(fn)), []
    compiled(np.ones(5000))

    def work(seed):
        x = np.random.default_rng(seed).standard_normal(5000)
        expected = gs.grad(fn)(x)
        wrong.extend(seed for _ in range(50) if not np.allclose(compiled(x), expected))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert wrong == []


def test_an_error_of_the_function_passes_and_nothing_is_kept():
    compiled = gs.compile(lambda x: np.linalg.inv(x))
    compiled(np.eye(2))
    with pytest.raises(np.linalg.LinAlgError):
        compiled(np.zeros((2, 2)))
    np.testing.assert_array_equal(compiled(np.eye(2)), np.eye(2))


def test_captured_variables_are_read_in_each_call():
    w = gs.Variable([1.0, 2.0], name="w")

    def fn(x):
        with gs.GradientTape() as tape:
            y = np.sum(w * w * x)
        return tape.gradient(y, w).numpy()

    compiled, x = gs.compile(fn), np.array([3.0, 5.0])
    np.testing.assert_array_equal(compiled(x), [6.0, 20.0])
    w.assign([10.0, 20.0])
    np.testing.assert_array_equal(compiled(x), [60.0, 200.0])
    with pytest.raises(gs.GradsmithError, match="assigns the variable 'w'"):
        gs.compile(lambda x: w.assign([0.0, 0.0]))(x)
    np.testing.assert_array_equal(w.numpy(), [10.0, 20.0])


def test_elementwise_steps_and_reductions_are_one_kernel():
    def softmax(x):
        e = np.exp(x - np.max(x, axis=-1, keepdims=True))
        return e / np.sum(e, axis=-1, keepdims=True)

    fn = lambda x: np.sum(softmax(x @ x.T) * np.arange(200.0))
    compiled, x = gs.compile(gs.grad(fn)), np.linspace(0, 0.01, 2000).reshape(200, 10)
    with gs.kernels(True):
        np.testing.assert_allclose(compiled(x), gs.grad(fn)(x), rtol=1e-10, atol=1e-14)
    (code,) = compiled._codes.values()
    assert sum(hasattr(step.fn, "kernel") for step in code.program.steps) == 1
    assert len(code.program) < 12


def test_what_a_kernel_reads_need_not_be_contiguous():
    fn = lambda x, c: np.tanh(np.exp(np.sin(x * c) + 1.0) * 2.0 - x) / (1.0 + x * x)
    x = np.linspace(-1, 1, 24).reshape(4, 6)
    with gs.kernels(True):
        compiled = gs.compile(fn)
        for y in (x, x[:, ::-1], np.asfortranarray(x), np.broadcast_to(x[:1], (4, 6))):
            np.testing.assert_allclose(compiled(y, 2.0), fn(y, 2.0), rtol=1e-13)
    (code,) = compiled._codes.values()
    assert len(code.program) == 1


@pytest.mark.parametrize("n", [None, 0, 1, 5])
@pytest.mark.parametrize("increasing", [False, True])
def test_vander(n, increasing):
    fn = lambda x: np.vander(x, n, increasing=increasing) * 2.0
    for x in (X[0], np.linspace(-1.0, 1.0, 600), X[0].astype("float32")):
        np.testing.assert_array_equal(gs.compile(fn)(x), fn(x), strict=True)


def test_long_programs():
    def fn(x):
        for _ in range(400):
            x = np.exp(-x) + 0.1
        return np.sum(x)

    x = np.linspace(0.0, 1.0, 50)
    with gs.kernels(True):
        got = gs.compile(gs.grad(fn))(x)
    np.testing.assert_allclose(got, gs.grad(fn)(x), rtol=1e-10)


def test_numbers_from_one_kernel_are_told_apart():
    def minors(x):
        a, b, c, d = x
        p, q = a * d - b * c, a * c + b * d
        r, s = np.exp(p) * q + a, np.sin(q) * p - b
        return np.stack([p, q, r, s, r * s + p, r - s * q])

    fn = lambda x: np.sum(minors(x) * minors(x[::-1]))
    x = np.array([0.3, -0.7, 1.1, 0.4])
    with gs.kernels(True):
        compiled = gs.compile(gs.value_and_grad(fn))
        same(compiled(x), gs.value_and_grad(fn)(x), rtol=1e-12)
    (code,) = compiled._codes.values()
    assert any(hasattr(step.fn, "kernel") for step in code.program.steps)


PARTS = {
    "columns": lambda x: np.sum(x[:, 1:3] ** 2) + np.sum(np.sin(x[:, 3:])),
    "elements": lambda x: x[0, 1] * x[1, 2] * x[0, 1] * np.sum(x[-1]),
    "a part of a part": lambda x: np.sum((x[1:] * x[:-1])[:, ::2] ** 2),
    "rows, and all": lambda x: np.sum(x[0] * x) + np.sum(x**2),
    "masks": lambda x: np.sum(x[MASK] ** 3) + np.sum(x[1:]),
    "twice": lambda x: np.sum(x[[0, 1, 0]] ** 2) + np.sum(x[0] ** 3),
    "pieces": lambda x: np.sum(np.concatenate((x, x**2, x[:1]), 0) ** 2),
}
MASK = np.array([[True, False, True, True, False]] * 3)


@pytest.mark.parametrize("name", PARTS)
def test_gradients_of_parts_are_added_in_place(name):
    f, x = PARTS[name], np.linspace(0.5, 2, 15).reshape(3, 5)
    for derivative in (gs.grad(f), gs.hessian(f)):
        compiled = gs.compile(derivative)
        expected = derivative(x)
        for _ in range(2):  # the second run has the buffers of the first
            np.testing.assert_allclose(compiled(x), expected, rtol=1e-13, atol=1e-13)


def test_the_gradient_of_parts_is_straight_line_code():
    compiled = gs.compile(gs.grad(PARTS["columns"]))
    compiled(np.ones((3, 5)))
    (code,) = compiled._codes.values()
    assert "scatter" not in code.source
    assert "] += " in code.source


def test_sums_of_many_short_rows():
    x = np.random.default_rng(3).normal(size=(3, 5000, 4))
    for f in (
        lambda x: np.sum(x * x, axis=1),
        lambda x: np.sum(x * x, axis=(0, 1), keepdims=True),
        lambda x: np.sum(x * x, axis=-2),
        lambda x: gs.grad(lambda b: np.sum(np.exp(x * b)))(x[0, 0]),
    ):
        compiled = gs.compile(f)(x)
        np.testing.assert_allclose(compiled, f(x), rtol=1e-10, atol=1e-10)


def test_cosh_is_part_of_a_kernel():
    pytest.importorskip("llvmlite")
    x = np.concatenate(
        (np.linspace(-710.4, 710.4, 20_000), [0.0, 1e-9, np.inf, np.nan])
    )
    f = gs.compile(lambda x: 1 / np.cosh(x) ** 2 + np.cosh(x) * 1e-300)
    with np.errstate(over="ignore"):
        expected = 1 / np.cosh(x) ** 2 + np.cosh(x) * 1e-300
    np.testing.assert_allclose(f(x), expected, rtol=2e-15)
    (code,) = f._codes.values()
    assert "cosh" not in code.source


@pytest.mark.parametrize("length", [1, 7, 600])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 9, 20])
@pytest.mark.parametrize("increasing", [False, True])
def test_powers(length, n, increasing):
    x = np.linspace(-1.5, 1.5, length)
    weights = np.linspace(1.0, 2.0, n)
    f = gs.compile(lambda x: np.vander(x, n, increasing) @ weights)
    expected = np.vander(x, n, increasing) @ weights
    np.testing.assert_allclose(f(x), expected, rtol=1e-12, atol=1e-12)


def test_whole_numbers_beyond_a_dtype_and_foreign_bytes():
    x = np.arange(-100, 100, dtype="int8").repeat(100)
    fn = lambda x: np.where((x < 1000) & (x != -1000), x * 1.0, 0.0) + (x > 300)
    np.testing.assert_array_equal(gs.compile(fn)(x), fn(x))
    y = np.linspace(0, 1, 2000).astype(">f8")
    square = lambda y: np.sum(y * y + 1)
    assert gs.compile(square)(y) == pytest.approx(square(y), rel=1e-14)


LABELS = np.array([0, 3, 1])


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, labels: np.sum(x[np.arange(3), labels]),
        lambda x, labels: -np.mean(x[range(3), labels] - np.log(np.exp(x).sum(1))),
        lambda x, labels: np.sum(np.take_along_axis(x, labels[:, None], 1)),
        lambda x, labels: np.sum(x[labels % 3, 1]),
    ],
)
def test_labels_that_are_an_argument(fn):
    """The cotangent is an array with elements there, and the key has none."""
    fn = gs.value_and_grad(fn)
    compiled = gs.compile(fn)
    for labels in (LABELS, LABELS[::-1]):
        same(compiled(X, labels), fn(X, labels))


def kernels_of(compiled):
    """The programs of the kernels that it runs."""
    (code,) = compiled._codes.values()
    return [s.fn.kernel.program for s in code.program.steps if hasattr(s.fn, "kernel")]


def test_what_only_a_later_kernel_needs_is_computed_there():
    """Not a product with what is read there for another reason."""

    def fn(x, m, w):
        y = (x - m) * 2 + 1
        z = (y @ w) * 2 + m * y
        return np.where(z == 0, 0, z * z)

    given = [np.random.default_rng(0).normal(size=s) for s in ((3000, 9), 9, (9, 9))]
    with gs.kernels(True):
        compiled = gs.compile(fn)
        same_to_rounding(compiled(*given), fn(*given))
    first, second = kernels_of(compiled)
    assert [y.shape for y in first.results] == [(3000, 9)]
    assert len(second.results) == 1


def same_to_rounding(ys, expected):
    np.testing.assert_allclose(ys, expected, rtol=1e-12, atol=1e-12)


def test_short_rows_that_repeat_are_a_kernel():
    rng = np.random.default_rng(0)
    x, m = rng.normal(size=(1000, 10)), rng.normal(size=(25, 10))
    fn = lambda x, m: np.sum((x - m[:, None]) ** 2, 1)
    with gs.kernels(True):
        compiled = gs.compile(fn)
        same_to_rounding(compiled(x, m), fn(x, m))
    (kernel,) = kernels_of(compiled)
    assert [y.shape for y in kernel.results] == [(25, 10)]


def test_gradients_of_what_repeats():
    def loss(m, s, x):
        z = np.tanh((x - m[:, None]) * np.exp(s)[:, None])
        return np.sum(np.log(np.sum(np.exp(np.sum(z * z, 2)), 0)))

    rng = np.random.default_rng(0)
    given = [rng.normal(size=s) for s in ((5, 10), (5, 10), (500, 10))]
    fn = gs.grad(loss, (0, 1))
    with gs.kernels(True):
        for dx, expected in zip(gs.compile(fn)(*given), fn(*given), strict=True):
            same_to_rounding(dx, expected)


TAKEN = [
    lambda x, i: x[:, i],
    lambda x, i: x[:, :, i % 5],
    lambda x, i: x[:, [0, 3]],
    lambda x, i: x[:, i.astype("uint64") % 5],
]


@pytest.mark.parametrize("fn", TAKEN)
def test_places_along_an_axis(fn, kernels):
    x, i = np.arange(60.0).reshape(3, 4, 5), np.array([[0, 3, -1], [-4, 2, 2]])
    compiled = gs.compile(fn)
    np.testing.assert_array_equal(compiled(x, i), fn(x, i), strict=True)


def test_a_place_that_there_is_not_is_an_error(kernels):
    compiled = gs.compile(lambda x, i: x[:, i])
    x = np.ones((3, 4))
    assert compiled(x, np.array([3])).shape == (3, 1)
    for i in (4, -5):
        with pytest.raises(IndexError):
            compiled(x, np.array([i]))


def test_views_of_planned_memory_are_taken_once():
    def fn(x):
        y = np.exp(x).reshape(6, 2).T
        return np.sin(y[:, ::2]) + y[:, 1::2]

    with gs.kernels(False):
        compiled, x = gs.compile(fn), np.linspace(0, 1, 12)
        for scale in (1.0, 2.0):
            np.testing.assert_array_equal(compiled(scale * x), fn(scale * x))
    (code,) = compiled._codes.values()
    body = code.source.partition("def run")[2]
    assert "transpose" not in body
    assert "reshape" not in body


def test_sums_of_numbers_are_no_sums_of_rows():
    fn = lambda x: np.sum(np.mean(np.exp(x))) + np.sum(np.ones(()))
    with gs.kernels(True):
        same_to_rounding(gs.compile(gs.grad(fn))(X), gs.grad(fn)(X))


@pytest.mark.parametrize("shapes", [((25, 100, 10), (25, 8, 10)), ((4000, 5), (3, 5))])
def test_a_narrow_transpose_is_copied_for_a_product(shapes):
    fn = lambda a, b: np.sin(a @ np.swapaxes(b, -1, -2))
    a, b = (np.random.default_rng(0).normal(size=shape) for shape in shapes)
    with gs.kernels(False):
        compiled = gs.compile(fn)
        for scale in (1.0, 2.0):
            np.testing.assert_allclose(compiled(a, scale * b), fn(a, scale * b))
    (code,) = compiled._codes.values()
    assert "copyto" in code.source


FLAGS = [
    lambda a, b: (a < b) | (a > b),
    lambda a, b: (a <= b, a >= b, a == b, a != b),
    lambda a, b: (a + b, a * b, a ^ b),
    lambda a, b: (np.maximum(a, b), np.minimum(a, ~b), np.clip(a, b, True)),
    lambda a, b: (np.max(a & b, axis=-1), np.min(a | b, axis=-1)),
    lambda a, b: np.max(np.argmax(a & b, axis=-1) + np.argmin(a | b, axis=-1)),
    lambda a, b: np.where(a > b, a + b, b),
]


@pytest.mark.parametrize("fn", FLAGS)
@pytest.mark.parametrize("shape", [(200, 100), (600, 4)])
def test_flags_are_no_numbers_with_a_sign(fn, shape, kernels):
    x, y = np.random.default_rng(0).normal(size=(2, *shape))
    of_signs = lambda x, y: fn((x > 0.5) & (y < 9), y > 0.3)
    found, expected = gs.compile(of_signs)(x, y), of_signs(x, y)
    for got, y in zip(np.atleast_2d(found), np.atleast_2d(expected), strict=True):
        assert got.dtype == y.dtype
        np.testing.assert_array_equal(got, y)


def test_whole_numbers_in_functions_of_floats(kernels):
    def fn(x):
        n = (x * 3).astype(int)
        whole = np.isfinite(n) & ~np.isnan(n)
        return np.where(whole, np.floor(n) + n**3 + np.trunc(n) * n, 0)

    x = np.random.default_rng(0).normal(size=(200, 100))
    np.testing.assert_array_equal(gs.compile(fn)(x), fn(x))


def test_half_precision_is_rounded_where_it_is_asked_for(kernels):
    def fn(x):
        half = x.astype("float16")
        return half.astype("float32") - x, (half < 0.1) & (x < 3)

    x = np.random.default_rng(0).normal(size=(200, 100)).astype("float32")
    x[0, :2] = 0.1, -0.0
    for got, y in zip(gs.compile(fn)(x), fn(x), strict=True):
        np.testing.assert_array_equal(got, y)


def test_the_sign_of_zero_is_a_zero_without_one(kernels):
    fn = lambda x: 1 / np.sign(x * 1.0)
    x = np.full((200, 100), -0.0)
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(gs.compile(fn)(x), fn(x))


def scaled_class():
    class Scaled:
        def __init__(self, by):
            self.by = by
            self.more = {"inner": [1.0]}

        @gs.compile
        def __call__(self, x):
            return x * self.by * self.more["inner"][0]

        @gs.compile
        def total(self, x):
            return np.sum(self(x))

    return Scaled


@pytest.mark.parametrize("by", [2.0, np.array([2.0, 4.0])])
def test_a_method_is_compiled_for_what_its_object_has(by):
    Scaled = scaled_class()
    scaled, x = Scaled(by), np.array([1.0, 3.0])
    same(scaled(x), x * by)
    same(gs.grad(scaled.total)(x), by * np.ones(2))
    scaled.by = np.array([5.0, 6.0])
    same(scaled(x), x * scaled.by)
    same(gs.grad(scaled.total)(x), scaled.by)
    scaled.more["inner"][0] = 10.0
    same(scaled(x), 10 * x * scaled.by)
    same(Scaled(1.0)(x), x)
    assert Scaled.total.__get__(None, Scaled) is Scaled.total


@dataclass
class Changing:
    by: float

    @gs.compile
    def times(self, x):
        return x * self.by


@dataclass(frozen=True)
class Fixed:
    by: float
    shape: tuple = (2, 3)
    more: Any = None


def test_dataclasses_have_compiled_methods():
    changing, x = Changing(2.0), np.ones(3)
    same(changing.times(x), 2 * x)
    changing.by = 3.0
    same(changing.times(x), 3 * x)


def test_objects_that_are_equal_in_all_their_parts_are_traced_once():
    traced = []

    @gs.compile
    def times(config, x):
        traced.append(config)
        return x * config.by * config.shape[0]

    x = np.ones(3)
    for _ in range(3):
        same(times(Fixed(float("0.5"), tuple([2, 3])), x), x)  # noqa: C409
    assert len(traced) == 1
    same(times(Fixed(1.0), x), 2 * x)
    same(times(Fixed(0.0), x), 0 * x)
    assert np.signbit(times(Fixed(-0.0), x)).all()


def test_variables_of_an_object_that_is_passed_are_read_in_each_call():
    class Layer(gs.Module):
        def __init__(self):
            self.w = gs.Variable([1.0, 2.0])

    layer, x = Layer(), np.array([1.0, 3.0])
    apply = gs.compile(lambda layer, x: x * layer.w)
    same(apply(layer, x), [1.0, 6.0])
    layer.w.assign([3.0, 4.0])
    same(apply(layer, x), [3.0, 12.0])
    with gs.GradientTape() as tape:
        y = np.sum(apply(layer, x))
    same(tape.gradient(y, layer.w).numpy(), x)


def test_tensors_of_an_object_that_is_passed_have_a_gradient():
    Scaled, x = scaled_class(), np.array([1.0, 3.0])

    def through(by):
        return np.sum(Scaled(by)(x))

    same(gs.grad(through)(2.0), 4.0)


def test_places_that_are_computed_in_second_derivatives():
    def nearest(x):
        return np.sum(x[np.arange(3), np.argmin(x, 1)] ** 3)

    same(gs.compile(gs.hessian(nearest))(X), gs.hessian(nearest)(X))
