"""Straight-line Python code of a program, with its memory planned.

Each step is one call of NumPy's. An elementwise result goes into a buffer: that of an
operand that nobody needs any more, one that is free, or a new one. Buffers are kept for
the next call; those that hold a result of the program are new in each call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, count
from math import prod
from typing import Any

import numpy as np

from ..core import trees
from ..core.cotangent import stack_of_rows
from ..core.pool import SMALLEST, empty
from ..core.rule import convert, index, is_basic
from ..rules.indexing import scatter
from ..rules.polynomials import FEW, powers
from .graph import Program, Step, Value, changed, setitem, values_in

# Ufuncs whose `reduce` a function is
_REDUCTIONS = {
    np.sum: np.add,
    np.prod: np.multiply,
    np.max: np.maximum,
    np.min: np.minimum,
    np.any: np.logical_or,
    np.all: np.logical_and,
}
LARGE = 10_000  # elements
NARROW = 32  # columns
_OPERATORS = {
    np.add: "+",
    np.subtract: "-",
    np.multiply: "*",
    np.divide: "/",
}
_OUT_BY_NAME = (np.maximum, np.minimum)  # NumPy warns: a third number may be meant
_RESHAPED = (np.reshape, np.expand_dims, np.squeeze, np.ravel)
PERMUTED = (np.transpose, np.swapaxes, np.moveaxis, np.matrix_transpose)
# Functions that return new memory; all others may return a view of an argument
_NEW = {
    *_REDUCTIONS, np.mean, np.var, np.std, np.where, np.concatenate, np.stack, np.dot,
    np.tensordot, np.outer, np.take, np.take_along_axis, np.cumsum, np.cumprod, np.sort,
    np.argsort, np.argmax, np.argmin, np.count_nonzero, np.clip, np.tile, np.repeat,
    np.pad, np.zeros, np.ones, np.full, np.linalg.solve, np.linalg.inv, np.linalg.det,
    np.linalg.cholesky, np.searchsorted, np.roll, np.cross, scatter, convert,
    changed,
}  # fmt: skip


class Code:
    """The compiled form of a program: `run` takes its arrays one by one."""

    def __init__(self, program: Program, variables: Sequence[Any] = ()) -> None:
        self.program = program
        self.variables = variables  # whose values are the last inputs
        self.source, known, specs = _Emitter(program).emitted()
        self._specs = specs
        self._idle: list[tuple[Any, ...]] = []
        known.update(
            take=self._idle.pop, give=self._idle.append, new=self._buffers,
            errstate=partial(np.errstate, all="ignore"),
        )  # fmt: skip
        exec(compile(self.source, f"<compiled {program.name}>", "exec"), known)
        self.run: Callable[..., Any] = known["run"]

    def _buffers(self) -> list[Any]:
        """New memory."""
        return [np.empty(shape, dtype) for shape, dtype in self._specs]


@dataclass
class _View:
    """A line that takes a view of an array. Of pooled memory it is taken once."""

    name: str
    source: str
    expression: str  # behind the name of the source

    def __str__(self) -> str:
        return f"{self.name} = {self.source}{self.expression}"


class _Buffer:
    """Planned memory; `fresh` if it holds a result of the program."""

    def __init__(self, name: str, y: Value) -> None:
        self.name, self.shape, self.dtype = name, y.shape, y.dtype
        self.fresh = False


class _Emitter:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.known: dict[str, Any] = {}  # the globals of the code
        self.names: dict[Value, str] = {}
        self.buffers: list[_Buffer] = []
        self.free: dict[Any, list[_Buffer]] = {}
        self.at: dict[Value, _Buffer] = {}  # what lies in which buffer
        self.lines: list[str | _View] = []
        self.in_order: set[str] = set()  # what is contiguous, of views
        self.turned: set[Value] = set()  # whose last two axes are swapped in memory
        self._by_id: dict[int, tuple[str, Any]] = {}
        self._numbers = count()
        for i, x in enumerate(program.inputs):
            self.names[x] = f"x{i}"
        for x, array in program.constants.items():
            self.names[x] = self.constant(array)
        self.roots = _roots(program)
        self.last = _last_uses(program, self.roots)
        self.parts = _parts_of_sums(program)
        for i, step in self.parts.values():
            for root in (root for x in step.inputs for root in self.roots[x]):
                self.last[root] = max(self.last[root], i)
        self.kept = {root for y in program.results for root in self.roots[y]}

    def emitted(self) -> tuple[str, dict[str, Any], list[Any]]:
        for i, step in enumerate(self.program.steps):
            self.emit(step, i)
        returned = self.returned()
        pooled = [b for b in self.buffers if not b.fresh]
        memory = [b.name for b in pooled]
        views, rest = self.taken_once({*memory})
        lines = [f"{b.name} = {self.new(b)}" for b in self.buffers if b.fresh]
        source = ""
        if pooled:
            names = ", ".join([*memory, *(view.name for view in views)]) + ","
            source = "\n    ".join(
                ["def make():", f"{', '.join(memory)}, = new()", *map(str, views)]
            )
            source += f"\n    return {names}\n\n\n"
            take = ["try:", "    B = take()", "except IndexError:", "    B = make()"]
            lines += [*take, f"{names} = B"]
        lines += map(str, rest)
        lines += [*(["give(B)"] if pooled else []), f"return {returned}"]
        inputs = ", ".join(self.names[x] for x in self.program.inputs)
        if all(map(_is_silent, self.program.steps)):  # 0.7 us less
            body = "\n    ".join(lines)
            source += f"def run({inputs}):\n    {body}\n"
        else:
            body = "\n        ".join(lines)
            source += f"def run({inputs}):\n    with errstate():\n        {body}\n"
        return source, self.known, [(b.shape, b.dtype) for b in pooled]

    def taken_once(self, memory: set[str]) -> tuple[list[_View], list[str | _View]]:
        """The views of pooled memory, and the lines that are left.

        Each takes 0.1 to 0.2 us: of 64 x 128 powers a fifth of the time.
        """
        views: list[_View] = []
        rest: list[str | _View] = []
        for line in self.lines:
            if isinstance(line, _View) and line.source in memory:
                memory.add(line.name)
                views.append(line)
            else:
                rest.append(line)
        return views, rest

    def view(self, source: str, expression: str) -> str:
        """The name of a view that no value stands for."""
        name = f"v{next(self._numbers)}"
        self.lines.append(_View(name, source, expression))
        return name

    def new(self, buffer: _Buffer) -> str:
        """Memory for a result; large memory that was used before, if there is any."""
        nbytes = prod(buffer.shape) * buffer.dtype.itemsize
        spec = f"{self.constant(buffer.shape)}, {self.constant(buffer.dtype)}"
        if nbytes >= SMALLEST and buffer.dtype.isnative:
            return f"{self.constant(empty)}({spec}, {nbytes})"
        return f"{self.constant(np.empty)}({spec})"

    # Steps

    def emit(self, step: Step, i: int) -> None:
        if hasattr(step.fn, "kernel"):
            self.kernel(step, i)
        elif step.outputs[0] not in self.parts:  # else it is added by the sum itself
            line = self.summed(step, i) or self.product(step, i)
            line = line or self.elementwise(step, i)
            line = line or self.reduced(step, i) or self.masked(step, i)
            line = line or self.scattered(step, i) or self.joined(step, i)
            line = line or self.powered(step, i) or self.changed(step, i)
            self.lines.append(line or self.other(step))
        added = [
            x for y in step.inputs if y in self.parts for x in self.parts[y][1].inputs
        ]
        ended = {root for x in (*step.inputs, *added) for root in self.roots[x]}
        for root in [*ended, *step.outputs]:
            if self.last.get(root, -1) <= i and root not in self.kept:
                self.release(root)

    def release(self, root: Value) -> None:
        buffer = self.at.pop(root, None)
        if buffer is not None:
            self.free.setdefault((buffer.shape, buffer.dtype), []).append(buffer)

    def elementwise(self, step: Step, i: int) -> str:
        """A ufunc, in place where an operand is not needed any more."""
        fn = step.fn
        if not isinstance(fn, np.ufunc) or step.kwargs or fn.nout > 1:
            return ""
        y = step.outputs[0]
        args = [self.text(x) for x in step.args]
        if not y.shape:
            if fn in _OPERATORS and all(map(_is_typed, step.args)):
                return f"{self.name(y)} = {args[0]} {_OPERATORS[fn]} {args[1]}"
            return f"{self.name(y)} = {self.constant(fn)}({', '.join(args)})"
        buffer = self.placed(y, step if fn.signature is None else None, i)
        out = f"out={buffer.name}" if fn in _OUT_BY_NAME else buffer.name
        return f"{self.constant(fn)}({', '.join([*args, out])})"

    def product(self, step: Step, i: int) -> str:
        """A product with a transpose of few columns, which is copied before.

        Of 25 x 1000 x 10 numbers with 25 x 10 x 10 it takes 0.65 of the time.
        """
        y, b = step.outputs[0], step.args[-1] if step.args else None
        plain = step.fn is np.matmul and not step.kwargs and isinstance(b, Value)
        if (
            not plain
            or b not in self.turned
            or y.size < LARGE
            or b.shape[-1] > NARROW
            or b.dtype != y.dtype
        ):
            return ""
        if 8 * b.size > y.size:
            return ""
        copied = Value(b.shape, b.dtype)
        name = self.placed(copied, None, i).name
        self.lines.append(f"{self.constant(np.copyto)}({name}, {self.text(b)})")
        out = self.placed(y, None, i).name
        self.release(copied)
        return f"{self.constant(step.fn)}({self.text(step.args[0])}, {name}, {out})"

    def summed(self, step: Step, i: int) -> str:
        """A sum of an array and of what is zero but in a part of it."""
        part = next((x for x in step.inputs if x in self.parts), None)
        if part is None:
            return ""
        dy, key = self.parts[part][1].args[:2]
        (x,) = (x for x in step.args if x is not part)
        before, y = self.names[x], step.outputs[0]
        out = self.placed(y, step, i).name
        copied = "" if out == before else f"{self.constant(np.copyto)}({out}, {before})"
        added = f"{out}[{self.text(key)}] += {self.text(dy)}"
        return f"{copied}; {added}" if copied else added

    def scattered(self, step: Step, i: int) -> str:
        """An array that is zero but in a part of it: without a call of ours."""
        if not _is_plain_scatter(step):
            return ""
        dy, key, y = self.text(step.args[0]), self.text(step.args[1]), step.outputs[0]
        out = self.placed(y, None, i).name
        return f"{out}.fill(0); {out}[{key}] = {dy}"

    def changed(self, step: Step, i: int) -> str:
        """A write, in place where nobody needs the array as it was."""
        if step.fn is not changed or not isinstance(step.args[1], Value):
            return ""
        change, x, *args = step.args
        others = [*values_in((args, step.kwargs))]
        alone = not any(x in self.roots[other] for other in others)
        reused = Step(changed, (x,), {}, step.outputs) if alone else None
        before, texts = self.names[x], [*map(self.text, args)]
        out = self.placed(step.outputs[0], reused, i).name
        lines = (
            [] if out == before else [f"{self.constant(np.copyto)}({out}, {before})"]
        )
        if change is setitem:
            lines.append(f"{out}[{texts[0]}] = {texts[1]}")
        else:
            texts += [f"{name}={self.text(a)}" for name, a in step.kwargs.items()]
            lines.append(f"{self.constant(change)}({', '.join([out, *texts])})")
        return "; ".join(lines)

    def joined(self, step: Step, i: int) -> str:
        """Arrays side by side, in memory that was used before if they are large."""
        y = step.outputs[0]
        known = step.fn in (np.concatenate, np.stack) and y.dtype.kind in "fc"
        if not known or not step.kwargs.keys() <= {"axis"} or y.size < LARGE:
            return ""
        args = ", ".join([*map(self.text, step.args)])
        axis = f", axis={self.text(step.kwargs['axis'])}" if step.kwargs else ""
        out = self.placed(y, None, i).name
        return f"{self.constant(step.fn)}({args}{axis}, out={out})"

    def powered(self, step: Step, i: int) -> str | _View:
        """`np.vander` in planned memory, power by power as NumPy rounds.

        Of 4096 x 128 powers that takes 0.15 ms, and NumPy 1.5. Of few elements each
        product gives twice as many powers: 64 x 128 take 6 us, and NumPy 25.
        """
        y, x = step.outputs[0], step.args[0]
        given = dict(zip(("N", "increasing"), step.args[1:], strict=False))
        options = given | step.kwargs
        if step.fn is not np.vander or y in self.kept or not isinstance(x, Value):
            return ""
        (many, n), typed = y.shape, x.dtype is y.dtype and y.dtype.kind in "fc"
        if not typed or n < 2 or not many:
            return ""
        out = self.placed(Value((n, many), y.dtype), None, i).name
        multiply = self.constant(np.multiply)
        rows = out if options.get("increasing") else self.view(out, "[::-1]")
        one, base = self.view(rows, "[0]"), self.view(rows, "[1]")
        lines = [
            f"{one}.fill(1)",
            f"{self.constant(np.copyto)}({base}, {self.text(x)})",
        ]
        known = 1
        while known < n - 1:
            more = min(known if many < FEW else 1, n - 1 - known)
            power = base if more == 1 else self.view(rows, f"[{known}]")
            first = 1 if more > 1 else known
            factors = self.view(rows, f"[{first}:{first + more}]")
            made = self.view(rows, f"[{known + 1}:{known + 1 + more}]")
            lines.append(f"{multiply}({factors}, {power}, {made})")
            known += more
        self.lines += lines
        return _View(self.name(y), out, ".T")

    def masked(self, step: Step, i: int) -> str:
        """`np.where` of an array and a number, which is written over the array.

        In place, 130,000 elements of which few are chosen take 15 us; np.where, 100.
        """
        if step.fn is not np.where or step.kwargs or len(step.args) != 3:
            return ""
        mask, y = step.args[0], step.outputs[0]
        if not (isinstance(mask, Value) and mask.dtype.kind == "b" and y.shape):
            return ""
        where = self.text(mask)
        for x, number, at in (
            (step.args[2], step.args[1], where),
            (step.args[1], step.args[2], f"~{where}"),
        ):
            if not isinstance(x, Value) or np.ndim(number) or y.dtype.kind == "b":
                continue
            if (x.shape, x.dtype) != (y.shape, y.dtype) or isinstance(number, Value):
                continue
            before, copy = self.names[x], self.constant(np.copyto)
            out = self.placed(y, step, i).name
            copied = "" if out == before else f"{copy}({out}, {before}); "
            return f"{copied}{copy}({out}, {self.text(number)}, where={at})"
        return ""

    def placed(self, y: Value, step: Step | None, i: int) -> _Buffer:
        """The buffer for a result, maybe that of an operand of an elementwise step."""
        buffer = None
        for x in step.inputs if step is not None else ():
            found = self.at.get(x)
            if found is None or self.last[x] > i or x in self.kept:
                continue
            if (found.shape, found.dtype) == (y.shape, y.dtype):
                buffer = self.at.pop(x)
                break
        free = self.free.get((y.shape, y.dtype))
        if buffer is None and free:
            buffer = free.pop()
        if buffer is None:
            buffer = _Buffer(f"b{len(self.buffers)}", y)
            self.buffers.append(buffer)
        buffer.fresh = buffer.fresh or y in self.kept
        self.at[y] = buffer
        self.names[y] = buffer.name
        return buffer

    def reduced(self, step: Step, i: int) -> str:
        """A reduction by the ufunc itself, without NumPy's way to it."""
        ufunc = _REDUCTIONS.get(step.fn)
        options = {**dict(zip(("axis",), step.args[1:], strict=False)), **step.kwargs}
        if ufunc is None or not options.keys() <= {"axis", "keepdims"}:
            return ""
        args: Any = step.args
        if len(args) > 2 or not isinstance(args[0], Value):
            return ""
        axis, keepdims = options.get("axis"), bool(options.get("keepdims", False))
        x, y = self.text(args[0]), step.outputs[0]
        if ufunc in (np.logical_or, np.logical_and):
            return ""
        call = f"{self.constant(ufunc.reduce)}({x}, {self.text(axis)}, None"
        if not y.shape:
            return f"{self.name(y)} = {call}, None, {keepdims})"
        stack = stack_of_rows(args[0], axis) if ufunc is np.add else None
        out = self.placed(y, None, i).name
        if stack is not None and args[0] in self.at:
            ones = self.constant(np.ones((1, stack[1]), y.dtype))
            shapes = self.constant(stack), self.constant((stack[0], 1, stack[2]))
            rows = self.view(x, f".reshape({shapes[0]})")
            sums = self.view(out, f".reshape({shapes[1]})")
            return f"{self.constant(np.matmul)}({ones}, {rows}, {sums})"
        return f"{call}, {out}, {keepdims})"

    def kernel(self, step: Step, i: int) -> None:
        """A kernel: a function of contiguous arrays."""
        kernel, n = step.fn.kernel, len(self.lines)
        given = []
        for k, x in enumerate(step.args):
            if x in self.at:
                given.append(self.at[x].name)
            elif isinstance(x, Value) and self.names[x] in self.in_order:
                given.append(self.names[x])
            else:  # maybe not contiguous, or a scalar
                contiguous = self.constant(np.ascontiguousarray)
                self.lines.append(f"t{n}_{k} = {contiguous}({self.text(x)})")
                given.append(f"t{n}_{k}")
        given += [self.placed(y, None, i).name for y in step.outputs]
        if kernel.kept:
            spec = Value((kernel.kept * kernel.nest.columns,), np.dtype(float))
            given.append(self.placed(spec, None, i).name)
            self.release(spec)
        call = f"{self.constant(step.fn.function)}({', '.join(given)})"
        self.lines.append(f"if {call}: {self.constant(_raise_bounds)}()")
        for y in step.outputs:
            if not y.shape:
                name = self.names.pop(y)
                self.lines.append(f"{self.name(y)} = {name}[()]")

    def other(self, step: Step) -> str | _View:
        fn, y = step.fn, step.outputs[0]
        args = [self.text(x) for x in step.args]
        name = ", ".join(self.name(y) for y in step.outputs)
        first = step.args[0] if step.args else None
        if fn is index:
            axis = _taken_along(step)
            if axis is not None:
                places = self.text(step.args[1][axis])
                return f"{name} = {args[0]}.take({places}, {axis})"
            if y.shape and is_basic(step.args[1]) and len(step.inputs) == 1:
                return _View(name, args[0], f"[{args[1]}]")
            return f"{name} = {args[0]}[{args[1]}]"
        if fn is convert:
            return f"{name} = {args[0]}.astype({args[1]})"
        if fn is np.split and (keys := slices_of(step)):
            cuts = ", ".join(f"{args[0]}[{self.constant(key)}]" for key in keys)
            return f"{name}{',' * (len(keys) == 1)} = {cuts}{',' * (len(keys) == 1)}"
        if fn in _RESHAPED and isinstance(first, Value) and _is_in_order(step):
            expression = f".reshape({self.constant(y.shape)})"
            if first in self.at or args[0] in self.in_order:
                self.in_order.add(name)
                return _View(name, args[0], expression)
            return f"{name} = {args[0]}{expression}"  # maybe a copy
        if fn in PERMUTED and isinstance(first, Value):
            axes = permutation(step, first)
            if axes[-2:] == (len(axes) - 1, len(axes) - 2):
                self.turned.add(y)
            return _View(name, args[0], f".transpose({self.constant(axes)})")
        if fn is np.stack and _is_plain_stack(step):
            return f"{name} = {self.constant(np.array)}({args[0]})"
        options = [f"{k}={self.text(x)}" for k, x in step.kwargs.items()]
        fn = powers if fn is np.vander else fn
        call = f"{self.constant(fn)}({', '.join([*args, *options])})"
        return f"{name}{',' * (len(step.outputs) == 1 and step.in_list)} = {call}"

    # Expressions

    def name(self, y: Value) -> str:
        if y not in self.names:
            self.names[y] = f"v{next(self._numbers)}"
        return self.names[y]

    def text(self, x: Any) -> str:
        if isinstance(x, Value):
            return self.names[x]
        if x is None or x.__class__ in (int, bool):
            return repr(x)
        if next(values_in(x), None) is None:
            return self.constant(x)
        if isinstance(x, slice):
            return f"slice({', '.join(map(self.text, (x.start, x.stop, x.step)))})"
        if isinstance(x, dict):
            return "{" + ", ".join(f"{k!r}: {self.text(v)}" for k, v in x.items()) + "}"
        parts = ", ".join(map(self.text, x))
        if isinstance(x, list):
            return f"[{parts}]"
        return f"({parts}{',' * (len(x) == 1)})"

    def constant(self, x: Any) -> str:
        """The name of a global for an object."""
        found = self._by_id.get(id(x))
        if found is None:
            label = getattr(x, "__name__", "c") if callable(x) else "c"
            label = label if label.isidentifier() else "c"
            found = self._by_id[id(x)] = (f"{label}_{len(self.known)}", x)
            self.known[found[0]] = x
        return found[0]

    # Results

    def returned(self) -> str:
        outputs = self.program.outputs
        taken: set[Value] = set(self.program.inputs) | set(self.program.constants)

        def expression(y: Any) -> str:
            if not isinstance(y, Value):
                return self.text(y)
            name = self.names[y]
            if not taken.isdisjoint(self.roots[y]):
                return f"{name}.copy()" if y.shape else f"{name}[()]"
            taken.update(self.roots[y])
            if y.shape or y in self.scalars:
                return name
            return f"{name}[()]"

        self.scalars = {
            y for s in self.program.steps for y in s.outputs
            if isinstance(s.fn, np.ufunc) or s.fn in _REDUCTIONS
            or hasattr(s.fn, "kernel")
        }  # fmt: skip
        if isinstance(outputs, Value) or trees.kind_of(outputs) is None:
            return expression(outputs)
        parts = [expression(y) for y in trees.leaves(outputs)]
        written = literal(outputs, iter(parts))
        if written:
            return written
        unflatten = self.constant(_Structure(outputs))
        return f"{unflatten}([{', '.join(parts)}])"


def literal(tree: Any, leaves: Iterator[str]) -> str:
    """A tree of tuples, lists and dicts as Python writes it; "" of other trees.

    It takes 0.1 us where `trees.unflatten` takes 5.
    """
    if trees.is_leaf(tree):
        return next(leaves)
    if type(tree) is dict:
        parts = [literal(part, leaves) for part in tree.values()]
        pairs = [f"{key!r}: {part}" for key, part in zip(tree, parts, strict=True)]
        known = all(parts) and all(type(key) is str for key in tree)
        return "{" + ", ".join(pairs) + "}" if known else ""
    parts = [literal(part, leaves) for part in tree] if type(tree) in _LISTS else [""]
    if not all(parts):
        return ""
    joined = ", ".join(parts)
    return f"[{joined}]" if type(tree) is list else f"({joined}{',' * bool(parts)})"


_LISTS = (tuple, list)


class _Structure:
    """Puts results into the tree that the function returned."""

    def __init__(self, outputs: Any) -> None:
        self.tree = trees.map(lambda _: None, outputs)
        self.__name__ = "structured"

    def __call__(self, flat: list[Any]) -> Any:
        return trees.unflatten(self.tree, flat)


def _is_plain_scatter(step: Step) -> bool:
    """Whether a part of an array is set that names no element twice."""
    if step.fn is not scatter or not step.outputs[0].shape:
        return False
    options = dict(zip(("distinct",), step.args[3:], strict=False)) | step.kwargs
    return options.get("distinct") is True or is_basic(step.args[1])


def _parts_of_sums(program: Program) -> dict[Value, tuple[int, Step]]:
    """What is zero but in a part, and is only needed in a sum: where, and its step.

    The sum of 31,843 x 11 elements and of three columns takes 40 us, with zeros in all
    other columns 300.
    """
    made = {s.outputs[0]: s for s in program.steps if _is_plain_scatter(s)}
    uses: dict[Value, list[int]] = {}
    for i, step in enumerate(program.steps):
        for x in step.inputs:
            uses.setdefault(x, []).append(i)
    parts: dict[Value, tuple[int, Step]] = {}
    for x in made:
        i, *more = uses.get(x, [0, 0])
        if more or x in program.results or not _is_plain_sum(program.steps[i]):
            continue
        if parts.keys().isdisjoint(program.steps[i].inputs):
            parts[x] = i, made[x]
    return parts


def _is_plain_sum(step: Step) -> bool:
    x, *others = step.args if step.fn is np.add and not step.kwargs else (None,)
    if not others or x is others[0]:
        return False
    specs = {(v.shape, v.dtype) for v in (*step.inputs, *step.outputs)}
    return len(step.inputs) == 2 and len(specs) == 1


def slices_of(step: Step) -> list[Any]:
    """The keys of the pieces that an array is cut into, if they are all of it."""
    x, options = step.args[0], dict(zip(("axis",), step.args[2:], strict=False))
    axis = (options | step.kwargs).get("axis", 0) % len(x.shape)
    lengths = [y.shape[axis] for y in step.outputs]
    if sum(lengths) != x.shape[axis]:
        return []
    ends, lead = [*accumulate(lengths)], (slice(None),) * axis
    return [(*lead, slice(e - n, e)) for n, e in zip(lengths, ends, strict=True)]


def _is_silent(step: Step) -> bool:
    """Whether it never warns: a kernel, or a view."""
    views = (index, *_RESHAPED, *PERMUTED)
    return hasattr(step.fn, "kernel") or step.fn in views


def _raise_bounds() -> None:
    raise IndexError("a place along an axis of a compiled function is out of bounds")


def _roots(program: Program) -> dict[Value, set[Value]]:
    """The values in whose memory each value may lie."""
    roots = {x: {x} for x in (*program.inputs, *program.constants)}
    for step in program.steps:
        found: set[Value] = set()
        if not (isinstance(step.fn, np.ufunc) or makes_new(step.fn)):
            found = {root for x in step.inputs for root in roots[x]}
        for y in step.outputs:
            roots[y] = found | {y}
    return roots


def makes_new(fn: Any) -> bool:
    return hasattr(fn, "kernel") or fn in _NEW


def _last_uses(program: Program, roots: dict[Value, set[Value]]) -> dict[Value, int]:
    """The last step that reads the memory of each value."""
    last: dict[Value, int] = {}
    for i, step in enumerate(program.steps):
        for x in step.inputs:
            for root in roots[x]:
                last[root] = i
    return last


def _taken_along(step: Step) -> int | None:
    """The axis along which an index takes places, behind others that it takes whole.

    By `take` that is half of the time, and the result is contiguous.
    """
    x, key = step.args[:2]
    if not isinstance(x, Value) or not isinstance(key, tuple) or len(key) < 2:
        return None
    *whole, places = key
    is_array = isinstance(places, (Value, np.ndarray)) and places.dtype.kind in "iu"
    is_array = is_array and np.can_cast(places.dtype, np.intp, "safe")
    all_whole = all(isinstance(k, slice) and k == slice(None) for k in whole)
    return len(whole) if is_array and all_whole and places.ndim else None


def _is_typed(x: Any) -> bool:
    """Whether an operator of it is NumPy's."""
    return isinstance(x, (Value, np.generic)) or type(x) in (int, float)


def _is_in_order(step: Step) -> bool:
    """Whether a reshape takes the elements one row after the other."""
    return (
        "order" not in step.kwargs
        and len(step.args) < 3
        and (step.fn is not np.ravel or len(step.args) == 1)
    )


def permutation(step: Step, x: Value) -> tuple[int, ...]:
    """Where each axis comes from."""
    lengths = tuple(range(2, len(x.shape) + 2))
    dummy = np.broadcast_to(np.zeros(()), lengths)
    return tuple(n - 2 for n in step.fn(dummy, *step.args[1:], **step.kwargs).shape)


def _is_plain_stack(step: Step) -> bool:
    """Whether a stack is what np.array makes of a list."""
    if len(step.args) != 1 or step.kwargs.get("axis", 0) != 0:
        return False
    parts = step.args[0]
    typed = all(isinstance(x, (Value, np.generic, np.ndarray)) for x in parts)
    return typed and step.kwargs.keys() <= {"axis"}
