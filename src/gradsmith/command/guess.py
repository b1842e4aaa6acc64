"""Inputs for an operation without examples: guessed from its signature, by trial."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.arrays import FRAMEWORKS
from ..core.errors import GradsmithError
from ..operations.info import OperationInfo, is_floating, of_operation
from ..operations.spec import spec
from ..tools._inputs import framework_for, info_of
from ..tools.check.inputs import from_specs
from ..tools.check.problem import Problem, problem_of

# Shapes of the first argument, and of the others: alike, broadcast, matrices to be
# multiplied, matrix and vector.
_SHAPES: list[tuple[Any, Any]] = [
    ((3, 4), (3, 4)),
    ((4,), (4,)),
    ((3, 4), (4,)),
    ((3, 4), (4, 5)),
    ((4, 4), (4, 4)),
    ((4, 4), (4,)),
    ((3, 4), ()),
    ((), ()),
    ((2, 3, 4), (2, 3, 4)),
    ((2, 3, 8, 8), (4, 3, 3, 3)),
]
_INTEGERS = ((3, 4), (3,))  # numbers of classes, one for each row
_NUMBERS = {int: 2, bool: True, float: 0.75}
_BOUNDS = (("min", "max"), ("low", "high"), ("lower", "upper"), ("lo", "hi"))
_EVERYWHERE = (None, None)
_INSIDE = (0.0, 1.0)  # for logarithms, roots and probabilities


@dataclass(frozen=True)
class Guess:
    """Arguments with which an operation ran."""

    args: tuple[Any, ...]
    words: str


class NoGuessError(GradsmithError):
    """An operation ran with none of the inputs tried; `first` is what it raised."""

    def __init__(self, op: Any, name: str, first: BaseException) -> None:
        give = f"@{name}.example" if of_operation(op) else f"@gs.example({name})"
        super().__init__(
            f"none of the inputs tried work: give it an example with {give}"
        )
        self.first = first


def guess(op: Any, framework: str | None, seed: int, owner: Any = None) -> Guess:
    """Inputs with which an operation and its rule run, to finite values if possible.

    `owner` is the class of a method.
    """
    name = framework_for(op, (), framework, caller="check()")
    info = info_of(op, name)
    first: BaseException | None = None
    ranked: list[tuple[int, Guess]] = []
    for each in _candidates(op, info, seed, owner):
        problem = problem_of(info, FRAMEWORKS[name], each.args, {})
        try:
            rank = _rank(problem)
        except Exception as error:
            first = first or error
            continue
        if rank == 0:
            return each
        ranked.append((rank, each))
    if not ranked:
        assert first is not None
        raise NoGuessError(op, info.name, first) from first
    return min(ranked, key=lambda pair: pair[0])[1]


def _rank(problem: Problem) -> int:
    """0 for inputs with which all is well. That the body runs is the least."""
    ys = problem.value(problem.xs)
    if not all(np.all(np.isfinite(y)) for y in ys):
        return 2
    try:
        point = problem.linearize(problem.xs)
        point.pull([np.ones_like(y) for y in point.ys])
    except Exception:
        return 1
    return 0


def _candidates(op: Any, info: OperationInfo, seed: int, owner: Any) -> Iterator[Guess]:
    parameters = _required(info.signature)
    fixed = [_NUMBERS.get(_annotation(p)) for p in parameters]
    if owner is not None and parameters and parameters[0].name == "self":
        fixed[0] = _instance(op, owner, info.name)
    places = [i for i, x in enumerate(fixed) if x is None]
    places = places or [i for i, x in enumerate(fixed) if isinstance(x, float)]
    if not places:
        raise GradsmithError(
            f"{info.name!r} takes no floating-point numbers, judging by its "
            "signature, so there is nothing to differentiate"
        )
    for shapes in _SHAPES:
        for low, high in (_EVERYWHERE, _INSIDE):
            specs = [
                spec(shapes[i > 0], low=low, high=high) for i in range(len(places))
            ]
            yield _with(fixed, places, parameters, from_specs(specs, seed))
    if len(places) > 1:
        kinds = [
            spec(_INTEGERS[i > 0], "float64" if i == 0 else "int64")
            for i in range(len(places))
        ]
        yield _with(fixed, places, parameters, from_specs(kinds, seed))


def _instance(op: Any, owner: Any, name: str) -> Any:
    try:
        return owner()
    except Exception as error:
        raise NoGuessError(op, name, error) from error


def _required(signature: inspect.Signature | None) -> list[inspect.Parameter]:
    if signature is None:
        return [inspect.Parameter("x", inspect.Parameter.POSITIONAL_ONLY)]
    required = []
    for p in signature.parameters.values():
        if p.kind is p.VAR_POSITIONAL and not required:
            required += [
                p.replace(name=f"{p.name}{i}", kind=p.POSITIONAL_ONLY) for i in range(2)
            ]
        elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and (
            p.default is p.empty or isinstance(p.default, float)
        ):
            required.append(p)
        elif p.default is not p.empty:
            break  # and so have all that follow
    return required


def _annotation(p: inspect.Parameter) -> Any:
    names = {"int": int, "bool": bool, "float": float}
    if p.annotation is p.empty:
        return type(p.default) if isinstance(p.default, float) else None
    return names.get(p.annotation, p.annotation) if _is_plain(p.annotation) else None


def _is_plain(annotation: Any) -> bool:
    return isinstance(annotation, str | type)


def _with(
    fixed: list[Any], places: list[int], parameters: list[Any], arrays: list[Any]
) -> Guess:
    args = list(fixed)
    for i, x in zip(places, arrays, strict=True):
        args[i] = x
    _order(args, [p.name for p in parameters])
    pairs = zip(parameters, args, strict=True)
    return Guess(tuple(args), ", ".join(f"{p.name} {_described(x)}" for p, x in pairs))


def _order(args: list[Any], names: list[str]) -> None:
    """Bounds by their names, the lower one below: about zero, if they are equal."""
    pairs = [(p.replace(*ends), p) for p in names for ends in _BOUNDS if ends[0] in p]
    for upper, lower in pairs:
        if upper in names:
            i, k = names.index(lower), names.index(upper)
            a, b = args[i], args[k]
            if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
                args[i], args[k] = np.minimum(a, b), np.maximum(a, b)
            elif type(a) is type(b) is float and a >= b:
                args[i], args[k] = -abs(a), abs(a)


def _described(x: Any) -> str:
    if not isinstance(x, np.ndarray):
        return repr(x) if isinstance(x, bool | int | float) else "made by default"
    kind = "" if is_floating(x) else " of integers"
    return f"{x.shape}{kind}"
