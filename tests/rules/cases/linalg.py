"""Cases of linear algebra: each function with real and complex matrices, and stacks.

Where LAPACK chooses a phase or a basis, the case is a function that does not depend on
the choice.
"""

from __future__ import annotations

from math import inf

import numpy as np

from tests.rules.harness import Case

_rng = np.random.default_rng(17)
CASES: list[Case] = []
la = np.linalg


def real(*shape):
    return _rng.standard_normal(shape)


def complex_(*shape):
    return real(*shape) + 1j * real(*shape)


def h(a):
    return np.conj(np.swapaxes(a, -1, -2))


def add(fn, *args, name="", step=1e-3, **kwargs):
    shapes = ",".join(f"{a.dtype.kind}{a.shape}" for a in args if hasattr(a, "shape"))
    options = ",".join(f"{k}={v}" for k, v in kwargs.items())
    label = f"np.linalg.{name or fn.__name__}-{shapes}-{options}".replace(" ", "")
    CASES.append(Case(fn, args, kwargs, name=label, step=step))


# --- equations, inverses, determinants, powers ---------------------------------------


def matrix_power(n):
    return lambda a: la.matrix_power(a, n)


for _make in (real, complex_):
    for _shape1, _shape2 in (
        ((3, 3), (3,)),
        ((3, 3), (3, 2)),
        ((4, 3, 3), (3,)),
        ((3, 3), (4, 3, 2)),
        ((4, 3, 3), (2, 1, 3, 2)),
        ((0, 0), (0,)),
        ((2, 3, 3), (3, 0)),
    ):
        add(la.solve, _make(*_shape1), _make(*_shape2))
    add(la.tensorsolve, _make(6, 2, 3), _make(6))
    add(la.tensorsolve, _make(2, 6, 3), _make(6), axes=(2, 0))
    add(la.tensorinv, _make(2, 3, 6))
    add(la.tensorinv, _make(6, 2, 3), ind=1)
    for _shape in ((3, 3), (2, 4, 4), (1, 1), (2, 0, 0)):
        add(la.inv, _make(*_shape))
        add(la.det, _make(*_shape))
        add(la.slogdet, _make(*_shape))
    for _n in (-3, -1, 0, 1, 2, 3, 4, 7):
        add(matrix_power(_n), _make(2, 3, 3), name=f"matrix_power({_n})", step=2e-4)
    _singular = _make(3, 3)
    _singular[2] = 0
    add(la.det, _singular, name="det of rank 2")
    add(la.det, np.zeros_like(_singular), name="det of 0")
    add(la.det, np.stack([_singular, _make(3, 3)]), name="det of a mixed stack")
    add(la.det, np.outer(_make(3), _make(3)), name="det of rank 1")
    for _shape in ((3, 4), (2, 3, 3)):
        add(la.trace, _make(*_shape), offset=1)
        add(la.diagonal, _make(*_shape), offset=-1)
        add(la.matrix_transpose, _make(*_shape))
add(la.solve, real(3, 3), complex_(3))
add(la.solve, complex_(3, 3), real(3, 2))

# --- Cholesky, QR --------------------------------------------------------------------


def positive(make, *shape):
    a = make(*shape)
    return a @ h(a) + np.eye(shape[-1])


def complete_qr(a):
    """The determined parts of Q and R."""
    q, r = la.qr(a, mode="complete")
    k = min(a.shape[-2:])
    return q[..., :k], np.matmul(q[..., k:], h(q[..., k:])), r


_SHAPES = ((3, 3), (5, 3), (3, 5), (1, 1), (4, 1), (1, 3), (2, 4, 3), (2, 3, 4))
for _make in (real, complex_):
    for _shape in ((3, 3), (2, 3, 3), (1, 1)):
        add(la.cholesky, positive(_make, *_shape))
        add(la.cholesky, positive(_make, *_shape), upper=True)
    add(la.cholesky, np.tril(positive(_make, 3, 3)), name="cholesky of a triangle")
    for _shape in _SHAPES:
        add(la.qr, _make(*_shape))
        add(la.qr, _make(*_shape), mode="r")
        add(complete_qr, _make(*_shape))

# --- eigenvalues ---------------------------------------------------------------------


def symmetric(make, *shape):
    a = make(*shape)
    return a + h(a)


def eigh(a, uplo="L"):
    w, v = la.eigh(a, uplo)
    weights = np.arange(1.0, w.shape[-1] + 1)
    return w, np.abs(v), np.matmul(v * weights, h(v))


def eig(a):
    w, v = la.eig(a)
    return w, np.abs(v), np.einsum("...ij,...kj->...ikj", v, np.conj(v))


add(la.eigh, symmetric(real, 3, 3))
for _make in (real, complex_):
    for _shape in ((3, 3), (2, 4, 4), (1, 1)):
        for _uplo in ("L", "U"):
            add(eigh, symmetric(_make, *_shape), uplo=_uplo)
            add(la.eigvalsh, symmetric(_make, *_shape), UPLO=_uplo)
    for _shape in ((3, 3), (2, 3, 3), (4, 4), (1, 1)):
        add(eig, _make(*_shape), step=2e-4)
        add(la.eigvals, _make(*_shape), step=2e-4)

for _fn in (la.eigh, la.eigvalsh, la.eig, la.eigvals, la.svd, la.pinv, la.qr):
    add(_fn, np.ones((2, 0, 0)))
for _fn in (la.svd, la.svdvals, la.pinv, la.qr):
    add(_fn, np.ones((0, 3)))
    add(_fn, np.ones((3, 0)))

# --- singular values, pseudoinverse, least squares -----------------------------------


def svd(a, **options):
    """The determined parts of the factors, and what is left of them together."""
    u, s, vh = la.svd(a, **options)
    k = s.shape[-1]
    u1, u2, v1, v2 = u[..., :k], u[..., k:], vh[..., :k, :], vh[..., k:, :]
    weights = np.arange(1.0, k + 1)
    return (
        s,
        *(np.abs(u1), np.abs(v1), np.matmul(u1 * weights, v1)),
        *(np.matmul(u2, h(u2)), np.matmul(h(v2), v2)),
    )


def solution(a, b):
    return la.lstsq(a, b)[:2]


add(la.svd, real(3, 3))
add(la.svd, real(4, 2), full_matrices=False)
for _make in (real, complex_):
    for _shape in _SHAPES:
        add(svd, _make(*_shape), step=2e-4)
        add(svd, _make(*_shape), full_matrices=False, step=2e-4)
        add(la.svd, _make(*_shape), compute_uv=False, step=2e-4)
        add(la.svdvals, _make(*_shape), step=2e-4)
        add(la.pinv, _make(*_shape), step=2e-4)
        add(la.pinv, _make(*_shape), rcond=0.3, step=2e-4)
    add(la.pinv, _make(3, 4), rtol=0.2, step=2e-4)
    add(la.pinv, _make(2, 4, 3), rcond=np.array([0.1, 0.5]), step=2e-4)
    for _shape in ((3, 3), (2, 3, 3)):
        add(svd, symmetric(_make, *_shape), hermitian=True)
        add(la.svd, symmetric(_make, *_shape), hermitian=True, compute_uv=False)
        add(la.pinv, symmetric(_make, *_shape), hermitian=True)
        add(la.pinv, symmetric(_make, *_shape), hermitian=True, rcond=0.3)
    for _shape in ((3, 3), (5, 3), (3, 5), (3, 1)):
        add(la.lstsq, _make(*_shape), _make(_shape[0]))
        add(la.lstsq, _make(*_shape), _make(_shape[0], 2))
        add(la.lstsq, _make(*_shape), _make(_shape[0], 2), rcond=0.3, step=2e-4)
    # Matrices of rank 2 that stay so, and equal singular values
    add(lambda b, c: la.pinv(b @ c), _make(4, 2), _make(2, 3), name="pinv of rank 2")
    add(
        lambda b, c, y: solution(b @ c, y),
        *(_make(4, 2), _make(2, 3), _make(4)),
        name="lstsq of rank 2",
    )
    _orthogonal = la.qr(_make(4, 3))[0]
    add(la.pinv, _orthogonal, name="pinv of an orthogonal matrix")
    add(la.norm, _orthogonal, ord="nuc", name="norm of an orthogonal matrix")
    add(solution, _orthogonal, _make(4), name="lstsq of an orthogonal matrix")
add(la.lstsq, real(5, 3), complex_(5))
add(la.lstsq, real(5, 3), real(5), rcond=-1)

# --- norms ---------------------------------------------------------------------------

for _make in (real, complex_):
    for _ord in (None, inf, -inf, 0, 1, -1, 2, -2, 3, 2.5, 0.5, -0.5):
        add(la.norm, _make(5), ord=_ord)
        add(la.norm, _make(4, 3), ord=_ord, axis=0)
        add(la.norm, _make(2, 3, 2), ord=_ord, axis=-2, keepdims=True)
        if _ord is not None:
            add(la.vector_norm, _make(2, 3), ord=_ord)
            add(la.vector_norm, _make(2, 3, 2), ord=_ord, axis=(0, -1))
            add(la.vector_norm, _make(2, 3), ord=_ord, axis=0, keepdims=True)
    for _ord in (None, "fro", "nuc", inf, -inf, 1, -1, 2, -2):
        add(la.norm, _make(3, 3), ord=_ord, step=2e-4)
        add(la.norm, _make(2, 3, 4), ord=_ord, axis=(2, 0), step=2e-4)
        add(la.norm, _make(4, 3, 2), ord=_ord, axis=(0, 1), keepdims=True, step=2e-4)
        add(la.matrix_norm, _make(2, 4, 3), ord=_ord, step=2e-4)
        add(la.cond, _make(2, 3, 3), p=_ord, step=1e-4)
    add(la.norm, _make(2, 3, 2))
    add(la.norm, _make())
    add(la.cond, _make(4, 3))
    add(la.cond, _make(3, 4), p=-2)
