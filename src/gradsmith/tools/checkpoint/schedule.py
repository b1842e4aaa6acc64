"""When to store a state and when to recompute it: by checkpoint-schedules."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import comb
from typing import Any, NamedTuple

from ...core.errors import GradsmithError
from ...core.patching import patched
from ...frameworks._recompute import Action

_DEEPEST = 50  # blocks in blocks; each takes some twenty calls


class Piece(NamedTuple):
    """Steps that are recomputed as one: by the pieces of its body.

    A step that is recorded directly has no body.
    """

    start: int
    stop: int
    body: tuple[Piece, ...] = ()


@lru_cache(maxsize=8)
def actions(steps: int, ram: int, disk: int = 0) -> tuple[Action, ...]:
    """The schedule with the least number of steps; Revolve's, if nothing is on disk.

    >>> [action.kind for action in actions(2, 1)]
    ['advance', 'record', 'load', 'record']
    """
    library = _library()
    # With Numba installed the library compiles one small function: 6 s for 20 ms.
    compiled = library.multistage.n_advance
    plain = getattr(compiled, "py_func", compiled)
    with patched(library.multistage, n_advance=plain):
        schedule = library.MultistageCheckpointSchedule(steps, ram, disk)
        return tuple(_translated(library, schedule))


def forward_steps(steps: int, ram: int, disk: int = 0) -> int:
    """How many forward steps a gradient takes, the recomputed ones included.

    >>> forward_steps(1000, 20)
    3747
    """
    found = actions(steps, ram, disk)
    advanced = sum(a.stop - a.start for a in found if a.kind == "advance")
    return advanced + sum(action.kind == "record" for action in found)


def repetitions(steps: int, snapshots: int) -> int:
    """How often a step is recomputed at most: the least r with C(s + r, s) >= steps.

    >>> repetitions(1000, 20), repetitions(1000, 1)
    (3, 999)
    """
    r = 0
    while comb(snapshots + r, snapshots) < steps:
        r += 1
    return r


@lru_cache(maxsize=8)
def pieces(steps: int, ram: int) -> tuple[Piece, ...]:
    """The same schedule as a nest of blocks, each of which is checkpointed."""
    if repetitions(steps, ram) > _DEEPEST:
        enough = ram
        while repetitions(steps, enough) > _DEEPEST:
            enough += 1
        raise GradsmithError(
            f"checkpoint_scan: {steps} steps, snapshots={ram} are blocks in blocks, "
            f"{repetitions(steps, ram)} deep, which Python can't run\n"
            f"  expected: at most {_DEEPEST} (frameworks and higher orders need the "
            "nest; a first gradient on the embedded engine does not)\n"
            f"  what to do: snapshots={enough} or more"
        )
    return _nested(iter(actions(steps, ram)))


def _nested(rest: Iterator[Action]) -> tuple[Piece, ...]:
    """What is run until a step is recorded; each block is then unfolded, last first."""
    blocks: list[Piece] = []
    for action in rest:
        blocks.append(Piece(action.start, action.stop))
        if action.kind == "record":
            break
    for i in range(len(blocks) - 2, -1, -1):
        next(rest)  # the state is loaded
        blocks[i] = blocks[i]._replace(body=_nested(rest))
    return tuple(blocks)


def _translated(library: Any, schedule: Any) -> Iterator[Action]:
    places = {library.StorageType.RAM: "ram", library.StorageType.DISK: "disk"}
    for action in schedule:
        if isinstance(action, library.EndReverse):
            return
        if isinstance(action, library.Forward):
            kind = "record" if action.write_adj_deps else "advance"
            store = places[action.storage] if action.write_ics else ""
            yield Action(kind, action.n0, action.n1, store)
        elif isinstance(action, (library.Copy, library.Move)):
            last = isinstance(action, library.Move)
            yield Action("load", action.n, store=places[action.from_storage], last=last)


def _library() -> Any:
    try:
        import checkpoint_schedules
    except ImportError:
        raise GradsmithError(
            "gs.checkpoint_scan takes its schedules from checkpoint-schedules, which "
            "is not installed: pip install 'gradsmith[checkpoint]'"
        ) from None
    return checkpoint_schedules
