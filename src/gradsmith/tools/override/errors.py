"""Targets that were not changed, of which a user must know when a scope ends."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.errors import GradsmithError
from ...frameworks._intercept import Scope, Target

_NOTHING = "nothing that could be seen (NumPy's functions are, on tensors alone)"


def require_calls(
    scope: Scope, targets: Sequence[Target], where: str, notes: Sequence[str]
) -> None:
    """An error unless each target was called, and where its calls can be changed."""
    for target in targets:
        if target.key in scope.unreachable:
            raise _unreachable(target, scope)
    missed = [target for target in targets if not scope.called[target.key]]
    for target in missed:
        if target.key in scope.without_arrays:
            raise _without_arrays(target, scope)
    if missed:
        raise _never_called(missed, scope, where, notes)


def _unreachable(target: Target, scope: Scope) -> GradsmithError:
    return GradsmithError(
        f"{target.name} was run below Python (in compiled code, or as a part of a "
        f"larger operation) at {scope.unreachable[target.key]}, where its gradient "
        "can't be replaced: what was computed has the plain gradient there\n"
        "  what to do: override the function or layer that is called in this line"
    )


def _without_arrays(target: Target, scope: Scope) -> GradsmithError:
    return GradsmithError(
        f"{target.name} was called with no arrays at "
        f"{scope.without_arrays[target.key]}, so that nothing has a gradient there\n"
        "  expected: arrays, or tuples, lists, dicts or dataclasses of them\n"
        "  what to do: give it some (an array in place of a number, what is inside "
        "of another object), or omit this target"
    )


def _never_called(
    missed: list[Target], scope: Scope, where: str, notes: Sequence[str]
) -> GradsmithError:
    others = [name for name in scope.seen if "__" not in name]
    others[12:] = [f"and {len(others) - 12} more"] if len(others) > 12 else []
    names = ", ".join(target.name for target in missed)
    return GradsmithError(
        f"the target was never called {where}: {names}\n"
        f"  what was called: {', '.join(others) or _NOTHING}\n"
        f"{''.join(f'  {note}{chr(10)}' for note in notes)}"
        "  what to do: choose a target among these, or omit this one"
    )
