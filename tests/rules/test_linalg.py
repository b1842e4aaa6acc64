"""Linear algebra at its edges: singular, equal and zero, and what LAPACK chooses."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.rules.decompositions import eigvals_vjp
from gradsmith.rules.linalg import cofactors, inverse

from .harness import NUMPY

la = np.linalg
RNG = np.random.default_rng(0)


def gradient(fn, x):
    """The gradient of the sum of the real part, which must be finite."""
    dx = gs.grad(lambda v: np.sum(np.real(fn(v))))(x)
    assert np.all(np.isfinite(dx))
    return dx


def square(*shape):
    return RNG.standard_normal(shape)


# --- equations, determinants ---------------------------------------------------------


def test_solve_takes_lists_and_keywords():
    a = np.array([[2.0, 1.0], [0.0, 1.0]])
    b = np.array([1.0, 2.0])
    expected = gs.grad(lambda b: np.sum(la.solve(a, b)))(b)
    got = gs.grad(lambda b: np.sum(la.solve(a.tolist(), b)))(b)
    np.testing.assert_array_equal(got, expected)
    got = gs.grad(lambda b: np.sum(la.solve(a=gs.Tensor(a), b=b)))(b)
    np.testing.assert_array_equal(got, expected)


def test_inverse_of_singular_matrices():
    a = np.stack([np.eye(2), np.zeros((2, 2)), np.ones((2, 2))])
    np.testing.assert_array_equal(inverse(a)[0], np.eye(2))
    np.testing.assert_array_equal(inverse(a)[1:], np.zeros((2, 2, 2)))


@pytest.mark.parametrize("make", [lambda a: a, lambda a: a + 1j * square(*a.shape)])
def test_cofactors_near_a_singular_matrix(make):
    """By minors, which lose nothing near a singular matrix."""
    a = make(square(4, 4))
    for shift in (0.0, 1e-14, 1e-9, 1.0):
        a[3] = a[0] - a[1] + shift * a[2]
        minors = np.empty_like(a)
        for i, j in np.ndindex(4, 4):
            minor = np.delete(np.delete(a, i, 0), j, 1)
            minors[i, j] = (-1) ** (i + j) * la.det(minor)
        scale = np.max(np.abs(minors))
        np.testing.assert_allclose(cofactors(a), minors, rtol=0, atol=1e-8 * scale)


def test_slogdet_of_a_singular_matrix():
    a = np.stack([np.zeros((2, 2)), np.array([[2.0, 1.0], [0.0, 4.0]])])
    dx = gradient(lambda a: la.slogdet(a)[1], a)
    np.testing.assert_array_equal(dx[0], np.zeros((2, 2)))
    np.testing.assert_allclose(dx[1], la.inv(a[1]).T)


def test_the_sign_of_a_real_determinant_has_no_gradient():
    np.testing.assert_array_equal(gradient(lambda a: la.slogdet(a)[0], np.eye(2)), 0)


@pytest.mark.parametrize("n", [0, 3])
def test_matrix_power_of_stacks_and_exponents(n):
    a = square(2, 3, 3).astype(np.float32)
    assert gradient(lambda a: la.matrix_power(a, np.int64(n)), a).dtype == np.float32
    with pytest.raises(TypeError):
        gs.grad(lambda a: np.sum(la.matrix_power(a, 1.5)))(a)


def test_matrix_rank_carries_no_gradient():
    with gs.GradientTape() as tape:
        a = gs.Tensor(np.eye(2))
        tape.watch(a)
        rank = la.matrix_rank(a)
    assert rank.numpy() == 2
    assert tape.gradient(rank * 1.0, a) is None


# --- one triangle --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fn", "lower"),
    [
        (la.cholesky, True),
        (lambda a: la.cholesky(a, upper=True), False),
        (la.eigvalsh, True),
        (lambda a: la.eigvalsh(a, UPLO="u"), False),
        (lambda a: la.eigh(a)[0], True),
        (lambda a: la.pinv(a, hermitian=True), True),
        (lambda a: la.svd(a, hermitian=True)[1], True),
    ],
)
def test_the_gradient_lies_in_the_triangle_that_is_read(fn, lower):
    dx = gradient(fn, np.array([[4.0, 1.0], [1.0, 3.0]]))
    unread = (0, 1) if lower else (1, 0)
    assert dx[unread] == 0
    assert dx[unread[::-1]] != 0


# --- equal values --------------------------------------------------------------------


def test_eigenvalues_of_the_identity():
    for values in (lambda a: la.eigh(a)[0], la.eigvalsh, la.eigvals):
        dx = gradient(lambda a, values=values: np.exp(values(a)), np.eye(3))
        np.testing.assert_allclose(dx, np.exp(1.0) * np.eye(3))


@pytest.mark.parametrize("seed", range(20))
def test_the_projector_on_a_plane_of_equal_eigenvalues(seed):
    """P = V2 V2* of the plane of eigenvalue 2; by differences of the projector."""
    q = la.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    a = (q * [1.0, 2.0, 2.0]) @ q.T
    weights = square(3, 3)

    def loss(a):
        v = la.eigh(a)[1][..., 1:]
        return np.sum(weights * (v @ v.T))

    v = square(3, 3)
    step = 1e-5 * (v + v.T)
    by_differences = (loss(a + step) - loss(a - step)) / 2e-5
    along = np.sum(gs.grad(loss)(a) * (v + v.T))
    np.testing.assert_allclose(along, by_differences, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    "a", [np.eye(3), np.zeros((3, 3)), np.zeros((2, 3)), np.ones((3, 2)), np.eye(4, 2)]
)
@pytest.mark.parametrize("dtype", [float, complex])
def test_singular_values_that_are_equal_or_zero(a, dtype):
    a = a.astype(dtype)
    u, s, vh = la.svd(a, full_matrices=False)
    expected = (u * (2 * s)) @ vh
    for values in (la.svdvals, lambda a: la.svd(a)[1]):
        dx = gradient(lambda a, values=values: values(a) ** 2, a)
        np.testing.assert_allclose(dx, expected, atol=1e-12)
    for part in (0, 2):
        gradient(lambda a, part=part: np.abs(la.svd(a)[part]) ** 2, a)
    without_zeros = (u * (s > 1e-12)) @ vh
    np.testing.assert_allclose(gradient(la.svdvals, a), without_zeros, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_rounding_does_not_split_equal_values(dtype):
    """A rotation has equal singular values that differ in the last digits."""
    q = la.qr(square(5, 5))[0].astype(dtype)
    dx = gradient(lambda a: np.abs(la.svd(a)[0]) ** 2, 3 * q)
    assert np.max(np.abs(dx)) < 1e-3


@pytest.mark.parametrize(
    "a", [[[1.0, 1.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 0.0]], np.eye(4, k=1)]
)
@pytest.mark.parametrize("dtype", [np.float32, float, complex])
def test_defective_matrices_are_refused(a, dtype):
    a = np.array(a, dtype)
    for fn in (
        la.eigvals,
        lambda a: la.eig(a)[0],
        lambda a: np.abs(la.eig(a)[1]),
        lambda a: la.eigvals(a) ** 2,  # the sum is tr(A^2), which has a gradient
    ):
        with pytest.raises(gs.NotDifferentiableError, match="defective"):
            gradient(lambda a, fn=fn: np.real(fn(a) + 1) ** 2, a)
        with pytest.raises(gs.NotDifferentiableError, match="defective"):
            gs.jvp(fn, (a,), (np.ones_like(a),))


def test_compiled_code_says_nan_of_a_defective_matrix():
    f = gs.compile(gs.grad(lambda a: np.sum(np.abs(la.eigvals(a) + 1) ** 2)))
    assert np.isfinite(f(np.array([[2.0, 1.0], [0.5, 4.0j]]))).all()
    assert np.isnan(f(np.eye(2, k=1) + 0j)).all()


def test_a_defective_matrix_of_a_batch_that_is_not_used():
    a = np.stack([np.eye(2, k=1), np.array([[2.0, 1.0], [0.5, 4.0]])])
    for fn in (la.eigvals, lambda a: la.eig(a)[0]):
        dx = gradient(lambda a, fn=fn: fn(a)[1] ** 3, a)
        np.testing.assert_array_equal(dx[0], 0)
        np.testing.assert_allclose(dx[1], gradient(lambda a, fn=fn: fn(a) ** 3, a[1]))


@pytest.mark.parametrize("n", [2, 3, 5, 8])
@pytest.mark.parametrize("dtype", [float, complex])
def test_an_eigenvalue_beside_a_nearly_defective_block(n, dtype):
    """Its gradient is u v* / (v* u), whatever the others are: here they are one block.

    V^-1 alone would be wrong by up to 1e-3.
    """
    block = np.eye(n + 1, k=1) + np.diag([1.0] * n + [3.0])
    q = la.qr(
        square(n + 1, n + 1)
        + (1j * square(n + 1, n + 1)[::-1] if dtype is complex else 0)
    )[0]
    a = q @ block @ q.conj().T
    right = la.solve(block[:n, :n] - 3 * np.eye(n), -block[:n, n])
    v = q @ np.append(right, 1.0)
    u = q[:, n]  # as the last row of the block is that of the eigenvalue
    exact = np.outer(u, v.conj()) / (v.conj() @ u)
    at = np.argmax(np.abs(la.eigvals(a)))
    for fn in (la.eigvals, lambda a: la.eig(a)[0]):
        dx = gs.grad(lambda a, fn=fn: np.real(fn(a)[at]))(a)
        np.testing.assert_allclose(
            dx, exact if dtype is complex else exact.real, atol=1e-9
        )


def test_eigenvalues_that_come_in_another_order_without_eigenvectors():
    """As LAPACK gives them for some matrices of 150 rows."""
    a, order = square(2, 5, 5), [3, 0, 4, 1, 2]
    y, dy = la.eigvals(a), square(2, 5)
    np.testing.assert_allclose(
        eigvals_vjp(dy[:, order], y[:, order], a), eigvals_vjp(dy, y, a), atol=1e-12
    )
    np.testing.assert_allclose(
        np.real(eigvals_vjp(dy, y, a)), gradient(lambda a: dy * la.eigvals(a), a)
    )


# --- what LAPACK may choose ----------------------------------------------------------


W3, W4 = square(3, 3), square(4, 4)
CHOICES = {
    "eigh of equal values": (lambda a: la.eigh(a)[1][:, 0] * [1, 2, 3], np.eye(3)),
    "eigh, phases": (
        lambda a: np.real(la.eigh(a)[1]),
        square(3, 3) + square(3, 3).T + 1j * (square(3, 3) - square(3, 3).T),
    ),
    "eig of equal values": (lambda a: la.eig(a)[1] * [1, 2, 3], np.eye(3)),
    "eig, phases": (lambda a: np.real(la.eig(a)[1]), square(3, 3) + 1j * np.eye(3)),
    "eig of a rotation": (
        lambda a: np.imag(la.eig(a)[1] ** 2),
        np.array([[1.0, -2.0], [1.0, 3.0]]),
    ),
    "svd of equal values": (lambda a: la.svd(a)[0] * W3, 2 * np.eye(3)),
    "svd of equal values, v": (lambda a: la.svd(a)[2] * W3, 2 * np.eye(3)),
    "svd of zeros": (lambda a: la.svd(a)[0] * W3, np.zeros((3, 3))),
    "svd, phases": (lambda a: np.real(la.svd(a)[0]), square(3, 3) + 1j * np.eye(3)),
    "svd, the rest of u": (lambda a: la.svd(a)[0] * W4, square(4, 2)),
    "svd, the rest of v": (lambda a: la.svd(a)[2] * W4, square(2, 4)),
    "qr, the rest of q": (
        lambda a: la.qr(a, "complete")[0] * W4,
        square(4, 2),
    ),
}


@pytest.mark.parametrize("name", CHOICES)
def test_a_function_of_what_lapack_chooses_is_refused(name):
    fn, a = CHOICES[name]
    with pytest.raises(gs.NotDifferentiableError, match="may choose"):
        gradient(fn, a)


# The dtype of a real matrix's eig is open, so that it is not compiled.
@pytest.mark.parametrize("name", [n for n in CHOICES if not n.startswith("eig of")])
def test_compiled_code_cannot_raise_and_has_nan(name):
    fn, a = CHOICES[name]
    loss = lambda v: np.sum(np.real(fn(v)))
    assert np.any(np.isnan(gs.compile(gs.grad(loss))(a)))
    if a.dtype.kind == "f":  # under a tape it is one operation
        assert np.any(np.isnan(gs.grad(gs.compile(loss))(a)))


VALUES = {
    "eigh": lambda a: la.eigh(a)[0] ** 2,
    "svd": lambda a: la.svd(a)[1] ** 2,
    "svd of a tall one": lambda a: la.svd(a[:, :2])[1] ** 2,
    "eigh, rebuilt": lambda a: (lambda w, v: (v * np.exp(w)) @ v.T)(*la.eigh(a)),
}


@pytest.mark.parametrize("name", VALUES)
def test_gradients_of_values_are_compiled(name):
    a = square(3, 3) + square(3, 3).T
    slope = gs.grad(lambda v: np.sum(VALUES[name](v)))
    np.testing.assert_allclose(gs.compile(slope)(a), slope(a), rtol=1e-10)


INDEPENDENT = {
    "eigh": lambda a: la.eigh(a)[1],
    "eig": lambda a: la.eig(a)[1],
    "svd u": lambda a: la.svd(a)[0],
    "svd v": lambda a: np.conj(la.svd(a)[2]).mT,
    "qr": lambda a: la.qr(a, "complete")[0],
}


@pytest.mark.parametrize("name", INDEPENDENT)
@pytest.mark.parametrize("dtype", [np.float32, float, np.complex64, complex])
@pytest.mark.parametrize("n", [4, 30])
def test_a_function_of_the_spaces_has_a_gradient(name, dtype, n):
    """Of projectors on single vectors and on all; also where values are equal."""
    a = square(n, n) + square(n, n).T
    a = (
        a + 1j * (square(n, n) - square(n, n).T)
        if dtype in (np.complex64, complex)
        else a
    )
    weights = square(n, n)

    def loss(a):
        v = INDEPENDENT[name](a)
        one = v[:, 1:2]
        return np.sum(weights * np.real(one @ np.conj(one).mT + v @ np.conj(v).mT))

    assert np.isfinite(gs.grad(loss)(a.astype(dtype))).all()

    def power(a):
        v, w = INDEPENDENT[name](a), np.arange(1.0, n + 1) // 2
        return np.sum(weights * np.real((v * w.astype(np.float32)) @ np.conj(v).mT))

    if name != "eig":
        gs.grad(power)(a.astype(dtype))


# --- rank ----------------------------------------------------------------------------


@pytest.mark.parametrize("a", [np.zeros((3, 2)), np.ones((3, 2)), np.zeros((2, 3))])
def test_inverses_of_too_low_a_rank(a):
    for fn in (
        lambda a: la.pinv(a),
        lambda a: la.pinv(a, rcond=0.1),
        lambda a: la.lstsq(a, np.ones(a.shape[0]))[0],
        lambda a: la.cond(a),
        lambda a: la.cond(a, -2),
    ):
        assert gradient(fn, a).shape == a.shape


@pytest.mark.parametrize("p", [None, 2, -2, 1, -1, inf, -inf, "fro"])
def test_the_condition_of_a_singular_matrix(p):
    a = np.stack([np.zeros((2, 2)), np.array([[2.0, 1.0], [0.5, 4.0]])])
    dx = gradient(lambda a: la.cond(a, p)[1], a)
    np.testing.assert_array_equal(dx[0], np.zeros((2, 2)))
    assert np.any(dx[1] != 0)
    np.testing.assert_array_equal(gradient(lambda a: la.cond(a, p), a[0]), 0)


RANK_ONE = np.outer([1.0, 2.0, 0.3], [1.0, 1 / 3])


@pytest.mark.parametrize("a", [RANK_ONE, RANK_ONE.T, RANK_ONE * 1j, np.zeros((3, 2))])
@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_qr_of_too_low_a_rank_is_refused(a, mode, dtype):
    a = a.astype(dtype if np.iscomplexobj(a) else dtype(0).real.dtype)
    fn = lambda a: la.qr(a, mode)[1]
    with pytest.raises(gs.NotDifferentiableError, match="depends on those before"):
        gradient(fn, a)
    with pytest.raises(gs.NotDifferentiableError, match="depends on those before"):
        gs.jvp(fn, (a,), (np.ones_like(a),))


def test_qr_of_a_batch_lets_a_matrix_pass_that_is_not_used():
    a = np.stack([np.zeros((2, 2)), np.array([[2.0, 1.0], [0.5, 4.0]])])
    dx = gradient(lambda a: la.qr(a)[1][1], a)
    np.testing.assert_array_equal(dx[0], 0)
    np.testing.assert_allclose(dx[1], gradient(lambda a: la.qr(a)[1], a[1]))
    scaled = a[1] * [1e-20, 1e20]  # of full rank, though its columns' sizes differ
    assert np.isfinite(gradient(lambda a: la.qr(a)[1], scaled)).all()


def test_qr_raw_is_refused():
    with pytest.raises(gs.UnsupportedOperationError, match="reduced"):
        gs.vjp(lambda a: la.qr(a, mode="raw"), np.eye(2))


def test_the_singular_values_of_lstsq_cost_nothing_unless_used(monkeypatch):
    a, b = square(4, 2), square(4)
    _, pull = gs.vjp(lambda a: la.lstsq(a, b)[0], a)
    monkeypatch.setattr(la, "svd", None)  # the pseudoinverse has its own
    assert np.all(np.isfinite(pull(np.ones(2))[0]))


# --- norms ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [float, complex, np.float16, np.float32])
@pytest.mark.parametrize("p", [None, inf, -inf, 0, 1, -1, 2, -2, 3, 1.5, 0.5, -0.5])
def test_vector_norms_at_zero(p, dtype):
    x = np.zeros(3, dtype)
    with np.errstate(divide="ignore"):  # NumPy's own, for negative orders
        dx = gradient(lambda x: la.norm(x, p), x)
        gradient(lambda x: gs.grad(lambda x: la.norm(x, p))(x) * np.arange(3), x)
    np.testing.assert_array_equal(dx, np.zeros(3))
    assert dx.dtype == dtype


@pytest.mark.parametrize("p", [0.5, 1.5, 3, -0.5, -2])
def test_vector_norms_with_one_zero(p):
    with np.errstate(divide="ignore"):
        dx = gradient(lambda x: la.norm(x, p), np.array([0.0, 3.0, 4.0]))
    assert dx[0] == 0


@pytest.mark.parametrize("p", [None, "fro", "nuc", inf, -inf, 1, -1, 2, -2])
@pytest.mark.parametrize("dtype", [float, complex])
def test_matrix_norms_at_zero(p, dtype):
    x = np.zeros((2, 3), dtype)
    np.testing.assert_array_equal(gradient(lambda x: la.norm(x, p), x), x)
    np.testing.assert_array_equal(gradient(lambda x: la.matrix_norm(x, ord=p), x), x)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_norms_of_nothing(shape):
    for p in (None, inf) if len(shape) == 1 else (None, "fro", 1, 2, "nuc", inf):
        if p not in (None, "fro") and NUMPY < (2, 3):
            continue  # which raises there
        dx = gradient(lambda x, p=p: la.norm(x, p), np.ones(shape))
        assert dx.shape == shape
    assert gradient(lambda x: la.norm(x, axis=0), np.ones(shape)).shape == shape


def test_ties_share():
    np.testing.assert_array_equal(
        gradient(lambda x: la.norm(x, inf), np.array([2.0, -2.0, 1.0, 2.0])),
        [1 / 3, -1 / 3, 0, 1 / 3],
    )
    np.testing.assert_array_equal(
        gradient(lambda x: la.norm(x, -inf), np.array([2.0, -1.0, 1.0])), [0, -0.5, 0.5]
    )
    np.testing.assert_array_equal(
        gradient(lambda x: la.norm(x, 1), np.array([[1.0, 2.0], [-1.0, 0.0]])),
        [[0.5, 0.5], [-0.5, 0]],
    )
    for p in (2, -2):
        dx = gradient(lambda x, p=p: la.norm(x, p), np.eye(4))
        np.testing.assert_allclose(dx, np.eye(4) / 4)


def test_the_nuclear_norm_of_a_low_rank():
    """The subgradient of least norm: U V* without the vectors of singular value 0."""
    a = np.diag([3.0, 2.0, 0.0])
    np.testing.assert_allclose(
        gradient(lambda a: la.norm(a, "nuc"), a), np.diag([1.0, 1.0, 0.0]), atol=1e-15
    )


@pytest.mark.parametrize("fn", [la.norm, la.vector_norm])
def test_read_only_and_strided(fn):
    x = np.arange(1.0, 9.0).reshape(4, 2)[::2].T
    x.flags.writeable = False
    np.testing.assert_allclose(gradient(fn, x), x / la.norm(x))
