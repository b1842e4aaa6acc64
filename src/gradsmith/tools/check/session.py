"""What is collected while the checks run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from textwrap import shorten
from typing import Any

import numpy as np

from .flat import EPS
from .grade import NONLINEAR, declaration, is_surrogate, solved_to
from .model import GIVEN, PART, CheckRun, Finding, Verdict
from .problem import Problem, Unclipped, named_leaves

MOST_LETTERS = 60  # of an argument that is no array


@dataclass
class Session:
    """One call of `check`: the problem, the source of randomness, what was found."""

    problem: Problem
    seed: int
    findings: list[Finding] = field(default_factory=list)
    limits: list[Finding] = field(default_factory=list)
    checks: list[CheckRun] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    undecided: bool = False  # and a note says why
    recorded: Callable[[], None] | None = None  # called when a check is done
    pending: list[str] = field(default_factory=list)  # checks that were not run yet
    more: Callable[[], Iterable[Problem]] = tuple  # inputs that the caller gives
    declared: bool = False  # surrogates inside
    solves: bool = False  # something by iteration, to some accuracy
    took: float = 0.0  # seconds, the first evaluation
    is_hurried: bool = False  # the first evaluation took long, perhaps to be compiled
    is_costly: bool = False  # it takes much of the time to be compiled for each dtype
    at: Problem | None = None  # what is looked at now
    wrong_at: Problem | None = None  # what the first finding was about
    unclipped: Unclipped | None = None  # of a rule that clips dy
    signed: set[str] = field(default_factory=set)  # arguments of the given sign only
    in_no_time: Callable[[], None] | None = None  # what to say if the time is up now

    def random(self, name: str) -> np.random.Generator:
        """A generator of its own for each purpose, so that none disturbs another."""
        return np.random.default_rng([self.seed, *name.encode()])

    def found(self, finding: Finding) -> None:
        self.wrong_at = self.wrong_at or self.at
        finding = self._with_inputs(finding)
        if is_surrogate(finding):
            linear = finding.diagnosis not in NONLINEAR
            how = declaration(self.problem.info, linear=linear)
            finding = replace(finding, repair=f"{finding.repair}: {how}")
        self.findings.append(finding)
        self.record(finding.what, finding.scenario or "", Verdict.WRONG)

    def limit(self, finding: Finding) -> None:
        """It is right, but for this; once for each kind, argument and message.

        Of those that differ in their digits alone it is the one on the given inputs, or
        else the least accurate.
        """
        finding = self._with_inputs(finding)
        alike = [each for each in self.limits if _key(each) == _key(finding)]
        for other in alike:
            was_given = other.scenario in (None, GIVEN, PART)
            if not was_given and (other.error or 0.0) < (finding.error or 0.0):
                self.limits[self.limits.index(other)] = finding
        if not alike:
            self.limits.append(finding)
        self.record(finding.what, finding.scenario or "", Verdict.LIMITED)

    def _with_inputs(self, finding: Finding) -> Finding:
        """With the values of all arguments, if we made them up."""
        if self.at is None or finding.scenario in (None, GIVEN, PART):
            return finding
        return replace(finding, inputs=values_of(self.at))

    def record(
        self,
        what: str,
        scenario: str,
        verdict: Verdict,
        resolution: float | None = None,
        detail: str = "",
    ) -> None:
        at = self.at
        dtype = "" if at is None else ", ".join(dict.fromkeys(at.dtypes))
        scale = None if at is None else scale_of(at)
        self.checks.append(
            CheckRun(what, scenario, verdict, resolution, detail, dtype, scale)
        )
        if self.recorded is not None:
            self.recorded()

    def note(self, words: str) -> None:
        if words not in self.notes:
            self.notes.append(words)

    def solved_to(self, resolution: float) -> float:
        """The accuracy of what is solved by iteration, by what differences resolve."""
        if not self.solves:
            return 0.0
        dtypes = (self.at or self.problem).dtypes
        return solved_to(resolution, max(EPS.get(name, 1.0) for name in dtypes))

    def give_up(self, why: str) -> None:
        """There is no verdict, for a reason."""
        self.undecided = True
        self.note(why)

    def is_wrong(self, argument: str | None = None) -> bool:
        """Whether there is a finding already, for an argument or any."""
        return any(argument in (None, each.argument) for each in self.findings)

    def has_found(self, *whats: str) -> bool:
        """Whether there are findings of some kinds, from which others would follow."""
        return any(finding.what in whats for finding in self.findings)

    @property
    def verdict(self) -> Verdict:
        if self.findings:
            on_purpose = all(map(is_surrogate, self.findings))
            return Verdict.SURROGATE if on_purpose else Verdict.WRONG
        if self.undecided:
            return Verdict.UNKNOWN
        info = self.problem.info
        if info.surrogate is not None or not info.linear or self.declared:
            return Verdict.DECLARED
        return Verdict.LIMITED if self.limits else Verdict.RIGHT

    @property
    def resolution(self) -> float | None:
        """The smallest relative error that would have been seen on the given inputs."""
        first = [check for check in self.checks if check.what == "first order"]
        return first[0].resolution if first and not self.findings else None


def scale_of(problem: Problem) -> tuple[float, float] | None:
    """The least and the greatest magnitude of the inputs, but for zeros."""
    sizes = np.concatenate([np.abs(x).ravel() for x in problem.xs] or [np.zeros(0)])
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    return (float(sizes.min()), float(sizes.max())) if sizes.size else None


def values_of(problem: Problem) -> str:
    """The values of all arguments, for people to read."""
    named = named_leaves(problem.info, *problem.inputs)
    return "; ".join(f"{name} = {_shown(x)}" for name, x in named)


def _shown(x: Any) -> str:
    if not isinstance(x, np.ndarray):
        return shorten(repr(x), MOST_LETTERS, placeholder="...")
    options: Any = {"precision": 6, "threshold": 24, "edgeitems": 3, "separator": ", "}
    return " ".join(np.array2string(x, **options).split())


def _key(finding: Finding) -> tuple[str, str | None, str]:
    return finding.what, finding.argument, re.sub(r"-?\d+", "", finding.message)
