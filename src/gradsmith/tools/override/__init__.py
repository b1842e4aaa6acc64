"""Replacing a gradient inside of a model that exists and is not edited."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from ...core.compilers import not_rewritten, not_traced
from ...core.errors import GradsmithError
from ...frameworks._intercept import (
    Scope,
    Target,
    begin,
    converted,
    end,
    open_scopes,
)
from .record import Change, OverrideRecord, require_calls
from .replacements import replacement_of
from .targets import model_of, operations, target_of

__all__ = ["Change", "Override", "OverrideRecord", "override"]


class Override:
    """Replaced gradients: in a `with` block, or in calls of a function.

    Made by `gs.override`. `record` says what was changed so far.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> def model(x):
    ...     return np.sum(np.tanh(x))
    >>> changed = gs.override(model, {np.tanh: lambda dy, y, x: 10 * dy})
    >>> gs.grad(changed)(np.zeros(2))
    array([10., 10.])
    >>> changed.record.count()
    1
    """

    def __init__(self, model: Any, targets: Mapping[Any, Any], linear: bool) -> None:
        self.model = model
        self.record = OverrideRecord()
        self._targets = [target_of(given) for given in targets]
        self._replacements = {
            target.key: replacement_of(target.name, value, linear, self.record)
            for target, value in zip(self._targets, targets.values(), strict=True)
        }
        self._open: list[Scope] = []  # of all threads and tasks

    def __enter__(self) -> OverrideRecord:
        if self.model is None:
            self._open.append(self._entered(None))
        else:
            known = model_of(self.model)
            if known is None:
                raise GradsmithError(
                    f"calls of {self.model!r} by other code can't be intercepted: "
                    "only a module or a layer can be the model of a `with`\n"
                    "  what to do: changed = gs.override(fn, {...}); changed(x)"
                )
            self._open.append(self._entered(known))
        return self.record

    def _entered(self, model: Target | None) -> Scope:
        known = (*self._targets, *([model] if model else ()))
        contexts = dict.fromkeys(c for target in known for c in target.contexts)
        held = model and model.held
        scope = Scope(self._replacements, held, (operations, *contexts))
        with ExitStack() as stack:
            stack.callback(end, scope)
            begin(scope)
            for context in scope.contexts:
                stack.enter_context(context())
            scope.interceptors = stack.pop_all()
        return scope

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        here = [scope for scope in self._open if scope in open_scopes()]
        scope = (here or self._open)[-1]
        self._open.remove(scope)
        self._leave(scope, failed=kind is not None)

    def _leave(self, scope: Scope, *, failed: bool) -> None:
        end(scope)
        scope.interceptors.close()
        if not failed:
            where = "in this scope" if self.model is None else "inside this model"
            require_calls(scope, self._targets, where, self.record.notes)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.model is None:
            raise GradsmithError(
                "this override has no function to call\n  what to do: "
                "gs.override(fn, {...}) for a function, or `with gs.override({...}):`"
            )
        scope = self._entered(None)
        try:
            y = converted(self.model)(*args, **kwargs)
        except BaseException:
            self._leave(scope, failed=True)
            raise
        self._leave(scope, failed=False)
        return y


not_traced(
    Override,
    "__init__",
    "__enter__",
    "__exit__",
    "__call__",
    reason="gs.override changes calls as they are made in Python: compile what is "
    "around",
)


@not_rewritten
def override(
    model: Any, targets: Mapping[Any, Any] | None = None, *, linear: bool = False
) -> Override:
    """Replace the gradient of operations, layers or functions that others call.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> def model(x):
    ...     return np.sum(np.tanh(x))
    >>> with gs.override({np.tanh: lambda dy, y, x: 10 * dy}) as record:
    ...     gs.grad(model)(np.zeros(2))
    array([10., 10.])
    >>> changed = gs.override(model, {np.tanh: lambda dy, y, x: 10 * dy})
    >>> gs.grad(changed)(np.zeros(2))
    array([10., 10.])
    >>> gs.grad(model)(np.zeros(2))
    array([1., 1.])

    In a `with` block it applies to all calls inside; if a model comes first, to the
    calls inside that model. `gs.override(fn, {...})` can be called like the function. A
    rule, `rule(dy, y, *arguments)`, replaces only the gradient; an operation replaces
    value and gradient. A target that was never called is an error.

    With `linear=True` the rules are linear in dy, and forward mode is their transpose;
    otherwise forward mode raises.

    Raises
    ------
    GradsmithError
        If the targets are not a dict, the model can't be called, or, at the end, a
        target was never called.
    """
    if targets is None:
        model, targets = None, model
    if not isinstance(targets, Mapping) or not targets:
        raise GradsmithError(
            f"override needs a dict from targets to rules, not {targets!r}\n"
            "  what to do: gs.override({F.relu: rule}) or "
            "gs.override(model, {F.relu: rule})"
        )
    if model is not None and not callable(model):
        raise GradsmithError(
            f"override needs a model that can be called, not {model!r}"
        )
    return Override(model, targets, linear)
