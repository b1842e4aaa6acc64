"""How values, nodes and tapes are stored: alike as Python and with C types.

`make test-compiled` runs this on structs of C, all others on slots.
"""

from __future__ import annotations

import gc
import weakref
from threading import Thread

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.core.elementwise import call_binary, call_unary
from gradsmith.core.rule import RULES
from gradsmith.core.tape import Node, walk_back
from gradsmith.core.tensor import Kept

MANY = 10**6  # nodes that are freed at once; a stack holds some 10**4 frames of C


def squared(y, x):
    return y * y


def added(y, x):
    return y + x


def element(y, x):
    return y[::-1]


def matrix(y, x):
    return y @ x


@pytest.mark.parametrize(
    ("step", "count", "persistent"),
    [
        (lambda y, x: y * 1.0, MANY, False),
        (added, MANY // 10, False),
        (element, MANY // 10, False),
        (squared, MANY // 10, True),  # closures that hold tensors that hold nodes
        (matrix, MANY // 10, False),
        (matrix, MANY // 10, True),
    ],
)
def test_a_long_chain_is_freed_without_recursion(step, count, persistent):
    x = gs.Tensor(np.eye(2))
    tape = gs.GradientTape(persistent=persistent)
    with tape:
        tape.watch(x)
        y = x
        for _ in range(count):
            y = step(y, x)
    last = weakref.ref(y.marks[tape.key])
    del y, tape
    assert last() is None


def test_a_tape_in_a_cycle_is_collected():
    x = gs.Tensor([1.0, 2.0])
    with gs.GradientTape() as tape:
        tape.watch(x)
        tape.mine = y = np.sin(x)
    tape.itself = tape
    parts = [weakref.ref(part) for part in (tape, y, y.marks[tape.key])]
    del tape, y
    gc.collect()
    assert [part() for part in parts] == [None] * 3


def test_a_value_and_a_node_that_hold_themselves_are_collected():
    x, node = gs.Tensor([1.0]), Node(None, (), None)
    x.marks, node.pull = {None: x}, [node]
    parts = weakref.ref(x), weakref.ref(node)
    del x, node
    gc.collect()
    assert [part() for part in parts] == [None, None]


class Named(gs.Tensor):
    kind = "named"

    def doubled(self):
        return self * 2


class Frozen(gs.Variable):
    trainable = False  # instead of the field of a variable

    def __init__(self, value):
        gs.Tensor.__init__(self, value)
        self.name = "frozen"


def test_a_subclass_has_attributes_and_is_differentiated():
    x = Named([1.0, 2.0])
    x.note = "mine"
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = np.sum(x.doubled() * x)
    assert (x.note, x.kind) == ("mine", "named")
    np.testing.assert_array_equal(tape.gradient(y, x), [4, 8])
    with pytest.raises(AttributeError):
        gs.Tensor([1.0]).note = "a tensor has no place for it"


def test_a_class_says_that_its_variables_are_not_watched():
    w, frozen = gs.Variable([3.0]), Frozen([2.0])
    assert not gs.Tensor.trainable
    with gs.GradientTape() as tape:
        y = np.sum(w * frozen)
    assert tape.gradient(y, frozen) is None
    assert tape.watched_variables() == (w,)


def test_a_variable_of_another_kind_is_no_other_class():
    with pytest.raises(TypeError):
        gs.Tensor([1.0]).__class__ = gs.Variable


@pytest.mark.parametrize(
    "call",
    [
        lambda x, sin, add: call_unary(sin, None),
        lambda x, sin, add: call_unary(None, x),
        lambda x, sin, add: call_unary(sin, np.ones(2)),
        lambda x, sin, add: call_binary(None, x, x),
        lambda x, sin, add: call_binary(add, x, None),
        lambda x, sin, add: np.sin(gs.Tensor.__new__(gs.Tensor)),
        lambda x, sin, add: repr(gs.Tensor.__new__(gs.Tensor)),
        lambda x, sin, add: gs.GradientTape().record_two(add, None, (x, x), None),
        lambda x, sin, add: gs.GradientTape().record_one(sin, 0, None, None, x, True),
        lambda x, sin, add: gs.GradientTape().record_one(
            sin, 7, Node(None, (), None), (x.value,), x, True
        ),
        lambda x, sin, add: walk_back(None, [], keep=False, prune=False),
        lambda x, sin, add: walk_back({None: 1}, [], keep=False, prune=False),
        lambda x, sin, add: walk_back({3: 1}, [], keep=False, prune=False),
    ],
)
def test_what_is_no_value_raises(call):
    with pytest.raises((AttributeError, TypeError, IndexError)):
        call(gs.Tensor([1.0, 2.0]), RULES[np.sin], RULES[np.add])


def test_what_a_result_saves_of_itself_finds_its_node():
    """`Kept` computes its marks, where all other values have a field."""
    x = gs.Tensor([0.3, 0.5])
    with gs.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = np.tanh(x)
        dx = tape.gradient(y, x)  # 1 - y**2, of the y that was saved
    kept = Kept(y)
    kept.key, kept.node = tape.key, weakref.ref(y.marks[tape.key])
    assert kept.marks == y.marks
    t = np.tanh([0.3, 0.5])
    np.testing.assert_allclose(tape.gradient(dx, x), -2 * t * (1 - t * t))
    with gs.GradientTape() as outer:
        outer.watch(kept)
        z = np.exp(kept) * kept + np.sum(kept) + kept[0]
    np.testing.assert_allclose(
        outer.gradient(z, kept), np.exp(t) * (1 + t) + 2 + np.array([2, 0])
    )


def test_tapes_of_many_threads_do_not_meet():
    found = {}

    def work(i):
        f = lambda x: np.sum(np.sin(x * i) * x)
        xs = np.linspace(0, 1, 5)
        expected = np.sin(xs * i) + i * xs * np.cos(xs * i)
        found[i] = all(
            np.allclose(gs.grad(f)(xs), expected, rtol=1e-12) for _ in range(200)
        )

    threads = [Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == dict.fromkeys(range(8), True)
