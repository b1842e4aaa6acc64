"""Arrays with their own arithmetic answer by themselves, or are refused."""

from __future__ import annotations

import operator
from array import array
from collections import deque

import numpy as np
import pytest

import gradsmith as gs

X = np.array([1.0, 2.0, 3.0])


class Foreign:
    """An array of another library, which knows no tensors."""

    def __array_ufunc__(self, *args, **kwargs):
        return NotImplemented

    def __array_function__(self, *args, **kwargs):
        return NotImplemented


class Unit(np.ndarray):
    """A subclass with its own ufuncs, which do not know tensors."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        arrays = [x.view(np.ndarray) if isinstance(x, Unit) else x for x in inputs]
        y = super().__array_ufunc__(ufunc, method, *arrays, **kwargs)
        return y if y is NotImplemented else y * 100  # the unit's doing


class Doubled(np.ndarray):
    """A subclass with an operator of its own."""

    def __mul__(self, other):
        return 2 * np.multiply(np.asarray(self), other)

    __rmul__ = __mul__


class Labelled:
    """A container as xarray's: it has operators, and knows NumPy's protocols."""

    def __init__(self, data):
        self.data = data

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        data = [x.data if isinstance(x, Labelled) else x for x in inputs]
        return Labelled(getattr(ufunc, method)(*data, **kwargs))

    def __array_function__(self, fn, types, args, kwargs):
        first, *rest = args
        first = [x.data if isinstance(x, Labelled) else x for x in first]
        return Labelled(fn(first, *rest, **kwargs))

    def __mul__(self, other):
        return Labelled(self.data * other)

    __rmul__ = __mul__
    __matmul__ = __rmatmul__ = __mul__
    __lt__ = __gt__ = __eq__ = lambda self, other: "compared"


class Wins:
    """No protocols, but a higher priority."""

    __array_priority__ = 1001
    __radd__ = __rmatmul__ = __gt__ = lambda self, other: "mine"


class Opaque:
    __array_ufunc__ = None
    __rmul__ = __rdivmod__ = lambda self, other: "mine"


def others():
    matrix = np.asarray([[1.0, 2.0, 3.0]]).view(np.matrix)
    masked = np.ma.masked_array(X, [0, 1, 0])
    return [Foreign(), masked, matrix, X.view(Unit), X.view(Doubled)]


BINARY = {
    "operator": lambda x, other: x + other,
    "reflected": lambda x, other: other + x,
    "ufunc": lambda x, other: np.add(x, other),
    "ufunc, reflected": lambda x, other: np.add(other, x),
    "comparison": lambda x, other: x < other,
    "matmul": lambda x, other: x @ other,
    "dtype": lambda x, other: np.add(x, other, dtype=float),
    "outer": lambda x, other: np.multiply.outer(x, other),
    "three": lambda x, other: np.clip(x, other, 5.0),
    "list": lambda x, other: np.concatenate([x, other]),
    "function": lambda x, other: np.dot(x, other),
    "composite": lambda x, other: np.append(x, other),
    "where": lambda x, other: np.where(x > 1, x, other),
    "method": lambda x, other: x.dot(other),
    "keyword": lambda x, other: x.clip(min=other),
}  # fmt: skip


@pytest.mark.parametrize("call", BINARY)
@pytest.mark.parametrize("i", range(5), ids=lambda i: type(others()[i]).__name__)
def test_arrays_that_do_not_know_tensors_are_not_mixed_with_them(call, i):
    def f(x):
        return np.sum(BINARY[call](x, others()[i])) + np.sum(x)

    refused = (gs.UnsupportedOperationError, TypeError)
    with pytest.raises(refused, match=r"Tensor together with|Tensor|make a constant"):
        gs.grad(f)(X)


@pytest.mark.parametrize("call", [lambda x, a: x * a, lambda x, a: a * x])
def test_a_subclass_with_its_own_operator_computes_by_it(call):
    other = X.view(Doubled)
    np.testing.assert_array_equal(call(X, other), 2 * X * X)
    dx = gs.grad(lambda x: np.sum(call(x, other)))(X)
    np.testing.assert_array_equal(dx, 2 * X)


def test_the_message_says_what_to_do():
    with pytest.raises(gs.UnsupportedOperationError) as caught:
        np.add(gs.Tensor(X), np.ma.masked_array(X, [0, 1, 0]))
    assert "np.add was given a gs.Tensor together with a MaskedArray" in str(caught)
    assert "np.asarray" in str(caught)


@pytest.mark.parametrize("i", range(1, 5), ids=lambda i: type(others()[i]).__name__)
@pytest.mark.parametrize(
    "make",
    [
        gs.Tensor,
        gs.Variable,
        gs.Variable(X).assign,
        lambda a: gs.grad(np.sum)(a),
        lambda a: gs.vjp(np.sum, a),
        lambda a: gs.vjp(lambda x: x * 2, X)[1](a),
        lambda a: gs.jvp(np.sum, (a,), (X,)),
        lambda a: gs.jvp(np.sum, (X,), (a,)),
        lambda a: gs.hessian(np.sum)(a),
        lambda a: gs.grad(gs.custom_gradient(lambda x: (a, lambda dy: dy)))(X),
    ],
)
def test_none_of_them_becomes_a_tensor(make, i):
    with pytest.raises(gs.UnsupportedOperationError, match="own arithmetic"):
        make(others()[i])


def test_an_array_that_computes_as_numpys_is_one(tmp_path):
    class Named(np.ndarray):
        name = "a"

    mapped = np.memmap(tmp_path / "x", float, "w+", shape=3)
    mapped[:] = X
    for a in (mapped, X.view(Named), X.view(np.recarray)):
        np.testing.assert_array_equal(gs.grad(lambda x, a=a: np.sum(x * a))(X), X)
        np.testing.assert_array_equal(gs.grad(lambda x, a=a: np.dot(x, a))(X), X)
        np.testing.assert_array_equal(gs.grad(lambda x: np.sum(x * x))(a), 2 * X)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, other: x * other,
        lambda x, other: other * x,
        lambda x, other: x @ other,
        lambda x, other: np.multiply(x, other),
        lambda x, other: np.multiply(other, x),
        lambda x, other: np.multiply(x, other, dtype=float),
    ],
)
def test_a_type_that_knows_tensors_answers(call):
    def f(x):
        y = call(x, Labelled(2.0 * X))
        assert type(y) is Labelled
        return np.sum(y.data)

    np.testing.assert_array_equal(gs.grad(f)(X), 2 * X)


def test_it_answers_functions_too():
    def f(x):
        y = np.concatenate([x, Labelled(X)])
        assert type(y) is Labelled
        return np.sum(y.data**2)

    np.testing.assert_array_equal(gs.grad(f)(X), 2 * X)


def test_an_operator_of_another_type_goes_first():
    x = gs.Tensor(X)
    assert x + Wins() == x @ Wins() == (x < Wins()) == "mine"
    assert x * Opaque() == divmod(x, Opaque()) == "mine"
    assert (x < Labelled(X)) == (x == Labelled(X)) == "compared"
    with pytest.raises(TypeError):
        x - Opaque()
    assert (x == pytest.approx(X)) is True


@pytest.mark.parametrize("op", [operator.add, operator.mul, operator.pow])
def test_a_subclass_that_computes_with_tensors_answers(op):
    class Tracked(np.ndarray):
        def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
            plain = [np.asarray(x) if x is self else x for x in inputs]
            return 10 * getattr(ufunc, method)(*plain, **kwargs)

    other = X.view(Tracked)
    truth = gs.grad(lambda x: np.sum(10 * op(x, X)))(X)
    np.testing.assert_array_equal(gs.grad(lambda x: np.sum(op(x, other)))(X), truth)
    truth = gs.grad(lambda x: np.sum(10 * op(X, x)))(X)
    np.testing.assert_array_equal(gs.grad(lambda x: np.sum(op(other, x)))(X), truth)


class Frame:
    """A table as pandas': it takes a view of what stands beside it."""

    def __init__(self, data):
        self.data = data

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        data = [x.data if isinstance(x, Frame) else x.view() for x in inputs]
        return Frame(getattr(ufunc, method)(*data, **kwargs))

    def __mul__(self, other):
        return np.multiply(self, other.view())

    __rmul__ = __mul__


@pytest.mark.parametrize("value", [2.0, [2.0, 3.0, 4.0]])
@pytest.mark.parametrize(
    "fn",
    [lambda x: x * Frame(X), lambda x: Frame(X) * x, lambda x: np.add(Frame(X), x)],
)
def test_a_table_beside_a_tensor_is_refused_or_right(fn, value):
    x = gs.Tensor(value)
    got = fn(x).data
    np.testing.assert_array_equal(got, fn(np.asarray(x)).data)
    with gs.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(gs.UnsupportedOperationError, match=r"np\.asarray\(table\)"):
            fn(x)


def test_a_view_can_not_be_written():
    view = gs.Tensor(X).view()
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1
    assert gs.Tensor(X).view("i8").dtype == "i8"


class Readable:
    """What NumPy reads as an array by its protocol."""

    def __array__(self, dtype=None, copy=None):
        return np.array(X, dtype)


READ = {
    "a deque": deque(X),
    "an array of Python's": array("d", X),
    "a view of memory": memoryview(X),
    "a range": range(1, 4),
    "a protocol": Readable(),
}
PRODUCTS = [
    np.dot,
    np.multiply,
    np.power,
    np.matmul,
    np.hypot,
    lambda x1, x2: np.einsum("i,i->", x1, x2),
    lambda x1, x2: np.where(X > 1, x1, x2),
    lambda x1, x2: np.concatenate([x1, x2]),
    lambda x1, x2: np.linalg.solve(np.eye(3) + np.outer(x1, x1), x2),
    np.cov,
    np.vdot,
]


@pytest.mark.parametrize("other", READ.values(), ids=READ)
@pytest.mark.parametrize("fn", PRODUCTS)
def test_what_numpy_reads_as_an_array_is_one(fn, other):
    """For the rule as for the function, whose value is right in any case."""
    for call in (fn, lambda x, y: fn(y, x)):
        found = gs.grad(lambda x, f=call: np.sum(f(x, other)))(X)
        expected = gs.grad(lambda x, f=call: np.sum(f(x, X)))(X)
        np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("fn", PRODUCTS)
def test_an_array_on_disk_is_one_in_every_function(fn, tmp_path):
    other = np.memmap(tmp_path / "x", float, "w+", shape=3)
    other[:] = X
    for call in (fn, lambda x, y: fn(y, x)):
        found = gs.grad(lambda x, f=call: np.sum(f(x, other)))(X)
        expected = gs.grad(lambda x, f=call: np.sum(f(x, X)))(X)
        np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("make", ["csr_matrix", "csr_array", "coo_array"])
@pytest.mark.parametrize(
    "call", [operator.mul, operator.matmul, operator.add, np.multiply, np.dot, np.where]
)
def test_a_sparse_array_is_refused(make, call):
    """NumPy makes an array of sparse arrays of it, without a word."""
    other = getattr(pytest.importorskip("scipy.sparse"), make)(np.eye(3))
    if call is np.where:
        call = lambda x, y: np.where(X > 1, x, y)
    with pytest.raises(gs.UnsupportedOperationError, match=r"toarray\(\)"):
        gs.grad(lambda x: np.sum(call(x, other)))(X)


def test_an_index_that_knows_no_tensors_is_not_taken_for_the_result():
    with pytest.raises(IndexError):
        gs.Tensor(X)[Foreign()]


class Tripled(np.ndarray):
    """A subclass that changes what ufuncs give."""

    def __array_wrap__(self, array, context=None, return_scalar=False):
        return 3 * np.asarray(array)


def test_a_subclass_that_changes_results_is_refused():
    other = X.view(Tripled)
    np.testing.assert_array_equal(X * other, 3 * X * X)
    for call in (lambda x: x * other, lambda x: np.dot(x, other)):
        with pytest.raises(gs.UnsupportedOperationError, match="Tripled"):
            gs.grad(lambda x, call=call: np.sum(call(x)))(X)
