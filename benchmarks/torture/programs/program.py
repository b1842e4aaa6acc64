"""A program: its inputs and literals, its lines, and itself as plain NumPy code."""

from __future__ import annotations

import functools
import math
import operator
import random
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import gradsmith as gs
import gradsmith.numpy as gnp
from benchmarks._peers import is_installed, load

from .lines import KINDS, NumpyOnly
from .operations import OPERATIONS
from .writer import Line, SkipLineError, Writer

LEAST, LONGEST = 3, 14  # lines
TRIES = 6  # of a line, for each that is wanted
NARROW = 0.1  # share of programs with inputs in float32
_NAME = re.compile(r"\b[xv]\d+\b")


@dataclass(frozen=True)
class Program:
    """A function of some arrays that returns a real number, and all on the way."""

    seed: int
    number: int
    inputs: dict[str, np.ndarray]
    literals: dict[str, np.ndarray]
    lines: tuple[Line, ...]
    loss: str
    in_jax: bool = False

    @property
    def body(self) -> str:
        return "\n".join((*(line.text for line in self.lines), self.loss))

    def function(self, namespace: dict[str, Any]) -> Callable[..., Any]:
        """The function, and with it the values of all its variables."""
        found = ", ".join(f"{name!r}: {name}" for name, _ in self.lines)
        text = f"def program({', '.join(self.inputs)}):\n"
        text += textwrap.indent(f"{self.body}\nreturn loss, {{{found}}}", "    ")
        scope = {**namespace, **self.literals}
        exec(compile(text, f"<program {self.seed}:{self.number}>", "exec"), scope)
        return scope["program"]

    @property
    def wide(self) -> Program:
        """The same in double precision, which differences need."""
        swap = {"float32": "float64", "complex64": "complex128"}
        lines = tuple(
            Line(name, re.sub("|".join(swap), lambda m: swap[m[0]], text))
            for name, text in self.lines
        )
        inputs = {name: x.astype(np.float64) for name, x in self.inputs.items()}
        return replace(self, lines=lines, inputs=inputs)

    @property
    def is_narrow(self) -> bool:
        small = any(x.dtype == np.float32 for x in self.inputs.values())
        return small or "float32" in self.body

    def source(self) -> str:
        """The program as code that runs by itself."""
        arrays = {**self.inputs, **self.literals}
        head = ["import numpy as np", "import gradsmith as gs"]
        if "gnp." in self.body:
            head.append("import gradsmith.numpy as gnp")
        if "special." in self.body:
            head.append("from scipy import special")
        head += [
            f"import {m}"
            for m in ("functools", "operator", "math")
            if f"{m}." in self.body
        ]
        called = [name for name in OPERATIONS if f"{name}(" in self.body]
        if called:
            where = "benchmarks.torture.programs.operations"
            head.append(f"from {where} import {', '.join(called)}")
        used = set(re.findall(r"\b[xc]\d+\b", self.body)) | set(self.inputs)
        text = [f"{name} = {_literal(arrays[name])}" for name in arrays if name in used]
        body = textwrap.indent(f"{self.body}\nreturn loss", "    ")
        names = ", ".join(self.inputs)
        return "\n".join(
            [
                *head,
                "",
                *text,
                "",
                f"def program({names}):",
                body,
                "",
                f"print(gs.grad(program, {tuple(range(len(self.inputs)))})({names}))",
            ]
        )


def _literal(x: np.ndarray) -> str:
    text = f"np.array({x.tolist()!r}, {x.dtype.name!r})"
    return text if x.size else f"np.zeros({x.shape}, {x.dtype.name!r})"


@functools.cache
def numpy_namespace() -> dict[str, Any]:
    names = {"np": np, "gs": gs, "gnp": gnp, "functools": functools, "math": math}
    names |= {"operator": operator, **OPERATIONS}
    if is_installed("scipy"):
        names["special"] = load("scipy.special")
    return names


def program(seed: int, number: int) -> Program:
    """The program of that seed and number: the same one every time."""
    rng = random.Random(f"{seed}:{number}")
    writer = Writer(rng, numpy_namespace())
    inputs = {f"x{i}": _input(writer) for i in range(rng.choice((1, 1, 2, 2, 3)))}
    writer.values |= inputs
    writer.names += inputs
    _write(writer, rng.randint(LEAST, LONGEST))
    loss = _loss(writer)
    if rng.random() < NARROW:
        inputs = {name: x.astype(np.float32) for name, x in inputs.items()}
    return Program(
        seed,
        number,
        inputs,
        writer.arrays,
        tuple(writer.lines),
        loss,
        writer.in_jax,
    )


def _input(w: Writer) -> np.ndarray:
    """Away from 0, and no two elements alike: kinks lie there."""
    shape = w.shape()
    count = math.prod(shape)
    places = w.rng.sample(range(-20, 20), min(count, 40))
    places += w.rng.choices(range(-20, 20), k=count - len(places))
    draws = [(p + w.rng.uniform(0.2, 0.8)) / 10 for p in places]
    return np.array(draws).round(4).reshape(shape)


def _write(writer: Writer, length: int) -> None:
    kinds, weights = list(KINDS), list(KINDS.values())
    for _ in range(TRIES * length):
        try:
            line = writer.rng.choices(kinds, weights)[0](writer)
        except SkipLineError:
            continue
        writer.add(line, in_jax=not isinstance(line, NumpyOnly))
        if len(writer.lines) == length:
            return


def _loss(writer: Writer) -> str:
    """A real number that depends on every value that nothing else uses."""
    used = set().union(*map(_used, writer.lines))
    ends = [name for name in writer.names if name not in used]
    return "loss = " + " + ".join(weighed(writer, name) for name in ends)


def weighed(writer: Writer, name: str) -> str:
    value = writer.values[name]
    weights = writer.literal(value.shape, 0.3, 1.5)
    if value.dtype.kind == "f":
        return f"np.sum({weights} * {name})"
    return f"np.sum(np.real({name}) * {weights}) - 0.7 * np.sum(np.imag({name}))"


def _used(line: Line) -> set[str]:
    return set(_NAME.findall(line.text)) - {line.name}
