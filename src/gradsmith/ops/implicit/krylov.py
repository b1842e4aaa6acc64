"""Iterative solvers of linear systems, in the calls of every framework.

They are given the matrix as a function, and stop when the residual is small beside the
right-hand side. None of them is differentiated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradsmith.numpy as gnp

from .sizes import largest, norm, precision

STEPS = 20  # directions that GMRES keeps


def conjugate_gradients(
    push: Callable[[Any], Any], b: Any, tol: float, steps: int, compiled: Any
) -> Any:
    """For symmetric positive definite matrices."""
    limit = tol**2 * _dot(b, b)

    def going(state: Any) -> Any:
        _, _, _, rr, k = state
        return (rr > limit) & (k < steps)

    def step(state: Any) -> Any:
        x, r, p, rr, k = state
        q = push(p)
        a = rr / _dot(p, q)
        r = r - a * q
        new = _dot(r, r)
        return [x + a * p, r, r + (new / rr) * p, new, k + 1]

    zero, rr = gnp.zeros_like(b), _dot(b, b)
    return compiled.loop(going, step, [zero, b, b, rr, 0 * rr])[0]


def gmres(
    push: Callable[[Any], Any], b: Any, tol: float, steps: int, compiled: Any
) -> Any:
    """For all others: the least residual over the last directions, again and again."""
    limit = tol**2 * _dot(b, b)
    m = min(STEPS, b.shape[0])

    def going(state: Any) -> Any:
        _, _, rr, k = state
        return (rr > limit) & (k < steps)

    def step(state: Any) -> Any:
        x, r, rr, k = state
        x = x + _least_residual(push, r, gnp.sqrt(rr), m, compiled)
        r = b - push(x)
        return [x, r, _dot(r, r), k + m]

    rr = _dot(b, b)
    return compiled.loop(going, step, [gnp.zeros_like(b), b, rr, 0 * rr])[0]


def _least_residual(push: Any, r: Any, size: Any, m: int, compiled: Any) -> Any:
    """What of m directions brings r closest to zero: r - A V y with A V = Q H."""
    row = gnp.arange(m + 1, dtype=r.dtype, like=r)
    basis = gnp.where(row[:, None] == 0, (r / size)[None], 0 * r[None])
    images = 0 * basis[:m]

    def step(state: Any) -> Any:
        basis, images, k = state
        v = gnp.sum(gnp.where(row[:, None] == k, basis, 0 * basis), axis=0)
        image = push(v)
        new = image
        for _ in range(2):  # once is not enough for orthogonality
            new = new - gnp.matmul(gnp.matmul(basis, new), basis)
        length = norm(new)
        more = length > 10 * precision(r) * norm(image)  # else only rounding is left
        new = gnp.where(more, new / gnp.where(more, length, 1), 0 * new)
        here = (row == k + 1)[:, None]
        basis = gnp.where(here, new[None], basis)
        images = gnp.where((row == k)[:m, None], image[None], images)
        return [basis, images, k + 1]

    state = [basis, images, 0 * size]
    basis, images, _ = compiled.loop(lambda state: state[2] < m, step, state)
    h = gnp.matmul(basis, gnp.swapaxes(images, 0, 1))  # (m + 1, m)
    unit = largest(gnp.reshape(h, (-1,)))
    h = h / unit
    # min |H y - e| by [[1, H], [Hᵀ, -δ]] (e - H y, y) = (e, 0): no square of H
    one, tiny = (gnp.eye(k, dtype=r.dtype, like=r) for k in (m + 1, m))
    left = gnp.concatenate([one, gnp.swapaxes(h, 0, 1)])
    both = gnp.concatenate([left, gnp.concatenate([h, -1e-30 * tiny])], axis=1)
    right = gnp.concatenate([gnp.where(row == 0, size, 0 * row), 0 * row[:m]])
    y = gnp.linalg.solve(both, right)[m + 1 :] / unit
    return gnp.matmul(y, basis[:m])


def _dot(a: Any, b: Any) -> Any:
    return gnp.sum(a * b)
