"""How operations are called: by their signature, with the arrays found."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from inspect import Parameter
from types import MethodType
from typing import Any

from ..core import trees
from ..core.arity import POSITIONAL, arity_of, signature_of

_ONLY_BY_POSITION = Parameter.POSITIONAL_ONLY


class Signature:
    """The parameters of a function; positional and keyword calls are the same call.

    >>> signature = Signature(lambda x, axis=-1: x, is_array=lambda x: x == "X")
    >>> signature.bind((), {"x": "X"}).values
    ['X', -1]
    """

    def __init__(self, fn: Callable[..., Any], is_array: Callable[[Any], bool]) -> None:
        self.fn = fn
        self.is_array = is_array
        self.full = signature_of(fn)
        self.parameters = list(self.full.parameters.values())
        self.names = [p.name for p in self.parameters]
        self.defaults = [p.default for p in self.parameters]
        self.positional = sum(p.kind in POSITIONAL for p in self.parameters)
        self.required = self.defaults.count(Parameter.empty)
        # A method's object is static, also if it is a dataclass of arrays.
        self.static = int(self.names[:1] == ["self"])
        # An array that is a default is an argument like those that are given.
        self.array_defaults = {
            p.name
            for p in self.parameters
            if any(is_array(leaf) for leaf in trees.leaves(p.default))
        }
        self.is_simple = self.positional == len(self.names) and not self.array_defaults
        # How many arguments by position make a complete call that needs no binding
        most = self.positional + 1 if self.is_simple else 0
        self.complete_counts = range(self.required, most)

    def by_position(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The same call without keywords, if it can be: 10 us less to bind."""
        values = list(args)
        for parameter in self.parameters[len(args) : len(args) + len(kwargs)]:
            if parameter.kind is _ONLY_BY_POSITION or parameter.name not in kwargs:
                return args, kwargs
            values.append(kwargs[parameter.name])
        return (tuple(values), {}) if len(values) > len(args) else (args, kwargs)

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Bound:
        n = len(args)
        if self.is_simple and not kwargs and self.required <= n <= self.positional:
            # 3 us less than the general way
            return self._bound([*args, *self.defaults[n:]], n, ())
        try:
            arguments = self.full.bind(*args, **kwargs)
        except TypeError as error:
            name = getattr(self.fn, "__name__", "the operation")
            raise TypeError(f"{name}(): {error}") from None
        given = {*arguments.arguments, *self.array_defaults}
        arguments.apply_defaults()
        values = [arguments.arguments[name] for name in self.names]
        places = [
            i for i, name in enumerate(self.names[: self.positional]) if name in given
        ]
        return self._bound(values, places[-1] + 1 if places else 0, given)

    def _bound(self, values: list[Any], stop: int, given: Collection[str]) -> Bound:
        leaves: list[Any] = []
        places: list[int] | None = []
        is_array = self.is_array
        for i in range(self.static, len(values)):
            value = values[i]
            if is_array(value):
                leaves.append(value)
                if places is not None:
                    places.append(i)
            elif not trees.is_leaf(value):
                found = [leaf for leaf in trees.leaves(value) if is_array(leaf)]
                if found:
                    leaves += found
                    places = None
        return Bound(self, values, stop, given, leaves, places)


class Bound:
    """A call with its arguments bound: a value per parameter, their arrays in `leaves`.

    Defaults that the caller left alone are among the values too. Those that came from
    the caller are the first `stop` positional ones and the keywords in `given`. If no
    array is in a tree, `places` are the positions of the arrays, else None.
    """

    __slots__ = ("given", "leaves", "places", "signature", "stop", "values")

    def __init__(
        self,
        signature: Signature,
        values: list[Any],
        stop: int,
        given: Collection[str],
        leaves: Sequence[Any],
        places: list[int] | None,
    ) -> None:
        self.signature = signature
        self.values = values
        self.stop = stop
        self.given = given
        self.leaves = leaves
        self.places = places

    def with_leaves(self, leaves: Sequence[Any]) -> Bound:
        """The same call with others in the places of the arrays."""
        values = self.values.copy()
        if self.places is not None:
            for k, i in enumerate(self.places):
                values[i] = leaves[k]
        else:
            rest, mine = iter(leaves), {id(x) for x in self.leaves}
            static = self.signature.static
            values[static:] = trees.map(
                lambda x: next(rest) if id(x) in mine else x, values[static:]
            )
        return Bound(self.signature, values, self.stop, self.given, leaves, self.places)

    def with_values(self, values: list[Any]) -> Bound:
        """The same call with other static values; the arrays are those that it has."""
        leaves, places = self.leaves, self.places
        return Bound(self.signature, values, self.stop, self.given, leaves, places)

    def without_defaults(self) -> Bound:
        """The same call, as if nobody had given what is the default anyway."""
        pairs = zip(self.signature.parameters, self.values, strict=True)
        kept = [p.name for p, value in pairs if value is not p.default]
        names = self.signature.names[: self.stop]
        stop = max((i + 1 for i, name in enumerate(names) if name in kept), default=0)
        given = [name for name in self.given if name in kept]
        return Bound(self.signature, self.values, stop, given, self.leaves, self.places)

    def arguments(self) -> Iterator[tuple[str, Any]]:
        """Each argument with its name; of *args and **kwargs each that was given."""
        static = self.signature.static
        parameters, values = self.signature.parameters[static:], self.values[static:]
        for parameter, value in zip(parameters, values, strict=True):
            if parameter.kind is Parameter.VAR_POSITIONAL:
                yield from ((f"{parameter.name}[{i}]", x) for i, x in enumerate(value))
            elif parameter.kind is Parameter.VAR_KEYWORD:
                yield from value.items()
            else:
                yield parameter.name, value

    def run(self) -> Any:
        """Call the function itself, with what was given."""
        if self.signature.is_simple:
            return self.signature.fn(*self.values[: self.stop])
        args, kwargs = self.given_arguments()
        return self.signature.fn(*args, **kwargs)

    def given_arguments(self) -> tuple[list[Any], dict[str, Any]]:
        """What was given, by position and by name."""
        return self._split(self.stop, self.given)

    def arguments_for(
        self, rule: Callable[..., Any], before: int
    ) -> tuple[list[Any], dict[str, Any]]:
        """The arguments for `rule(*before, *args, **kwargs)`.

        A default that the caller left alone is passed on if the rule has room for it.
        """
        arity = arity_of(rule)
        stop = max(self.stop, min(arity.maximum - before, self.signature.positional))
        named = self.signature.names if arity.any_name else arity.names
        return self._split(int(stop), {*self.given, *named})

    def _split(
        self, stop: int, named: Collection[str]
    ) -> tuple[list[Any], dict[str, Any]]:
        args, kwargs = self.values[:stop], {}
        rest = self.signature.positional
        parameters, values = self.signature.parameters[rest:], self.values[rest:]
        for parameter, value in zip(parameters, values, strict=True):
            if parameter.kind is Parameter.VAR_POSITIONAL:
                args += value
            elif parameter.kind is Parameter.VAR_KEYWORD:
                kwargs |= value
            elif parameter.name in named:
                kwargs[parameter.name] = value
        return args, kwargs


def method_of(operation: Any, instance: Any) -> Any:
    """An operation that is given an object before its other arguments."""
    return MethodType(operation, instance)
