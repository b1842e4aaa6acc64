"""Programs as loop nests."""

import numpy as np
import pytest

from gradsmith.program.fusion import (
    COLUMN,
    FULL,
    ROW,
    NotFusedError,
    nest_of,
    range_of,
)
from gradsmith.program.graph import Program, Step, Value
from gradsmith.program.kernels.kernel import Kernel


class Writer:
    """Writes down NumPy calls as a program's steps."""

    def __init__(self, *arrays):
        self.inputs = tuple(Value(x.shape, x.dtype) for x in arrays)
        self.examples = dict(zip(self.inputs, arrays, strict=True))
        self.steps = []

    def __call__(self, fn, *args, **kwargs):
        with np.errstate(all="ignore"):
            y = fn(*[self.examples.get(a, a) for a in args], **kwargs)
        value = Value(y.shape, y.dtype)
        self.examples[value] = y
        self.steps.append(Step(fn, args, kwargs, (value,)))
        return value

    def program(self, outputs):
        return Program("f", self.inputs, tuple(self.steps), outputs)


def softmax(x):
    w = Writer(x)
    off = w(np.subtract, w.inputs[0], w(np.max, w.inputs[0], axis=-1, keepdims=True))
    e = w(np.exp, off)
    return w.program(w(np.divide, e, w(np.sum, e, axis=-1, keepdims=True)))


def test_a_reduction_ends_a_pass():
    nest = nest_of(softmax(np.ones((3, 4))))
    assert (nest.rows, nest.columns, len(nest.passes)) == (3, 4, 3)
    assert [len(each.reductions) for each in nest.passes] == [1, 1, 0]
    assert [len(each.stores) for each in nest.passes] == [0, 0, 1]


def test_what_takes_long_is_computed_once():
    nest = nest_of(softmax(np.ones((3, 4))))
    assert [[n.op for n in each.keeps] for each in nest.passes] == [[], ["exp"], []]
    assert [[n.op for n in each.takes] for each in nest.passes] == [[], [], ["exp"]]


def test_elementwise_programs_are_flat():
    w = Writer(np.ones((3, 4)))
    nest = nest_of(w.program(w(np.add, w.inputs[0], 1.0)))
    assert nest.flat
    assert (nest.rows, nest.columns) == (1, 12)


def test_what_is_broadcast_is_a_row_or_a_column():
    w = Writer(np.ones((4, 4)), np.ones((4, 1)), np.ones(4))
    y = w(np.add, w(np.multiply, *w.inputs[:2]), w.inputs[2])
    nest = nest_of(w.program(y))
    assert [kind for kind, _ in nest.inputs] == [FULL, ROW, COLUMN]


def test_an_array_in_the_shape_of_rows_and_columns_is_what_its_use_says():
    w = Writer(np.ones((4, 4)), np.ones(4))
    rows = w(np.expand_dims, w.inputs[1], axis=1)
    total = w(np.sum, w(np.multiply, w.inputs[0], rows), axis=-1)
    nest = nest_of(w.program(total))
    assert [kind for kind, _ in nest.inputs] == [FULL, ROW]
    assert nest.outputs[0].kind == ROW


@pytest.mark.parametrize(
    ("fn", "kwargs"),
    [(np.sum, {"axis": 0}), (np.cumsum, {"axis": -1}), (np.transpose, {})],
)
def test_others_are_refused_by_name(fn, kwargs):
    w = Writer(np.ones((3, 4)))
    with pytest.raises(NotFusedError, match=fn.__name__):
        nest_of(w.program(w(fn, w.inputs[0], **kwargs)))


def test_ranges_that_the_steps_tell():
    w = Writer(np.ones(3))
    x = w.inputs[0]
    size = w(np.minimum, w(np.absolute, x), 20.0)
    values = [
        size,
        w(np.negative, size),
        w(np.multiply, w(np.multiply, size, size), -2),
    ]
    values += [w(np.negative, w(np.absolute, x)), w(np.add, size, 1.0)]
    values += [w(np.multiply, w(np.absolute, x), size)]
    found = [range_of(y) for y in nest_of(w.program(values)).outputs]
    assert found[:2] == [(0, 20), (-20, 0)]
    assert found[2] == pytest.approx((-800, 0), rel=1e-5)  # with room for rounding
    assert found[2][0] < -800
    assert found[3] == (-np.inf, 0)
    assert found[4] == pytest.approx((1, 21), rel=1e-5)
    assert found[5] == (-np.inf, np.inf)  # 0 times infinity
    for _ in range(60):  # one after the other, in no time
        x = w(np.multiply, x, x)
    assert range_of(nest_of(w.program(x)).outputs[0]) == (0, np.inf)  # a square


def test_vectors_of_a_square_are_rows_or_columns_as_they_are_used():
    """Of n vectors, 2**n guesses would be tried: an unrolled recurrent net has 40."""
    rng = np.random.default_rng(0)
    w = Writer(*rng.normal(size=(40, 8)))
    total, down, right = None, w.inputs[::2], w.inputs[1::2]
    for a, b in zip(down, right, strict=True):
        column = w(np.reshape, w(np.multiply, a, 2.0), (8, 1))
        outer = w(np.multiply, column, w(np.tanh, b))
        total = outer if total is None else w(np.add, total, outer)
    nest = nest_of(w.program(total))
    kinds = [kind for kind, _ in nest.inputs]
    assert kinds[::2] == [ROW] * 20
    assert kinds[1::2] == [COLUMN] * 20


def arrays(*shapes):
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape) for shape in shapes]


def ran(program, *given):
    """What a nest of repeated rows computes."""
    kernel = Kernel(program, nest=nest_of(program, repeats=True))
    str(kernel)
    return kernel(*given)


REPEATED = [
    [(5, 7, 10), (7, 10), (5, 1, 10)],
    [(5, 7, 3), (5, 7, 1), (7, 3), (7, 1)],
    [(2, 3, 4, 9), (3, 1, 9), (2, 1, 4, 1), (4, 1)],
    [(2, 3, 4, 8), (2, 1, 4, 8), (1, 3, 1, 8)],
    [(6, 1, 11), (1, 4, 11), (1, 4, 1)],
]


@pytest.mark.parametrize("shapes", REPEATED, ids=str)
def test_rows_of_an_array_are_read_again(shapes):
    given = arrays(*shapes)
    w = Writer(*given)
    y = w.inputs[0]
    for x in w.inputs[1:]:
        y = w(np.add, y, x)
    program = w.program(w(np.multiply, y, y))
    with pytest.raises(NotFusedError):
        nest_of(program)
    expected = w.examples[program.outputs]
    np.testing.assert_allclose(ran(program, *given), expected, rtol=1e-14)


@pytest.mark.parametrize("columns", [8, 10, 16, 33])
@pytest.mark.parametrize("axis", [0, 1, 2, (0, 2), (0, 1), (1, 2), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
def test_rows_are_added_up(columns, axis, keepdims):
    (x,) = arrays((3, 5, 4, columns))
    w = Writer(x)
    squares = w(np.square, w.inputs[0])
    total = w(np.sum, squares, axis=axis, keepdims=keepdims)
    program = w.program([squares, total])
    for found, y in zip(ran(program, x), program.results, strict=True):
        np.testing.assert_allclose(found, w.examples[y], rtol=1e-14)


def test_rows_are_added_up_after_a_reduction_along_them():
    (x,) = arrays((5, 7, 16))
    w = Writer(x)
    off = w(np.subtract, w.inputs[0], w(np.max, w.inputs[0], axis=-1, keepdims=True))
    e = w(np.exp, off)
    y = w(np.divide, e, w(np.sum, e, axis=-1, keepdims=True))
    y = w(np.sum, y, axis=1)
    np.testing.assert_allclose(ran(w.program(y), x), w.examples[y], rtol=1e-14)


@pytest.mark.parametrize(
    "write",
    [
        lambda w, x, r: w(np.sin, w(np.sum, x, axis=0)),  # needed before it is known
        lambda w, x, r: w(np.add, x, w(np.exp, r)),  # for each row again
        lambda w, x, r: w(np.add, x, w(np.reshape, r, (4, 1, 9))),
        lambda w, x, r: w(np.max, x, axis=0),
        lambda w, x, r: w(np.sum, r, axis=0),
    ],
)
def test_what_repeated_rows_are_no_nest_of(write):
    w = Writer(*arrays((4, 5, 9), (4, 1, 9)))
    with pytest.raises(NotFusedError):
        nest_of(w.program(write(w, *w.inputs)), repeats=True)


def test_sums_of_rows_are_in_float64():
    w = Writer(np.ones((4, 9), "float32"))
    with pytest.raises(NotFusedError):
        nest_of(w.program(w(np.sum, w.inputs[0], axis=0)), repeats=True)
