"""Stock layers and models are checked with their variables."""

import keras
import numpy as np
import pytest

import gradsmith as gs

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 5)).astype("float32")
layers = keras.layers


def values_of(layer):
    return [v.value.numpy() for v in layer.variables]


def functional():
    x = keras.Input((5,))
    return keras.Model(x, layers.Add()([layers.Dense(3)(x), layers.Dense(3)(x)]))


@pytest.mark.parametrize(
    ("make", "x", "options"),
    [
        (lambda: layers.Dense(3), X, {}),
        (lambda: layers.Embedding(6, 3), np.array([[1, 2, 0], [3, 3, 1]]), {}),
        (lambda: layers.Dropout(0.5), X, {"training": True}),
        (lambda: layers.LayerNormalization(), X, {}),
        (functional, X, {}),
    ],
    ids=["Dense", "Embedding", "Dropout", "LayerNormalization", "functional"],
)
def test_layers_are_right(make, x, options):
    layer, x = make(), keras.ops.convert_to_tensor(x)
    layer(x)
    before = values_of(layer)
    report = gs.check(layer, x, **options)
    assert report.verdict in ("right", "right, with limits"), report
    assert not any("float32" in note for note in report.notes), report
    assert all(map(np.array_equal, before, values_of(layer)))


def test_a_wrong_gradient_of_a_variable_is_found():
    @gs.custom_gradient
    def product(x, w):
        return x * w, lambda dy: (dy * w, 2 * dy * x)

    class Wrong(keras.Layer):
        def build(self, shape):
            self.w = self.add_weight(shape=tuple(shape), name="w")

        def call(self, x):
            return product(x, self.w)

    layer, x = Wrong(), keras.ops.convert_to_tensor(X)
    layer(x)
    report = gs.check(layer, x)
    assert report.verdict == "wrong", report
    assert report.findings[0].argument == layer.w.path
