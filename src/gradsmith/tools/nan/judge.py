"""From the results that are not finite to the operation that is to blame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .explain import explained
from .model import NanReport, TrailStep
from .origins import Origins, Step
from .values import KINDS

GIVEN = ("argument", "constant")


def judged(report: NanReport, origins: Origins, where: str) -> NanReport:
    """The report with what was found; `where` is how the framework calls `where`."""
    results = origins.results
    if not results:
        return replace(report, notes=(*report.notes, *harmless(origins)))
    reaches = tuple(result.name for result in results)
    first = min(results, key=lambda result: result.kind != "nan")
    kind = first.kind
    known = [r.step for r in results if r.step is not None and r.kind == kind]
    made = [s for s in origins.steps if s.phase not in GIVEN]
    if not known and not made:
        why = "no operation that we can see made it"
        return replace(report, found=True, kind=kind, reaches=reaches, explanation=why)
    step = known[0] if known else made[0]
    notes = () if known else ("the way from there to the result can't be followed",)
    chain = step.chain()
    origin = _origin(chain)
    why, repair = explained(origin, chain, where)
    return replace(
        report,
        found=True,
        kind=origin.kind,
        operation=origin.operation,
        phase=origin.phase,
        where=origin.place,
        inputs=origin.inputs,
        outputs=origin.outputs,
        masked=origin.masked,
        mask=origin.mask,
        explanation=why,
        repair=repair,
        trail=tuple(TrailStep(s.operation, s.phase, s.kind, s.place) for s in chain),
        reaches=reaches,
        notes=(*report.notes, *notes, *_given(origins, origin)),
    )


def _given(origins: Origins, origin: Step) -> list[str]:
    """The arguments that are not finite, beside the one that is to blame."""
    steps = [s for s in origins.steps if s.phase == "argument" and s is not origin]
    return [f"{step.inputs[0]} was given" for step in steps]


def _origin(chain: Sequence[Step]) -> Step:
    """The step that is to blame.

    A gradient's is the first of the backward pass: what the forward pass had made until
    then, the value survived. An inf that was given is not to blame for a NaN.
    """
    root = chain[0]
    if root.phase in GIVEN and root.kind == "nan":
        return root
    if chain[-1].phase == "backward":
        return next(step for step in chain if step.phase == "backward")
    if root.phase in GIVEN:
        return next((step for step in chain if step.kind == "nan"), root)
    return root


def harmless(origins: Origins) -> list[str]:
    """What is to be known of NaN and inf that did not reach any result."""
    arguments = [step for step in origins.steps if step.phase == "argument"]
    notes = [
        f"{step.inputs[0]} was given, and does not reach the results"
        for step in arguments
    ]
    made = [
        step for step in origins.steps if step.phase not in GIVEN and not step.parent
    ]
    if made:
        step = made[0]
        at = f" ({step.place})" if step.place else ""
        kind = KINDS[step.kind]
        notes.append(
            f"{step.operation}{at} makes {kind} on the way, which does not reach the "
            "results"
        )
    return notes
