"""Cases of the shaping, creation and mapping rules."""

from __future__ import annotations

import numpy as np

from tests.rules.collection import Collection, array

CASES = Collection()
add = CASES.add

# Shapes

for _order in "CF":
    add(np.reshape, array(2, 3, 4), (4, 6), order=_order)
    add(np.ravel, array(2, 3), order=_order)
add(np.reshape, array(2, 6), (3, -1), "F")
add(np.reshape, array(2, 6), (-1,), copy=False)
add(np.reshape, array(0, 3), (3, 0))
add(np.reshape, array(), (1, 1))
add(np.reshape, array(4, kind="c"), (2, 2))
add(np.ravel, array())
add(np.expand_dims, array(2, 3), 1)
add(np.expand_dims, array(2, 3), axis=(0, -1))
add(np.squeeze, array(1, 3, 1))
add(np.squeeze, array(1, 3, 1), axis=-1)
add(np.squeeze, array(1, 3, 1), axis=(0, 2))
for _atleast in (np.atleast_1d, np.atleast_2d, np.atleast_3d):
    for _shape in ((), (3,), (2, 3), (2, 3, 2, 1)):
        add(_atleast, array(*_shape))
    add(_atleast, array(), array(3), array(2, 2))

# Axes

add(np.transpose, array(2, 3))
add(np.transpose, array(2, 3, 4), (2, 0, 1))
add(np.transpose, array(2, 3, 4), axes=(-1, 0, -2))
add(np.permute_dims, array(2, 3, 4), [1, 2, 0])
add(np.transpose, array())
add(np.matrix_transpose, array(2, 3, 4))
add(np.swapaxes, array(2, 3, 4), 0, -1)
add(np.moveaxis, array(2, 3, 4), 0, -1)
add(np.moveaxis, array(2, 3, 4), (0, 1), (2, 0))
for _axis, _start in ((2, 0), (0, 3), (1, -1), (-1, 1), (1, 1)):
    add(np.rollaxis, array(2, 3, 4), _axis, _start)
add(np.flip, array(2, 3))
add(np.flip, array(2, 3), axis=-1)
add(np.flip, array(2, 3, 2), axis=(0, 2))
add(np.fliplr, array(2, 3))
add(np.flipud, array(2, 3))
for _k in (-1, 1, 2, 3, 4):
    add(np.rot90, array(2, 3), _k)
add(np.rot90, array(2, 3, 4), k=1, axes=(2, 0))
add(np.roll, array(2, 3), 2)
add(np.roll, array(2, 3), -1, axis=1)
add(np.roll, array(2, 3), (1, -5), axis=(0, 1))
add(np.roll, array(2, 3), shift=1, axis=(0, 1))

# Broadcasting

add(np.broadcast_to, array(3), (2, 3))
add(np.broadcast_to, array(2, 1, 3), (4, 2, 5, 3))
add(np.broadcast_to, array(), (2, 2))
add(np.broadcast_to, array(1), (0,))
add(np.broadcast_arrays, array(3), array(2, 1), array())
add(np.broadcast_arrays, array(3))
for _indexing in ("xy", "ij"):
    for _sparse in (False, True):
        add(np.meshgrid, array(2), array(3), indexing=_indexing, sparse=_sparse)
        add(
            np.meshgrid, array(2), array(), array(3), indexing=_indexing, sparse=_sparse
        )
add(np.meshgrid, array(3), copy=False)
add(np.ix_, array(2), array(3))
add(np.ix_, array(2), np.array([True, False, True]))

# Diagonals and triangles

for _k in (-3, -1, 0, 2, 4):
    add(np.diag, array(3), _k)
    add(np.diag, array(3, 4), k=_k)
    add(np.diagonal, array(3, 4), _k)
    add(np.trace, array(3, 4), offset=_k)
add(np.diagonal, array(2, 3, 4), 1, 0, 2)
add(np.diagonal, array(2, 3, 4), axis1=-1, axis2=0)
add(np.trace, array(2, 3, 4), axis1=2, axis2=0)
add(np.trace, array(3, 3, kind="c"))
add(np.trace, array(3, 3), dtype=np.float64)
add(np.diagflat, array(2, 2), 1)
add(np.diagflat, array())
for _triangle in (np.tril, np.triu):
    add(_triangle, array(3, 4))
    add(_triangle, array(2, 3, 3), k=-1)
    add(_triangle, array(3), 1)

# Parts and dtypes

for _kind in "fc":
    add(np.real, array(3, kind=_kind))
    add(np.imag, array(3, kind=_kind))
    add(np.conjugate, array(3, kind=_kind))
    add(np.copy, array(2, 2, kind=_kind))
    add(np.astype, array(3, kind=_kind), np.complex128)
    add(np.sign, array(3, kind=_kind))
add(np.astype, array(3), np.float64, copy=False)
add(np.frexp, array(3))
add(np.real_if_close, array(3, kind="c"))
add(np.real_if_close, array(3))

# Evenly spaced numbers

for _fn in (np.linspace, np.logspace, np.geomspace):
    _start, _stop = np.array(0.7), np.array([1.5, 2.5])
    add(_fn, _start, _stop, 4)
    add(_fn, _start, _stop, num=4, axis=-1)
    add(_fn, _stop, _start, 3, endpoint=False)
    add(_fn, _start, _stop, 1)
    add(_fn, _start, _stop, 0)
    add(_fn, _stop, 3.0, 3)
    add(_fn, array(2, kind="c"), array(2, kind="c"), 3)
add(np.linspace, np.array(0.7), np.array([1.5, 2.5]), 4, retstep=True)
add(np.linspace, np.array(0.7), 2.0, 4, endpoint=False, retstep=True)
add(np.linspace, np.array(0.7), 2.0, 1, False, True)
add(np.logspace, np.array(0.7), 1.0, 4, True, np.array([2.0, 3.0]))
add(np.logspace, np.array(0.7), array(3, 1), 4, True, np.array([2.0, 3.0]), None, 1)
add(np.logspace, np.array([0.7, 0.2]), 1.0, 4, base=2.0, dtype=np.complex128)
add(np.geomspace, np.array(-0.7), np.array(-3.0), 4)
add(np.full_like, np.zeros((2, 3)), np.array(0.5))
add(np.full_like, np.zeros((2, 3)), array(3), shape=(4, 3))

# The caller's functions

_matrix = array(2, 3, 4)
for _axis in (0, 1, -1):
    add(np.apply_along_axis, lambda v: np.sum(v * v), _axis, _matrix)
    add(np.apply_along_axis, lambda v: v[::-1] * v, _axis, _matrix)
    add(np.apply_along_axis, lambda v: v[:2, None] * v[:3], _axis, _matrix)
add(np.apply_along_axis, lambda v, n: v[:n], 0, array(3), 2)
add(np.apply_over_axes, np.sum, _matrix * 1, (0, -1))
add(np.apply_over_axes, lambda a, axis: np.sum(a * a, axis, keepdims=True), _matrix, 1)
