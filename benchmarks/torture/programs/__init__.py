"""Random NumPy programs: their gradients against differences and against JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from benchmarks._peers import is_installed

if TYPE_CHECKING:
    from ..outcome import Outcome
    from ..parts import Selection

IN_JAX = 10  # one in so many is compared with JAX as well, if it can be


def names(selection: Selection) -> list[str]:
    if selection.program is not None:
        return [f"{selection.seed}:{selection.program}"]
    return [f"{selection.seed}:{number}" for number in range(selection.programs)]


def trier(selection: Selection) -> Callable[[str], Outcome]:
    from .judge import judge

    alone = selection.program is not None

    def trial(name: str) -> Outcome:
        seed, number = map(int, name.split(":"))
        jax = is_installed("jax") and (alone or number % IN_JAX == IN_JAX - 1)
        return judge(seed, number, jax=jax)

    return trial
