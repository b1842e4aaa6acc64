"""Products that sum over products of elements: matmul, dot, tensordot and their kin.

All are linear in each argument (`vdot`, `vecdot` and `vecmat` in the conjugate of the
first), so each cotangent is again a product, of dy with the other argument.
"""

from __future__ import annotations

from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from ..core.cotangent import TAKES_ROWS, OnePerRow, Spec
from ..core.pool import SMALLEST, empty
from ..core.rule import RULES, bilinear, composite


def conj(x: Any) -> Any:
    """The conjugate; a real array itself, which NumPy would copy."""
    dtype = getattr(x, "dtype", None)
    is_complex = isinstance(x, complex) if dtype is None else dtype.kind == "c"
    return np.conj(x) if is_complex else x


def shape_of(x: Any) -> tuple[int, ...]:
    """The shape; that of a Python number is ()."""
    return getattr(x, "shape", ())


def h(x: Any) -> Any:
    """The conjugate transpose of a stack of matrices."""
    return conj(x.mT)


def column(x: Any) -> Any:
    """A stack of vectors as a stack of matrices of one column."""
    return np.reshape(x, (*x.shape, 1))


def row(x: Any) -> Any:
    """A stack of vectors as a stack of matrices of one row."""
    return np.reshape(x, (*x.shape[:-1], 1, x.shape[-1]))


# matmul: Y = X1 X2 gives dX1 = dY X2* and dX2 = X1* dY, with * the conjugate transpose.
# With one matrix for a whole stack both are one product of larger matrices, which also
# sums over the stack: for (1000, 4, 16) @ (16, 16) 80 us each, as stacks 410 and 190.


def matmul_dx1(dy: Any, y: Any, x1: Any, x2: Any) -> Any:
    if dy.__class__ is OnePerRow:
        if _takes_rows(dy, x2):
            return dy.times(x2.T)
        dy = dy.dense()
    if x2.ndim == 1:
        return dy * conj(x2) if x1.ndim == 1 else column(dy) * conj(x2)
    if x1.ndim == 1:
        return np.matmul(conj(x2), column(dy))[..., 0]
    if x2.ndim == 2 and x1.ndim > 2:
        return np.reshape(np.matmul(rows(dy), h(x2)), x1.shape)
    if x1.ndim == 2 and x2.ndim > 2:
        axes = (*range(x2.ndim - 2), x2.ndim - 1)  # all but the summed one of x2
        return np.tensordot(dy, conj(x2), (axes, axes))
    return np.matmul(dy, h(x2))


def matmul_dx2(dy: Any, y: Any, x1: Any, x2: Any) -> Any:
    if dy.__class__ is OnePerRow:
        if _takes_rows(dy, x1):
            return dy.under(x1)
        dy = dy.dense()
    if x1.ndim == 1:
        return dy * conj(x1) if x2.ndim == 1 else column(conj(x1)) * row(dy)
    if x2.ndim == 1:
        return np.matmul(np.reshape(dy, -1), conj(rows(x1)))
    if x2.ndim == 2 and x1.ndim > 2:
        return np.matmul(h(rows(x1)), rows(dy))
    plain = dy.__class__ is np.ndarray and x1.ndim == dy.ndim == 2
    if plain and dy.shape[1] > 4 * x1.shape[1]:
        # BLAS takes 460 us for (8, 10**4) @ (10**4, 100) so, 660 the other way
        return np.matmul(dy.T, conj(x1)).T
    return np.matmul(h(x1), dy)


def _takes_rows(dy: OnePerRow, x: Any) -> bool:
    """Whether the other factor is a plain matrix of the same dtype."""
    return x.__class__ is np.ndarray and x.ndim == 2 and x.dtype == dy.dtype


TAKES_ROWS.add(np.matmul)


def rows(x: Any) -> Any:
    """A stack of matrices as one matrix of all their rows."""
    return np.reshape(x, (prod(x.shape[:-1]), x.shape[-1]))


def matmul(x1: Any, x2: Any, **options: Any) -> Any:
    """np.matmul, which puts a large matrix into reused memory.

    Of 10,000 rows of 8 numbers with 8 of 100 in 0.6 of the time.
    """
    if options or not x1.ndim == x2.ndim == 2 or x1.shape[1] != x2.shape[0]:
        return np.matmul(x1, x2, **options)
    shape, dtype = (len(x1), x2.shape[1]), x1.dtype
    nbytes = shape[0] * shape[1] * dtype.itemsize
    usual = x1.__class__ is x2.__class__ is np.ndarray and dtype is x2.dtype
    if nbytes < SMALLEST or not usual or dtype.char not in "fd" or not dtype.isnative:
        return np.matmul(x1, x2)
    return np.matmul(x1, x2, out=empty(shape, dtype, nbytes))


bilinear(np.matmul, matmul_dx1, matmul_dx2)
RULES[np.matmul].run = matmul  # type: ignore[attr-defined]
composite(np.linalg.matmul, lambda x1, x2, /: np.matmul(x1, x2))

# matvec and vecmat are matmul with one column, or one row (conjugated)


def matvec_dx2(dy: Any, y: Any, x1: Any, x2: Any) -> Any:
    if x1.ndim == 2:
        return np.matmul(dy, conj(x1))
    return matmul_dx2(column(dy), y, x1, _with_axis(x2, -1))[..., 0]


def vecmat_dx1(dy: Any, y: Any, x1: Any, x2: Any) -> Any:
    return conj(matmul_dx1(row(dy), y, _with_axis(x1, -2), x2)[..., 0, :])


def _with_axis(x: Any, axis: int) -> Spec:
    """The spec of a stack of vectors taken as columns (-1) or rows (-2)."""
    end = (x.shape[-1], 1) if axis == -1 else (1, x.shape[-1])
    return Spec(x.shape[:-1] + end, x.dtype)


if hasattr(np, "matvec"):  # from NumPy 2.2 on
    bilinear(
        np.matvec,
        lambda dy, y, x1, x2: matmul_dx1(column(dy), y, x1, column(x2)),
        matvec_dx2,
    )
    bilinear(
        np.vecmat,
        vecmat_dx1,
        lambda dy, y, x1, x2: matmul_dx2(row(dy), y, row(conj(x1)), x2),
    )

# vdot, vecdot: y = sum of conj(x1) * x2

bilinear(
    np.vdot,
    lambda dy, y, x1, x2: np.reshape(conj(dy) * x2, x1.shape),
    lambda dy, y, x1, x2: np.reshape(dy * x1, x2.shape),
)
bilinear(
    np.vecdot,
    lambda dy, y, x1, x2: column(conj(dy)) * x2,
    lambda dy, y, x1, x2: column(dy) * x1,
)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    if axis != -1:
        x1, x2 = np.moveaxis(x1, axis, -1), np.moveaxis(x2, axis, -1)
    return np.vecdot(x1, x2)


composite(np.linalg.vecdot, vecdot)

# tensordot: y has the free axes of x1, then those of x2; dx1 sums dy * conj(x2) over
# the free axes of x2, which leaves those of x1 and the summed ones in x2's order.


def summed_axes(x1: Any, x2: Any, axes: Any) -> tuple[list[int], list[int]]:
    """The axes that tensordot sums over, as numbers from 0."""
    if np.ndim(axes) == 0 and not isinstance(axes, (tuple, list)):
        axes = range(x1.ndim - int(axes), x1.ndim), range(int(axes))
    axes1, axes2 = ([a] if isinstance(a, (int, np.integer)) else a for a in axes)
    return [int(a) % x1.ndim for a in axes1], [int(a) % x2.ndim for a in axes2]


def contract_dx1(dy: Any, x1: Any, x2: Any, axes1: Any, axes2: Any) -> Any:
    free1 = [a for a in range(x1.ndim) if a not in axes1]
    free2 = [a for a in range(x2.ndim) if a not in axes2]
    dx = np.tensordot(dy, conj(x2), (range(len(free1), dy.ndim), free2))
    order = free1 + [axes1[axes2.index(a)] for a in sorted(axes2)]
    return _arranged(dx, order)


def contract_dx2(dy: Any, x1: Any, x2: Any, axes1: Any, axes2: Any) -> Any:
    free1 = [a for a in range(x1.ndim) if a not in axes1]
    free2 = [a for a in range(x2.ndim) if a not in axes2]
    dx = np.tensordot(conj(x1), dy, (free1, range(len(free1))))
    order = [axes2[axes1.index(a)] for a in sorted(axes1)] + free2
    return _arranged(dx, order)


def _arranged(x: Any, order: list[int]) -> Any:
    """Bring the i-th axis of x to the place order[i]."""
    if order == sorted(order):
        return x
    return np.transpose(x, [order.index(a) for a in range(x.ndim)])


bilinear(
    np.tensordot,
    lambda dy, y, a, b, axes=2: contract_dx1(dy, a, b, *summed_axes(a, b, axes)),
    lambda dy, y, a, b, axes=2: contract_dx2(dy, a, b, *summed_axes(a, b, axes)),
)
composite(np.linalg.tensordot, lambda x1, x2, /, *, axes=2: np.tensordot(x1, x2, axes))

# dot is matmul if x2 has at most two axes, inner sums over the last axes; both multiply
# by a scalar.


def dot_dx1(dy: Any, y: Any, a: Any, b: Any, out: Any = None) -> Any:
    if not shape_of(a) or not shape_of(b):
        return dy * conj(b)
    if b.ndim <= 2:
        return matmul_dx1(dy, y, a, b)
    return contract_dx1(dy, a, b, [a.ndim - 1], [b.ndim - 2])


def dot_dx2(dy: Any, y: Any, a: Any, b: Any, out: Any = None) -> Any:
    if not shape_of(a) or not shape_of(b):
        return dy * conj(a)
    if b.ndim <= 2:
        return matmul_dx2(dy, y, a, b)
    return contract_dx2(dy, a, b, [a.ndim - 1], [b.ndim - 2])


def inner_dx1(dy: Any, y: Any, a: Any, b: Any) -> Any:
    if not shape_of(a) or not shape_of(b):
        return dy * conj(b)
    return contract_dx1(dy, a, b, [a.ndim - 1], [b.ndim - 1])


def inner_dx2(dy: Any, y: Any, a: Any, b: Any) -> Any:
    if not shape_of(a) or not shape_of(b):
        return dy * conj(a)
    return contract_dx2(dy, a, b, [a.ndim - 1], [b.ndim - 1])


bilinear(np.dot, dot_dx1, dot_dx2)
bilinear(np.inner, inner_dx1, inner_dx2)


# multi_dot: products of two, in the order that costs least
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    if len(arrays) < 3:
        return np.dot(*arrays)
    chain = [x if hasattr(x, "shape") else np.asarray(x) for x in arrays]
    shape = chain[0].shape[:-1] + chain[-1].shape[1:]
    if chain[0].ndim == 1:
        chain[0] = row(chain[0])
    if chain[-1].ndim == 1:
        chain[-1] = column(chain[-1])
    if any(x.ndim != 2 for x in chain):
        raise np.linalg.LinAlgError("multi_dot takes matrices, and vectors at its ends")
    sizes = [x.shape[0] for x in chain] + [chain[-1].shape[1]]
    y = _multiply(chain, _cheapest_splits(sizes), 0, len(chain) - 1)
    return np.reshape(y, shape)


def _cheapest_splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Where to split the product of matrices i to j, of sizes[i] by sizes[i + 1] etc.

    Of splits that cost the same the leftmost, as in NumPy.
    """
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    split = {}
    for i, j in sorted(
        combinations(range(count), 2), key=lambda pair: pair[1] - pair[0]
    ):
        cost[i, j], split[i, j] = min(
            (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
            for k in range(i, j)
        )
    return split


def _multiply(chain: Any, split: Any, i: int, j: int) -> Any:
    if i == j:
        return chain[i]
    k = split[i, j]
    return np.dot(_multiply(chain, split, i, k), _multiply(chain, split, k + 1, j))


composite(np.linalg.multi_dot, multi_dot, lists=True)
