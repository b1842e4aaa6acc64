"""What is collected while an operation is checked."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .model import Finding, Look, Verdict
from .problem import Problem


@dataclass
class Session:
    """One check under way: the problem, where randomness comes from, what was found."""

    problem: Problem
    seed: int
    findings: list[Finding] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    # (low, high) of each array that is moved, None for no bound; empty: none has any
    bounds: tuple[tuple[float | None, float | None], ...] = ()

    def random(self, name: str) -> np.random.Generator:
        """A generator of its own for each purpose, so that none disturbs another."""
        return np.random.default_rng([self.seed, *name.encode()])

    def found(self, finding: Finding) -> None:
        self.findings.append(finding)

    def looked(
        self,
        what: str,
        scenario: str,
        verdict: Verdict,
        resolution: float | None = None,
        detail: str = "",
    ) -> None:
        self.looks.append(Look(what, scenario, verdict, resolution, detail))

    def note(self, words: str) -> None:
        if words not in self.notes:
            self.notes.append(words)

    @property
    def verdict(self) -> Verdict:
        if self.findings:
            return Verdict.WRONG
        if any(look.verdict is Verdict.RIGHT for look in self.looks):
            return Verdict.RIGHT
        return Verdict.INCONCLUSIVE
