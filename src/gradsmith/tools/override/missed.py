"""Targets that were not changed, of which a user must know when a scope ends."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.errors import GradsmithError
from .scope import Scope, Target

_NOTHING = "nothing that could be seen (NumPy's functions are, on tensors alone)"


def require_calls(scope: Scope, targets: Sequence[Target], where: str) -> None:
    """An error unless each target was called, and where its calls can be changed."""
    for target in targets:
        if target.key in scope.hidden:
            raise _hidden(target, scope)
    missed = [target for target in targets if not scope.called[target.key]]
    for target in missed:
        if target.key in scope.bare:
            raise _without_arrays(target, scope)
    if missed:
        raise _never_called(missed, scope, where)


def _hidden(target: Target, scope: Scope) -> GradsmithError:
    return GradsmithError(
        f"{target.name} was run below Python (in TorchScript, or as a part of a larger "
        f"operation) at {scope.hidden[target.key]}, where its gradient can't be "
        "replaced: what was computed has the plain gradient there\n"
        "  what to do: override the function or layer that is called in this line"
    )


def _without_arrays(target: Target, scope: Scope) -> GradsmithError:
    return GradsmithError(
        f"{target.name} was called with no arrays at {scope.bare[target.key]}, so that "
        "nothing has a gradient there\n"
        "  expected: arrays, or tuples, lists, dicts or dataclasses of them\n"
        "  what to do: give it some (jnp.asarray(2.0) of a number, what is in it of "
        "another object), or leave this target away"
    )


def _never_called(missed: list[Target], scope: Scope, where: str) -> GradsmithError:
    others = [name for name in scope.seen if "__" not in name]
    others[12:] = [f"and {len(others) - 12} more"] if len(others) > 12 else []
    names = ", ".join(target.name for target in missed)
    return GradsmithError(
        f"the target was never called {where}: {names}\n"
        f"  what was called: {', '.join(others) or _NOTHING}\n"
        f"{''.join(f'  {note}{chr(10)}' for note in scope.record.notes)}"
        "  what to do: choose a target among these, or leave this one away"
    )
