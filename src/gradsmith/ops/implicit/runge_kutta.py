"""Dormand and Prince's method of order 5, with steps that fit; and the classical one.

A solver advances y from t0 to t1, forwards or backwards; `parts` are the steps that it
would make, and `step` makes one. Nothing here is a rule: what is differentiated by
equations of its own runs this for values alone.
"""

from __future__ import annotations

from typing import Any

import gradsmith.numpy as gnp

from ...core.errors import GradsmithError
from .parts import compiled_of

# The nodes, the weights of each stage, and those of order 5 less those of order 4.
NODES = (0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1)
STAGES = (
    (),
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
ERROR = (
    71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40,
)  # fmt: skip


class Adaptive:
    """Steps as long as the error of each stays below atol + rtol |y|."""

    def __init__(self, rtol: float, atol: float, max_steps: int) -> None:
        self.rtol, self.atol, self.max_steps = rtol, atol, max_steps

    def __call__(self, f: Any, y: Any, t0: Any, t1: Any) -> Any:
        compiled, search = compiled_of(y), _Search(self, f, y, t0, t1)
        found = compiled.loop(search.going, search.step, search.start)
        return self._insist(found, compiled)

    def parts(self, f: Any, y: Any, t0: Any, t1: Any) -> list[tuple[float, float]]:
        """Where each step begins and how long it is, as parts of the interval."""
        search = _Search(self, f, y, t0, t1)
        state, made = search.start, []
        while _known(search.going(state)):
            _, _, done, part, _ = state
            state = search.step(state)
            if _known(state[2] > done):
                made.append((float(done), float(part)))
        self._insist(state, compiled_of(y))
        return made

    def step(self, f: Any, t: Any, y: Any, h: Any) -> Any:
        return y + h * _combined(STAGES[-1], _stages(f, t, y, f(t, y), h))

    def _insist(self, state: Any, compiled: Any) -> Any:
        y, _, done, _, k = state
        return compiled.insist(
            y,
            done >= 1,
            "odeint: after {steps:.0f} steps only {done:.3f} of an interval of t is "
            "done. A gradient would be wrong.\n  what to do: give max_steps=, larger "
            "rtol= and atol=, or shorter intervals; it can't solve stiff systems. If "
            "only the gradient fails, y grows backward in time: gradient='discrete'",
            steps=k, done=done,
        )  # fmt: skip


class _Search:
    """The steps that fit, one by one.

    A state is y, its slope, the part of the interval that is done, the part to try
    next, and how many were tried.
    """

    def __init__(self, fit: Adaptive, f: Any, y: Any, t0: Any, t1: Any) -> None:
        self.fit, self.f, self.t0, self.span = fit, f, t0, t1 - t0
        slope, zero = f(t0, y), 0 * self.span
        self.start = [y, slope, zero, self._first(y, slope), zero]

    def going(self, state: Any) -> Any:
        _, _, done, _, k = state
        return (done < 1) & (k < self.fit.max_steps)

    def step(self, state: Any) -> Any:
        y, slope, done, part, k = state
        t, h = self.t0 + done * self.span, part * self.span
        new, last, off = _tried(self.f, t, y, slope, h)
        size = self.fit.atol + self.fit.rtol * gnp.maximum(gnp.abs(y), gnp.abs(new))
        error = _rms(off / size)
        fits = error <= 1
        grown = 0.9 * gnp.maximum(error, 1e-10 + 0 * error) ** -0.2
        done = gnp.where(fits, done + part, done)
        part = part * gnp.clip(gnp.where(error == error, grown, 0.1), 0.1, 5.0)
        part = gnp.minimum(part, gnp.maximum(1 - done, 0 * done))
        y, slope = gnp.where(fits, new, y), gnp.where(fits, last, slope)
        return [y, slope, done, part, k + 1]

    def _first(self, y: Any, slope: Any) -> Any:
        """The part of the interval to begin with: y changes by a hundredth in it."""
        size = self.fit.atol + self.fit.rtol * gnp.abs(y)
        high = _rms(y / size) + 1
        rate = _rms(slope * self.span / size) + 1e-10
        return gnp.minimum(0.01 * high / rate, 1 + 0 * rate)


def _rms(x: Any) -> Any:
    return gnp.sqrt(gnp.sum(x * x) / max(x.shape[0], 1))


def _known(truth: Any) -> bool:
    try:
        return bool(truth)
    except Exception as error:
        raise GradsmithError(
            "odeint: gradient='discrete' with method='dopri5' chooses its steps by "
            "values, which compiled code and vmap don't have\n  what to do: "
            "method='rk4' with steps=..., or gradient='adjoint'"
        ) from error


def _stages(f: Any, t: Any, y: Any, slope: Any, h: Any) -> list[Any]:
    """The slopes of all stages of a step but the last."""
    slopes = [slope]
    for node, weights in zip(NODES[1:-1], STAGES[1:-1], strict=True):
        slopes.append(f(t + node * h, y + h * _combined(weights, slopes)))
    return slopes


def _tried(f: Any, t: Any, y: Any, slope: Any, h: Any) -> tuple[Any, Any, Any]:
    """A step of length h: where it leads, the slope there, and about its error."""
    slopes = _stages(f, t, y, slope, h)
    new = y + h * _combined(STAGES[-1], slopes)
    slopes.append(f(t + h, new))
    return new, slopes[-1], h * _combined(ERROR, slopes)


def _combined(weights: Any, slopes: Any) -> Any:
    return sum(w * k for w, k in zip(weights, slopes, strict=True) if w)


class Steps:
    """The classical method of order 4 with n equal steps."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __call__(self, f: Any, y: Any, t0: Any, t1: Any) -> Any:
        h = (t1 - t0) / self.n

        def step(state: Any) -> Any:
            y, k = state
            return [self.step(f, t0 + k * h, y, h), k + 1]

        state = [y, 0 * h]
        return compiled_of(y).loop(lambda state: state[1] < self.n, step, state)[0]

    def parts(self, f: Any, y: Any, t0: Any, t1: Any) -> list[tuple[float, float]]:
        return [(k / self.n, 1 / self.n) for k in range(self.n)]

    def step(self, f: Any, t: Any, y: Any, h: Any) -> Any:
        a = f(t, y)
        b = f(t + h / 2, y + h / 2 * a)
        c = f(t + h / 2, y + h / 2 * b)
        return y + h / 6 * (a + 2 * b + 2 * c + f(t + h, y + h * c))
