"""Guided backpropagation.

Models that exist are not edited: the gradient of each ReLU lets through only what is
positive, in a Keras model with activations by name and in a PyTorch model that calls
`F.relu`.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np

import gradsmith as gs
import gradsmith.numpy as gnp


def guided(dy, y, x):
    return gnp.where(x > 0, gnp.maximum(dy, 0), 0)


def by_keras(image):
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.layers.Input((8, 8, 1)),
            keras.layers.Conv2D(4, 3, activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(8, activation="relu"),
            keras.layers.Dense(1),
        ]
    )
    x = tf.constant(image[..., None])

    def saliency():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = model(x)
        return tape.gradient(y, x).numpy()

    plain = saliency()
    with gs.override(model, {tf.nn.relu: guided}) as record:
        changed = saliency()
    return plain, changed, record


def by_torch(image):
    import torch
    import torch.nn.functional as F  # noqa: N812

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(1, 4, 3)
            self.hidden = torch.nn.Linear(4 * 36, 8)
            self.last = torch.nn.Linear(8, 1)

        def forward(self, x):
            x = F.relu(self.conv(x), inplace=True)
            x = F.relu(self.hidden(x.flatten(1)))
            return self.last(x)

    torch.manual_seed(0)
    model = Network()

    def saliency():
        x = torch.tensor(image[:, None], requires_grad=True)
        return torch.autograd.grad(model(x).sum(), x)[0].numpy()

    plain = saliency()
    with gs.override(model, {F.relu: guided}) as record:
        changed = saliency()
    return plain, changed, record


FRAMEWORKS = {
    "Keras": (("keras", "tensorflow"), by_keras),
    "PyTorch": (("torch",), by_torch),
}


def report() -> Iterator[str]:
    image = np.random.default_rng(0).normal(size=(1, 8, 8)).astype(np.float32)
    for name, (packages, run) in FRAMEWORKS.items():
        if all(map(find_spec, packages)):
            plain, changed, record = run(image)
            yield (
                f"{name:11} {record.count()} calls changed; largest gradient "
                f"{np.abs(plain).max():.3f}, guided {np.abs(changed).max():.3f}"
            )


if __name__ == "__main__":
    print(*report(), sep="\n")
