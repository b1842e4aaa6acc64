"""TensorFlow's registry of gradients does not grow, and graphs that are dropped go."""

import gc
import weakref

import pytest
import tensorflow as tf
from tensorflow.python.framework import ops

import gradsmith as gs

from .cases import canary, canary_rule, gradients, jvp, log1pexp, orders, x3


def registered():
    return len(ops.gradient_registry.list())


def traced(fn):
    compiled = tf.function(lambda x: fn(tf.sin(x)))
    gradients(compiled, x3)
    return compiled


def test_no_growth_while_functions_live():
    traced(canary)
    before = registered()
    alive = [traced(fn) for fn in (canary, canary_rule) for _ in range(3)]
    assert registered() == before
    assert gradients(alive[0], x3)[0] is not None


@gs.operation
def both(x):
    return x * x


both.vjp(lambda dy, y, x: 10 * x * dy)
both.jvp(lambda dx, y, x: 10 * x * dx)


def mapped(x):
    return tf.vectorized_map(canary, x[:, None])


def twice(x):
    return orders(log1pexp, x, 2)[-1]


@pytest.mark.parametrize("fn", [canary, canary_rule, both, mapped, twice])
def test_dropped_graphs_are_freed(fn):
    before = registered()
    for nested in (False, True):
        compiled = traced(fn)
        if nested:
            orders(compiled, x3, 2)
            jvp(compiled, x3, x3)
        graph = weakref.ref(compiled.get_concrete_function(x3).graph)
        assert graph() is not None
        del compiled
        gc.collect()
        assert graph() is None
    assert registered() == before


def test_what_tensorflow_registers_is_found_as_before():
    assert ops.gradient_registry.lookup("Sin") is not None
    assert "Sin" in ops.gradient_registry.list()


def test_names_of_graphs_that_are_gone_are_not_found():
    compiled = traced(canary)
    graph = compiled.get_concrete_function(x3).graph
    (name,) = [
        op.get_attr("_gradient_op_type").decode()
        for op in graph.get_operations()
        if op.type == "IdentityN"
    ]
    assert ops.gradient_registry.lookup(name) is not None
    del compiled, graph
    gc.collect()
    with pytest.raises(LookupError, match=name):
        ops.gradient_registry.lookup(name)
