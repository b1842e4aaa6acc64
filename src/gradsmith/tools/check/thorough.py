"""The same gradient everywhere: compiled, vectorized, in other frameworks.

It is compared with the eager one, which the other checks are about, so that no
differences are needed. What a framework or an operation refuses is noted, not wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...core.arrays import FRAMEWORKS
from ...core.errors import UnsupportedOperationError
from ...core.progress import without_warnings
from ...frameworks._protocol import Framework
from ...operations.info import of_operation
from .._inputs import info_of
from ..survival import Fate, survives
from .flat import flatten
from .model import Finding, Verdict
from .native import reason
from .numerics import jittered, largest, random_signed
from .problem import Problem
from .session import Session

ROUNDINGS = 1024.0  # compilers rearrange, and each framework has functions of its own
BATCH = 3


def check_thoroughly(session: Session, problem: Problem, scenario: str) -> None:
    """Eager against compiled and vectorized, against other frameworks; survival."""
    if problem.is_random:
        return  # each of them draws other numbers
    eager = EagerGradient(session, problem, scenario)
    if not eager.g.size:
        return
    with without_warnings():
        if problem.framework.has("compiled"):
            _check_compiled(eager)
            _check_vectorized(eager)
        if of_operation(problem.info.call) is not None:
            for framework in FRAMEWORKS.values():
                _check_other_framework(eager, framework)
        _check_survival(session, problem, scenario)


class EagerGradient:
    """The eager gradient, and what is compared with it."""

    def __init__(self, session: Session, problem: Problem, scenario: str) -> None:
        self.session, self.problem, self.scenario = session, problem, scenario
        self.random = session.random(f"thorough {scenario}")
        self.flat = flatten(problem)
        found = problem.linearize(problem.xs)
        self.dys = [random_signed(self.random, y.shape) for y in found.ys]
        self.g = self.vector(found.pull(self.dys))

    def vector(self, gradients: Sequence[np.ndarray | None]) -> np.ndarray:
        return self.flat.arguments.vector(gradients)

    def native(self) -> tuple[list[Any], list[Any]]:
        """Arguments and upstream gradients as the framework's arrays."""
        problem = self.problem
        xs = problem.to_native(problem.xs)
        ys = problem.calculus.value(problem.native, xs)
        return xs, problem.upstream_like(ys, self.dys)

    def back(self, gradients: Sequence[Any]) -> np.ndarray:
        """The framework's gradients as a vector."""
        return self.vector([self.problem.to_numpy(g) for g in gradients])

    def compare(self, what: str, where: str, run: Callable[[], np.ndarray]) -> None:
        """What a mode gives against the eager gradient."""
        try:
            with self.problem.precision():
                g = run()
        except Exception as error:
            self.session.note(f"not checked in {where}: {reason(error)}")
            return
        error, rounding = self._gap(g)
        if error <= rounding:
            self.session.record(what, self.scenario, Verdict.RIGHT, detail=where)
            return
        words = f"{where} gives another gradient than the eager call"
        self.session.found(
            Finding(what, words, scenario=self.scenario, error=error, noise=rounding)
        )

    def _gap(self, g: np.ndarray) -> tuple[float, float]:
        eps = self.flat.eps
        with np.errstate(all="ignore"):
            both = np.isfinite(self.g)
            size = largest(self.g) or 1.0
            gap = np.where(both, np.abs(g - self.g), 0.0)
            error = float(np.max(np.where(np.isnan(gap), np.inf, gap), initial=0.0))
            if error <= ROUNDINGS * eps * size:
                return error / size, ROUNDINGS * eps
            xs = jittered(self.random, self.problem.xs, eps)
            moved = self.vector(self.problem.linearize(xs).pull(self.dys))
            noise = largest(moved - self.g)
        return error / size, ROUNDINGS * max(eps, noise / size)


def _check_compiled(eager: EagerGradient) -> None:
    """With the backward outside of what is compiled, and inside."""
    problem, compiled = eager.problem, eager.problem.framework.compiled
    if not compiled.JIT:
        return

    def outside() -> np.ndarray:
        xs, dys = eager.native()
        vjp = problem.calculus.vjp
        return eager.back(vjp(compiled.jit(problem.native), xs)[1](dys))

    def inside() -> np.ndarray:
        return eager.back(compiled.jit(_gradient(problem))(*eager.native()))

    eager.compare("compiled", compiled.JIT, outside)
    eager.compare("compiled", f"{compiled.JIT} with the backward inside", inside)


def _check_vectorized(eager: EagerGradient) -> None:
    """Over a batch whose first element is the given input, and the others are near."""
    problem, compiled = eager.problem, eager.problem.framework.compiled
    if not compiled.VMAP:
        return

    def first_of_batch() -> np.ndarray:
        xs, dys = eager.native()
        stack = problem.arrays.stack
        batch = [stack([x, x * 0.75, x * 1.125][:BATCH]) for x in xs]
        upstream = [stack([dy] * BATCH) for dy in dys]
        found = compiled.vmap(_gradient(problem), batch, upstream)
        return eager.vector([problem.arrays.numpy(g)[0] for g in found])

    eager.compare("vectorized", compiled.VMAP, first_of_batch)


def _gradient(problem: Problem) -> Callable[[Any, Any], list[Any]]:
    """The gradients by xs and dys, as part of what is compiled or vectorized."""
    vjp, native = problem.calculus.vjp, problem.native
    return lambda xs, dys: vjp(native, list(xs), nested=True)[1](list(dys))


def _check_other_framework(eager: EagerGradient, framework: Framework) -> None:
    """The same definition in another framework that is installed."""
    problem = eager.problem
    if framework is problem.framework or not framework.is_installed:
        return
    info = info_of(problem.info.call, framework.name)
    other = replace(problem, framework=framework, info=info)

    def run() -> np.ndarray:
        return eager.vector(other.linearize(other.xs).pull(eager.dys))

    eager.compare("frameworks", framework.title, run)


def _check_survival(session: Session, problem: Problem, scenario: str) -> None:
    """Transformations that silently drop the rule, or give something else."""
    try:
        problem.framework.part("transformations")
    except UnsupportedOperationError as error:
        session.note(str(error))
        return
    args, kwargs = problem.inputs
    found = survives(problem.call, *args, framework=problem.framework.name, **kwargs)
    bad = [o for o in found.outcomes if not o.ok]
    refused = [o for o in found.outcomes if o.verdict is Fate.REFUSED]
    if refused:
        names = ", ".join(o.transformation for o in refused)
        session.note(f"refused with an error, not silently: {names}")
    if not bad:
        number = f"{len(found.outcomes)} transformations"
        session.record("survival", scenario, Verdict.RIGHT, detail=number)
        return
    if of_operation(problem.call) is None:
        # The rule itself may well be right: it is the framework that drops it.
        names = ", ".join(o.transformation for o in bad)
        session.note(
            f"{problem.framework.title} silently drops the rule under {names}; an "
            "operation of gs.custom_gradient or gs.operation keeps it"
        )
        return
    lines = [f"{o.verdict} under {o.transformation}: {o.detail}" for o in bad]
    session.found(
        Finding(
            "survival",
            "\n".join(["some transformations silently don't use the rule:", *lines]),
            scenario=scenario,
        )
    )
