"""The parts of the torture, and how much of each is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module

from .outcome import Outcome

# Each has `names(selection)`, what there is to try, and `trial(name)`, which tries one
PARTS = {
    "programs": "random NumPy programs against differences and JAX",
    "signatures": "random signatures and bad calls in each framework",
    "aliasing": "memory changed or shared behind the library's back",
    "killed": "runs that are killed and resumed, damaged files",
    "leaks": "bytes that a call leaves behind",
}


@dataclass(frozen=True)
class Selection:
    """What is tried: the parts, from which seed, and how many trials."""

    seed: int = 0
    parts: tuple[str, ...] = tuple(PARTS)
    programs: int = 2000
    signatures: int = 40  # for each framework and mode
    killed: int = 3  # times for each kind of run
    calls: int = 200  # whose memory is measured, of each entry
    frameworks: bool = True  # the engine alone if not
    program: int | None = None  # this one alone
    trial: str | None = None  # this one alone, of the part


QUICK = Selection(programs=100, signatures=3, killed=1, calls=40, frameworks=False)
HOUR = Selection(programs=20_000, signatures=400, killed=25, calls=1000)


def names(part: str, selection: Selection) -> Sequence[str]:
    if selection.trial is not None:
        return [selection.trial]
    return _module(part).names(selection)


def trial(part: str, selection: Selection) -> Callable[[str], Outcome]:
    return _module(part).trier(selection)


def _module(part: str):
    return import_module(f"benchmarks.torture.{part}")
