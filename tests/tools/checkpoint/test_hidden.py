"""Results that hide their arrays: one clear error, whatever the framework."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import gradsmith as gs


class Out:
    def __init__(self, y):
        self.y = y


@dataclass
class Open:
    y: object


def on_numpy(f):
    return gs.grad(f)(np.ones(2))


def on_jax(f):
    jax = pytest.importorskip("jax")
    return jax.grad(f)(jax.numpy.ones(2))


def on_torch(f):
    torch = pytest.importorskip("torch")
    return torch.func.grad(f)(torch.ones(2))


def on_tensorflow(f):
    tf = pytest.importorskip("tensorflow")
    x = tf.ones(2)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


def in_a_function(f):
    tf = pytest.importorskip("tensorflow")
    return on_tensorflow(tf.function(f))


FRAMEWORKS = [on_numpy, on_jax, on_torch, on_tensorflow, in_a_function]


def generated(x):
    yield x * 2


HIDING = {
    "Out": lambda x: Out(x * 2),
    "generator": generated,
    "function": lambda x: (x, lambda y=x * 2: y),
}


@pytest.mark.parametrize("derive", FRAMEWORKS)
@pytest.mark.parametrize("name", HIDING)
def test_an_unknown_class_that_holds_arrays_is_refused(derive, name):
    with pytest.raises(
        gs.GradsmithError, match=rf"of class '{name}'.*\n.*\n\s*what to"
    ):
        derive(lambda x: gs.checkpoint(HIDING[name])(x).y)


@pytest.mark.parametrize("derive", FRAMEWORKS)
def test_dataclasses_and_objects_that_were_there_are_returned(derive):
    model, name = Out(None), object()

    def total(x):
        model.y = x
        light = gs.checkpoint(lambda x: (Open((x * x).sum()), model, name))
        if derive in (on_tensorflow, in_a_function):
            tf = pytest.importorskip("tensorflow")
            square = lambda x: tf.reduce_sum(x * x)
            light = gs.checkpoint(lambda x: (Open(square(x)), model, name))
        y, same, text = light(x)
        assert same is model
        assert text is name
        return y.y

    np.testing.assert_array_equal(np.asarray(derive(total)), [2.0, 2.0])
