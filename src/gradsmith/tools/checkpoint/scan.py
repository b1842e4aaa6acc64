"""gs.checkpoint_scan: a long loop whose gradient needs the memory of a few states."""

from __future__ import annotations

from typing import Any

from ...core import trees
from ...core.errors import GradsmithError
from .backends import framework_for, load
from .budget import count, snapshots_for
from .plan import Plan
from .states import Like, Step, size_of


def checkpoint_scan(
    step: Step,
    state: Any,
    steps: int,
    *,
    snapshots: int | None = None,
    budget: str | float | None = None,
    inputs: Any = None,
    disk: int = 0,
    folder: str | None = None,
) -> Any:
    """Return the state after `steps` steps; its gradient stores a few of the states.

    The others are computed again, by the schedule with the least number of steps.

    >>> import numpy as np
    >>> from gradsmith import grad
    >>> def loss(x):
    ...     x = checkpoint_scan(lambda x: x + 0.01 * np.sin(x), x, 100, snapshots=5)
    ...     return np.sum(x)
    >>> grad(loss)(np.array([0.0, np.pi])).round(4)
    array([2.7048, 0.366 ])

    The state is an array or a tree of arrays, and `step(state)` returns the next one:
    the same tree, shapes and dtypes. What the step captures gets its gradient too. It
    may be `step(state, i)` with the number of the step, or, with `inputs` (arrays that
    have one row for each step), `step(state, x)`.

    `snapshots` says how many states are stored, the first one included; or `budget`
    how much memory there is for them: "512 MB", or bytes. `disk` is how many more are
    stored in files, in `folder`; that is for the embedded engine.
    """
    if not callable(step):
        raise GradsmithError(
            f"checkpoint_scan was given a {type(step).__name__} as its step\n"
            "  expected: a function from a state to the next one\n"
            "  what to do: gs.checkpoint_scan(step, state, steps, snapshots=20)"
        )
    steps = count("steps", steps, 0)
    disk = count("disk", disk, 0)
    Like(state)
    ram = _snapshots(state, snapshots, budget)
    framework = framework_for(step, (state, inputs), {})
    backend = load(framework)
    if disk and framework != "numpy":
        raise GradsmithError(
            "disk= is for the embedded engine: a framework keeps its arrays in its own "
            "memory\n  what to do: leave it out, or run the scan on NumPy arrays"
        )
    rows = None if inputs is None else _rows(inputs, steps, backend)
    if not steps:
        return state
    plan = Plan(step, state, steps, rows=rows, ram=ram, disk=disk, folder=folder)
    return plan.like.rebuilt(backend.scan(plan))


def _snapshots(state: Any, snapshots: int | None, budget: Any) -> int:
    if (snapshots is None) == (budget is None):
        given = "neither" if snapshots is None else "both"
        raise GradsmithError(
            f"checkpoint_scan was given {given} of snapshots= and budget=\n"
            "  expected: one of them\n"
            "  what to do: snapshots=20 stores 20 states, budget='512 MB' what fits"
        )
    if snapshots is not None:
        return count("snapshots", snapshots, 1)
    return snapshots_for(budget, size_of(state))


def _rows(inputs: Any, steps: int, backend: Any) -> list[Any]:
    """One tree for each step."""
    columns = []
    for name, x in trees.leaves_with_names(inputs, "inputs"):
        shape = getattr(x, "shape", None)
        if not shape or shape[0] != steps:
            raise GradsmithError(
                f"checkpoint_scan: {name} has no row for each step\n"
                f"  expected: an array of shape ({steps}, ...)\n"
                f"  got: {type(x).__name__ if shape is None else f'shape {shape}'}"
            )
        columns.append(backend.unstacked(x))
    return [trees.unflatten(inputs, list(row)) for row in zip(*columns, strict=True)]
