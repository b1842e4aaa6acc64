"""One application of an operation: body and rules called, what they return checked.

Nothing here knows a framework: an adapter gives the specs of its arrays, and gets the
user's gradients back flat, in the order of the arrays.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from typing import Any

from ..core import hooks
from ..core import trees as _tree
from ..core.arity import Arity, arity_of
from ..core.errors import GradientContractError
from ..core.specs import AnySpec
from . import contract
from .arguments import Argument, Kind, arguments_of
from .parameters import Bound

# The way out of an exception that a framework raised, from those who know it
HINTS: list[Callable[[Exception], str]] = []


def run_body(operation: Any, bound: Bound) -> tuple[Any, Any]:
    """Run an operation's body: its outputs and, in closure form, its gradient."""
    if hooks.BODY.wrappers:
        return hooks.BODY.run(_run_body, operation, bound)
    return _run_body(operation, bound)


def _run_body(operation: Any, bound: Bound) -> tuple[Any, Any]:
    try:
        returned = bound.run()
    except Exception as error:
        add_notes(error, f"the body of operation {operation.name!r}")
        raise
    if operation.closure:
        return contract.split_outputs(operation.name, returned)
    return returned, None


def add_notes(error: Exception, where: str) -> None:
    """Say on the user's exception where it was raised, and why if it is our doing."""
    error.add_note(f"raised by {where}")
    if isinstance(error, ValueError) and "read-only" in str(error):
        error.add_note(
            "the arrays passed to an operation are read-only, since they are shared: "
            "work on a copy (x = x.copy()) or make a new array"
        )
    for note in (hint(error) for hint in HINTS):
        if note and note not in error.__notes__:
            error.add_note(note)


class OutputSpecs:
    """The specs of an operation's outputs: as a tree, and those with a gradient flat.

    What has no gradient (whole numbers, strings) is `None` in the tree.
    """

    __slots__ = ("flat", "tree")

    def __init__(self, tree: Any, flat: Sequence[AnySpec]) -> None:
        self.tree = tree
        self.flat = flat

    def structured(self, dys: Sequence[Any]) -> Any:
        """Cotangents or tangents in the structure of the outputs."""
        if isinstance(self.tree, AnySpec):
            return dys[0]
        rest = iter(dys)
        return _tree.map(lambda spec: None if spec is None else next(rest), self.tree)


class Application:
    """What the rules of an operation are called with after one call of it.

    `call` is the call with specs in place of the arrays. In closure form the rest is
    what `grad` captured, so that nothing else is kept: `bound` and `y` are then None,
    unless there is a jvp.
    """

    __slots__ = (
        "bound",
        "call",
        "grad",
        "operation",
        "outputs",
        "variables",
        "vjp",
        "y",
    )

    def __init__(
        self,
        operation: Any,
        call: Bound,
        outputs: OutputSpecs,
        variables: Sequence[tuple[Any, AnySpec]],
        *,
        grad: Callable[..., Any] | None,
        bound: Bound | None,
        y: Any,
    ) -> None:
        self.operation = operation
        self.call = call
        self.outputs = outputs
        self.variables = variables
        self.grad = grad
        self.vjp = operation.vjp_rule if grad is None else grad  # whichever it has
        self.bound = bound
        self.y = y

    def gradients(self, dys: Sequence[Any], wanted: Collection[int]) -> list[Any]:
        """The gradients of the arrays in the arguments, then those of the variables.

        `wanted` are the positions, in this order, of those that will be used.
        """
        rule = self.vjp
        assert rule is not None
        arity = arity_of(rule)
        options: dict[str, Any] = {}
        if arity.needs:
            options["needs"] = self._needs(wanted)
        if arity.requires_variables or (arity.variables and self.variables):
            options["variables"] = [variable for variable, _ in self.variables]
        if self.grad is not None:
            upstream = self._upstream(rule, arity, dys)
            returned = self.call_rule("gradient", rule, upstream, options)
        else:
            dy = self.outputs.structured(dys)
            returned = self._call_with_arguments("vjp", rule, dy, options)
        if "variables" not in options:
            return self.checked(returned, wanted)
        returned, for_variables = contract.split_variables(
            self.operation.name, returned
        )
        return self.checked(returned, wanted) + self._checked_variables(for_variables)

    def tangents(self, dxs: Sequence[Any]) -> list[Any]:
        """The tangents of the outputs, from one for each array in the arguments."""
        rest = iter(dxs)
        trees = [
            _tree.map(lambda spec: None if spec is None else next(rest), argument.specs)
            for argument in arguments_of(self.call)
            if argument.has_arrays
        ]
        dx = trees[0] if len(trees) == 1 else tuple(trees)
        returned = self._call_with_arguments("jvp", self.operation.jvp_rule, dx, {})
        return contract.check_tangents(self.operation.name, returned, self.outputs.tree)

    def specs(self) -> list[AnySpec]:
        """The specs of the arrays in the arguments, then those of the variables."""
        return [*self.call.leaves, *(spec for _, spec in self.variables)]

    def name_of(self, i: int) -> str:
        """How messages call the array, or the variable, at a position."""
        names = [
            name
            for argument in arguments_of(self.call)
            for name, spec in _tree.leaves_with_names(argument.specs, argument.name)
            if spec is not None
        ]
        return [*names, *map(_name_of_variable, self.variables)][i]

    # Calling

    def _call_with_arguments(
        self, what: str, rule: Any, d: Any, options: dict[str, Any]
    ) -> Any:
        """Call `rule(d, y, *arguments)`."""
        assert self.bound is not None
        args, kwargs = self.bound.arguments_for(rule, before=2)
        return self.call_rule(what, rule, (d, self.y, *args), {**kwargs, **options})

    def call_rule(
        self, what: str, rule: Any, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        if hooks.RULE.wrappers:
            run = type(self)._call_rule
            return hooks.RULE.run(run, self, what, rule, args, kwargs)
        return self._call_rule(what, rule, args, kwargs)

    def _call_rule(
        self, what: str, rule: Any, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        try:
            returned = rule(*args, **kwargs)
        except Exception as error:
            where = f"the {what} of operation {self.operation.name!r}"
            misfit = _misfit(rule, args, kwargs) if isinstance(error, TypeError) else ""
            if misfit:
                expected = f"a function of {self._parameters(what, kwargs)}"
                raise contract.wrong_parameters(where, misfit, expected, rule) from None
            add_notes(error, where)
            raise
        if returned is None:
            raise contract.returned_nothing(self.operation.name, what, rule)
        return returned

    def _parameters(self, what: str, named: Collection[str]) -> str:
        """What a rule is called with, by name."""
        names = ["dx" if what == "jvp" else "dy"]
        if self.bound is not None:
            signature = self.bound.signature
            names += ["y", *signature.names[: signature.positional]]
        return f"({', '.join([*names, *named])})"

    def _upstream(self, rule: Any, arity: Arity, dys: Sequence[Any]) -> Sequence[Any]:
        """One upstream gradient per output, or all in one if `grad` takes only one."""
        tree, n = self.outputs.tree, 1
        if isinstance(tree, AnySpec) and arity.required == 1:
            return dys
        structured = self.outputs.structured(dys)
        if isinstance(tree, (tuple, list)):
            n = len(tree)
            if arity.means_each(n):
                return structured
        if arity.required <= 1 <= arity.maximum:
            return (structured,)
        raise contract.wrong_parameters(
            f"the gradient of operation {self.operation.name!r}",
            f"the operation has {n} output{'s' * (n != 1)}, and other values are "
            "captured, not passed",
            "a function of (dy)"
            if n == 1
            else f"a function of {n} upstream gradients, or of (dy) with all in one",
            rule,
        )

    # Checking

    def checked(self, returned: Any, wanted: Collection[int]) -> list[Any]:
        specs = self.call.leaves
        if self.call.places is not None:  # what is as it should be: 3 us less
            gradients = returned if isinstance(returned, tuple) else (returned,)
            if len(gradients) == len(specs) and all(
                spec.describes(g) or g is None
                for spec, g in zip(specs, gradients, strict=True)
            ):
                return [*gradients]
        needed: Collection[str] = ()
        if isinstance(returned, dict):
            needed = [name for name, need in self._needs(wanted).items() if need]
        name, arguments = self.operation.name, arguments_of(self.call)
        return contract.check_gradients(name, returned, arguments, needed)

    def _needs(self, wanted: Collection[int]) -> dict[str, bool]:
        """For each argument whether its gradient will be used."""
        needs, start = {}, 0
        for argument in arguments_of(self.call):
            specs = _tree.leaves(argument.specs)
            stop = start + sum(spec is not None for spec in specs)
            needs[argument.name] = any(start <= i < stop for i in wanted)
            start = stop
        return needs

    def _checked_variables(self, returned: Any) -> list[Any]:
        arguments = [
            Argument(_name_of_variable((variable, spec)), spec, Kind.FLOATING)
            for variable, spec in self.variables
        ]
        names = [argument.name for argument in arguments]
        if isinstance(returned, dict) and len(set(names)) < len(names):
            raise GradientContractError(
                f"the gradient of operation {self.operation.name!r} names those of its "
                "variables, and two of them have the same name: "
                f"{', '.join(names)}. Return a list in the order of `variables`, or "
                "name them: gs.Variable(..., name='w')."
            )
        return contract.check_gradients(
            self.operation.name, returned, arguments, names, each="variable"
        )


def _name_of_variable(pair: tuple[Any, AnySpec]) -> str:
    """The name that its spec gives it, if it has none of its own."""
    variable, spec = pair
    return getattr(spec, "name", "") or variable.name


def _misfit(rule: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """Why a rule can't take these arguments; nothing if the error is inside of it."""
    try:
        inspect.signature(rule).bind(*args, **kwargs)
    except ValueError:  # a C function without a signature
        return ""
    except TypeError as error:
        return str(error)
    return ""
