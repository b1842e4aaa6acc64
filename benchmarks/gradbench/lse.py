"""The logarithm of a sum of exponentials, with its maximum taken out."""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.gradbench.libraries import Library, torch_value_and_grad

SIZES = ({"n": 2_500}, {"n": 160_000})
VARIABLES = 1


def inputs(rng: Any, n: int) -> tuple[Any, ...]:
    return (rng.uniform(size=n),)


def logsumexp(np: Any, x: Any) -> Any:
    m = np.max(x)
    return m + np.log(np.sum(np.exp(x - m)))


def in_numpy(library: Library, n: int) -> Any:
    return library.value_and_grad(partial(logsumexp, library.np))


def in_torch(torch: Any, n: int) -> Any:
    return torch_value_and_grad(torch, partial(logsumexp, torch))
