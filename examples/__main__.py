"""Run the examples and show what they print."""

from __future__ import annotations

import os
from importlib import import_module

NAMES = [
    "square",
    "leaky_relu",
    "stable_softmax",
    "watched_constant",
    "two_outputs",
    "piecewise",
    "linear_model",
    "clipped_loss",
    "cubic_layer",
    "five_frameworks",
    "sparse_solve",
    "guided_backprop",
    "one_term",
]


# TensorFlow writes of its own matters to the terminal when it is imported.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")


def main() -> None:
    for number, name in enumerate(NAMES, start=1):
        example = import_module(f"examples.{name}")
        title = example.__doc__.partition("\n")[0]
        print(f"\n{number}. {title}  (examples/{name}.py)")
        for line in example.report():
            print(f"   {line}", flush=True)
    print(f"\nAll {len(NAMES)} examples ran.")


if __name__ == "__main__":
    main()
