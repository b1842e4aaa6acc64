"""gs.checkpoint and gs.checkpoint_scan: recompute in the backward pass, store less."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, ParamSpec, TypeVar, overload

from ...core import trees
from ...core.arrays import FRAMEWORKS, NUMPY
from ...core.compilers import not_rewritten
from ...core.errors import GradsmithError, type_of
from ...core.reach import framework_reached
from ...frameworks._recompute import COMPILERS
from .budget import count, snapshots_for
from .plan import Plan, States, Step, size_of

P = ParamSpec("P")
R = TypeVar("R")


@overload
def checkpoint(
    fn: None = None, /, *, verify: bool = False
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
@overload
def checkpoint(fn: Callable[P, R], /, *, verify: bool = False) -> Callable[P, R]: ...
def checkpoint(fn: Callable[..., Any] | None = None, /, *, verify: bool = False) -> Any:
    """Return a function that keeps only its arguments alive for the gradient.

    Intermediate values are recomputed in the backward pass. It works on the arrays of
    every framework, in both modes and to any order.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> f = gs.checkpoint(lambda x, scale=1.0: np.sum(np.tanh(np.sin(x) * scale)))
    >>> gs.grad(f)(np.zeros(2), scale=3.0)
    array([3., 3.])

    Any callable works: a method, a torch module, a Keras layer. Randomness is replayed.
    Anything else that makes a second run differ from the first (a counter, a file)
    makes the gradient wrong. With `verify` each call also runs without checkpointing,
    and raises if values or gradients differ; on the embedded engine it names the
    operation that differs first.

    Raises
    ------
    GradsmithError
        If it is given the value of a function instead of the function; with `verify`,
        when it is called, if a second run differs from the first.
    """
    if fn is None:
        return lambda fn: checkpoint(fn, verify=verify)
    if not callable(fn):
        raise GradsmithError(
            f"gs.checkpoint was given {type_of(fn)}\n"
            "  expected: a function (or a layer, a module) whose inside is recomputed\n"
            "  what to do: gs.checkpoint(fn)(x), not gs.checkpoint(fn(x))"
        )
    if not isinstance(verify, bool):
        raise GradsmithError(f"verify= is True or False, not {verify!r}")
    inner: Any = fn

    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        for is_compiling, run in COMPILERS:
            if is_compiling():
                return run(inner, args, kwargs, verify=verify)
        recompute = FRAMEWORKS[framework_reached(inner, args, kwargs)].recompute
        return recompute.checkpoint(inner, args, kwargs, verify=verify)

    return update_wrapper(not_rewritten(checkpointed), inner, updated=())


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

    It recomputes the others, by the schedule with the fewest steps.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> def loss(x):
    ...     x = gs.checkpoint_scan(lambda x: x + 0.01 * np.sin(x), x, 100, snapshots=5)
    ...     return np.sum(x)
    >>> gs.grad(loss)(np.array([0.0, np.pi])).round(4)
    array([2.7048, 0.366 ])

    The state is an array or a tree of arrays, and `step(state)` returns the next one:
    the same tree, shapes and dtypes. What the step captures gets its gradient too. It
    may be `step(state, i)` with the number of the step, or, with `inputs` (arrays that
    have one row for each step), `step(state, x)`.

    `snapshots` is the number of states to store, including the first one; or give
    `budget`, the memory for them ("512 MB", or bytes). On the embedded engine, `disk`
    more states are stored in files, in `folder`.

    Raises
    ------
    GradsmithError
        If step is not a function, not exactly one of snapshots and budget is given,
        inputs don't have one row for each step, the next state has another structure,
        or disk is given outside the embedded engine.
    """
    if not callable(step):
        raise GradsmithError(
            f"checkpoint_scan was given {type_of(step)} as its step\n"
            "  expected: a function from a state to the next one\n"
            "  what to do: gs.checkpoint_scan(step, state, steps, snapshots=20)"
        )
    steps = count("steps", steps, 0)
    disk = count("disk", disk, 0)
    States(state)
    framework = FRAMEWORKS[framework_reached(step, (state, inputs), {})]
    recompute = framework.recompute
    ram = _snapshots(state, snapshots, budget)
    if disk and framework.name != NUMPY:
        raise GradsmithError(
            "disk= is for the embedded engine: a framework keeps its arrays in its own "
            "memory\n  what to do: leave it out, or run the scan on NumPy arrays"
        )
    rows = None if inputs is None else _rows(inputs, steps, recompute)
    if not steps:
        return state
    plan = Plan(step, state, steps, rows=rows, ram=ram, disk=disk, folder=folder)
    return plan.states.rebuilt(recompute.scan(plan))


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


def _rows(inputs: Any, steps: int, recompute: Any) -> list[Any]:
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
        columns.append(recompute.unstack(x))
    return [trees.unflatten(inputs, list(row)) for row in zip(*columns, strict=True)]
