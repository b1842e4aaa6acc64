"""A determinant by expansion along its first row: thousands of scalar operations."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np

from benchmarks.gradbench.libraries import Library, torch_value_and_grad

SIZES = ({"n": 5}, {"n": 6})
VARIABLES = 1


def inputs(rng: Any, n: int) -> tuple[Any, ...]:
    return (rng.uniform(size=(n, n)),)


def determinant(a: Any, row: int, columns: tuple[int, ...]) -> Any:
    """That of the minor of the rows from `row` on and of these columns."""
    if len(columns) == 1:
        return a[row, columns[0]]
    total = 0.0
    for j, column in enumerate(columns):
        rest = columns[:j] + columns[j + 1 :]
        term = a[row, column] * determinant(a, row + 1, rest)
        total = total - term if j % 2 else total + term
    return total


def in_numpy(library: Library, n: int) -> Any:
    return library.value_and_grad(lambda a: determinant(a, 0, tuple(range(n))))


def in_torch(torch: Any, n: int) -> Any:
    objective = lambda a: determinant(a, 0, tuple(range(n)))
    return torch_value_and_grad(torch, objective)


def in_jax(library: Library, n: int) -> Any:
    """All permutations at once: the recursion would take minutes to compile."""
    orders = np.array(list(permutations(range(n))))
    above = np.triu(np.ones((n, n), bool), 1)
    inversions = np.sum((orders[:, :, None] > orders[:, None, :]) & above, axis=(1, 2))
    signs = 1.0 - 2.0 * (inversions % 2)
    jnp = library.np
    objective = lambda a: signs @ jnp.prod(a[np.arange(n), orders], axis=1)
    return library.value_and_grad(objective)
