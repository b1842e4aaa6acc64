"""What functions and objects hold."""

from dataclasses import dataclass
from functools import partial, wraps

import numpy as np
import pytest

from gradsmith.core import cotangent
from gradsmith.core.reach import arrays_kept, captured, reached

MINE = object()


class Slots:
    __slots__ = ("empty", "x")

    def __init__(self, x):
        self.x = x


@dataclass
class Record:
    x: object


def closure(x):
    return lambda: x


def default(x):
    def fn(y=x):
        return y

    return fn


def keyword(x):
    def fn(*, y=x):
        return y

    return fn


def decorated(x):
    @wraps(closure(x))
    def fn():
        pass

    return fn


def generator(x):
    yield x


class Method:
    def __init__(self, x):
        self.x = x

    def method(self):
        pass


HOLDERS = [
    closure, default, keyword, decorated, Slots, Record, generator,
    lambda x: Method(x).method,
    lambda x: partial(print, x),
    lambda x: partial(print, end=x),
    lambda x: {"a": [(x,)]},
    lambda x: closure(Record(closure([x]))),
]  # fmt: skip


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("globals", [True, False])
def test_held(holder, globals):
    x = object()
    stop = lambda value: value is x
    held = holder(x)
    if holder is generator:
        next(held)
    assert list(reached(held, stop=stop, globals=globals)) == [x]


def test_globals():
    def inner():
        return lambda: MINE

    stop = lambda value: value is MINE
    assert list(reached(inner, stop=stop)) == [MINE]
    assert list(reached(inner, stop=stop, globals=False)) == []


def test_each_once_and_nothing_inside_of_it():
    x = Record(None)
    outer = [x, closure(x), Record(x)]
    outer.append(outer)
    assert list(reached(outer, stop=lambda value: isinstance(value, Record))) == [
        x,
        outer[2],
    ]


def test_captured():
    def make():
        fn = lambda: (a, b)
        a = 1
        found = dict(captured(fn))
        b = 2
        return found, dict(captured(fn))

    before, after = make()
    assert before == {"a": 1}
    assert after == {"a": 1, "b": 2}


def test_arrays_kept():
    x, y = np.zeros(4), np.ones(3)
    held = closure([x[1:], {"x": x}, Record(y)])
    assert {id(each) for each in arrays_kept(held)} == {id(x), id(y)}
    assert [id(each) for each in arrays_kept(held, beside=[y])] == [id(x)]


def test_a_function_does_not_keep_the_names_of_its_module(monkeypatch):
    # Of a module that wheels have compiled, where functions are of another type
    monkeypatch.setattr(cotangent, "some", np.ones(3), raising=False)
    assert not list(arrays_kept(cotangent.unbroadcast))
