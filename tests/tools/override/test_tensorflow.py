import threading

import keras
import numpy as np
import pytest
import tensorflow as tf

import gradsmith as gs
import gradsmith.numpy as gnp

from .rules import guided, tenfold

X = tf.constant([-1.0, 2.0])


def gradient(fn, x=X):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = fn(x)
    return tape.gradient(y, x).numpy().tolist()


@tf.function
def compiled(x):
    return tf.nn.relu(x)


@tf.function
def with_tape_inside(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.nn.relu(x)
    return tape.gradient(y, x) * x


@tf.function
def loop(x):
    for _ in tf.range(1):
        x = tf.nn.relu(x)
    return x


@tf.function
def branch(x):
    return tf.cond(x[0] < 0, lambda: tf.nn.relu(x), lambda: x)


SPEC = tf.TensorSpec([2])
CALLS = {
    "tf.nn.relu": tf.nn.relu,
    "keras.activations.relu": keras.activations.relu,
    "keras.ops.relu": keras.ops.relu,
    "Activation": keras.layers.Activation("relu"),
    "ReLU": keras.layers.ReLU(),
    "raw": lambda x: tf.raw_ops.Relu(features=x),
    "tf.function": compiled,
    "tape inside": with_tape_inside,
    "loop": loop,
    "branch": branch,
    "XLA": tf.function(tf.nn.relu, jit_compile=True),
    "concrete": compiled.get_concrete_function(SPEC),
    "concrete loop": loop.get_concrete_function(SPEC),
    "concrete branch": branch.get_concrete_function(SPEC),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("target", [tf.nn.relu, keras.activations.relu, "Relu"])
def test_an_operation_is_changed_however_it_is_called(target, call):
    assert gradient(call) == [0, 1]  # compiled ones are compiled now
    with gs.override({target: tenfold}) as record:
        assert gradient(call) == [10, 10]
    assert record.count("Relu") == 1
    assert gradient(call) == [0, 1]


def test_inside_of_a_function_the_graph_is_changed():
    @tf.function
    def step(x):
        with gs.override({tf.nn.relu: tenfold}):
            first = with_tape_inside(x) + tf.nn.relu(x)
        return first + tf.nn.relu(x)

    assert gradient(step) == [20, 21]
    assert gradient(step) == [20, 21]  # from the trace


def test_what_is_traced_inside_stays_inside():
    fn = tf.function(tf.nn.relu)
    with gs.override({"Relu": tenfold}):
        inside = fn.get_concrete_function(SPEC)
        assert gradient(inside) == [10, 10]
    assert gradient(fn.get_concrete_function(SPEC)) == [0, 1]
    assert gradient(fn) == [0, 1]


def cnn():
    keras.utils.set_random_seed(0)
    return keras.Sequential(
        [
            keras.layers.Input((8, 8, 1)),
            keras.layers.Conv2D(3, 3, activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(4, activation="relu"),
            keras.layers.Dense(2),
        ]
    )


def image():
    return tf.constant(np.random.default_rng(0).normal(size=(2, 8, 8, 1)), tf.float32)


def saliency(model, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = model(x)
        y = y["output_0"] if isinstance(y, dict) else y
        y = y[:, 0]
    return tape.gradient(y, x).numpy()


def by_another_model(model, x):
    """Guided backpropagation in a copy whose activations were exchanged."""

    @tf.custom_gradient
    def guided_relu(x):
        grad = lambda dy: tf.where(x > 0, tf.maximum(dy, 0), 0)
        return tf.nn.relu(x), grad

    copy = cnn()
    copy.set_weights(model.get_weights())
    for layer in copy.layers:
        if getattr(layer, "activation", None) is keras.activations.relu:
            layer.activation = guided_relu
    return saliency(copy, x)


def test_guided_backpropagation_in_a_model_that_is_built():
    """tensorflow#35203: the model exists, and its operations are to be replaced."""
    model, x = cnn(), image()
    plain = saliency(model, x)
    with gs.override(model, {tf.nn.relu: guided}) as record:
        found = saliency(model, x)
    np.testing.assert_allclose(found, by_another_model(model, x), rtol=1e-6)
    assert not np.allclose(found, plain)
    assert record.count() == 2
    np.testing.assert_array_equal(saliency(model, x), plain)


def test_gradient_override_map_does_nothing_in_eager_mode():
    """tensorflow#36870: what was the way to do this is ignored in TensorFlow 2."""
    name = "GradsmithTestTenfold"
    tf.RegisterGradient(name)(lambda op, dy: 10 * dy)
    graph = tf.compat.v1.get_default_graph()
    with graph.gradient_override_map({"Relu": name}):
        assert gradient(tf.nn.relu) == [0, 1]
    with gs.override({"Relu": tenfold}):
        assert gradient(tf.nn.relu) == [10, 10]


# Of Keras, which makes arrays of its variables
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_models_that_were_saved(tmp_path):
    model, x = cnn(), image()
    model.save(tmp_path / "model.keras")
    model.export(tmp_path / "saved", verbose=False)
    saved = tf.saved_model.load(tmp_path / "saved")
    models = [
        keras.models.load_model(tmp_path / "model.keras"),
        saved.serve,
        saved.signatures["serving_default"],
        keras.layers.TFSMLayer(tmp_path / "saved", call_endpoint="serve"),
    ]
    expected = by_another_model(model, x)
    for each in models:
        plain = saliency(each, x)
        with gs.override({tf.nn.relu: guided}) as record:
            np.testing.assert_allclose(saliency(each, x), expected, rtol=1e-6)
        assert record.count() == 2
        np.testing.assert_array_equal(saliency(each, x), plain)


def test_variables_of_a_saved_model_keep_their_gradients(tmp_path):
    model, x = cnn(), image()
    model.export(tmp_path, verbose=False)
    saved = tf.saved_model.load(tmp_path)

    def gradients(model, variables):
        with tf.GradientTape() as tape:
            y = model(x)
        return tape.gradient(y, variables)

    variables = saved.trainable_variables
    with gs.override({"Relu": guided}):
        found = gradients(saved.serve, variables)
        expected = gradients(model, [v.value for v in model.trainable_variables])
    for dw, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(dw, other, rtol=1e-5, atol=1e-6)


def test_a_custom_gradient_in_a_saved_model_stays(tmp_path):
    @tf.custom_gradient
    def sevenfold(x):
        return tf.identity(x), lambda dy: 7 * dy

    module = tf.Module()
    module.fn = tf.function(lambda x: tf.nn.relu(sevenfold(x)), input_signature=[SPEC])
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(module, tmp_path, options=options)
    loaded = tf.saved_model.load(tmp_path)
    assert gradient(loaded.fn) == [0, 7]
    with gs.override({"Relu": tenfold}):
        assert gradient(loaded.fn) == [70, 70]


def test_layers_by_class_and_by_instance():
    one, other = keras.layers.ReLU(), keras.layers.ReLU()
    with gs.override({keras.layers.ReLU: tenfold}) as record:
        assert gradient(lambda x: one(x) + other(x)) == [20, 20]
    assert record.count("ReLU") == 2
    with gs.override({other: tenfold}):
        assert gradient(lambda x: one(x) + other(x)) == [10, 11]


def test_weights_of_a_changed_layer_keep_their_gradients():
    layer = keras.layers.Dense(2, kernel_initializer="ones")
    x = tf.constant([[-1.0, 2.0]])
    layer(x)
    with gs.override({layer: tenfold}), tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x)
    dx, dw = tape.gradient(y, [x, layer.kernel.value])
    assert dx.numpy().tolist() == [[10, 10]]
    assert dw.numpy().tolist() == [[-1, -1], [2, 2]]


def test_functions_of_several_operations_are_changed_as_functions():
    with gs.override({tf.nn.gelu: tenfold}):
        assert gradient(tf.nn.gelu) == [10, 10]
        assert gradient(keras.layers.Activation("gelu")) == [10, 10]
        assert gradient(tf.function(tf.nn.gelu)) == [10, 10]
    with gs.override({keras.activations.gelu: tenfold}):
        assert gradient(keras.layers.Activation("gelu")) == [10, 10]


def test_attributes_of_operations_are_given_to_rules_that_take_them():
    rule = lambda dy, y, x, alpha: alpha * dy
    with gs.override({tf.nn.leaky_relu: rule}):
        assert gradient(lambda x: tf.nn.leaky_relu(x, alpha=0.5)) == [0.5, 0.5]


def test_an_operation_replaces_the_value_too():
    @gs.custom_gradient
    def shifted(x):
        return gnp.maximum(x, 0) + 1, lambda dy: 3 * dy

    for call in (tf.nn.relu, compiled, CALLS["concrete"], keras.layers.ReLU()):
        with gs.override({tf.nn.relu: shifted}):
            assert call(X).numpy().tolist() == [1, 3]
            assert gradient(call) == [3, 3]


def test_an_operation_replaces_the_value_in_a_graph_with_a_tape():
    @gs.custom_gradient
    def shifted(x):
        return gnp.maximum(x, 0) + 1, lambda dy: 3 * dy

    @tf.function
    def step(x):
        with gs.override({tf.nn.relu: shifted}), tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.nn.relu(x)
        return y, tape.gradient(y, x)

    value, slope = step(X)
    assert value.numpy().tolist() == [1, 3]
    assert slope.numpy().tolist() == [3, 3]


def test_training_in_a_scope():
    model = cnn()
    model.compile("sgd", "mse")
    x, y = image().numpy(), np.zeros((2, 2))
    model.fit(x, y, verbose=0)
    before = model.get_weights()
    with gs.override({tf.nn.relu: lambda dy, y, x: 0 * dy}) as record:
        model.fit(x, y, verbose=0)
        model.predict(x, verbose=0)
    kernel, *_, last = zip(before, model.get_weights(), strict=True)
    np.testing.assert_array_equal(*kernel)  # no gradient comes so far
    assert not np.array_equal(*last)
    assert record.count() == 4


def test_the_backward_pass_of_others_is_not_what_is_changed():
    with gs.override({"Mul": lambda dy, y, a, b: (10 * dy, dy)}) as record:
        assert gradient(lambda x: tf.exp(x) * x, tf.zeros(2)) == [11, 11]
        assert gradient(lambda x: tf.exp(x) * 2.0, tf.zeros(2)) == [10, 10]
    assert record.count() == 2  # and the gradient of exp is a product too


def test_second_derivatives_are_those_of_the_rule():
    cubic = lambda dy, y, x: dy * x**2
    with gs.override({tf.tanh: cubic}), tf.GradientTape() as outer:
        outer.watch(X)
        with tf.GradientTape() as tape:
            tape.watch(X)
            y = tf.tanh(X)
        first = tape.gradient(y, X)
    assert outer.gradient(first, X).numpy().tolist() == [-2, 4]


def test_names_that_are_nearly_right():
    with pytest.raises(gs.GradsmithError, match="did you mean 'Relu'"):
        gs.override({"Rleu": tenfold})


def test_a_target_that_never_occurred():
    refused = pytest.raises(gs.GradsmithError, match=r"never called.*Elu\n.*Relu")
    with refused, gs.override({tf.nn.elu: tenfold}):
        CALLS["concrete"](X)


def test_other_threads_go_on_as_ever():
    found = []
    with gs.override({tf.nn.relu: tenfold, keras.layers.ReLU: tenfold}):
        call = lambda: found.append(gradient(keras.layers.ReLU()))
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
        gradient(lambda x: tf.nn.relu(x) + keras.layers.ReLU()(x))
    assert found == [[0, 1]]


def test_everything_is_restored():
    from tensorflow.python import pywrap_tfe

    run, call = pywrap_tfe.TFE_Py_FastPathExecute, keras.Layer.__call__
    refused = pytest.raises(ValueError, match="mine")
    with refused, gs.override({"Relu": tenfold, keras.layers.Dense: tenfold}):
        raise ValueError("mine")
    assert pywrap_tfe.TFE_Py_FastPathExecute is run
    assert keras.Layer.__call__ is call
    assert not tf.config.functions_run_eagerly()


def test_scopes_of_threads_may_overlap():
    opened, closed = threading.Event(), threading.Event()

    def other():
        with gs.override({"Relu": tenfold}):
            tf.nn.relu(X)
            opened.set()
            closed.wait(60)

    thread = threading.Thread(target=other)
    with gs.override({"Relu": tenfold}):
        thread.start()
        opened.wait(60)
        gradient(compiled)
    assert tf.config.functions_run_eagerly()  # the other one is still open
    closed.set()
    thread.join()
    assert not tf.config.functions_run_eagerly()
    assert gradient(compiled) == [0, 1]
