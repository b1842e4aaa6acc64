"""Modules: which variables they find, under which paths, and in which order."""

from __future__ import annotations

import copy
import json
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.core.module import Module


class Linear(Module):
    def __init__(self, inputs, outputs):
        self.kernel = gs.Variable(np.ones((inputs, outputs)))
        self.bias = gs.Variable(np.zeros(outputs))

    def call(self, x, *, scale=1.0):
        return (x @ self.kernel + self.bias) * scale


class Net(Module):
    def __init__(self):
        self.zeta = gs.Variable(1.0)
        self.layers = [Linear(2, 3), Linear(3, 1)]
        self.heads = {"b": Linear(3, 1), "a": (gs.Variable(2.0), [Linear(1, 1)])}
        self.alpha = gs.Variable(3.0, trainable=False)
        self.note = "no variable"


PATHS = [
    "zeta",
    "layers[0].kernel",
    "layers[0].bias",
    "layers[1].kernel",
    "layers[1].bias",
    "heads['b'].kernel",
    "heads['b'].bias",
    "heads['a'][0]",
    "heads['a'][1][0].kernel",
    "heads['a'][1][0].bias",
    "alpha",
]


def same(xs, ys):
    """By identity; == of variables compares their elements."""
    return len(xs) == len(ys) and all(x is y for x, y in zip(xs, ys, strict=True))


def test_paths_come_in_the_order_of_assignment():
    assert [path for path, _ in Net().named_variables()] == PATHS


def test_a_path_is_an_expression_that_reaches_its_variable():
    net = Net()
    for path, variable in net.named_variables():
        assert eval(f"net.{path}") is variable


def test_variables_and_trainable_variables():
    net = Net()
    assert same(net.variables, [x for _, x in net.named_variables()])
    assert same(
        net.trainable_variables, [x for x in net.variables if x is not net.alpha]
    )


def test_a_shared_variable_comes_once_under_its_first_path():
    net = Net()
    net.tied = net.layers[0].kernel
    net.again = net.layers
    assert [path for path, _ in net.named_variables()] == PATHS


def test_cycles_end():
    net, inner = Module(), Module()
    net.inner, inner.outer, inner.w = inner, net, gs.Variable(1.0)
    net.loop = [net]
    net.loop.append(net.loop)
    assert [path for path, _ in net.named_variables()] == ["inner.w"]
    assert [path for path, _ in inner.named_variables()] == ["w"]


def test_deep_nesting_does_not_meet_the_recursion_limit():
    net = top = Module()
    for _ in range(3000):
        net.next = Module()
        net = net.next
    net.w = gs.Variable(1.0)
    assert same(top.variables, [net.w])


def test_named_tuples_and_ordered_dicts():
    net = Module()
    net.pair = namedtuple("Pair", "left right")(gs.Variable(1.0), gs.Variable(2.0))
    net.table = OrderedDict(z=gs.Variable(1.0), a=gs.Variable(2.0))
    paths = [path for path, _ in net.named_variables()]
    assert paths == ["pair.left", "pair.right", "table['z']", "table['a']"]


def test_an_empty_module_has_no_variables():
    assert Module().variables == Module().trainable_variables == []
    assert Module().state() == {}


def test_calling_runs_call_with_all_arguments():
    y = Linear(2, 1)(np.array([[1.0, 2.0]]), scale=10.0)
    np.testing.assert_array_equal(y.numpy(), [[30.0]])


def test_a_subclass_may_define_dunder_call_itself():
    class Double(Module):
        def __call__(self, x):
            return 2 * x

    assert Double()(4) == 8


def test_a_module_without_call_says_what_to_define():
    with pytest.raises(gs.GradsmithError, match=r"Net can't be called: define call"):
        Net()(1.0)


def test_an_error_inside_call_is_not_replaced():
    class Broken(Module):
        def call(self, x):
            return x.no_such_attribute

    with pytest.raises(AttributeError, match="no_such_attribute"):
        Broken()(1.0)


def test_gradients_reach_nested_variables():
    layer = Linear(2, 1)
    with gs.GradientTape() as tape:
        loss = np.sum(layer(np.array([[1.0, 2.0]])))
    kernel, bias = tape.gradient(loss, layer.trainable_variables)
    np.testing.assert_array_equal(kernel.numpy(), [[1.0], [2.0]])
    np.testing.assert_array_equal(bias.numpy(), [1.0])


def test_freeze_and_unfreeze():
    net = Net()
    trainable = net.trainable_variables
    assert net.layers[0].freeze() is net.layers[0]
    assert len(net.trainable_variables) == len(trainable) - 2
    assert net.freeze().freeze().trainable_variables == []
    assert [path for path, _ in net.named_variables()] == PATHS
    net.unfreeze()
    assert len(net.trainable_variables) == len(trainable) - 2  # alpha stays as it was
    net.layers[0].unfreeze()
    assert same(net.trainable_variables, trainable)
    net.unfreeze()
    assert same(net.trainable_variables, trainable)


def test_state_survives_a_file_bit_for_bit(tmp_path):
    net, other = Net(), Net()
    for i, x in enumerate(net.variables):
        x.assign(x.value + i / 7)
    np.savez(tmp_path / "net.npz", **net.state())
    with np.load(tmp_path / "net.npz") as state:
        other.load_state(state)
    for x, y in zip(net.variables, other.variables, strict=True):
        np.testing.assert_array_equal(x.value, y.value)


def test_state_survives_json():
    net, other = Net(), Net()
    net.zeta.assign(1 / 3)
    text = json.dumps({path: value.tolist() for path, value in net.state().items()})
    other.load_state(json.loads(text))
    assert other.zeta.value == 1 / 3


def test_state_is_a_copy():
    net = Net()
    state = net.state()
    state["layers[0].kernel"][...] = 7
    assert np.all(net.layers[0].kernel.value == 1)
    net.load_state(state)
    state["layers[0].kernel"][...] = 8
    assert np.all(net.layers[0].kernel.value == 7)


def test_a_state_that_does_not_fit_changes_nothing_and_says_all():
    net = Net()
    state = net.state()
    state["zeta"] = np.array(9.0)
    state["layers[0].bias"] = np.zeros(4)
    state["layers[1].bias"] = np.zeros(1, complex)
    state["extra"] = state.pop("alpha")
    with pytest.raises(gs.GradsmithError) as caught:
        net.load_state(state)
    message = str(caught.value)
    assert "alpha is missing" in message
    assert "extra is unknown" in message
    assert "layers[0].bias has shape (4,), the variable (3,)" in message
    assert "layers[1].bias has dtype complex128, the variable float64" in message
    assert net.zeta.value == 1


def test_a_deep_copy_is_independent():
    net = Net().freeze()
    twin = copy.deepcopy(net)
    twin.unfreeze()
    assert not net.trainable_variables
    assert len(twin.trainable_variables) == 10
    twin.zeta.assign(5.0)
    assert net.zeta.value == 1
