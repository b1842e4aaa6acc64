"""Results to make pages of: real ones, and one in which every word is an attack."""

from __future__ import annotations

from functools import cache
from html.parser import HTMLParser
from typing import Any

import numpy as np

import gradsmith as gs
from gradsmith.command.details.parts import details
from gradsmith.command.results import plain
from gradsmith.tools.check.inputs import inputs_for

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
    shared = {
        "max_ulp": 0.5, "slack": 0.0, "mean_ulp": 0.25, "mean_bits": 0.1, "beyond": 0.0,
        "worst_inputs": ["1.5", "-2.25"], "judged": 1000, "undecided": 0, "kinks": 0,
        "outside": 0, "regions": [], "curve": curve(), "wrong": False,
    }  # fmt: skip
    return {**shared, **more}


def audit(words: str = "overflows to inf for x > 100", **more: Any) -> dict[str, Any]:
    region = {
        "kind": "overflow", "where": "x > 100", "text": words, "low": 100.0,
        "high": 1e30, "points": 9, "share": 0.1, "bits": 24.0, "cause": None,
    }  # fmt: skip
    gradient = accuracy(max_ulp=float("inf"), beyond=0.2, regions=[region])
    shared = {
        "operation": "cube", "framework": "NumPy", "version": "2.4", "dtype": "float32",
        "domain": [-1e30, 1e30], "arguments": ["x"], "exhaustive": False, "points": 999,
        "value": accuracy(), "gradient": gradient, "gradients": {"x": gradient},
        "notes": [words], "seed": 0, "seconds": 0.5,
    }  # fmt: skip
    return {**shared, **more}


def result(op: Any, *args: Any, **more: Any) -> dict[str, Any]:
    """What the command line would have of an operation."""
    report = gs.check(op, *args)
    todo = details(
        op, inputs_for(op, args, {}, seed=0)[0], framework=None, seed=0, thorough=False
    )
    parts = {name: todo[name]() for name in ("samples", "timing")}
    parts["survival"] = gs.survives(op, *args, only=["grad", "jvp"]).as_dict()
    return plain(
        {
            "file": "ops.py", "name": op.name, "framework": report.framework,
            "status": report.verdict.value, "message": "", "details": "", "output": "",
            "text": str(report), "report": report.as_dict(), "more": parts | more,
            "seconds": 1.0,
        }
    )  # fmt: skip


def evil() -> dict[str, Any]:
    finding = dict.fromkeys(
        (
            "title",
            "what",
            "message",
            "argument",
            "output",
            "elements",
            "scenario",
            "repair",
        ),
        EVIL,
    )
    check = {"what": EVIL, "scenario": EVIL, "verdict": "wrong", "resolution": None}
    report = {
        "ok": False, "operation": EVIL, "framework": EVIL, "version": EVIL,
        "verdict": "wrong", "notes": [EVIL], "seed": 0, "resolution": None,
        "seconds": 0.0, "checks": [{**check, "detail": EVIL}],
        "findings": [{**finding, "error": 1.0, "noise": "inf", "diagnosis": None}],
    }  # fmt: skip
    outcome = {"transformation": EVIL, "verdict": "dropped", "detail": EVIL}
    columns = ("analytic", "low", "high", "gap", "error")
    points = {name: [1.0, "nan"] for name in columns}
    more = {
        "survival": {"outcomes": [outcome], "note": EVIL},
        "audit": audit(EVIL, operation=EVIL, gradients={EVIL: accuracy()}),
        "samples": {
            "kind": "elements", "argument": [EVIL, EVIL], "place": [EVIL, EVIL],
            "beyond": 1, "note": EVIL, **points,
        },
        "timing": {
            "rows": [{"inputs": EVIL, "rule": 1e-4, "autodiff": 2e-4, "runs": 5}],
            "how": EVIL, "without": "",
        },
        "lost": EVIL,
    }  # fmt: skip
    return {
        "file": f"{EVIL}.py", "name": EVIL, "framework": EVIL, "status": "wrong",
        "message": EVIL, "details": EVIL, "output": EVIL, "text": EVIL,
        "report": report, "more": more, "seconds": 0.1,
    }  # fmt: skip


def failed() -> dict[str, Any]:
    words = dict.fromkeys(("framework", "output", "text"), "")
    return {
        "file": "broken.py", "name": "", "status": "could not run",
        "message": "took longer than 5 s", "details": "It was here:\n  line 3",
        "report": None, "more": None, "seconds": 5.0, **words,
    }  # fmt: skip


@cache
def results() -> tuple[dict[str, Any], ...]:
    x = np.array([-1.5, -0.25, 0.5, 2.0])
    square = np.arange(1.0, 7.0).reshape(2, 3)
    return (
        result(cube, x, audit=plain(audit())),
        result(product, square, square.T, audit={"skipped": "for a reason"}),
        failed(),
        result(twice_too_much, x),
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
