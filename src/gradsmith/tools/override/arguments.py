"""One call of a target: its arguments, and what of them a replacement is given."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from inspect import Parameter
from typing import Any

from ...core import trees
from ...core.arity import OPTIONS, POSITIONAL, arity_of, signature_of
from ...core.arrays import framework_of
from ...core.errors import GradsmithError
from ...frameworks._intercept import InterceptedCall

# Arguments that matter to neither the value nor the gradient
_IRRELEVANT = {"name", "inplace", "_stacklevel"}
_EMPTY, _EITHER = Parameter.empty, Parameter.POSITIONAL_OR_KEYWORD


class CallArguments:
    """The arguments of a call, with others in the places of its arrays if need be.

    NumPy's arrays beside a framework's are constants.
    """

    def __init__(self, call: InterceptedCall) -> None:
        self.target = call.name
        self.args = list(call.args)
        self.kwargs = kwargs = call.kwargs
        self.offered = call.offered or {}
        parameters = call.signature.parameters.values() if call.signature else ()
        self.defaults = {p.name: p.default for p in parameters}
        self.names = [p.name for p in parameters if p.kind in POSITIONAL]
        found = filter(None, map(framework_of, trees.leaves((self.args, kwargs))))
        self.framework = min({*found} - {"numpy"}, default="numpy")
        places = [*range(len(self.args)), *kwargs]
        self.places = [place for place in places if self.has_arrays(self._at(place))]

    def has_arrays(self, x: Any) -> bool:
        return any(framework_of(leaf) == self.framework for leaf in trees.leaves(x))

    def _at(self, place: int | str) -> Any:
        return self.kwargs[place] if isinstance(place, str) else self.args[place]

    @property
    def signature(self) -> inspect.Signature:
        """That of a function of the arrays alone."""
        names = [p if isinstance(p, str) else self._name(p) for p in self.places]
        return inspect.Signature([Parameter(n, _EITHER) for n in names])

    def _name(self, i: int) -> str:
        known = i < len(self.names) and self.names[i] not in OPTIONS
        return self.names[i] if known else f"argument_{i}"

    @property
    def arrays(self) -> list[Any]:
        """The arguments that are, or hold, arrays."""
        return [self._at(place) for place in self.places]

    def with_arrays(self, xs: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """All arguments, with others in the places of the arrays."""
        args, kwargs = [*self.args], {**self.kwargs}
        for place, x in zip(self.places, xs, strict=True):
            if isinstance(place, str):
                kwargs[place] = x
            else:
                args[place] = x
        return args, kwargs

    def for_replacement(
        self, fn: Callable[..., Any], before: int, xs: Sequence[Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """The arguments for `fn(*before, *args, **kwargs)`.

        What `fn` has a parameter for comes to that, by its name. Arrays come by
        position, and so does what the caller chose; what is the default anyway is left
        out.
        """
        known, own = arity_of(fn), [*signature_of(fn).parameters][before:]
        given_args, given_kwargs = self.with_arrays(xs)
        names = self.names + [""] * (len(given_args) - len(self.names))
        args: list[tuple[str, Any]] = []
        kwargs = {n: x for n, x in self.offered.items() if n in own}
        for name, x in [*zip(names, given_args, strict=False), *given_kwargs.items()]:
            array = self.has_arrays(x)
            idle = not array and self._is_idle(name, x)
            if not array and (name in own or (name and known.any_name and not idle)):
                kwargs[name] = x
            elif not idle:
                args.append((name, x))
        return self._placed(fn, before, args, kwargs)

    def _placed(
        self,
        fn: Callable[..., Any],
        before: int,
        given: list[tuple[str, Any]],
        kwargs: dict[str, Any],
    ) -> tuple[list[Any], dict[str, Any]]:
        """Arguments in the places that are free, with the named ones between them."""
        slots = [
            p for p in signature_of(fn).parameters.values() if p.kind in POSITIONAL
        ]
        taken = [p.name for p in slots[before:] if p.name not in OPTIONS]
        args: list[Any] = []
        for name, x in given:
            while len(args) < len(taken) and taken[len(args)] in kwargs:
                args.append(kwargs.pop(taken[len(args)]))
            if before + len(args) >= arity_of(fn).maximum:
                others = (pair for pair in given if not self.has_arrays(pair[1]))
                raise self._misfit(fn, *next(others, (name, x)))
            args.append(x)
        return args, kwargs

    def _is_idle(self, name: str, x: Any) -> bool:
        """Whether an argument is what it would be if nobody had given it."""
        default = self.defaults.get(name, _EMPTY)
        alike = type(x) is type(default) or {type(x), type(default)} == {int, float}
        same = alike and framework_of(x) is None and x == default
        return name in _IRRELEVANT or x is default or same

    def _misfit(self, fn: Any, name: str, x: Any) -> GradsmithError:
        shown = type(x).__name__ if framework_of(x) else repr(x)
        called = f"one of this name ({name})" if name else "one, after those it has"
        return GradsmithError(
            f"{self.target} is called with {name and name + '='}{shown}, for which its "
            f"replacement {getattr(fn, '__name__', fn)!r} has no parameter\n"
            f"  what to do: add {called}"
        )
