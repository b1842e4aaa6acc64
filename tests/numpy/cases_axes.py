"""Cases of the functions that work along axes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .cases import ODD, SIGNED, WHOLE, Case, between, case, ints, normal, smooth

X = normal(2, 3, 4)
FLAGS = X > 0


def reductions() -> Iterator[Case]:
    small = X[0].astype(np.float32)
    for name in ("sum", "prod", "mean", "var", "std", "max", "min", "ptp", "average"):
        yield smooth(name, X)
        yield smooth(name, X, axis=1)
        yield smooth(name, X, axis=(0, -1), keepdims=True)
        yield case(name, small, axis=-1)
        yield case(name, ints(-3, 4, 2, 3), axis=0)
    for name in ("sum", "prod", "mean", "var", "std"):
        yield case(name, X, axis=())
        yield case(name, small, dtype=np.float64)
        yield case(name, X[0].astype(np.float16))
    for name in ("sum", "prod"):
        yield case(name, FLAGS)
        yield case(name, ints(0, 4, 2, 3, dtype=np.int8))
        yield case(name, ints(0, 4, 2, 3, dtype=np.uint8), axis=0)
        yield case(name, X + 1j)
    for name in ("max", "min", "amax", "amin"):
        yield case(name, ODD)
        yield case(name, FLAGS, axis=0)
    for options in ({"ddof": 1}, {"correction": 1}, {"correction": 0.5, "axis": 0}):
        yield smooth("var", X, **options)
        yield smooth("std", X, **options)
    yield case("var", X + 1j * X**2)
    yield smooth("average", X, weights=between(0.1, 1, 2, 3, 4))
    yield smooth("average", X, axis=1, weights=between(0.1, 1, 3), keepdims=True)
    yield case("average", ints(0, 5, 4), weights=ints(1, 3, 4))
    for name in ("any", "all", "count_nonzero"):
        yield case(name, FLAGS)
        yield case(name, SIGNED)
        yield case(name, FLAGS, axis=(0, 2), keepdims=True)
        yield case(name, ODD, axis=0)
    holes = np.where(X > 1, np.nan, X)
    for name in ("nansum", "nanprod", "nanmean"):
        yield smooth(name, holes)
        yield case(name, holes, axis=1, keepdims=True)
        yield case(name, SIGNED)


def ordering() -> Iterator[Case]:
    ties = np.array([[1.0, 3.0, 3.0], [2.0, 0.0, 0.0]])
    for name in ("argmax", "argmin"):
        yield case(name, ties)
        yield case(name, ties, axis=1)
        yield case(name, ties, axis=0, keepdims=True)
        yield case(name, ties, keepdims=True)
        yield case(name, ODD)
        yield case(name, np.array([1.0, np.inf, np.nan]))
        yield case(name, FLAGS, axis=-1)
        yield case(name, SIGNED)
    for name in ("cumsum", "cumprod"):
        yield smooth(name, X, axis=1)
        yield smooth(name, X[0])
        yield case(name, SIGNED)
        yield case(name, FLAGS, axis=0)
        yield case(name, SIGNED, dtype=np.float32)
    yield smooth("diff", X)
    yield case("diff", X, n=2, axis=1)
    yield case("diff", FLAGS)
    yield smooth("sort", X)
    yield smooth("sort", X, axis=None)
    for name in ("sort", "argsort"):
        yield case(name, X, axis=0)
        yield case(name, ODD)
        yield case(name, np.array([np.nan, np.inf, 1.0, np.nan]))
        yield case(name, SIGNED[::-1].copy())
        yield case(name, FLAGS)
    yield case("argsort", ties, axis=None)
    grid = np.array([1.0, 2.0, 2.0, 3.0])
    yield case("searchsorted", grid, ties)
    yield case("searchsorted", grid, 2.0, side="right")
    yield case("searchsorted", np.array([1, 2, 5]), np.array([1.5, 7.0]))
    for axis in (None, 0, 1, 2):
        yield smooth("median", X, axis=axis)
    yield case("median", ODD)
    yield case("median", WHOLE, keepdims=True)


def shaping() -> Iterator[Case]:
    yield case("shape", X)
    yield case("ndim", X)
    yield case("size", X)
    yield case("size", X, 1)
    yield smooth("reshape", X, (4, -1))
    yield case("reshape", X, 24)
    yield case("reshape", X, [2, 12])
    yield smooth("ravel", X)
    yield smooth("transpose", X)
    yield smooth("transpose", X, (1, -1, 0))
    yield smooth("matrix_transpose", X)
    yield smooth("swapaxes", X, 0, -1)
    yield smooth("moveaxis", X, 0, -1)
    yield case("moveaxis", X, (0, 1), (-1, 0))
    yield smooth("expand_dims", X, 1)
    yield case("expand_dims", X, (0, -1))
    yield smooth("squeeze", X[:1, :, :1])
    yield case("squeeze", X[:1, :, :1], axis=0)
    yield case("squeeze", X)
    yield smooth("broadcast_to", X[:, :1], (2, 3, 4))
    yield case("broadcast_to", WHOLE[0], (2, 2))
    yield smooth("broadcast_arrays", X[0], X[:, :1])
    yield smooth("flip", X)
    yield case("flip", X, (0, -1))
    yield smooth("roll", X, 1)
    yield smooth("roll", X, (1, -2), axis=(0, 2))
    yield case("roll", X, 2, axis=(0, 1))
    yield smooth("tile", X, 2)
    yield case("tile", X[0], (2, 1, 3))
    yield case("tile", X, (2,))
    yield smooth("repeat", X, 2)
    yield smooth("repeat", X, 2, axis=1)
    yield case("repeat", X, [1, 0, 2], axis=1)
    for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        yield case(name, X[0, 0, 0])
        yield smooth(name, X[0, 0])
        yield smooth(name, X[0], X)


def joining() -> Iterator[Case]:
    a, b = X[0], X[1]
    yield smooth("concatenate", [a, b])
    yield smooth("concatenate", [a, b[:, :1]], axis=-1)
    yield case("concatenate", [a, b], axis=None)
    yield case("concatenate", [a.astype(np.float32), WHOLE[:4][None]], axis=0)
    yield case("concatenate", [SIGNED, FLAGS[0, 0]], dtype=np.float32)
    yield smooth("stack", [a, b])
    yield smooth("stack", [a, b], axis=-1)
    yield case("stack", [a[0, 0].astype(np.float32), 2.0, WHOLE[1]])
    yield smooth("unstack", X)
    yield case("unstack", X, axis=-1)
    yield smooth("split", X, 2, axis=2)
    yield smooth("split", X, [1, 2], axis=1)
    yield case("split", X, 2)
    yield smooth("meshgrid", X[0, 0], X[0, :, 0])
    yield case("meshgrid", X[0, 0], X[0, :, 0], X[:, 0, 0], indexing="ij")
    yield smooth("pad", a, 1)
    yield case("pad", a, ((0, 2), (1, 0)), constant_values=3.0)
    yield case("pad", SIGNED, (2, 1))
    for mode in ("edge", "reflect", "symmetric", "wrap"):
        yield smooth("pad", a, ((1, 2), (0, 3)), mode=mode)
    yield smooth("take", X, np.array([0, -1, 1]), axis=1)
    yield case("take", X, np.array([[0, 5], [-1, 2]]))
    yield case("take", X, 1, axis=0)
    yield case("take", X, [0, 1], axis=0)
    yield smooth("take_along_axis", X, np.argsort(X, axis=1), axis=1)
    yield case("take_along_axis", X, np.array([[[0, -1]]]), axis=-1)
    yield case("take_along_axis", a, np.array([3, 1]), axis=None)


def products() -> Iterator[Case]:
    a, b = normal(3, 4), normal(4, 5)
    yield smooth("matmul", a, b)
    yield smooth("matmul", a, b[:, 0])
    yield smooth("matmul", a[0], b)
    yield smooth("matmul", a[0], b[:, 0])
    yield smooth("matmul", normal(2, 1, 3, 4), normal(5, 4, 2))
    yield case("matmul", a.astype(np.float32), ints(0, 3, 4, 2))
    yield case("matmul", ints(0, 3, 2, 3), ints(0, 3, 3, 2))
    yield smooth("dot", a, b)
    yield smooth("dot", a, normal(2, 4, 3))
    yield smooth("dot", a[0], b[:, 0])
    yield case("dot", a, 2.0)
    yield smooth("tensordot", normal(2, 3, 4), normal(3, 4, 5))
    yield smooth("tensordot", normal(2, 3, 4), normal(4, 2), axes=((0, -1), (1, 0)))
    yield case("tensordot", a[0], b[:, 0], axes=0)
    yield smooth("inner", a, normal(2, 4))
    yield case("inner", a, 3)
    yield smooth("outer", a, b[0])
    yield case("outer", WHOLE, a[0].astype(np.float32))
    yield smooth("vecdot", a, a[0])
    yield case("vecdot", a + 1j, 2 * a - 1j, axis=0)
    yield case("vecdot", SIGNED, SIGNED)
    yield smooth("kron", a, b[0])
    yield case("kron", a[0], normal(2, 2, 2))
    yield smooth("cross", normal(2, 3), normal(3))
    yield case("cross", normal(3, 2), normal(3, 2), axis=0)
    yield smooth("einsum", "ij,jk->ik", a, b)
    yield smooth("einsum", "ij, ij", a, a + 1)
    yield case("einsum", "...i,i->...", X, a[0])
    yield case("einsum", "ii->i", normal(3, 3))
    yield case("einsum", "ii", normal(3, 3))
    yield case("einsum", "ij->ji", a.astype(np.float32))
    yield case("einsum", "i,i", a[0].astype(np.float32), WHOLE[:4])
    yield smooth("diagonal", X)
    yield case("diagonal", X, 1, 0, -1)
    yield case("diagonal", X, offset=-1, axis1=1, axis2=2)
    yield smooth("trace", X)
    yield case("trace", ints(0, 5, 3, 3), 1)
    yield smooth("diag", a)
    yield smooth("diag", a[0], 1)
    yield case("diag", a, -1)
    yield smooth("vander", a[0], 5)
    yield smooth("vander", np.array([0.0, -1.5, 2.0]), 4, increasing=True)
    yield case("vander", a[0])
    for n in (0, 1, 2, 11):
        yield case("vander", WHOLE, n)
    yield case("vander", a[0].astype(np.float32), 3, True)
    yield case("vander", SIGNED > 0, 3)
    yield case("vander", a[0] + 1j, N=4)
    yield case("vander", a[0, :0], 3)
    for name in ("tril", "triu"):
        yield smooth(name, X)
        yield case(name, X, 1)
        yield case(name, ints(0, 5, 3, 3), -1)


def creation() -> Iterator[Case]:
    small = X[0].astype(np.float32)
    for name in ("zeros_like", "ones_like"):
        yield case(name, small)
        yield case(name, SIGNED, dtype=np.float32)
        yield case(name, X[0, 0, 0])
    yield case("full_like", small, 2)
    yield case("full_like", SIGNED, 2.5, dtype=float)
    for name in ("zeros", "ones"):
        yield case(name, (2, 3), like=small)
        yield case(name, 3, dtype="float32", like=small)
    yield case("full", (2,), 3, like=small)
    yield case("full", (2,), 2.5, dtype=np.int32, like=small)
    yield case("arange", 4, like=small)
    yield case("arange", 1, 3, 0.5, like=small)
    yield case("arange", 5, dtype=np.float32, like=small)
    yield case("eye", 2, like=small)
    yield case("eye", 2, 3, 1, dtype="int32", like=small)
    yield case("linspace", 0, 1, 5, like=small)
    yield case("linspace", 0, 1, 4, endpoint=False, dtype=np.float32, like=small)
    yield smooth("linspace", X[0], X[1], 3)
    yield case("array", [1.0, 2.0], like=small)
    yield case("array", small)
    yield case("array", small, dtype=np.float64)
    yield case("asarray", [1.0, 2.0], like=small)
    yield case("asarray", 3, dtype="int32", like=small)
    yield case("asarray", small)
    yield case("asarray", small, dtype=np.float64)
    for dtype in ("float32", np.int64, bool, np.dtype("complex64"), float):
        yield case("astype", 2 * X, dtype)
    yield smooth("stop_gradient", X)
    yield smooth("unbroadcast", X, (3, 1))
    yield case("unbroadcast", X, (2, 3, 4))


AXES = [
    *reductions(), *ordering(), *shaping(), *joining(), *products(), *creation(),
]  # fmt: skip
