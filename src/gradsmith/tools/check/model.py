"""What a check found: verdict, findings, notes, and what it could have seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, ClassVar, TypeVar

from ...core.errors import GradsmithError
from ...core.places import line_name
from ...report.figures import short
from ...report.result import (
    BAD,
    GOOD,
    LIMITED,
    OPEN,
    Block,
    Code,
    Document,
    Fact,
    Figure,
    Item,
    More,
    Result,
    Table,
)
from ...report.terminal import said

GIVEN = "the given inputs"
PART = "the beginning of the given inputs"
SHOWN = 12  # lines of a rule
NAMED = 4  # inputs


class Verdict(StrEnum):
    """Is the gradient right? From the best answer to the worst.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> report = gs.check(np.sin, np.array([1.0, 2.0]))
    >>> report.verdict is gs.Verdict.RIGHT, report.verdict.passes(strict=True)
    (True, True)
    """

    RIGHT = "right"
    DECLARED = "as declared"  # a surrogate, and declared to be one
    LIMITED = "right, with limits"
    SURROGATE = "surrogate"  # not the derivative, by its looks on purpose
    UNKNOWN = "could not tell"
    WRONG = "wrong"

    @property
    def symbol(self) -> str:
        return {"surrogate": "~", "could not tell": "?", "wrong": "✗"}.get(self, "✓")

    @property
    def tone(self) -> str:
        if self in (Verdict.SURROGATE, Verdict.UNKNOWN):
            return OPEN
        return {"wrong": BAD, "right, with limits": LIMITED}.get(self, GOOD)

    @property
    def sentence(self) -> str:
        """The verdict as a sentence."""
        words = {
            Verdict.SURROGATE: "the gradient is a surrogate, not the derivative",
            Verdict.UNKNOWN: "could not tell whether the gradient is right",
        }
        return words.get(self, f"the gradient is {self}")

    def passes(self, *, strict: bool = False) -> bool:
        """Whether a check with this verdict succeeds.

        A strict one accepts neither limits nor surrogates that nobody declared.
        """
        refused = [Verdict.UNKNOWN, Verdict.WRONG]
        refused += [Verdict.LIMITED, Verdict.SURROGATE] if strict else []
        return self not in refused


@dataclass(frozen=True)
class Finding:
    """Something that is wrong with a gradient, or a limit of a right one.

    `what` is the check that failed ("first order", "linearity", "shape", ...), and
    `message` says how. `error` is relative, and `noise` is the largest error that
    rounding could explain. `diagnosis` names the mistake ("sign", "factor",
    "transposed", ...) if correcting it was verified to help, and `repair` says what to
    do.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> @gs.custom_gradient
    ... def square(x):
    ...     return x * x, lambda dy: -2 * x * dy
    >>> report = gs.check(square, np.array([1.0, 2.0]))
    >>> finding = report.findings[0]
    >>> finding.what, finding.argument, finding.diagnosis
    ('first order', 'x', 'sign')
    >>> finding.repair
    'multiply the gradient by -1'
    """

    what: str
    message: str
    argument: str | None = None
    output: str | None = None
    elements: str | None = None
    scenario: str | None = None
    error: float | None = None
    noise: float | None = None
    diagnosis: str | None = None
    repair: str | None = None
    reproducer: str | None = None  # a script that shows it without us
    refused: bool = False  # there is no result that could be wrong, but an error
    inputs: str | None = None  # the values of all arguments, if we made them up

    @property
    def title(self) -> str:
        """What is wrong, with which argument, on which inputs."""
        places = [f"the gradient of {self.argument}" if self.argument else ""]
        places.append(f"for {self.output}" if self.output else "")
        places.append(f"with {self.scenario}" if self.scenario else "")
        where = " ".join(filter(None, places))
        if not where:
            return self.what
        return f"{self.what}{':' if self.argument else ''} {where}"

    @property
    def limit(self) -> str:
        """In one line, if it is a limit."""
        words, *more = self.message.splitlines()
        told = (line.strip() for line in more)
        facts = [line for line in told if line.startswith(("expected: ", "got: "))]
        words += f" ({'; '.join(facts)})" if facts else ""
        where = [self.argument and f"of {self.argument}", self.elements]
        if self.scenario and not self.scenario.endswith((GIVEN, PART)):
            if self.elements and " elements" in self.elements:
                where.pop()  # their numbers say nothing of inputs that are not shown
            where.append(f"with {self.scenario}")
        place = ", ".join(filter(None, where))
        return f"{self.what}{f' ({place})' if place else ''}: {words}"

    @property
    def lines(self) -> tuple[str | Fact, ...]:
        """How it is wrong, where, by how much, and what to do."""
        lines: list[str | Fact] = [*self.message.splitlines()]
        if self.elements:
            lines.append(Fact("where", self.elements))
        if self.error is not None and self.noise is not None:
            lines.append(
                f"off by {short(self.error)} of its size along random directions; "
                f"rounding would explain {self.noise:.1g}"
            )
        if self.inputs:
            lines.append(Fact("inputs", self.inputs))
        if self.repair:
            lines.append(Fact("repair", self.repair))
        return tuple(lines)


@dataclass(frozen=True)
class CheckRun:
    """A check that was run, on which inputs, and how closely.

    `resolution` is the smallest relative error that would have been seen, `dtype` what
    it was computed in, and `scale` the least and the greatest magnitude of the inputs.
    """

    what: str
    scenario: str
    verdict: Verdict
    resolution: float | None = None
    detail: str = ""
    dtype: str = ""
    scale: tuple[float, float] | None = None

    @property
    def where(self) -> str:
        """The inputs, and their magnitudes."""
        if self.scale is None:
            return self.scenario
        low, high = map(short, self.scale)
        return f"{self.scenario} ({low if low == high else f'{low} to {high}'})"


@dataclass(frozen=True)
class RuleSource:
    """Where the rule is written, and its text."""

    file: str
    line: int
    text: str


@dataclass(frozen=True)
class CheckReport(Result):
    """The result of `check`.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> @gs.custom_gradient
    ... def square(x):
    ...     return x * x, lambda dy: -2 * x * dy
    >>> report = gs.check(square, np.array([1.0, 2.0]))
    >>> report.verdict, report.ok
    (<Verdict.WRONG: 'wrong'>, False)
    >>> report.findings[0].diagnosis
    'sign'
    """

    operation: str
    framework: str
    version: str
    verdict: Verdict
    findings: tuple[Finding, ...]
    checks: tuple[CheckRun, ...]
    notes: tuple[str, ...]
    seed: int
    resolution: float | None = None
    seconds: float = 0.0
    limits: tuple[Finding, ...] = ()  # within which it is right
    strict: bool = False
    rule: RuleSource | None = None

    # The comparison that `plot` draws, made when it is asked for; no part of the data
    _samples: ClassVar[Callable[[], Result] | None] = None

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_samples"}

    def plot(self, *, ax: Any = None) -> Any:
        """Draw the gradient by the rule and by differences; return Matplotlib's Axes.

        Of an elementwise operation they are drawn over its inputs, of any other by
        elements; where they disagree, a cross says so. If the gradient is wrong on
        inputs that the check has made, these are shown. The operation is run again.
        `ax` are the Axes to draw on.
        """
        from ...report.plots.axes import plot

        if self._samples is None:
            raise GradsmithError(
                f"this report on {self.operation} has no operation to plot: it was "
                "made in another process\n  what to do: call gs.check here"
            )
        figures = [
            b for b in self._samples().document().blocks if isinstance(b, Figure)
        ]
        if not figures:
            raise GradsmithError(
                f"there is nothing to plot: no gradient of {self.operation} could be "
                "compared with differences\n  what to do: print the report"
            )
        title = f"{self.operation} in {self.framework}: {self.verdict.sentence}"
        remark = self.findings[0].message.partition("\n")[0] if self.findings else ""
        return plot(figures[:1], ax, title=title, remark=remark)

    @property
    def ok(self) -> bool:
        """Whether the check succeeds: the verdict is not wrong, and there is one.

        A strict check accepts neither limits nor surrogates that nobody declared.
        """
        return self.verdict.passes(strict=self.strict)

    @property
    def headline(self) -> str:
        """The verdict in a line."""
        words = self.verdict.sentence
        is_right = self.verdict in (Verdict.RIGHT, Verdict.LIMITED)
        if is_right and self.resolution is not None:
            words += (
                f" (a relative error of {self.resolution:.0e} would have been seen)"
            )
        where = f"{self.operation} in {self.framework} {self.version}"
        return f"{self.verdict.symbol} {where}: {words}"

    def document(self) -> Document:
        mark = self.verdict.symbol
        blocks: list[Block] = [Item(mark, f.title, f.lines) for f in self.findings]
        blocks += [self._rule()] if self.rule is not None else []
        scripts = [f.reproducer for f in self.findings if f.reproducer]
        blocks += [Code("to reproduce it:", script) for script in scripts[:1]]
        blocks += [Item("limit:", f.limit) for f in _together(self.limits)]
        blocks += [Item("-", note) for note in self.notes]
        blocks.append(Fact("checks run", f"{self._checks_run()}; seed {self.seed}"))
        blocks.append(More(f"All checks: {len(self.checks)}", (self._table(),)))
        return Document(
            self.headline,
            tuple(blocks),
            self.verdict.tone,
            title="Gradient check",
            subject=self.operation,
            framework=f"{self.framework} {self.version}",
            verdict=self.verdict.value,
            symbol=mark,
            remark=self.remark,
            repair=next((f.repair or "" for f in self.findings), ""),
        )

    def _rule(self) -> Block:
        """The rule with its place; that of a right one is shown on demand."""
        assert self.rule is not None
        place = f"the rule: {line_name(self.rule.file, self.rule.line)}"
        code = Code(place, "\n".join(self.rule.text.splitlines()[:SHOWN]))
        return code if self.findings else More(place, (code,))

    @property
    def remark(self) -> str:
        """The most important thing in a line."""
        if self.findings:
            first = self.findings[0]
            where = f"{first.argument}: " if first.argument else ""
            return where + first.message.partition("\n")[0]
        notes = [note.removeprefix("without an example; ") for note in self.notes]
        if self.verdict is Verdict.UNKNOWN:
            return next(iter(notes), "")
        if self.limits:
            return "but for: " + ", ".join(dict.fromkeys(f.what for f in self.limits))
        if self.resolution is not None:
            notes = [note for note in notes if "guessed" in note]
            notes.insert(0, f"an error of {self.resolution:.0e} would show")
        return "; ".join(notes)

    def _table(self) -> Table:
        rows = [
            (
                check.what,
                f"{check.verdict.symbol} {check.verdict}",
                ", ".join(filter(None, (check.where, check.detail))) or "-",
                check.dtype or "-",
                "-" if check.resolution is None else f"{check.resolution:.0e}",
            )
            for check in self.checks
        ]
        return Table(
            ("check", "verdict", "inputs", "in", "would show"), tuple(rows), right=(4,),
            caption=f"Checks of {self.operation}",
            tones=tuple(check.verdict.tone for check in self.checks),
        )  # fmt: skip

    def _checks_run(self) -> str:
        """What was compared, on which inputs, in which dtype, at which magnitudes."""
        if not self.checks:
            return "none"
        named = [check for check in self.checks if check.scenario]
        first = next(iter(named), self.checks[0])
        given = [c.what for c in self.checks if c.scenario in ("", first.scenario)]
        dtype = f" in {first.dtype}" if first.dtype else ""
        where = f" on {first.where}{dtype}" if first.where else ""
        words = [f"{', '.join(dict.fromkeys(given))}{where}"]
        elsewhere: dict[str, dict[str, None]] = {}
        for check in self.checks:
            if check.scenario not in ("", first.scenario):
                elsewhere.setdefault(check.what, {})[check.where] = None
        words += [f"{what} on {_listed([*each])}" for what, each in elsewhere.items()]
        return "; ".join(words)

    def as_dict(self) -> dict[str, Any]:
        """All of it in dicts, lists, strings and numbers; NaN and inf as strings."""
        found = super().as_dict()
        for name, findings in (("findings", self.findings), ("limits", self.limits)):
            for finding, each in zip(findings, found[name], strict=True):
                each |= {"title": finding.title, "lines": [*map(said, finding.lines)]}
                each |= {"limit": finding.limit} if name == "limits" else {}
        return found


def _together(limits: Sequence[Finding]) -> list[Finding]:
    """What holds of several arguments alike, once; a model may have many."""
    groups: dict[Any, list[Finding]] = {}
    for f in limits:
        groups.setdefault((f.what, f.elements, f.scenario, f.message), []).append(f)
    return [
        replace(same[0], argument=_listed([f.argument or "" for f in same]) or None)
        for same in groups.values()
    ]


def _listed(names: list[str]) -> str:
    """Some of them, and how many more there are."""
    more = [f"{len(names) - NAMED} more"] if len(names) > NAMED + 1 else []
    *first, last = [*names[:NAMED], *more] if more else names
    return f"{', '.join(first)} and {last}" if first else last


T = TypeVar("T", Finding, CheckRun)


def with_samples(
    report: CheckReport, samples: Callable[[], Result] | None
) -> CheckReport:
    """The same report with what its plot draws."""
    object.__setattr__(report, "_samples", samples)
    return report


def merged(reports: Sequence[CheckReport], names: Sequence[str]) -> CheckReport:
    """One report for several examples: the worst verdict, and all findings.

    `names` are those of the examples.
    """
    if len(reports) == 1:
        return reports[0]
    worst = max(reports, key=lambda report: list(Verdict).index(report.verdict))
    pairs = list(zip(reports, names, strict=True))
    seen = [r.resolution for r in reports if r.resolution is not None]
    report = replace(
        reports[0],
        verdict=worst.verdict,
        findings=tuple(_named(f, name) for r, name in pairs for f in r.findings),
        limits=tuple(_named(f, name) for r, name in pairs for f in r.limits),
        checks=tuple(_named(c, name) for r, name in pairs for c in r.checks),
        notes=tuple(_notes(pairs)),
        resolution=max(seen, default=None),
        seconds=sum(r.seconds for r in reports),
    )
    return with_samples(report, worst._samples)


def _named(found: T, name: str) -> T:
    where = f"{name}, {found.scenario}" if found.scenario else name
    return replace(found, scenario=where)


def _notes(pairs: list[tuple[CheckReport, str]]) -> list[str]:
    """Those that hold for all examples once, the others with the example's name."""
    notes = [note for report, _ in pairs for note in report.notes]
    shared = [n for n in dict.fromkeys(notes) if notes.count(n) == len(pairs)]
    own = [f"{name}: {n}" for r, name in pairs for n in r.notes if n not in shared]
    return shared + own
