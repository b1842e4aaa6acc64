"""How long value and gradient take by the rule, and by autodiff of the body."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from ...core import trees
from ...core.progress import without_warnings
from ...report.figures import times
from ...report.result import Cell, Document, Figure, Result
from ...tools.check.problem import NativeFunction, Problem, floating
from ...tools.check.sizes import resized

BUDGET = 0.4  # seconds for each size
LEAST, MOST = 5, 300  # runs of each
LARGER = 8  # times as many elements are another size

Run = Callable[[], list[Any]]


@dataclass(frozen=True)
class Row:
    """Seconds for one size of inputs."""

    inputs: str
    rule: float
    autodiff: float | None
    runs: int


@dataclass(frozen=True)
class Timing(Result):
    """The rule beside autodiff of the body, or why there is no autodiff."""

    rows: tuple[Row, ...]
    how: str
    without: str

    @property
    def ok(self) -> bool:
        """True: being slow is not wrong."""
        return True

    def document(self) -> Document:
        said = [
            f"{times(row.rule, row.autodiff)} as autodiff of the body for {row.inputs}"
            for row in self.rows
            if row.autodiff is not None
        ]
        words = self.without or "; ".join(said)
        figure = Figure("time", self.as_dict(), words)
        last = self.rows[-1]
        cells = () if last.autodiff is None else (
            Cell("Beside autodiff", times(last.rule, last.autodiff),
                 last.autodiff / last.rule, meaning="Value and gradient by the rule, "
                 "beside autodiff of the body"),
        )  # fmt: skip
        return Document(self.how, (figure,), title="Time", remark=words, cells=cells)


def timing(problem: Problem) -> Timing:
    """Seconds by the rule and by autodiff, for the given inputs and larger ones.

    Both run in turns, so that whatever else the machine does slows both.
    """
    with without_warnings(), np.errstate(all="ignore"):
        body, why = _body(problem)
        rows = tuple(_measured(each, body) for each in _sizes(problem))
    how = (
        f"value and gradient, {_mode(problem)}; median of at least "
        f"{min(row.runs for row in rows)} runs, in turns"
    )
    return Timing(rows, how, why)


def _body(problem: Problem) -> tuple[Any, str]:
    """The body if autodiff differentiates it, else why not."""
    body = problem.info.body
    if body is None:
        return None, "its body is unknown or not traced: no autodiff to compare with"
    try:
        found = _run(problem, body)()
    except Exception as error:
        words = str(error).strip().partition("\n")[0]
        return None, f"autodiff of the body fails: {type(error).__name__}: {words}"
    if all(g is None for g in found):
        return None, "autodiff of the body finds no gradient"
    return body, ""


def _mode(problem: Problem) -> str:
    return "compiled, each once" if problem.calculus.compiles else "eager"


def _sizes(problem: Problem) -> Iterator[Problem]:
    yield problem
    n = sum(x.size for x in problem.xs)
    for _, larger in resized(problem, np.random.default_rng(0)):
        if sum(x.size for x in larger.xs) >= LARGER * n and _runs(larger):
            yield larger
            return


def _runs(problem: Problem) -> bool:
    try:
        _run(problem, problem.info.call)()
    except Exception:
        return False
    return True


def _measured(problem: Problem, body: Any) -> Row:
    runs = [_run(problem, problem.info.call)]
    if body is not None:
        runs.append(_run(problem, body))
    measured = _in_turns(runs)
    rule, *other = map(median, measured)
    autodiff = other[0] if other else None
    return Row(_described(problem), rule, autodiff, len(measured[0]))


def _in_turns(runs: Sequence[Run]) -> list[list[float]]:
    for run in (*runs, *runs):  # compilers, caches
        run()
    kept: list[list[float]] = [[] for _ in runs]
    start = time.perf_counter()
    while len(kept[0]) < LEAST or (
        len(kept[0]) < MOST and time.perf_counter() - start < BUDGET
    ):
        for run, seconds in zip(runs, kept, strict=True):
            begun = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - begun)
    return kept


def _run(problem: Problem, call: Any) -> Run:
    """Value and gradient on arrays of the framework, which are made once."""
    arrays, dtypes = problem.arrays, problem.dtypes
    wide = any(name in ("float64", "complex128") for name in dtypes)
    precision = "float64" if wide else dtypes[0]
    fn = _direct(problem, call)
    with arrays.precision(precision):
        xs = problem.to_native(problem.xs)
        ys = problem.calculus.value(fn, xs)
        dys = [arrays.array(np.ones(y.shape), arrays.dtype_name(y)) for y in ys]

    def run() -> list[Any]:
        with arrays.precision(precision):
            _, pull = problem.calculus.vjp(fn, xs)
            return [None if g is None else arrays.numpy(g) for g in pull(dys)]

    return run


def _direct(problem: Problem, call: Any) -> Any:
    """From a list of arrays to one, with little beside the call itself."""
    args, kwargs = problem.inputs
    arrays = [x for x in trees.leaves(problem.inputs) if isinstance(x, np.ndarray)]
    if kwargs or len(arrays) != len(args) or len(args) != len(problem.perturbed):
        typed = list(zip(problem.names, problem.dtypes, strict=True))
        return NativeFunction(
            call, problem.arrays, problem.inputs, typed, problem.frozen
        )

    def fn(xs: Any) -> list[Any]:
        y = call(*xs)
        return floating(y) if type(y) in (tuple, list, dict) else [y]

    return fn


def _described(problem: Problem) -> str:
    pairs = zip(problem.perturbed, problem.xs, problem.dtypes, strict=False)
    return ", ".join(f"{name} {x.shape} {dtype}" for name, x, dtype in pairs)
