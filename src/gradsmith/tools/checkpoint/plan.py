"""What a scan is to do, whatever arrays it is done on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core import trees
from .schedule import Action, Piece, actions, pieces
from .states import Like, Step, takes_number

Block = Callable[[list[Any], Callable[[list[Any]], list[Any]]], list[Any]]


class Plan:
    """The steps of a scan, on the leaves of its state, and how many to store."""

    def __init__(
        self,
        step: Step,
        state: Any,
        steps: int,
        *,
        rows: Sequence[Any] | None,
        ram: int,
        disk: int,
        folder: str | None,
    ) -> None:
        self.step = step
        self.call: Any = lambda step, *args: step(*args)  # how a framework calls it
        self.name = getattr(step, "__name__", type(step).__name__)
        self.like = Like(state)
        self.start = trees.leaves(state)
        self.steps = steps
        self.ram, self.disk, self.folder = ram, disk, folder
        self.rows = range(steps) if rows is None and takes_number(step) else rows

    def take(self, leaves: list[Any], i: int) -> list[Any]:
        """One step."""
        state = self.like.rebuilt(leaves)
        more = () if self.rows is None else (self.rows[i],)
        try:
            state = self.call(self.step, state, *more)
        except Exception as error:
            error.add_note(f"in step {i} of {self.steps} of a checkpoint_scan")
            raise
        return self.like.flat(state, i)

    def plainly(self, leaves: list[Any]) -> list[Any]:
        for i in range(self.steps):
            leaves = self.take(leaves, i)
        return leaves

    def actions(self) -> tuple[Action, ...]:
        return actions(self.steps, self.ram, self.disk)

    def in_blocks(self, block: Block) -> list[Any]:
        """All steps; `block(leaves, inner)` is `inner(leaves)`, checkpointed."""

        def run(leaves: list[Any], body: Sequence[Piece]) -> list[Any]:
            for piece in body:
                if piece.body:
                    inner = lambda leaves, body=piece.body: run(leaves, body)
                    leaves = block(leaves, inner)
                else:
                    leaves = self.take(leaves, piece.start)
            return leaves

        return run(self.start, pieces(self.steps, self.ram))
