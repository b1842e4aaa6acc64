"""The embedded engine: its transformations. Every operation in it is one of ours."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import transforms
from ...core.forward import ForwardAccumulator
from ...core.gradient_tape import GradientTape
from ...core.tensor import Tensor
from .._transformations import GRADIENT, SECOND, TANGENT, Row


def _tape(s: Any, persistent: bool = False) -> Any:
    t = Tensor(s.t)
    with GradientTape(persistent=persistent) as tape:
        tape.watch(t)
        y = s.phi(t)
    return tape.gradient(y, t)


def _nested_tapes(s: Any) -> Any:
    t = Tensor(s.t)
    with GradientTape() as outer:
        outer.watch(t)
        with GradientTape() as inner:
            inner.watch(t)
            y = s.phi(t)
        slope = np.sum(inner.gradient(y, t) * s.dt)
    return outer.gradient(slope, t)


def _accumulator(s: Any) -> Any:
    t = Tensor(s.t)
    with ForwardAccumulator(t, s.dt) as accumulator:
        y = s.phi(t)
    return accumulator.jvp(y)


def _forward_over_reverse(s: Any) -> Any:
    t = Tensor(s.t)
    with ForwardAccumulator(t, s.dt) as accumulator:
        with GradientTape() as tape:
            tape.watch(t)
            y = s.phi(t)
        gradient = tape.gradient(y, t)
    return accumulator.jvp(gradient)


def _vjp(s: Any) -> Any:
    y, pull = transforms.vjp(s.phi, s.t)
    return pull(np.ones_like(y))


def _jvp(s: Any) -> Any:
    return transforms.jvp(s.phi, (s.t,), (s.dt,))[1]


def _hessian(s: Any) -> Any:
    return np.tensordot(transforms.hessian(s.phi)(s.t), s.dt, s.dt.ndim)


def _jacobian(s: Any) -> Any:
    return np.sum(transforms.jacobian(s.vector)(s.t), 0)


ROWS = [
    Row("GradientTape", GRADIENT, _tape),
    Row("persistent tape", GRADIENT, lambda s: _tape(s, persistent=True)),
    Row("nested tapes", SECOND, _nested_tapes),
    Row("ForwardAccumulator", TANGENT, _accumulator, forward=True),
    Row("forward over reverse", SECOND, _forward_over_reverse),
    Row("grad", GRADIENT, lambda s: transforms.grad(s.phi)(s.t)),
    Row("vjp", GRADIENT, _vjp),
    Row("jvp", TANGENT, _jvp, forward=True),
    Row("jacobian", GRADIENT, _jacobian, full=True),
    Row("hessian", SECOND, _hessian, full=True),
    Row("hvp", SECOND, lambda s: transforms.hvp(s.phi, (s.t,), (s.dt,))),
    Row("keyword call", GRADIENT, _tape, keyword=True),
]
