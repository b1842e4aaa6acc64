"""A program as Python code that runs when it is pasted."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from importlib import import_module
from itertools import count
from typing import Any

import numpy as np

from ..core.rule import convert, index, name_of
from ..rules.indexing import scatter
from .graph import Program, Step, Value, changed, setitem

LARGEST = 64  # elements of a constant that is written down

_OPERATORS = {
    np.add: "+",
    np.subtract: "-",
    np.multiply: "*",
    np.divide: "/",
    np.matmul: "@",
    np.less: "<",
    np.less_equal: "<=",
    np.greater: ">",
    np.greater_equal: ">=",
    np.equal: "==",
    np.not_equal: "!=",
}


def source(program: Program) -> str:
    """The code of a program; large constants are parameters of the function."""
    writer = Writer(program)
    body = [line for step in program.steps for line in writer.lines(step)]
    returned = f"return {writer.text(program.outputs)}"
    lines = [*writer.constants(), *body, returned]
    head = f"def {writer.identifier(program.name, 'program')}({writer.parameters()}):"
    imports = ["import numpy as np", *sorted(writer.imports)]
    return "\n".join([*imports, "", "", head, *[f"    {line}" for line in lines]])


class Writer:
    """Names for the values of a program, and the code of its steps."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.imports: set[str] = set()
        self.names: dict[Value, str] = {}
        self._taken = {"np", "scipy"}
        self._letters = letters()
        self._others: dict[int, str] = {}
        given = program.names or ("",) * len(program.inputs)
        for x, name in zip(program.inputs, given, strict=True):
            self.names[x] = self.identifier(name, "x")
        self.large = []
        for i, (x, array) in enumerate(program.constants.items()):
            self.names[x] = self.identifier(f"c{i}", "c")
            if any(array.strides) and array.size > LARGEST:
                self.large.append(self.names[x])

    def identifier(self, text: str, otherwise: str) -> str:
        """A name that nothing else has."""
        name = re.sub(r"\W+", "_", text).strip("_") or otherwise
        if name[0].isdigit() or keyword.iskeyword(name):
            name = f"{otherwise}_{name}"
        for i in count(2):
            if name not in self._taken:
                break
            name = f"{name.rstrip('0123456789')}{i}"
        self._taken.add(name)
        return name

    def name(self, x: Value) -> str:
        if x not in self.names:
            self.names[x] = self.identifier(next(self._letters), "y")
        return self.names[x]

    def parameters(self) -> str:
        names = [self.names[x] for x in self.program.inputs]
        return ", ".join(names + (["*", *self.large] if self.large else []))

    def constants(self) -> Iterator[str]:
        for x, array in self.program.constants.items():
            name = self.names[x]
            if name in self.large:
                yield f"# {name} is captured: shape {array.shape}, {array.dtype}"
            else:
                yield f"{name} = {_array(array)}"

    def lines(self, step: Step) -> list[str]:
        if step.fn is scatter:
            return self._scattered(step)
        if step.fn is changed:
            return self._changed(step)
        names = ", ".join(self.name(y) for y in step.outputs)
        comma = "," if len(step.outputs) == 1 and step.in_list else ""
        return [f"{names}{comma} = {self.call(step)}"]

    def _scattered(self, step: Step) -> list[str]:
        """`scatter` in NumPy's own words."""
        dy, key, shape, *distinct = step.args
        y = step.outputs[0]
        name, dy = self.name(y), self.text(dy)
        alone = isinstance(key, tuple) and not any(map(_is_array, key))
        made = f"{name} = np.zeros({self.text(shape)}, {y.dtype.name!r})"
        if any(distinct) or step.kwargs.get("distinct") or alone or _is_basic(key):
            return [made, f"{name}[{self.key(key)}] = {dy}"]
        if y.dtype == np.float16:
            made = made.replace("float16", "float32")
            add = f"np.add.at({name}, {self.text(key)}, {dy})"
            return [made, add, f"{name} = {name}.astype('float16')"]
        return [made, f"np.add.at({name}, {self.text(key)}, {dy})"]

    def _changed(self, step: Step) -> list[str]:
        """A copy, and the write into it."""
        change, x, *args = step.args
        name = self.name(step.outputs[0])
        copied = f"{name} = {self.text(x)}.copy()"
        if change is setitem:
            return [copied, f"{name}[{self.key(args[0])}] = {self.text(args[1])}"]
        options = [f"{key}={self.text(a)}" for key, a in step.kwargs.items()]
        given = ", ".join([name, *map(self.text, args), *options])
        return [copied, f"{self.function(change)}({given})"]

    def call(self, step: Step) -> str:
        args = [self.text(x) for x in step.args]
        if step.fn is index:
            return f"{args[0]}[{self.key(step.args[1])}]"
        if step.fn is convert:
            return f"{args[0]}.astype({args[1]})"
        if not step.kwargs and step.fn in _OPERATORS and _has_value(step.args):
            return f"{args[0]} {_OPERATORS[step.fn]} {args[1]}"
        if not step.kwargs and step.fn is np.negative:
            return f"-{args[0]}"
        options = [f"{name}={self.text(x)}" for name, x in step.kwargs.items()]
        return f"{self.function(step.fn)}({', '.join([*args, *options])})"

    def key(self, key: Any) -> str:
        """What stands between the brackets."""
        parts = key if isinstance(key, tuple) else (key,)
        if not parts:
            return "()"
        return ", ".join(map(self._part, parts)) + "," * (
            len(parts) == 1 and parts is key
        )

    def _part(self, part: Any) -> str:
        if not isinstance(part, slice):
            return "..." if part is Ellipsis else self.text(part)
        start, stop, step = (
            "" if end is None else self.text(end)
            for end in (part.start, part.stop, part.step)
        )
        return f"{start}:{stop}" + (f":{step}" if step else "")

    def function(self, fn: Any) -> str:
        """The expression that reaches a function, and its import."""
        owner = getattr(fn, "__self__", None)
        if isinstance(owner, np.ufunc):
            return f"{self.function(owner)}.{fn.__name__}"
        name = name_of(fn)
        module, _, short = name.rpartition(".")
        if _found(module, short) is not fn:
            return self._captured(fn)
        if name.startswith("np."):
            return name
        if module.startswith("scipy"):
            self.imports.add(f"import {module}")
            return name
        self.imports.add(f"from {module} import {short}")
        return short

    def _captured(self, x: Any) -> str:
        """The name of a parameter for what can't be written down."""
        if id(x) not in self._others:
            name = self.identifier(getattr(x, "__name__", "other"), "fn")
            self._others[id(x)] = name
            self.large.append(name)
        return self._others[id(x)]

    def text(self, x: Any) -> str:
        """An argument as code."""
        if isinstance(x, Value):
            return self.name(x)
        if isinstance(x, (bool, int, str, bytes, type(None))):
            return repr(x)
        if isinstance(x, np.dtype):
            return repr(x.name if x.isbuiltin else x.str)
        if isinstance(x, (float, complex, np.generic)):
            return _number(x)
        if isinstance(x, slice):
            return f"slice({', '.join(map(self.text, (x.start, x.stop, x.step)))})"
        if x is Ellipsis:
            return "..."
        if isinstance(x, dict):
            return "{" + ", ".join(f"{k!r}: {self.text(v)}" for k, v in x.items()) + "}"
        if isinstance(x, list):
            return f"[{', '.join(map(self.text, x))}]"
        if isinstance(x, tuple) and not hasattr(x, "_fields"):
            return f"({', '.join(map(self.text, x))}{',' * (len(x) == 1)})"
        if isinstance(x, tuple):
            return f"{type(x).__name__}({', '.join(map(self.text, x))})"
        if isinstance(x, type):
            return x.__name__ if x.__module__ == "builtins" else f"np.{x.__name__}"
        return self.function(x) if callable(x) else self._captured(x)


def _found(module: str, name: str) -> Any:
    """What a pasted program would find under a name."""
    try:
        parts = (
            module.replace("np", "numpy", 1) if module[:3] in ("np", "np.") else module
        )
        return getattr(import_module(parts), name, None)
    except (ImportError, ValueError):
        return None


def _has_value(args: Any) -> bool:
    """Whether an operator is NumPy's: of Python's numbers alone it is not."""
    return any(isinstance(x, (Value, np.generic)) for x in args)


def _is_array(part: Any) -> bool:
    return isinstance(part, (Value, list, np.ndarray))


def _is_basic(key: Any) -> bool:
    return isinstance(key, (int, np.integer, slice, type(None), type(Ellipsis)))


def _number(x: Any) -> str:
    if isinstance(x, (float, np.floating)) and not np.isfinite(x):
        word = f'float("{float(x)}")'
        return word if type(x) is float else f"np.{np.dtype(type(x)).name}({word})"
    return repr(x)


def _array(x: np.ndarray) -> str:
    if x.size > LARGEST:  # one number many times
        return f"np.full({x.shape}, {_number(x.reshape(-1)[0])})"
    text = np.array2string(
        x,
        separator=", ",
        threshold=LARGEST + 1,
        floatmode="unique",
        max_line_width=10**6,
    )
    text = re.sub(r"\s+", " ", text)
    text = re.sub(r"\bnan\b", "np.nan", re.sub(r"\binf\b", "np.inf", text))
    return f"np.array({text}, {x.dtype.name!r}){_shape(x)}"


def _shape(x: np.ndarray) -> str:
    return f".reshape({x.shape})" if not x.size else ""


def letters() -> Iterator[str]:
    """a, b, ..., z, a1, b1, ..."""
    for i in count():
        for letter in "abcdefghijklmnopqrstuvwxyz":
            yield f"{letter}{i or ''}"
