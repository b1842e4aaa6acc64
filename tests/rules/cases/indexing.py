"""Cases of indexing, choosing and counting."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tests.rules.collection import Collection, array

CASES = Collection()
add = CASES.add

# Taking

_twice = np.array([[0, 2], [2, 1]])
add(np.take, array(4), 1)
add(np.take, array(4), [1, -1, 1])
add(np.take, array(3, 4), _twice)
add(np.take, array(3, 4), _twice, axis=0)
add(np.take, array(3, 4), _twice, axis=-1)
add(np.take, array(3, 4), 2, 1)
add(np.take, array(3, 4), [5, -7, 3], axis=0, mode="wrap")
add(np.take, array(3, 4), [5, -7, 3], axis=0, mode="clip")
add(np.take, array(3), [True, False, True])
add(np.take, array(3), np.zeros((0, 2), int))
add(np.take, array(), [0, 0], axis=0)
add(np.take, array(3, kind="c"), [1, 1])
add(np.take, array(40, 30), np.arange(900) % 30, axis=1)
add(np.take_along_axis, array(3, 4), np.array([[0, 0], [1, 3], [2, 2]]), axis=1)
add(np.take_along_axis, array(3, 4), np.array([[0, -1, 1, 1]]), 0)
CASES.add_since((2, 3), np.take_along_axis, array(1, 4), np.array([[0, -1], [1, 1]]))
add(np.take_along_axis, array(3, 4), np.array([0, 7, 7]), axis=None)
add(np.compress, [False, True, True], array(4))
add(np.compress, np.array([0, 1, 1]), array(2, 4), axis=1)
add(np.compress, [False, True], array(2, 4), axis=0)
add(np.extract, np.array([[True, False], [True, True]]), array(2, 2))
add(np.extract, [0, 1, 0], array(3))
add(sliding_window_view, array(6), 3)
add(sliding_window_view, array(4, 5), (2, 3))
add(sliding_window_view, array(4, 5), 2, axis=-1)
add(sliding_window_view, array(4, 5), (2, 2), axis=(0, 0))
add(np.trim_zeros, array(4))  # differences would move zeros
CASES.add_since((2, 2), np.trim_zeros, array(2, 3), "f", 0)

# Choosing

_mask = np.array([[True], [False], [True]])
add(np.where, _mask, array(3, 2), array(2))
add(np.where, _mask, array(), 1.0)
add(np.where, _mask, 0.0, array(3, 1, kind="c"))
add(np.where, np.array([3, 0]), array(2), array(2))
_conditions = list(np.array([[1, 1, 0, 0], [1, 0, 1, 0]], bool))
add(np.select, _conditions, [array(4), array(4)])
add(np.select, _conditions, [array(4), array(4)], array(4))
add(np.select, _conditions, [array(4), 1.0], default=2.0)
add(np.select, _conditions[:1], [array(2, 4)])
add(np.choose, np.array([1, 0, 2]), [array(3), array(), array(1)])
add(np.choose, np.array([[1, 0], [0, 1]]), array(2, 2, 1))
add(np.choose, np.array([5, -1, 1]), [array(3), array(3)], mode="wrap")
add(np.choose, np.array([5, -1, 1]), [array(3), array(3)], mode="clip")
_x = np.array([-1.0, 0.3, 2.0, -0.5])
add(np.piecewise, _x, [_x < 0, _x > 1], [np.sin, lambda v: v**3, 0.5])
add(np.piecewise, _x, [_x < 0, _x < 1], [np.power, lambda v, p: p * np.sin(v)], 2)
add(np.piecewise, _x, _x < 0, [lambda v: v * v, 1])
add(np.piecewise, np.array(0.4), [True], [np.sin])
add(np.piecewise, array(2, 3), [np.array([True, False])], [np.sin, np.cos])

# Sets
_s = np.array([[0.3, -1.0, 2.0], [0.7, 5.0, -0.4]])
_u = np.array([9.0, 2.5, -3.0, 0.1])
add(np.unique, _s)
add(np.unique, _s, True, True, True)
add(np.unique, _s, axis=1)
add(np.unique_all, _s)
add(np.unique_counts, _s)
add(np.unique_inverse, _s)
add(np.unique_values, _s)
add(np.union1d, _s, _u)
add(np.intersect1d, _s, np.array([7.0]))
add(np.setdiff1d, _s, _u)
add(np.setdiff1d, _s, _u, assume_unique=True)
add(np.setxor1d, _s, _u)
add(np.histogram_bin_edges, _s, 3)

# Counting

add(np.bincount, np.array([0, 2, 2, 5]), array(4), minlength=8)
add(np.histogram, array(9), 4, (-1.0, 1.0), None, array(9))
add(np.histogram, np.linspace(0, 1, 9), [0.05, 0.3, 0.9], None, True, array(9))
add(np.histogramdd, array(6, 2), 3, [(-2.5, 2.5)] * 2, False, array(6))
add(np.histogramdd, array(6), [[-1.0, 0.1, 1.3]], None, True, np.arange(1.0, 7.0))
add(np.histogram2d, array(6), array(6), (2, 1), [(-2.5, 2.5)] * 2, True, array(6))
