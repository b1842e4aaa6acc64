"""What `find_nan` found: the operation, its line, its inputs, and why."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.places import Place
from ...report.result import BAD, GOOD, Block, Code, Document, Fact, Item, Result
from .values import KINDS, Value


@dataclass(frozen=True)
class TrailStep:
    """An operation that NaN or inf went through on its way to the result."""

    operation: str
    phase: str
    kind: str
    where: Place | None


@dataclass(frozen=True)
class NanReport(Result):
    """The result of `find_nan`.

    `phase` says where the NaN or inf first appears: in the "forward" or "backward"
    pass, in an "argument", or in a "constant" that the function got from elsewhere.
    `where` is the line of the user's code, `inputs` and `outputs` are a few elements of
    what the operation was given and returned. `masked` says that a `where` (at `mask`)
    had taken the other branch. `trail` is the way to the result.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> report = gs.find_nan(lambda x: np.sum(np.log(x)), np.array([0.0, 1.0]))
    >>> report.found, report.kind, report.operation, report.phase
    (True, 'inf', 'np.log', 'forward')
    """

    function: str
    framework: str
    version: str
    found: bool = False
    kind: str | None = None
    operation: str | None = None
    phase: str | None = None
    where: Place | None = None
    inputs: tuple[Value, ...] = ()
    outputs: tuple[Value, ...] = ()
    masked: bool = False
    mask: Place | None = None
    explanation: str = ""
    repair: str = ""
    trail: tuple[TrailStep, ...] = ()
    reaches: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the value and all gradients are finite."""
        return not self.found

    def document(self) -> Document:
        blocks: list[Block] = []
        if self.where is not None:
            within = f", in {self.where.function}" if self.where.function else ""
            blocks.append(Code(f"{self.where}{within}", self.where.source))
        blocks += [Fact(label, text) for label, text in self._facts() if text]
        blocks += [Item("-", note) for note in self.notes]
        framework = f"{self.framework} {self.version}"
        remark = "the value and the gradients are finite" if self.ok else self._origin()
        return Document(
            f"{'✓' if self.ok else '✗'} {self.function} in {framework}: {remark}",
            tuple(blocks),
            GOOD if self.ok else BAD,
            title="NaN and inf",
            subject=self.function,
            framework=framework,
            verdict="finite" if self.ok else "not finite",
            remark=remark,
            limit="" if self.ok else remark,
            repair=self.repair,
        )

    def _origin(self) -> str:
        """What appears where, in a few words."""
        kind = KINDS[self.kind or "nan"]
        if self.phase == "argument":
            return f"{kind} was given, in {self.operation}"
        if self.phase == "constant":
            return f"{kind} came in as a constant, in {self.operation}"
        if self.operation is None:
            return f"{kind} in {', '.join(self.reaches)}"
        of = "in"
        if self.phase == "backward":
            sums = self.operation.startswith("the sum")
            of = "in the backward pass, in" if sums else "in the backward pass of"
        return f"{kind} first appears {of} {self.operation}"

    def _facts(self) -> list[tuple[str, str]]:
        """What there is to say, each with its label."""
        given = self.phase in ("argument", "constant")
        out = "; ".join(str(y) for y in self.outputs if y.indices)
        return [
            ("inputs", "; ".join(str(x) for x in self.inputs if x.indices)),
            ("outputs", "" if given else out),
            ("why", self.explanation),
            ("repair", self.repair),
            ("it reaches", ", ".join(self.reaches)),
        ]
