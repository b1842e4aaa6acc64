"""Results to make pages of: real ones, and one in which every word is an attack."""

from __future__ import annotations

import math
from dataclasses import asdict
from functools import cache
from html.parser import HTMLParser
from typing import Any

import numpy as np

import gradsmith as gs
from gradsmith.command.details.parts import LeftOut, details
from gradsmith.command.details.timing import Row, Timing
from gradsmith.command.results import Status, TaskOutcome
from gradsmith.tools.audit.model import Accuracy, Audit, Curve, Region
from gradsmith.tools.check.inputs import inputs_for
from gradsmith.tools.check.model import CheckReport, CheckRun, Finding, Verdict
from gradsmith.tools.check.samples import Samples
from gradsmith.tools.survival.result import Fate, Outcome, Survival

EVIL = (
    "</script><script>hacked=1</script><img src=x onerror=hacked=1>"
    "\"'&{{ 7*7 }}`<b>`{0}"
)


@gs.custom_gradient
def cube(x):
    return x**3, lambda dy: 3 * x**2 * dy


@gs.custom_gradient
def twice_too_much(x):
    return x**2, lambda dy: 4 * x * dy


@gs.custom_gradient
def product(a, b):
    return a @ b, lambda dy: (dy @ b.T, a.T @ dy)


def curve(n: int = 80) -> dict[str, Any]:
    """As an audit gives it: both sides of zero, with losses and infinities."""
    size = 10.0 ** np.linspace(-30, 30, n // 2)
    x = np.concatenate([-size[::-1], size])
    ulp = np.where(x > 100, np.inf, np.where(abs(x + 1) < 0.9, 5e4, 0.5))
    mean = np.minimum(ulp, 1e4) / 2
    return {"x": x.tolist(), "max_ulp": ulp.tolist(), "mean_ulp": mean.tolist()}


def accuracy(**more: Any) -> dict[str, Any]:
    """The error of a value or a gradient, as data."""
    return asdict(_accuracy(**more))


def _accuracy(**more: Any) -> Accuracy:
    shared: dict[str, Any] = {
        "max_ulp": 0.5, "slack": 0.0, "mean_ulp": 0.25, "mean_bits": 0.1, "beyond": 0.0,
        "worst_inputs": ("1.5", "-2.25"), "judged": 1000, "undecided": 0, "kinks": 0,
        "outside": 0, "curve": Curve(**curve()),
    }  # fmt: skip
    return Accuracy(**{**shared, **more})


def audit(words: str = "overflows to inf for x > 100", **more: Any) -> Audit:
    region = Region("overflow", "x > 100", words, 100.0, 1e30, 9, 0.1, 24.0)
    gradient = _accuracy(max_ulp=float("inf"), beyond=0.2, regions=(region,))
    shared: dict[str, Any] = {
        "operation": "cube", "framework": "NumPy", "version": "2.4", "dtype": "float32",
        "domain": (-1e30, 1e30), "arguments": ("x",), "exhaustive": False,
        "points": 999, "value": _accuracy(), "gradient": gradient,
        "gradients": {"x": gradient}, "notes": (words,), "seconds": 0.5,
    }  # fmt: skip
    return Audit(**{**shared, **more})


def outcome(report: CheckReport, name: str = "", **more: Any) -> TaskOutcome:
    """What the command line has of a report."""
    file, status = more.pop("file", "ops.py"), Status(report.verdict.value)
    return TaskOutcome(
        file, name or report.operation, report.framework, status, seconds=1.0,
        report=report.as_dict(), said=(report.document(),), **more,
    )  # fmt: skip


def checked(op: Any, *args: Any, **more: Any) -> TaskOutcome:
    """What the command line would have of an operation."""
    todo = details(
        op, inputs_for(op, args, {}, seed=0)[0], framework=None, seed=0, thorough=False
    )
    parts = {name: todo[name]() for name in ("samples", "timing")}
    parts["survival"] = gs.survives(op, *args, only=["grad", "jvp"])
    found = outcome(gs.check(op, *args))
    for name, part in (parts | more).items():
        found = found.having(name, part)
    return found


def evil() -> TaskOutcome:
    finding = Finding(*[EVIL] * 6, 1.0, math.inf, None, EVIL)
    check = CheckRun(EVIL, EVIL, Verdict.WRONG, None, EVIL)
    report = CheckReport(
        EVIL, EVIL, EVIL, Verdict.WRONG, (finding,), (check,), (EVIL,), seed=0
    )
    words = dict.fromkeys(("message", "details", "output"), EVIL)
    found = outcome(report, EVIL, file=f"{EVIL}.py", **words)
    lost = Survival(EVIL, EVIL, EVIL, (Outcome(EVIL, Fate.DROPPED, EVIL),), EVIL)
    points = {
        name: [1.0, "nan"] for name in ("analytic", "low", "high", "gap", "error")
    }
    parts = {
        "survival": lost,
        "audit": audit(EVIL, operation=EVIL, gradients={EVIL: _accuracy()}),
        "samples": Samples(
            "elements", [EVIL, EVIL], place=[EVIL, EVIL], beyond=1, note=EVIL, **points
        ),
        "timing": Timing((Row(EVIL, 1e-4, 2e-4, 5),), EVIL, ""),
        "skipped": LeftOut(EVIL, EVIL),
    }
    for name, part in parts.items():
        found = found.having(name, part)
    return found


def failed() -> TaskOutcome:
    return TaskOutcome(
        "broken.py", "", "", Status.FAILED, "took longer than 5 s",
        "It was here:\n  line 3", seconds=5.0,
    )  # fmt: skip


@cache
def results() -> tuple[TaskOutcome, ...]:
    x = np.array([-1.5, -0.25, 0.5, 2.0])
    square = np.arange(1.0, 7.0).reshape(2, 3)
    return (
        checked(cube, x, audit=audit()),
        checked(product, square, square.T, audit=LeftOut("The audit", "for a reason")),
        failed(),
        checked(twice_too_much, x),
    )


class Tree(HTMLParser):
    """The elements of a page: their attributes, and where they stand."""

    VOID = ("meta", "link", "input", "br", "img")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, Any], tuple[str, ...]]] = []
        self.words: list[tuple[str, str]] = []
        self.path: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, dict(attrs), tuple(self.path)))
        if tag not in self.VOID:
            self.path.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.path.pop() == tag, (tag, self.path)

    def handle_data(self, data: str) -> None:
        self.words.append((self.path[-1] if self.path else "", data))

    def all(self, tag: str) -> list[dict[str, Any]]:
        return [attributes for name, attributes, _ in self.elements if name == tag]

    @property
    def text(self) -> str:
        return "".join(w for tag, w in self.words if tag not in ("script", "style"))
