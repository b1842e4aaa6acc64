"""Cases of joining, splitting, repeating and padding."""

from __future__ import annotations

import numpy as np

from tests.rules.collection import Collection, array

CASES = Collection()
add = CASES.add

# Joining

add(np.concatenate, [array(2, 3), array(1, 3)])
add(np.concatenate, (array(2, 3), array(2, 0), array(2, 1)), axis=-1)
add(np.concatenate, [array(2, 3), array(4), array(1, 1)], axis=None)
add(np.concatenate, [array(2, kind="c"), array(3)])
add(np.concatenate, [array(2), np.arange(3)], dtype=np.float64)
add(np.concatenate, [array(2), [1.0, 2.0]])
add(np.concatenate, array(2, 3, 4), 1)
add(np.concat, [array(2), array(3)], axis=0)
add(np.stack, [array(2, 3), array(2, 3)])
add(np.stack, [array(2, 3), array(2, 3)], axis=-1)
add(np.stack, [array(), array(), array()])
add(np.stack, [array(0), array(0)], 1)
add(np.stack, array(2, 3, 4), axis=2)
for _join in (np.vstack, np.hstack, np.dstack, np.column_stack):
    add(_join, [array(3), array(3)])
    add(_join, [array(3, 2), array(3, 2)])
    add(_join, [array(3, 2, 2), array(3, 2, 2)])
    add(_join, (array(), array()))
    add(_join, array(2, 3, 4))
add(np.vstack, [array(3), array(2, 3)])
add(np.column_stack, [array(3), array(3, 2)])
add(np.dstack, [array(2, 3), array(2, 3, 2)])
add(np.block, [array(2), array(3)])
add(np.block, [[array(2, 2), array(2, 1)], [array(1, 1), array(1, 2)]])
add(np.block, [[array(3)], [array(2, 3)], [array(), array(1), 1.0]])
add(np.block, [[[array(2, 2)]], [[array(2, 2)]]])
add(np.block, array(2, 2))
add(np.append, array(2, 2), array(3))
add(np.append, array(2, 2), array(1, 2), axis=0)
add(np.append, array(2), 1.5)

# Inserting and deleting

add(np.insert, array(5), 2, array())
add(np.insert, array(5), [1, 1, 4], array(3))
add(np.insert, array(5), slice(1, 4), array())
CASES.add_since(
    (2, 2), np.insert, array(5), np.array([True, False, True, False, False]), array(2)
)
add(np.insert, array(3, 4), 1, array(4), axis=0)
add(np.insert, array(3, 4), -1, array(3), axis=1)
add(np.insert, array(3, 4), [1, 3], array(3, 2), axis=1)
add(np.insert, array(3, 4), [1], array(3, 1), axis=1)
add(np.insert, array(3, 4), 5, 2.0)
add(np.insert, array(3, kind="c"), 1, array())
add(np.delete, array(5), 2)
add(np.delete, array(5), [0, -1, 0])
add(np.delete, array(5), slice(1, 4, 2))
add(np.delete, array(5), np.array([True, False, True, False, False]))
add(np.delete, array(3, 4), 1, axis=0)
add(np.delete, array(3, 4), [0, 2], axis=-1)
add(np.delete, array(3, 4), 5)

# Splitting

add(np.split, array(6, 2), 3)
add(np.split, array(6), [1, 1, 4])
add(np.split, array(6), [4, 2])
add(np.split, array(6), [-2, 9])
add(np.split, array(2, 6), [1, 3], axis=-1)
add(np.array_split, array(7), 3)
add(np.array_split, array(2, 7), 3, axis=1)
add(np.array_split, array(2, 7), [5, 1], axis=1)
add(np.vsplit, array(4, 2), 2)
add(np.hsplit, array(4), [1])
add(np.hsplit, array(2, 4), 2)
add(np.dsplit, array(2, 2, 4), [3])
add(np.unstack, array(3, 2))
add(np.unstack, array(3, 2), axis=-1)
add(np.unstack, array(3))

# Repeating

add(np.tile, array(3), 2)
add(np.tile, array(2, 3), (2, 1))
add(np.tile, array(3), (2, 2))
add(np.tile, array(2, 1, 3), 2)
add(np.tile, array(2, 3), 0)
add(np.tile, array(), (2, 3))
add(np.repeat, array(3), 2)
add(np.repeat, array(2, 3), 2)
add(np.repeat, array(2, 3), 3, axis=1)
add(np.repeat, array(2, 3), [2], axis=0)
add(np.repeat, array(2, 3), [0, 3, 1], axis=-1)
add(np.repeat, array(2, 2), [1, 0, 2, 1])
add(np.repeat, array(2, 3), 0, axis=1)
add(np.repeat, array(0, 3), 2, axis=0)
add(np.repeat, array(), 3)
add(np.resize, array(2, 3), (4, 5))
add(np.resize, array(2, 3), 4)
add(np.resize, array(2, 3), (2, 0))
add(np.resize, array(0), (2, 2))

# Padding

for _mode in ("constant", "edge", "linear_ramp", "reflect", "symmetric", "wrap"):
    add(np.pad, array(4), 2, _mode)
    add(np.pad, array(4), (0, 3), mode=_mode)
    add(np.pad, array(3), (11, 8), _mode)
    add(np.pad, array(1), (2, 3), _mode)
    add(np.pad, array(2, 3), ((1, 2), (3, 0)), _mode)
    add(np.pad, array(3, 2, 2), ((1, 1),), _mode)
    CASES.add_since((2, 4), np.pad, array(3, 2), {-1: (1, 2)}, _mode)
    add(np.pad, array(3, kind="c"), 2, _mode)
    add(np.pad, array(2, 0), ((1, 1), (0, 0)), _mode)
add(np.pad, array(0), (2, 1))
add(np.pad, array(), 3)
add(np.pad, array(2, 3), 1, constant_values=((1.0, 2.0), (3.0, 4.0)))
add(np.pad, array(2, 3), 2, "linear_ramp", end_values=(1.0, -2.0))
for _mode in ("reflect", "symmetric"):
    for _width in (2, (11, 1), (1, 11), (9, 10)):
        add(np.pad, array(4), _width, _mode, reflect_type="odd")
    add(np.pad, array(2), (5, 4), _mode, reflect_type="odd")
    add(np.pad, array(1), (2, 3), _mode, reflect_type="odd")
    add(np.pad, array(3, 2), (3, 2), _mode, reflect_type="odd")
for _mode in ("mean", "maximum", "minimum", "median"):
    add(np.pad, array(2, 3), ((1, 2), (3, 0)), _mode)
    add(np.pad, array(5), 2, _mode, stat_length=2)
    add(np.pad, array(3, 5), 2, _mode, stat_length=((1, 2), (3, 9)))
    add(np.pad, array(2, 0), ((1, 1), (0, 0)), _mode)
