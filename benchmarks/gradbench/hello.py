"""The square of a number: what a call of a gradient costs."""

from __future__ import annotations

from typing import Any

from benchmarks.gradbench.libraries import Library, torch_value_and_grad

SIZES = ({},)
VARIABLES = 1


def inputs(rng: Any) -> tuple[Any, ...]:
    return (rng.uniform(1, 2, size=()),)


def square(x: Any) -> Any:
    return x * x


def in_numpy(library: Library) -> Any:
    return library.value_and_grad(square)


def in_torch(torch: Any) -> Any:
    return torch_value_and_grad(torch, square)
