"""A mixture of Gaussians with a Wishart prior: the logarithm of the posterior.

The precision of a component is Q' Q with a lower triangular Q, whose diagonal is exp(q)
and whose other elements are those of l, column by column.
"""

from __future__ import annotations

from math import lgamma, log, pi
from typing import Any

import numpy as np

from benchmarks.gradbench.libraries import Library, torch_value_and_grad

SIZES = ({"d": 2, "k": 5, "n": 100}, {"d": 10, "k": 25, "n": 1_000})
VARIABLES = 4
GAMMA, M = 1.0, 0  # the prior: precision, and degrees of freedom beyond d + 1


def inputs(rng: Any, d: int, k: int, n: int) -> tuple[Any, ...]:
    alpha, mu = rng.normal(size=k), rng.uniform(size=(k, d))
    q, l = rng.normal(size=(k, d)), rng.normal(size=(k, d * (d - 1) // 2))  # noqa: E741
    return alpha, mu, q, l, rng.normal(size=(n, d))


def constant(d: int, k: int, n: int) -> float:
    """What depends on the sizes alone."""
    freedom = d + M + 1
    gammas = (lgamma(freedom / 2 - j / 2) for j in range(d))
    log_gamma = d * (d - 1) / 4 * log(pi) + sum(gammas)
    prior = k * (freedom * d * log(GAMMA / 2**0.5) - log_gamma)
    return prior - n * d / 2 * log(2 * pi)


def lower(d: int) -> tuple[Any, Any]:
    """Rows and columns of the elements of l."""
    columns, rows = np.triu_indices(d, 1)
    return rows, columns


def in_numpy(library: Library, d: int, k: int, n: int) -> Any:
    np, rest = library.np, constant(d, k, n)
    rows, columns = lower(d)
    places = np.zeros((d * d, len(rows)))  # spreads l over a matrix
    places = _with_ones(places, rows * d + columns)

    def logsumexp(x: Any, axis: int) -> Any:
        m = np.max(x, axis=axis, keepdims=True)
        total = np.sum(np.exp(x - m), axis=axis, keepdims=True)
        return np.squeeze(m + np.log(total), axis)

    def objective(alpha: Any, mu: Any, q: Any, l: Any, x: Any) -> Any:  # noqa: E741
        diagonal, sum_q = np.exp(q), np.sum(q, axis=1)
        off = np.reshape(l @ places.T, (k, d, d))
        centered = x - mu[:, None, :]
        scaled = diagonal[:, None, :] * centered + centered @ np.swapaxes(off, 1, 2)
        inner = (alpha + sum_q)[:, None] - 0.5 * np.sum(scaled**2, axis=2)
        squares = np.sum(diagonal**2) + np.sum(l**2)
        prior = -0.5 * GAMMA**2 * squares + M * np.sum(sum_q)
        likelihood = np.sum(logsumexp(inner, 0)) - n * logsumexp(alpha, 0)
        return likelihood + prior + rest

    return library.value_and_grad(objective, tuple(range(VARIABLES)))


def _with_ones(places: Any, at: Any) -> Any:
    places = np.array(places)
    places[at, np.arange(len(at))] = 1
    return places


def in_torch(torch: Any, d: int, k: int, n: int) -> Any:
    rest = constant(d, k, n)
    rows, columns = map(torch.tensor, lower(d))

    def objective(alpha: Any, mu: Any, q: Any, l: Any, x: Any) -> Any:  # noqa: E741
        diagonal, sum_q = torch.exp(q), torch.sum(q, 1)
        off = torch.zeros((k, d, d), dtype=l.dtype)
        off[:, rows, columns] = l
        centered = x - mu[:, None, :]
        scaled = diagonal[:, None, :] * centered + centered @ off.mT
        inner = (alpha + sum_q)[:, None] - 0.5 * torch.sum(scaled**2, 2)
        squares = torch.sum(diagonal**2) + torch.sum(l**2)
        prior = -0.5 * GAMMA**2 * squares + M * torch.sum(sum_q)
        likelihood = torch.sum(torch.logsumexp(inner, 0)) - n * torch.logsumexp(
            alpha, 0
        )
        return likelihood + prior + rest

    return torch_value_and_grad(torch, objective, VARIABLES)
