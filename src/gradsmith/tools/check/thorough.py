"""The same gradient everywhere: compiled, vectorized, in other frameworks.

It is compared with the plain eager one, which the other looks are about, so that no
differences are needed. What a framework or an operation refuses is noted, not wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from ...core.arrays import FRAMEWORKS, title_of
from ...core.progress import silenced
from ...operations.info import of_operation
from .._inputs import info_of
from ..survival import Verdict as Survived
from ..survival import survives
from .flat import flat
from .kits import kit_for
from .model import Finding, Verdict
from .modes import modes_of
from .native import context, jittered, reason, signed
from .problem import Problem
from .session import Session

ROUNDINGS = 1024.0  # compilers rearrange, and each framework has functions of its own
BATCH = 3
_MODULES = {"tensorflow": "tensorflow", "jax": "jax", "torch": "torch"}


def look(session: Session, problem: Problem, scenario: str = "given") -> None:
    """Eager against compiled and vectorized, against other frameworks; survival."""
    plain = Plain(session, problem, scenario)
    if not plain.g.size:
        return
    with silenced():
        modes = modes_of(problem.framework)
        if modes is not None:
            _look_at_compiled(plain, modes)
            _look_at_mapped(plain, modes)
        if of_operation(problem.info.call) is not None:
            for name in FRAMEWORKS:
                _look_at_other(plain, name)
        _look_at_survival(session, problem, scenario)


class Plain:
    """The eager gradient, and what is compared with it."""

    def __init__(self, session: Session, problem: Problem, scenario: str) -> None:
        self.session, self.problem, self.scenario = session, problem, scenario
        self.random = session.random(f"thorough {scenario}")
        self.flat = flat(problem)
        found = problem.linear(problem.xs)
        self.dys = [signed(self.random, y.shape) for y in found.ys]
        self.g = self.vector(found.pull(self.dys))

    def vector(self, gradients: Sequence[np.ndarray | None]) -> np.ndarray:
        return self.flat.arguments.vector(gradients)

    def natives(self, modes: Any = None) -> tuple[list[Any], list[Any]]:
        """Arguments and upstream gradients as the framework's arrays."""
        problem, kit = self.problem, self.problem.kit
        xs = problem.given(problem.xs)
        ys = kit.value(problem.native, xs)
        pairs = zip(self.dys, ys, strict=True)
        return xs, [kit.array(dy, kit.dtype_name(y)) for dy, y in pairs]

    def compare(self, what: str, where: str, run: Callable[[], np.ndarray]) -> None:
        """What a mode gives against the eager gradient."""
        try:
            with context(self.problem):
                g = run()
        except Exception as error:
            self.session.note(f"not in {where}: {reason(error)}")
            return
        error, rounding = self._gap(g)
        if error <= rounding:
            self.session.looked(what, self.scenario, Verdict.RIGHT, detail=where)
            return
        words = f"{where} gives another gradient than the plain eager call"
        self.session.found(
            Finding(what, words, scenario=self.scenario, error=error, noise=rounding)
        )

    def _gap(self, g: np.ndarray) -> tuple[float, float]:
        eps = self.flat.eps
        with np.errstate(all="ignore"):
            both = np.isfinite(self.g)
            size = float(np.max(np.abs(self.g), where=both, initial=0.0)) or 1.0
            gap = np.where(both, np.abs(g - self.g), 0.0)
            error = float(np.max(np.where(np.isnan(gap), np.inf, gap), initial=0.0))
            if error <= ROUNDINGS * eps * size:
                return error / size, ROUNDINGS * eps
            xs = jittered(self.random, self.problem.xs, eps)
            moved = np.abs(self.vector(self.problem.linear(xs).pull(self.dys)) - self.g)
            noise = float(np.max(moved, where=np.isfinite(moved), initial=0.0))
        return error / size, ROUNDINGS * max(eps, noise / size)


def _look_at_compiled(plain: Plain, modes: Any) -> None:
    """With the backward outside of what is compiled, and inside."""
    problem, kit, name = plain.problem, plain.problem.kit, modes.NAMES["compiled"]

    def outside() -> np.ndarray:
        xs, dys = plain.natives()
        found = kit.vjp(modes.compiled(problem.native), xs)[1](dys)
        return plain.vector([None if g is None else kit.numpy(g) for g in found])

    def inside() -> np.ndarray:
        xs, dys = plain.natives()
        run = modes.compiled(lambda xs, dys: modes.gradient(problem.native, xs, dys))
        return plain.vector([kit.numpy(g) for g in run(xs, dys)])

    plain.compare("compiled", name, outside)
    plain.compare("compiled", f"{name} with the backward inside", inside)


def _look_at_mapped(plain: Plain, modes: Any) -> None:
    """Over a batch whose first element is the plain case, and the others are near."""
    problem, kit = plain.problem, plain.problem.kit

    def first_of_batch() -> np.ndarray:
        xs, dys = plain.natives()
        batch = [modes.stack([x, x * 0.75, x * 1.125][:BATCH]) for x in xs]
        upstream = [modes.stack([dy] * BATCH) for dy in dys]
        one = lambda xs, dys: modes.gradient(problem.native, list(xs), list(dys))
        found = modes.mapped(one, batch, upstream)
        return plain.vector([kit.numpy(g)[0] for g in found])

    plain.compare("vectorized", modes.NAMES["mapped"], first_of_batch)


def _look_at_other(plain: Plain, name: str) -> None:
    """The same definition in another framework that is installed."""
    problem = plain.problem
    module = _MODULES.get(name)
    if name == problem.framework or (module and find_spec(module) is None):
        return
    other = replace(
        problem,
        framework=name,
        kit=kit_for(name),
        info=info_of(problem.info.call, name),
    )

    def run() -> np.ndarray:
        return plain.vector(other.linear(other.xs).pull(plain.dys))

    plain.compare("frameworks", title_of(name), run)


def _look_at_survival(session: Session, problem: Problem, scenario: str) -> None:
    """Transformations that drop the rule in silence, or give something else."""
    args, kwargs = problem.inputs
    found = survives(problem.call, *args, framework=problem.framework, **kwargs)
    bad = [o for o in found.outcomes if not o.ok]
    refused = [o for o in found.outcomes if o.verdict is Survived.REFUSED]
    if refused:
        names = ", ".join(o.transformation for o in refused)
        session.note(f"refused with an error, so that you know: {names}")
    if not bad:
        number = f"{len(found.outcomes)} transformations"
        session.looked("survival", scenario, Verdict.RIGHT, detail=number)
        return
    if of_operation(problem.call) is None:
        # The rule itself may well be right: it is the framework that drops it.
        names = ", ".join(o.transformation for o in bad)
        session.note(
            f"{title_of(problem.framework)} drops the rule in silence under {names}; "
            "an "
            "operation of gs.custom_gradient or gs.operation keeps it"
        )
        return
    lines = [f"{o.verdict} under {o.transformation}: {o.detail}" for o in bad]
    session.found(
        Finding(
            "survival",
            "\n".join(["some transformations don't use the rule, in silence:", *lines]),
            scenario=scenario,
        )
    )
