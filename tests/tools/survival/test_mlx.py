"""What MLX's own mechanism does with a rule, and ours."""

from __future__ import annotations

import mlx.core as mx
import numpy as np

import gradsmith as gs
from benchmarks.survival import survey

X = np.float32([0.5, 1.5, -2.0])
DROPPED = {"jvp", "compile(jvp)", "grad(vmap)", "jvp(vmap)"}


def tenfold(**rules):
    """x * x, whose rules tell ten times the derivative."""
    op = mx.custom_function(lambda x: x * x)
    for name, rule in rules.items():
        getattr(op, name)(rule)
    return op


def found(survival, verdict):
    return {o.transformation for o in survival.outcomes if o.verdict == verdict}


def test_a_vjp_alone_is_dropped_in_forward_mode_and_inside_vmap():
    survival = gs.survives(tenfold(vjp=lambda x, dy, y: 20 * x * dy), X)
    assert not survival.ok
    assert found(survival, "dropped") == DROPPED
    assert "mx.custom_function" in survival.note
    assert {"grad", "compile(grad)", "checkpoint"} <= found(survival, "honoured")


def test_a_right_rule_can_t_be_told_from_none():
    survival = gs.survives(tenfold(vjp=lambda x, dy, y: 2 * x * dy), X)
    assert survival.ok
    assert survival.count("unclear") == len(survival.outcomes)


def test_ours_is_honoured_everywhere():
    columns = dict(survey("mlx").columns)
    ours, theirs = columns["Gradsmith"], columns["custom_function"]
    assert ours.count("honoured") == len(ours.outcomes) > 15
    assert found(theirs, "dropped") <= DROPPED


def test_numpy_inputs_are_converted():
    @gs.custom_gradient
    def square(x):
        return x * x, lambda dy: 2 * x * dy

    survival = gs.survives(square, X, framework="mlx", only=["grad", "compile(jvp)"])
    assert (survival.framework, survival.count("honoured")) == ("MLX", 2)
