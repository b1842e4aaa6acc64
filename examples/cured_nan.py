"""A NaN, traced to its line and cured.

The cross-entropy as in a textbook: exp(1000) is infinite, and inf / inf is NaN.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith import ops

X = np.array([1000.0, 999.0])


def textbook_loss(x):
    e = gnp.exp(x)
    return -gnp.log(e[0] / gnp.sum(e))


def loss(x):
    return -ops.log_softmax(x)[0]


def report() -> Iterator[str]:
    with np.errstate(all="ignore"):
        yield f"loss(x)       {textbook_loss(X)}"
        found = gs.find_nan(textbook_loss, X)
    place = found.where
    yield f"✗ first       {found.kind} in {found.operation}, where {found.inputs[0]}"
    yield f"  line        examples/cured_nan.py:{place.line}   {place.source}"
    yield f"  repair      {found.repair}"
    yield "loss(x)       by gs.ops.log_softmax"
    yield f"✓ cured       {loss(X):.6f}, and its gradient {gs.grad(loss)(X)}"


if __name__ == "__main__":
    print(*report(), sep="\n")
