"""Cases of the products of arrays."""

from __future__ import annotations

import numpy as np

from gradsmith.core.rule import name_of
from tests.rules.harness import Case

_rng = np.random.default_rng(11)
CASES: list[Case] = []


def real(*shape):
    return _rng.standard_normal(shape)


def complex_(*shape):
    return real(*shape) + 1j * real(*shape)


def add(fn, *args, name="", **kwargs):
    """A case, and the same one with complex arrays."""
    shapes = ",".join(str(a.shape) if hasattr(a, "shape") else str(a) for a in args)
    options = ",".join(f"{k}={v}" for k, v in kwargs.items())
    label = f"{name or name_of(fn)}-{shapes}-{options}".replace(" ", "")
    CASES.append(Case(fn, args, kwargs, name=label))
    twin = [complex_(*a.shape) if hasattr(a, "shape") else a for a in args]
    CASES.append(Case(fn, twin, kwargs, name=f"{label}-complex"))


for _shape1, _shape2 in (
    ((3,), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3,)),
    ((2, 3), (3, 4)),
    ((3,), (5, 3, 2)),
    ((5, 2, 3), (3,)),
    ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((2, 1, 4, 3), (5, 3, 2)),
    ((1, 2, 3), (4, 3, 2)),
    ((0, 3), (3, 2)),
    ((2, 0), (0, 3)),
    ((5, 0, 3), (3, 2)),
):
    add(np.matmul, real(*_shape1), real(*_shape2))
add(np.linalg.matmul, real(4, 2, 3), real(3, 5))

for _shape1, _shape2 in (
    ((), ()),
    ((), (2, 3)),
    ((2, 3), ()),
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3,)),
    ((5, 2, 3), (3, 4)),
    ((3,), (2, 3, 4)),
    ((2, 3), (5, 3, 4)),
    ((2, 4, 3), (5, 3, 2)),
    ((2, 4, 3), (2, 2, 3, 2)),
    ((2, 0), (0, 3)),
):
    add(np.dot, real(*_shape1), real(*_shape2))

for _shape1, _shape2 in (
    ((), (2, 3)),
    ((2, 3), ()),
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (2, 4, 3)),
    ((5, 2, 3), (4, 3)),
    ((2, 0), (3, 0)),
):
    add(np.inner, real(*_shape1), real(*_shape2))

add(np.outer, real(3), real(4))
add(np.outer, real(2, 3), real(2, 2))
add(np.outer, real(), real(3))
add(np.outer, real(0), real(3))
add(np.linalg.outer, real(3), real(4))
add(np.vdot, real(4), real(4))
add(np.vdot, real(2, 3), real(6))
add(np.vdot, real(), real())

for _shape1, _shape2 in (((3,), (3,)), ((4, 3), (3,)), ((2, 1, 3), (4, 3))):
    add(np.vecdot, real(*_shape1), real(*_shape2))
    add(np.linalg.vecdot, real(*_shape1), real(*_shape2))
add(np.linalg.vecdot, real(3, 2), real(3, 2), axis=0)
add(np.linalg.vecdot, real(2, 3, 4), real(2, 3, 4), axis=-2)
for _shape1, _shape2 in (
    ((2, 3), (3,)),
    ((2, 3), (5, 3)),
    ((5, 2, 3), (3,)),
    ((5, 2, 3), (4, 1, 3)),
):
    if hasattr(np, "matvec"):  # from NumPy 2.2 on
        add(np.matvec, real(*_shape1), real(*_shape2))
for _shape1, _shape2 in (
    ((3,), (3, 2)),
    ((3,), (5, 3, 2)),
    ((5, 3), (3, 2)),
    ((4, 1, 3), (5, 3, 2)),
):
    if hasattr(np, "vecmat"):
        add(np.vecmat, real(*_shape1), real(*_shape2))

for _shape1, _shape2, _axes in (
    ((2, 3, 4), (3, 4, 5), 2),
    ((2, 3), (4,), 0),
    ((2, 3, 4), (4,), 1),
    ((3, 2, 4), (4, 5, 3), ([0, 2], [2, 0])),
    ((3, 2, 4), (4, 5, 3), ([2, 0], [0, 2])),
    ((3, 2, 4), (4, 5, 3), (-1, 0)),
    ((3, 4), (4, 3), ((0, 1), (1, 0))),
    ((2, 3, 4, 5), (5, 6, 3), ((-1, 1), (0, -1))),
    ((2, 0), (0, 3), 1),
):
    add(np.tensordot, real(*_shape1), real(*_shape2), axes=_axes)
add(np.tensordot, real(2, 3), real(3, 2), 1)
add(np.linalg.tensordot, real(2, 3), real(3, 2), axes=1)

for _shape1, _shape2 in (
    ((2, 3), (4, 2)),
    ((2,), (3,)),
    ((2,), (3, 2)),
    ((2, 3, 2), (2,)),
    ((), (2, 3)),
    ((2, 3), ()),
    ((), ()),
    ((0, 2), (2, 3)),
):
    add(np.kron, real(*_shape1), real(*_shape2))

add(np.cross, real(3), real(3))
add(np.cross, real(4, 3), real(3))
add(np.cross, real(2, 1, 3), real(4, 3))
add(np.cross, real(3, 4), real(4, 3), axisa=0, axisb=1)
add(np.cross, real(3, 4), real(4, 3), axisa=0, axisc=0)
add(np.cross, real(5, 3, 4), real(3, 4), axisa=1, axisb=0)
add(np.cross, real(2, 3, 4), real(2, 3, 4), axis=1)
add(np.cross, real(2, 3, 4), real(2, 3, 4), -2, -2, 0)
add(np.cross, real(0, 3), real(3))
add(np.linalg.cross, real(4, 3), real(3))
add(np.linalg.cross, real(3, 4), real(3, 4), axis=0)


def _multi_dot(*arrays):
    return np.linalg.multi_dot(arrays)


for _shapes in (
    ((2, 3), (3, 4)),
    ((2, 3), (3, 4), (4, 2)),
    ((5, 2), (2, 6), (6, 3)),
    ((3,), (3, 4), (4, 2)),
    ((2, 3), (3, 4), (4,)),
    ((3,), (3, 4), (4,)),
    ((2, 5), (5, 1), (1, 4), (4, 3)),
    ((3, 3), (3, 3), (3, 3), (3, 3)),
    ((4,), (4, 2), (2, 6), (6, 1), (1,)),
):
    add(_multi_dot, *[real(*shape) for shape in _shapes], name="multi_dot")

for _notation, *_shapes in (
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("ba,bc", (2, 3), (2, 4)),
    ("i,i", (3,), (3,)),
    ("ij->ji", (2, 3)),
    ("ij->", (2, 3)),
    ("ij->j", (2, 3)),
    ("ba", (2, 3)),
    ("i->", (0,)),
    (",ij->ij", (), (2, 3)),
    ("ii", (3, 3)),
    ("ii->i", (3, 3)),
    ("ijj->ij", (2, 3, 3)),
    ("iijj->ij", (2, 2, 3, 3)),
    ("iii->i", (3, 3, 3)),
    ("iijk,kj->k", (2, 2, 3, 4), (4, 3)),
    ("ii,jj->", (2, 2), (3, 3)),
    ("ij,kl->", (2, 3), (2, 2)),
    ("ij,k->ik", (2, 3), (4,)),
    ("bij , bjk -> bik", (2, 2, 3), (2, 3, 2)),
    ("...ij,...jk->...ik", (4, 2, 3), (4, 3, 2)),
    ("...ij,...jk", (5, 1, 2, 3), (4, 3, 2)),
    ("...i->...", (2, 2, 3)),
    ("i...->...", (3, 2)),
    ("...,...", (2, 3), (3,)),
    ("i...,i...->i...", (3, 2), (3, 4, 2)),
    ("...ii->...i", (2, 3, 3)),
    ("a...b,b...->a...", (2, 3, 4), (4, 3)),
    ("ij,jk->ik", (2, 1), (3, 4)),
    ("i,i->i", (1,), (3,)),
    ("ij,ij->ij", (2, 3), (2, 1)),
    ("i,i->i", (0,), (1,)),
    ("ij,i->i", (2, 3), (1,)),
    ("ij,ij->", (1, 3), (2, 3)),
    ("Ab,bC", (2, 3), (3, 2)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)),
    ("ij,ik,il->jkl", (2, 3), (2, 2), (2, 4)),
    ("i,i,i->i", (3,), (3,), (3,)),
    ("ij,jk,kl,lm", (2, 3), (3, 2), (2, 3), (3, 2)),
):
    add(np.einsum, _notation, *[real(*shape) for shape in _shapes])
add(np.einsum, "ij,jk,kl->il", real(2, 3), real(3, 4), real(4, 2), optimize=True)
add(np.einsum, "ij,jk,kl->il", real(2, 3), real(3, 4), real(4, 2), optimize="greedy")
add(
    np.einsum, "ij,jk,kl->il", real(2, 3), real(3, 4), real(4, 2),
    optimize=["einsum_path", (1, 2), (0, 1)],
)  # fmt: skip
add(np.einsum, "ij,jk->ik", real(40, 40), real(40, 40))  # large: by matrix products
CASES += [
    Case(
        lambda a, b: np.einsum(a, [0, 1], b, [1, 2], [0, 2]),
        (real(2, 3), real(3, 2)),
        name="einsum-[0,1],[1,2],[0,2]",
    ),
    Case(
        lambda a, b: np.einsum(a, [30, 1], b, [1, 2]),
        (real(2, 3), real(3, 2)),
        name="einsum-[30,1],[1,2]",
    ),
    Case(
        lambda a: np.einsum(a, [0, 0, ...], [..., 0]),
        (real(3, 3, 2),),
        name="einsum-[0,0,...],[...,0]",
    ),
    Case(lambda a: np.einsum(a, [0, 0]), (real(3, 3),), name="einsum-[0,0]"),
    Case(
        lambda x: np.einsum("i,ij,j", x, np.eye(3) + 0.5, x),
        (real(3),),
        name="einsum-xAx",
    ),
]
