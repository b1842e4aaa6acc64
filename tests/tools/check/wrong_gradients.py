"""Wrong gradients to be explained, and how to have one explained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith.core.arrays import FRAMEWORKS
from gradsmith.tools._inputs import info_of
from gradsmith.tools.check.comparison import Comparison
from gradsmith.tools.check.diagnosis import Explanation, explain
from gradsmith.tools.check.flat import flatten
from gradsmith.tools.check.point import Point
from gradsmith.tools.check.problem import problem_of
from gradsmith.tools.check.session import Session


def operation(forward: Callable[..., Any], rule: Callable[..., Any]) -> Any:
    """An operation with the rule `rule(dy, y, *xs)`."""
    op = gs.operation(forward)
    op.vjp(rule)
    return op


def explained(
    op: Any,
    *xs: np.ndarray,
    framework: str = "numpy",
    argument: str | None = None,
    seed: int = 0,
) -> Explanation:
    """The explanation of the first comparison that comes out wrong."""
    return explain(
        *compared(op, *xs, framework=framework, argument=argument, seed=seed)
    )


def compared(
    op: Any,
    *xs: np.ndarray,
    framework: str = "numpy",
    argument: str | None = None,
    seed: int = 0,
) -> tuple[Point, Comparison, Session]:
    """A comparison that comes out wrong, with all that explaining it takes."""
    problem = problem_of(info_of(op, framework), FRAMEWORKS[framework], xs, {})
    session = Session(problem.in_dtype("float64"), seed)
    point = Point(flatten(session.problem), session.random("given"))
    return point, first_wrong(point, argument), session


def first_wrong(point: Point, argument: str | None = None) -> Comparison:
    for part in point.flat.arguments.parts:
        if argument in (None, part.name):
            chosen = np.zeros(point.x.size, bool)
            chosen[part.slice] = True
            for even in (False, True):
                for comparison in point.along(part, chosen, even=even):
                    if comparison.is_wrong:
                        return comparison
    raise AssertionError("nothing is wrong")


def normal(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


# --- forward functions with their right rules


def softmax(x: Any) -> Any:
    e = gnp.exp(x - gnp.max(x, axis=-1, keepdims=True))
    return e / gnp.sum(e, axis=-1, keepdims=True)


def softmax_rule(dy: Any, y: Any, x: Any) -> Any:
    return y * (dy - gnp.sum(y * dy, axis=-1, keepdims=True))


def layer_norm(x: Any) -> Any:
    c = x - gnp.mean(x, axis=-1, keepdims=True)
    return c / gnp.sqrt(gnp.mean(c * c, axis=-1, keepdims=True) + 1e-5)


def layer_norm_rule(dy: Any, y: Any, x: Any, *, terms: str = "ab") -> Any:
    c = x - gnp.mean(x, axis=-1, keepdims=True)
    r = 1 / gnp.sqrt(gnp.mean(c * c, axis=-1, keepdims=True) + 1e-5)
    dx = dy
    if "a" in terms:
        dx = dx - gnp.mean(dy, axis=-1, keepdims=True)
    if "b" in terms:
        dx = dx - y * gnp.mean(dy * y, axis=-1, keepdims=True)
    return r * dx


def matmul(a: Any, b: Any) -> Any:
    return a @ b


def matmul_rule(dy: Any, y: Any, a: Any, b: Any) -> Any:
    return dy @ gnp.matrix_transpose(b), gnp.matrix_transpose(a) @ dy


def add(x: Any, b: Any) -> Any:
    return x + b


def scaled_sine(x: Any) -> Any:
    return gnp.sin(x) * x


def scaled_sine_rule(dy: Any, y: Any, x: Any) -> Any:
    return dy * (gnp.sin(x) + x * gnp.cos(x))


def sum_of_squares(x: Any) -> Any:
    return gnp.sum(x * x, axis=1)


def sum_of_squares_rule(dy: Any, y: Any, x: Any) -> Any:
    return 2 * x * gnp.expand_dims(dy, 1)


def only(where, rule, factor=0.5):
    """A rule that gives half of the gradient for some elements, or another share."""

    def wrong(dy, y, x):
        dx = rule(dy, y, x)
        flags = where(np.arange(int(np.prod(dx.shape))).reshape(dx.shape))
        return gnp.where(gnp.asarray(flags, like=dx), factor * dx, dx)

    return wrong
