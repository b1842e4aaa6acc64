"""The README's picture: `python -m benchmarks.picture docs/lost-digits.png`.

The error of one function and its gradient over float32 inputs, in PyTorch and in our
engine.
"""

from __future__ import annotations

import sys

import numpy as np

import gradsmith as gs
from benchmarks._peers import load

DOMAIN = (0.01, 100.0)


def main(path: str) -> None:
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    for ax, tanh, title in (
        (axes[0], load("torch").tanh, "torch.tanh"),
        (axes[1], np.tanh, "np.tanh, differentiated by Gradsmith"),
    ):
        gs.audit(tanh, domain=DOMAIN).plot(ax=ax)
        ax.set_title(title)
    for ax in axes:
        ax.set(ylim=(0.1, 1e8), ylabel="error, units in the last place")
        ax.set_yticks(10.0 ** np.arange(-1, 9))
    axes[1].set_ylabel("")
    axes[1].tick_params(labelleft=False)
    axes[1].legend().remove()
    figure.savefig(path, dpi=160, facecolor="white")


if __name__ == "__main__":
    main(sys.argv[1])
