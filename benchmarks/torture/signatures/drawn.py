"""A random signature, an operation that has it, and a call.

The operation squares: with leaves x_0, x_1, ... of its arguments and a static factor it
returns `a = factor * x_0**2` and `b = factor * sum of (i + 1) * sum(x_i**2)`, in one of
several structures. So value and gradient are known for any signature.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import gradsmith as gs
import gradsmith.numpy as gnp

SHAPES = ((), (3,), (2, 3), (1,), (0,), (2, 1, 2))
TREES = ("array", "array", "array", "list", "dict", "tuple", "nested")


class Leaf:
    """The place of an array in a call."""


@dataclass
class Drawn:
    """A signature as source, and a call of it: leaves stand where arrays go."""

    rng: random.Random
    parameters: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)  # in the order of the signature
    args: list[Any] = field(default_factory=list)
    kwargs: dict[str, Any] = field(default_factory=dict)
    leaves: list[Leaf] = field(default_factory=list)
    factor: float = 2.0

    def __post_init__(self) -> None:
        rng = self.rng
        only = rng.choice((0, 0, 1))  # positional-only ones
        count = rng.randint(max(only, 1), 3)
        for i in range(count):
            self._positional(f"p{i}", by_name=i >= only and rng.random() < 0.3)
            if i + 1 == only:
                self.parameters.append("/")
        optional = rng.random() < 0.4
        if optional:
            self._optional("late")
        if rng.random() < 0.25 and len(self.args) == count + optional:
            self.parameters.append("*rest")
            self.names.append("rest")
            self.args += [self._value() for _ in range(rng.randint(0, 2))]
        elif rng.random() < 0.6:
            self.parameters.append("*")
        if self.parameters[-1] in ("*", "*rest"):
            self._keywords()
        if rng.random() < 0.25:
            self.parameters.append("**named")
            self.names.append("named")
            for i in range(rng.randint(0, 2)):
                self.kwargs[f"n{i}"] = self._value()

    def _positional(self, name: str, *, by_name: bool) -> None:
        self.parameters.append(name)
        self.names.append(name)
        by_name = by_name or bool(self.kwargs)
        if by_name:
            self.kwargs[name] = self._value()
        else:
            self.args.append(self._value())

    def _optional(self, name: str) -> None:
        """None by default: given, left out, or given as None."""
        self.parameters.append(f"{name}=None")
        self.names.append(name)
        choice = self.rng.choice(("array", "none", "absent"))
        if choice != "absent":
            value = self._value() if choice == "array" else None
            keyword = name == "k0" or bool(self.kwargs)
            if keyword or self.rng.random() < 0.5:
                self.kwargs[name] = value
            else:
                self.args.append(value)

    def _keywords(self) -> None:
        if self.rng.random() < 0.5 or self.parameters[-1] == "*":
            self.parameters.append("factor=2.0")
            if self.rng.random() < 0.6:
                self.factor = self.kwargs["factor"] = self.rng.choice((0.5, 3, -1.5))
        if self.rng.random() < 0.4:
            self.parameters.append("style='plain'")
        if self.rng.random() < 0.4:
            self._optional("k0")

    def _value(self) -> Any:
        tree = self.rng.choice(TREES)
        if tree == "array":
            return self._leaf()
        if tree == "list":
            return [self._leaf() for _ in range(self.rng.randint(1, 2))]
        if tree == "tuple":
            return (self._leaf(), None)
        if tree == "dict":
            return {"a": self._leaf(), "b": self.rng.choice((1, "text", None))}
        return {"z": [self._leaf(), (self._leaf(),)], "y": 0.5}

    def _leaf(self) -> Leaf:
        self.leaves.append(Leaf())
        return self.leaves[-1]

    def source(self) -> str:
        values = ", ".join(f"{name!r}: {name}" for name in self.names)
        has_factor = any(p.startswith("factor") for p in self.parameters)
        factor = "factor" if has_factor else "2.0"
        return f"({', '.join(self.parameters)}): ({{{values}}}, {factor})"


def ordered(value: Any) -> list[Any]:
    """The leaves of a tree, dicts in their order; what is no array is left out."""
    if isinstance(value, dict):
        return [leaf for key in value for leaf in ordered(value[key])]
    if isinstance(value, list | tuple):
        return [leaf for part in value for leaf in ordered(part)]
    return [value] if hasattr(value, "shape") or isinstance(value, Leaf) else []


def mapped(value: Any, change: Any) -> Any:
    """The tree with its leaves changed, and None for what is no array."""
    if isinstance(value, dict):
        return {key: mapped(part, change) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(mapped(part, change) for part in value)
    is_leaf = hasattr(value, "shape") or isinstance(value, Leaf)
    return change(value) if is_leaf else None


def filled(value: Any, arrays: dict[int, Any]) -> Any:
    """The tree with arrays in place of the leaves."""
    if isinstance(value, dict):
        return {key: filled(part, arrays) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(filled(part, arrays) for part in value)
    return arrays[id(value)] if isinstance(value, Leaf) else value


STRUCTURES = ("b", "tuple", "dict", "several")


def outputs(structure: str, a: Any, b: Any) -> Any:
    if structure == "b":
        return b
    return {"first": a, "rest": [b]} if structure == "dict" else (a, b)


def parts(structure: str, y: Any) -> tuple[Any, Any]:
    if structure == "b":
        return None, y
    return (y["first"], y["rest"][0]) if structure == "dict" else tuple(y)


def values(arguments: dict[str, Any], factor: float) -> tuple[Any, Any]:
    xs = ordered(arguments)
    b = 0.0
    for i, x in enumerate(xs):
        b = b + (i + 1) * gnp.sum(x * x)
    return factor * xs[0] * xs[0], factor * b


def gradients(arguments: dict[str, Any], factor: float, da: Any, db: Any) -> Any:
    """One for each argument that has an array, in the order of the signature."""
    number = iter(range(len(ordered(arguments))))

    def of(x: Any) -> Any:
        i = next(number)
        dx = 2 * factor * (i + 1) * x * db
        return dx if i or da is None else dx + 2 * factor * x * da

    found: dict[str, Any] = {}
    for name, value in arguments.items():
        if name == "rest":
            found |= {f"rest[{i}]": mapped(v, of) for i, v in enumerate(value)}
        elif name == "named":
            found |= {key: mapped(v, of) for key, v in value.items()}
        elif ordered(value):
            found[name] = mapped(value, of)
    return found


def defined(drawn: Drawn, structure: str, form: str, by_name: bool) -> Any:
    """The operation, in closure form, in rule form or as a python_op."""
    arrow = drawn.source()
    scope: dict[str, Any] = {}

    def answer(found: dict[str, Any]) -> Any:
        if by_name:
            return found
        grads = tuple(found.values())
        return grads if len(grads) > 1 else grads[0]

    def body(arguments: Any, factor: float) -> Any:
        return outputs(structure, *values(arguments, factor))

    def closure(arguments: Any, factor: float) -> Any:
        a, b = values(arguments, factor)
        one = lambda db: answer(gradients(arguments, factor, None, db))
        two = lambda da, db: answer(gradients(arguments, factor, da, db))
        tree = lambda dy: two(*parts(structure, dy))
        if structure == "several":
            return a, b, two
        grad = {"b": one, "tuple": two, "dict": tree}[structure]
        return outputs(structure, a, b), grad

    def rule(dy: Any, y: Any, arguments: Any, factor: float) -> Any:
        return answer(gradients(arguments, factor, *parts(structure, dy)))

    head, _, result = arrow.partition(": ")
    exec(f"def op{head}:\n    return run(*{result})", scope)
    if form == "closure":
        scope["run"] = closure
        return gs.custom_gradient(scope["op"])
    scope["run"] = body
    op = (gs.python_op if form == "python" else gs.operation)(scope["op"])
    rules: dict[str, Any] = {"run": rule}
    inner = head.replace("(", "(dy, y, ", 1)
    exec(f"def _{inner}:\n    return run(dy, y, *{result})", rules)
    op.vjp(rules["_"])
    return op


def arrays(drawn: Drawn, dtype: Any) -> list[np.ndarray]:
    rng = np.random.default_rng(drawn.rng.randrange(2**32))
    shapes = [drawn.rng.choice(SHAPES) for _ in drawn.leaves]
    return [rng.uniform(0.5, 2.0, shape).astype(dtype) for shape in shapes]
