"""Products of arrays: what the cases can't show."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.core.rule import RULES
from gradsmith.rules import einsum, products
from gradsmith.rules.tensor_products import cross


def gradients(fn, *xs):
    """The gradients of the sum of a function's results."""
    return gs.grad(lambda *a: np.sum(np.real(fn(*a))), tuple(range(len(xs))))(*xs)


def counted(monkeypatch, name):
    """Count the calls of a NumPy function by the rules."""
    calls, fn = [], getattr(np, name)

    def counting(*args, **kwargs):
        calls.append(args)
        return fn(*args, **kwargs)

    monkeypatch.setattr(np, name, counting)
    return calls


# --- cost ----------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4, 3), (5, 4, 3)])
@pytest.mark.parametrize("operand", [0, 1])
def test_the_gradient_of_one_operand_takes_one_product(monkeypatch, shape, operand):
    xs = [gs.Tensor(np.ones(shape)), gs.Tensor(np.ones((3, 2)))]
    with gs.GradientTape() as tape:
        tape.watch(xs[operand])
        y = np.matmul(*xs)
    calls = counted(monkeypatch, "matmul")
    tape.gradient(y, xs[operand])
    assert len(calls) == 1


def test_a_real_array_is_not_conjugated():
    x = np.ones(3)
    assert products.conj(x) is x
    assert products.conj(2.0) == 2.0
    assert products.conj(2j) == -2j


@pytest.mark.parametrize(
    ("tracked", "kept"), [([0], [1]), ([1], [0]), ([0, 1], [0, 1])]
)
def test_a_product_keeps_the_other_operand_alone(tracked, kept):
    rule = RULES[np.matmul]
    assert [i for i in (0, 1) if rule.keeps(i, tracked)] == kept


@pytest.mark.parametrize(("tracked", "kept"), [([0], [2, 3]), ([0, 2], [1, 2, 3])])
def test_einsum_keeps_the_other_operands_alone(tracked, kept):
    rule = RULES[einsum.contract]
    assert [i for i in (1, 2, 3) if rule.keeps(i, tracked)] == kept


def test_a_large_einsum_is_differentiated_by_matrix_products(monkeypatch):
    a, b = np.ones((40, 40)), np.ones((40, 40))
    y, pull = gs.vjp(lambda x: np.einsum("ij,jk", x, b), a)
    options = []
    plain = np.einsum
    monkeypatch.setattr(
        np, "einsum", lambda *args, **kw: options.append(kw) or plain(*args, **kw)
    )
    pull(y)
    assert options == [{"optimize": True}]


# --- what is given -------------------------------------------------------------------


@pytest.mark.parametrize("fn", [np.dot, np.inner, np.kron, np.outer, np.matmul])
def test_lists(fn):
    x, w = np.array([1.0, 2.0, 3.0]), np.array([1.0, -1.0, 2.0])
    (got,) = gradients(lambda v: fn(w.tolist(), v), x)
    np.testing.assert_array_equal(got, gradients(lambda v: fn(w, v), x)[0])
    (got,) = gradients(lambda v: fn(v, w.tolist()), x)
    np.testing.assert_array_equal(got, gradients(lambda v: fn(v, w), x)[0])


def test_einsum_with_a_list_and_by_lists():
    x = np.array([1.0, 2.0, 3.0])
    (got,) = gradients(lambda v: np.einsum("i,i", [1.0, -1.0, 2.0], v), x)
    np.testing.assert_array_equal(got, [1.0, -1.0, 2.0])


def test_a_list_of_tensors_is_an_array():
    dx = gs.grad(lambda x: np.dot([x[0], 3 * x[1]], x))(np.array([1.0, 2.0]))
    np.testing.assert_array_equal(dx, [2.0, 12.0])


@pytest.mark.parametrize("fn", [np.dot, np.inner, np.kron])
@pytest.mark.parametrize("number", [2.5, 2, 1.5 - 2j])
def test_numbers(fn, number):
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(
        gradients(lambda v: fn(number, v), x)[0], np.full(2, np.real(number))
    )
    np.testing.assert_array_equal(
        gradients(lambda v: fn(v, number), x)[0], np.full(2, np.real(number))
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.complex64])
def test_dtypes_stay(dtype):
    x, w = np.ones((2, 3), dtype), np.ones((3, 4), dtype)
    for dx in gradients(np.matmul, x, w) + gradients(np.tensordot, x, 2 * x):
        assert dx.dtype == dtype


def test_a_real_operand_of_a_complex_product_has_a_real_gradient():
    x, z = np.array([1.0, 2.0]), np.array([1 + 2j, 3 - 1j])
    dx, dz = gs.grad(lambda a, b: np.real(np.dot(a, b)), (0, 1))(x, z)
    np.testing.assert_array_equal(dx, [1.0, 3.0])
    np.testing.assert_array_equal(dz, [1 + 0j, 2 + 0j])


def test_read_only_and_strided_operands():
    x = np.arange(12.0).reshape(4, 3)[::2, ::-1]
    x.flags.writeable = False
    w = np.arange(12.0).reshape(4, 3).T
    dx, dw = gradients(np.matmul, x, w)
    np.testing.assert_array_equal(dx, np.ones((2, 4)) @ w.T)
    np.testing.assert_array_equal(dw, x.T @ np.ones((2, 4)))


def test_operators():
    x, w = np.arange(3.0), np.arange(6.0).reshape(3, 2)
    dx, dw = gradients(lambda a, b: a @ b, x, w)
    np.testing.assert_array_equal(dx, w.sum(axis=1))
    np.testing.assert_array_equal(dw, np.outer(x, np.ones(2)))
    (dx,) = gradients(lambda a: w.T @ a, x)
    np.testing.assert_array_equal(dx, w.sum(axis=1))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.matmul(x, x, axes=[(0, 1), (0, 1), (0, 1)]),
        lambda x: np.vecdot(x, x, axis=0),
        lambda x: np.dot(x, x, out=np.empty((2, 2))),
        lambda x: np.einsum("ij,jk", x, x, out=np.empty((2, 2))),
        lambda x: np.linalg.multi_dot([x, x], out=np.empty((2, 2))),
    ],
)
def test_options_without_a_rule_are_refused(call):
    with pytest.raises(gs.UnsupportedOperationError, match=r"ax|out"):
        gs.vjp(call, np.eye(2))


# --- cross products of plane vectors, which NumPy deprecates and 2.5 removes ---------

PLANE = (
    [(2, 2), (2, 3), (3, 2)] if np.lib.NumpyVersion(np.__version__) < "2.5.0" else []
)


@pytest.mark.filterwarnings("ignore:Arrays of 2-dimensional vectors")
@pytest.mark.parametrize(("n1", "n2"), [*PLANE, (3, 3)])
@pytest.mark.parametrize("stack", [(), (4,)])
def test_plane_vectors(n1, n2, stack):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((*stack, n1)), rng.standard_normal((n2, *stack))
    u = rng.standard_normal(np.cross(a, b, axisb=0).shape)
    loss = lambda a, b: np.sum(u * np.cross(a, b, axisb=0))
    for i, dx in enumerate(gs.grad(loss, (0, 1))(a, b)):
        v = rng.standard_normal(dx.shape)
        moved = [a + v if i == 0 else a, b + v if i == 1 else b]
        # Linear in each argument: the difference is exact.
        np.testing.assert_allclose(np.sum(v * dx), loss(*moved) - loss(a, b))


# --- einsum's notation ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("notation", "ndims", "expected"),
    [
        ("ij,jk", [2, 2], "ij,jk->ik"),
        ("ba", [2], "ba->ab"),
        ("ii", [2], "ii->"),
        ("i j -> j i", [2], "ij->ji"),
        ("...ij,...j", [4, 2], "ABij,Bj->ABi"),
        ("A...,a...->...", [2, 1], "AB,a->B"),
        ("...", [0], "->"),
    ],
)
def test_notation(notation, ndims, expected):
    assert einsum.explicit(notation, tuple(ndims)) == expected


def test_einsum_of_zero_length():
    a, b = np.ones((2, 0)), np.ones((0, 3))
    da, db = gradients(lambda a, b: np.einsum("ij,jk->ik", a, b), a, b)
    assert da.shape == (2, 0)
    assert db.shape == (0, 3)


def test_third_derivative_of_einsum():
    x = np.array([0.5, -1.0])
    third = gs.jacobian(gs.hessian(lambda v: np.einsum("i,i,i->", v, v, v)))(x)
    expected = np.zeros((2, 2, 2))
    expected[[0, 1], [0, 1], [0, 1]] = 6
    np.testing.assert_allclose(third, expected)


@pytest.mark.parametrize(
    "shapes", [[(3,)] * 2, [(5, 3)] * 2, [(5, 3), (3,)], [(2, 1, 3), (5, 3)]], ids=str
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cross_products_by_components_are_those_of_numpy(shapes, dtype):
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=shape).astype(dtype) for shape in shapes)
    np.testing.assert_array_equal(cross(a, b), np.cross(a, b), strict=True)
    a, b = np.moveaxis(a, -1, 0), np.moveaxis(b, -1, 0)
    np.testing.assert_array_equal(cross(a, b, axis=0), np.cross(a, b, axis=0))


def test_cross_products_of_other_vectors_are_left_to_numpy(monkeypatch):
    calls, (a, b) = counted(monkeypatch, "cross"), np.ones((2, 5, 3))
    gs.grad(lambda a: np.sum(np.linalg.cross(a, b) ** 2))(a)
    cross(a, b)
    assert not calls
    for x in (a.astype(complex), a.astype("float32")):
        cross(x, b)
    assert len(calls) == 2


# Large and narrow matrices


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("order", ["C", "F"])
def test_products_of_narrow_matrices(dtype, order):
    rng = np.random.default_rng(3)
    a = np.asarray(rng.normal(size=(5000, 3)), dtype, order=order)
    b = np.asarray(rng.normal(size=(3, 100)), dtype, order=order)
    w = rng.normal(size=(5000, 100)).astype(dtype)
    if dtype is np.complex128:
        a, b, w = a * (1 + 2j), b * (2 - 1j), w * 1j
    y, pull = gs.vjp(np.matmul, a, b)
    np.testing.assert_allclose(y, a @ b, rtol=1e-5)
    da, db = pull(w)
    assert da.dtype == db.dtype == y.dtype == dtype
    scale = 1e-5 * np.abs(w).max()
    np.testing.assert_allclose(da, w @ b.conj().T, rtol=1e-4, atol=scale)
    np.testing.assert_allclose(db, a.conj().T @ w, rtol=1e-3, atol=5000 * scale)
    with pytest.raises(ValueError, match="mismatch in its core dimension"):
        gs.Tensor(a) @ gs.Tensor(b[:2])


def test_large_products_have_memory_of_their_own():
    a, b = np.ones((2000, 2)), np.ones((2, 100))
    with gs.GradientTape(persistent=True) as tape:
        x = gs.Tensor(a)
        tape.watch(x)
        first, second = x @ b, x @ (2 * b)
    np.testing.assert_array_equal(first.numpy(), np.full((2000, 100), 2.0))
    np.testing.assert_array_equal(second.numpy(), np.full((2000, 100), 4.0))
    np.testing.assert_array_equal(tape.gradient(first, x), np.full((2000, 2), 100.0))
    np.testing.assert_array_equal(tape.gradient(second, x), np.full((2000, 2), 200.0))
