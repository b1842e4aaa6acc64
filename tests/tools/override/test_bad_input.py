import jax
import numpy as np
import pytest
import tensorflow as tf
import torch

import gradsmith as gs

from .rules import tenfold

X = np.ones(2)


def test_a_target_that_never_occurred_is_an_error_that_says_what_did():
    with pytest.raises(gs.GradsmithError) as caught, gs.override({np.sinh: tenfold}):
        gs.grad(lambda x: np.sum(np.exp(x)))(X)
    message = str(caught.value)
    assert "the target was never called in this scope: np.sinh" in message
    assert "np.exp, np.sum" in message


def test_of_two_targets_the_missing_one_is_named():
    both = {np.sinh: tenfold, np.exp: tenfold}
    changed = gs.override(lambda x: np.sum(np.exp(x)), both)
    with pytest.raises(gs.GradsmithError, match=r"this model: np.sinh\n"):
        gs.grad(changed)(X)


@pytest.mark.parametrize("target", [3, None, int, [1], "Relu!"])
def test_what_cannot_be_overridden(target):
    key = target if not isinstance(target, list) else len
    with pytest.raises(gs.GradsmithError, match=r"can't be overridden.*\n.*expected"):
        gs.override({key: tenfold})


@pytest.mark.parametrize("value", [3, None, np.sinh, lambda x: x, dict])
def test_what_cannot_stand_in_its_place(value):
    with pytest.raises(gs.GradsmithError, match=r"np.tanh can't be replaced by"):
        gs.override({np.tanh: value})


@pytest.mark.parametrize("targets", [{}, None, [np.tanh], np.tanh])
def test_targets_are_a_dict(targets):
    with pytest.raises(gs.GradsmithError, match="needs a dict"):
        gs.override(targets)


def test_a_model_can_be_called():
    with pytest.raises(gs.GradsmithError, match="can be called, not 3"):
        gs.override(3, {np.tanh: tenfold})


def test_a_function_is_changed_in_the_calls_of_the_result():
    refused = pytest.raises(gs.GradsmithError, match=r"changed = gs\.override")
    with refused, gs.override(lambda x: x, {np.tanh: tenfold}):
        pass


def test_without_a_model_there_is_nothing_to_call():
    with pytest.raises(gs.GradsmithError, match="no function to call"):
        gs.override({np.tanh: tenfold})(X)


def test_a_gradient_of_the_wrong_shape_names_the_argument():
    def scaled(x, weight):
        return x * weight

    rule = lambda dy, y, x, weight: (dy, dy)
    changed = gs.override(lambda w: np.sum(scaled(X, w)), {scaled: rule})
    with pytest.raises(gs.GradientContractError, match="'scaled' for 'weight'"):
        gs.grad(changed)(np.array(3.0))


class Opaque:
    def __init__(self, y):
        self.y = y


FRAMEWORKS = {
    "engine": lambda f: gs.grad(lambda x: np.sum(f(x)))(X),
    "torch": lambda f: f(torch.ones(2, requires_grad=True)).sum().backward(),
    "jax": lambda f: jax.grad(lambda x: f(x).sum())(jax.numpy.ones(2)),
    "tensorflow": lambda f: f(tf.ones(2)),
}


@pytest.mark.parametrize("run", FRAMEWORKS.values(), ids=FRAMEWORKS)
def test_a_result_without_arrays_has_no_gradient(run):
    def packed(x):
        return Opaque(x * 3)

    refused = pytest.raises(
        gs.GradsmithError, match=r"packed returns 'Opaque'.*\n.*dict"
    )
    with refused, gs.override({packed: tenfold}):
        run(lambda x: packed(x).y)


def test_a_result_with_arrays_in_a_tree_has_one():
    def both(x):
        return {"y": x * 3, "label": Opaque(0)}

    changed = gs.override(
        lambda x: np.sum(both(x)["y"]), {both: lambda dy, y, x: 7 * dy["y"]}
    )
    assert gs.grad(changed)(X).tolist() == [7, 7]


def test_a_target_that_was_called_without_arrays():
    told = (
        r"(?s)relu was called with no arrays at .*test_bad_input\.py:\d+.*\n.*give it"
    )
    refused = pytest.raises(gs.GradsmithError, match=told)
    with refused, gs.override({jax.nn.relu: tenfold}):
        jax.nn.relu(2.0)


def test_the_argument_that_a_rule_does_not_take_is_named():
    class Layer:
        def act(self, x):
            return x * 3

    told = r"act is called with self=<.*Layer.*\n  what to do: add one of this name"
    refused = pytest.raises(gs.GradsmithError, match=told)
    with refused, gs.override({Layer.act: tenfold}):
        gs.grad(lambda x: np.sum(Layer().act(x)))(X)
