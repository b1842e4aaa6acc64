"""Inputs for an operation without examples: guessed from its signature, by trial."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _tree
from .._check.inputs import from_specs
from .._check.kits import kit_for
from .._check.problem import problem_of
from .._errors import GradsmithError
from .._spec import spec
from .._subject import Subject, framework_for, is_floating, subject_of

# Shapes of the first argument, and of the others: alike, broadcast, matrices to be
# multiplied, matrix and vector.
_SHAPES: list[tuple[Any, Any]] = [
    ((3, 4), (3, 4)),
    ((4,), (4,)),
    ((3, 4), (4,)),
    ((4, 4), (4, 4)),
    ((3, 4), (4, 5)),
    ((4, 4), (4,)),
    ((3, 4), ()),
    ((), ()),
    ((2, 3, 4), (2, 3, 4)),
    ((2, 3, 8, 8), (4, 3, 3, 3)),
]
_INTEGERS = ((3, 4), (3,))  # numbers of classes, one for each row
_NUMBERS = {int: 2, bool: True, float: 0.75}
_EVERYWHERE = (None, None)
_INSIDE = (0.0, 1.0)  # for logarithms, roots and probabilities


@dataclass(frozen=True)
class Guess:
    """Arguments with which an operation ran."""

    args: tuple[Any, ...]
    words: str


class NoGuessError(GradsmithError):
    """An operation ran with none of the inputs tried; `first` is what it raised."""

    def __init__(self, name: str, first: BaseException | None) -> None:
        super().__init__(
            f"it ran with none of the inputs that were tried: give it an example with "
            f"@{name}.example, or @gs.example({name}) if it is a framework's own"
        )
        self.first = first


def guess(op: Any, framework: str | None, seed: int, owner: Any = None) -> Guess:
    """Inputs with which an operation runs, preferably to finite values.

    `owner` is the class of a method.
    """
    name = framework_for(op, (), framework, caller="check()")
    subject, kit = subject_of(op, name), kit_for(name)
    first: BaseException | None = None
    last_resort: Guess | None = None
    for each in _candidates(subject, seed, owner):
        try:
            problem = problem_of(subject, kit, name, each.args, {})
            ys = problem.value(problem.xs)
        except Exception as error:
            first = first or error
            continue
        if ys and all(np.all(np.isfinite(y)) for y in ys):
            return each
        last_resort = last_resort or each
    if last_resort is None:
        raise NoGuessError(subject.name, first) from first
    return last_resort


def _candidates(subject: Subject, seed: int, owner: Any) -> Iterator[Guess]:
    parameters = _required(subject.signature)
    fixed = [_NUMBERS.get(_annotation(p)) for p in parameters]
    if owner is not None and parameters and parameters[0].name == "self":
        fixed[0] = _instance(owner, subject.name)
    places = [i for i, x in enumerate(fixed) if x is None]
    for low, high in (_EVERYWHERE, _INSIDE):
        for shapes in _SHAPES:
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


def _instance(owner: Any, name: str) -> Any:
    try:
        return owner()
    except Exception as error:
        raise NoGuessError(name, error) from error


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
    pairs = zip(parameters, args, strict=True)
    return Guess(tuple(args), ", ".join(f"{p.name} {_described(x)}" for p, x in pairs))


def _described(x: Any) -> str:
    if not isinstance(x, np.ndarray):
        return "made without arguments" if _tree.leaves(x) == [x] else repr(x)
    kind = "" if is_floating(x) else " of integers"
    return f"{x.shape}{kind}"
