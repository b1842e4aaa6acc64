"""Gradient descent with a step that grows while it pays: what two problems share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def argmin(
    np: Any, f: Callable[[Any], Any], gradient: Callable[[Any], Any], x: Any, limit: int
) -> Any:
    """Where f is least, after at most `limit` steps."""
    length = lambda v: np.sqrt(np.sum(v * v))
    fx, gx, eta, good = f(x), gradient(x), 1e-5, 0
    for _ in range(limit):
        if length(gx) <= 1e-5:
            return x
        if good == 10:
            eta, good = 2 * eta, 0
            continue
        new = x - eta * gx
        if length(new - x) <= 1e-5:
            return x
        f_new = f(new)
        if f_new < fx:
            x, fx, gx, good = new, f_new, gradient(new), good + 1
        else:
            eta, good = eta / 2, 0
    return x


def argmin_in_parts(np: Any, begin: Any, attempt: Any, x: Any, limit: int) -> Any:
    """The same; what a step computes is one function, so that it can be compiled.

    `begin(x)` is the value, the gradient and its length, `attempt(x, gradient, eta)`
    the next x, how far that is, and `begin` of it.
    """
    (fx, gx, size), eta, good = begin(x), 1e-5, 0
    for _ in range(limit):
        if size <= 1e-5:
            return x
        if good == 10:
            eta, good = 2 * eta, 0
            continue
        new, moved, (f_new, g_new, new_size) = attempt(x, gx, np.float64(eta))
        if moved <= 1e-5:
            return x
        if f_new < fx:
            x, fx, gx, size, good = new, f_new, g_new, new_size, good + 1
        else:
            eta, good = eta / 2, 0
    return x


def argmin_in_jax(lax: Any, np: Any, f: Any, gradient: Any, x: Any, limit: int) -> Any:
    """The same as a loop of XLA."""
    length = lambda v: np.sqrt(np.sum(v * v))

    def goes_on(state: Any) -> Any:
        return ~state[-1] & (state[-2] < limit)

    def step(state: Any) -> Any:
        x, fx, gx, eta, good, i, _ = state
        doubled = good == 10
        new = x - eta * gx
        small = length(gx) <= 1e-5
        done = small | (~doubled & (length(new - x) <= 1e-5))
        f_new = f(new)
        better = ~doubled & ~done & (f_new < fx)
        worse = ~doubled & ~done & ~(f_new < fx)
        g_new = gradient(new)
        return (
            np.where(better, new, x),
            np.where(better, f_new, fx),
            np.where(better, g_new, gx),
            np.where(done, eta, eta * np.where(doubled, 2.0, np.where(worse, 0.5, 1))),
            np.where(better, good + 1, 0),
            i + 1,
            done,
        )

    start = (x, f(x), gradient(x), 1e-5, 0, 0, False)
    return lax.while_loop(goes_on, step, start)[0]
