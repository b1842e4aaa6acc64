"""Values, steps and how a program runs."""

import numpy as np
import pytest

from gradsmith.program.graph import Program, Step, Value, values_in


def _value(*shape):
    return Value(shape, np.dtype(float))


def _squares():
    x, c, y, total = _value(3), _value(3), _value(3), _value()
    steps = (
        Step(np.multiply, (x, c), {}, (y,)),
        Step(np.sum, (y,), {"axis": 0}, (total,)),
    )
    return Program("squares", (x,), steps, (total, [y]), {c: np.arange(3.0)})


def test_a_program_runs_its_steps():
    total, [y] = _squares()(np.ones(3))
    assert total == 3.0
    np.testing.assert_array_equal(y, [0.0, 1.0, 2.0])


def test_values_are_found_in_what_holds_them_and_told_apart():
    x, y = _value(2), _value(2)
    assert [*values_in({"a": [x, (slice(y, None),)], "b": 1.0})] == [x, y]
    assert x != y


def test_a_wrong_number_of_arrays_is_refused():
    with pytest.raises(TypeError, match="takes 1 arrays, and was given 2"):
        _squares()(1.0, 2.0)
