"""Functions that TensorFlow traces: with their gradient inside, and by autograph."""

import pytest
import tensorflow as tf

import gradsmith as gs

from .rules import tenfold

X = tf.constant([-1.0, 2.0])
SPEC = tf.TensorSpec([2])


def gradient(fn, x=X):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = fn(x)
    return tape.gradient(y, x).numpy().tolist()


def by_tape(fn):
    def saliency(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = fn(x)
        return tape.gradient(y, x)

    return saliency


def by_graph(x):
    return tf.gradients(tf.nn.relu(x), x)[0]


def product(x):
    return tf.matmul([x], [x], transpose_b=True)


def loop(x):
    for _ in tf.range(3):
        x = 2 * tf.nn.relu(x)
    return x


GRADIENTS = {
    "tape": (by_tape(tf.nn.relu), "Relu"),
    "tf.gradients": (by_graph, "Relu"),
    "function": (by_tape(tf.function(lambda x: tf.nn.relu(x) * x)), "Relu"),
    "loop": (by_tape(loop), "Relu"),
    "no node of its own": (by_tape(product), "MatMul"),
}


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize(("fn", "kind"), GRADIENTS.values(), ids=GRADIENTS)
def test_a_gradient_that_was_traced_before_is_not_changed(fn, kind, saved, tmp_path):
    module = tf.Module()
    module.saliency = tf.function(fn, input_signature=[SPEC])
    traced = module.saliency.get_concrete_function()
    if saved:
        tf.saved_model.save(module, tmp_path)
        module = tf.saved_model.load(tmp_path)
        traced = module.saliency
    plain = traced(X).numpy().tolist()
    rule = lambda dy, y, *xs: tuple(xs)
    refused = pytest.raises(gs.GradsmithError, match=f"{kind} can't be changed.*also")
    with refused, gs.override({kind: rule}):
        traced(X)
    assert traced(X).numpy().tolist() == plain


@pytest.mark.parametrize("name", ["gradients", "my_grad"])
def test_names_of_the_user_are_no_gradient(name):
    def named(x):
        with tf.name_scope(name):
            return tf.nn.relu(x)

    traced = tf.function(named).get_concrete_function(SPEC)
    with gs.override({"Relu": tenfold}):
        assert gradient(traced) == [10, 10]


FORMS = {
    "function": loop,
    "compiled": tf.function(loop),
    "traced before": tf.function(loop),
}
FORMS["traced before"](X)


@pytest.mark.parametrize("fn", FORMS.values(), ids=FORMS)
def test_python_that_autograph_rewrites_is_rewritten_in_a_changed_function(fn):
    changed = gs.override(fn, {tf.nn.relu: tenfold})
    assert gradient(changed) == [8000, 8000]
    assert gradient(tf.function(changed)) == [8000, 8000]


def method_of_an_object():
    class Model:
        def scaled(self, x, *, n=3):
            for _ in tf.range(n):
                x = 2 * tf.nn.relu(x)
            return x

    return Model.scaled, Model().scaled, lambda dy, y, self, x: 10 * dy


def closure():
    scale = tf.constant(2.0)

    def scaled(x, n=3):
        for _ in tf.range(n):
            x = scale * tf.nn.relu(x)
        return x

    return scaled, scaled, tenfold


@pytest.mark.parametrize("made", [method_of_an_object, closure])
def test_a_function_that_autograph_rewrites_is_a_target(made):
    target, scaled, rule = made()

    @tf.function
    def step(x):
        with gs.override({target: rule}):
            y = scaled(x)
        return y + scaled(x)

    assert gradient(step) == [10, 18]
    assert gradient(tf.function(lambda x: scaled(x))) == [0, 8]
    with gs.override({target: rule}):
        assert gradient(lambda x: scaled(x)) == [10, 10]
