"""A wrong gradient, named and repaired.

Each column of x is multiplied by its weight. The first rule takes the mean over the
rows that a weight served, where it has to take the sum: no shape is wrong, and a model
still learns with it, only slowly. `gs.check` says what it is.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import gradsmith as gs
import gradsmith.numpy as gnp


def scaled_by(rule):
    """y = x w with a rule for w."""

    @gs.custom_gradient
    def scaled(x, w):
        return x * w, lambda dy: (dy * w, rule(dy, x, w))

    return scaled


def wrong(dy, x, w):
    return gnp.mean(dy * x, axis=0)


def repaired(dy, x, w):
    return gs.unbroadcast(dy * x, w.shape)


def checked(rule):
    x, w = np.arange(1.0, 13.0).reshape(3, 4), np.array([0.5, -1.0, 2.0, 0.25])
    return gs.check(scaled_by(rule), x, w)


def report() -> Iterator[str]:
    yield "y = x w       with the rule  dw = gnp.mean(dy * x, axis=0)"
    (finding,) = checked(wrong).findings
    yield f"✗ wrong       {finding.message}"
    yield f"  repair      {finding.repair}"
    yield "y = x w       with the rule  dw = gs.unbroadcast(dy * x, w.shape)"
    yield f"✓ {checked(repaired).verdict}       {checked(repaired).remark}"


if __name__ == "__main__":
    print(*report(), sep="\n")
