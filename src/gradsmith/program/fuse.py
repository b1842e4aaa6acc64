"""Plans: body and gradient of an operation as one kernel each.

Body and rule are traced together for the shapes and dtypes of a call. What the gradient
needs of the forward pass is saved if it is small (one number for each row), and else
computed again from the arguments: an array that is written and read later moves more
bytes than one that is read again. A value that is an argument, and a gradient that is
the upstream one, take no kernel.

Unless the gradient is an array that the forward pass can compute while it has the row
at hand, times a number of the row that comes with dy. That array is the memory of the
gradient: what is left to do is a product in place, and nothing where dy is 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np

from .. import numpy as gnp
from ..core.cotangent import Spec
from ..core.reach import reached
from ..core.tape import Traced
from ..core.transforms import vjp
from ..operations import fusing
from ..operations.operation import Operation
from ..operations.parameters import Bound
from .fusion import FULL, is_counted, refuse, takes_long
from .graph import Program, Step, Value, is_uniform
from .kernels.kernel import Kernel
from .kernels.machine import this_machine
from .kernels.mode import for_kernel
from .kernels.triton_launch import reduces
from .passes import without_dead
from .trace import trace

NARROW = ("float16", "bfloat16")


@dataclass(frozen=True, eq=False)
class Plan:
    """How a call runs: forward, and back to the arguments `wanted`.

    `y` and `saved` are what the forward kernel writes; `sources` is where the inputs of
    the gradient come from: "dy", "y", or the arguments and what was saved, by number.
    If `ahead`, the last of what is saved are the gradients but for a factor, one for
    each that is wanted. The gradient's kernel may write over them. If there are
    `parts`, the kernel writes them in place of `y`, which is their sum. `y_dtype` is
    the dtype of the value in memory.
    """

    operation: Operation[..., Any]
    forward: Kernel
    y: Spec
    saved: list[Spec]
    wanted: tuple[int, ...]
    gradient: Program | None
    sources: list[tuple[str, int]]
    storage: tuple[str, ...]
    ahead: bool
    parts: Spec | None
    y_dtype: str
    _backward: dict[Any, Kernel]
    gpu: bool = False  # else its kernels are for a CPU
    note: str = ""  # why the framework does without, if it does
    # What a framework remembers of calls that it made by this
    calls: dict[Any, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        kernels = [self.forward, *([self.backward()] if self.wanted else [])]
        notes = [f"# {self.note}"] if self.note else []
        return "\n\n".join([*notes, *map(str, kernels)])

    @cached_property
    def number(self) -> int:
        """By which a graph names it: of its content, since graphs are kept on disk."""
        # One loop is the same for inputs of several shapes, and the plan is not
        arrays = (*self.forward.program.inputs, self.y, *self.saved)
        specs = [(v.shape, v.dtype.name) for v in arrays]
        content = f"{self}{specs}{self.y_dtype}{self.wanted}{self.sources}{self.ahead}"
        digest = sha256(content.encode())
        for kernel in (self.forward, *([self.backward()] if self.wanted else [])):
            for x in kernel.nest.constants:
                digest.update(x.tobytes())
        return int(digest.hexdigest()[:15], 16)

    @cached_property
    def written_dtype(self) -> str:
        """The dtype of what the kernel writes first: the value, or its parts."""
        return self.forward.storage[len(self.forward.nest.inputs)]

    @cached_property
    def total(self) -> Kernel:
        """What adds up the parts, into the dtype of the value."""
        assert self.parts is not None
        with for_kernel(gpu=self.gpu), fusing.kernels(False):
            program = replace(trace(gnp.sum, self.parts), name="total")
        return Kernel(program, (self.parts.dtype.name, self.y_dtype))

    @cached_property
    def needs_y(self) -> bool:
        return ("y", 0) in self.sources

    @cached_property
    def same(self) -> int | None:
        """The number of the argument that the value is, if it is one."""
        program = self.forward.program
        y = program.results[0]
        return program.inputs.index(y) if y in program.inputs else None

    @cached_property
    def passes_on(self) -> bool:
        """Whether each gradient is the upstream one as it comes."""
        if self.gradient is None or ("dy", 0) not in self.sources:
            return False
        dy = self.gradient.inputs[self.sources.index(("dy", 0))]
        return all(dx is dy for dx in self.gradient.results)

    @cached_property
    def is_worth_a_call(self) -> bool:
        """Whether a kernel is faster than the loops that XLA writes for a CPU.

        Loops over elements stay its own if they only move memory, or if there is no
        AVX-512. With that, value and gradient of 128 x 1024 take 0.5 of its time for
        sigmoid, silu and log1mexp, 0.4 for gelu and 0.8 for focal; with AVX2 1.2, 1.2,
        1.2, 0.9 and 1.6.
        """
        steps = [step for each in self._kernels for step in each.program.steps]
        is_flat = all(each.nest.flat for each in self._kernels)
        is_long = this_machine().scales and any(takes_long(step.fn) for step in steps)
        return not is_flat or is_long

    @cached_property
    def reduces(self) -> bool:
        """Whether some kernel does more than go over elements."""
        return any(reduces(each.nest) for each in self._kernels)

    @cached_property
    def _kernels(self) -> list[Kernel]:
        return [self.forward, *([self.backward()] if self.gradient else [])]

    @cached_property
    def made(self) -> list[tuple[tuple[int, ...], np.dtype[Any]]]:
        """The shapes and dtypes of the gradients, in memory of NumPy's."""
        assert self.gradient is not None
        dxs = self.gradient.results
        pairs = zip(dxs, self.storage[-len(dxs) :], strict=True)
        return [(dx.shape, np.dtype(name)) for dx, name in pairs]

    @cached_property
    def is_like_first(self) -> bool:
        """Whether the value has the shape and dtype of the first argument."""
        x = self.forward.program.inputs[0]
        is_alike = x.shape == self.y.shape and self.forward.storage[0] == self.y_dtype
        return is_alike and self.parts is None

    @cached_property
    def small(self) -> int:
        """How many of what is saved are not gradients."""
        return len(self.saved) - (len(self.wanted) if self.ahead else 0)

    @cached_property
    def in_place(self) -> list[tuple[int, int]]:
        """Which inputs of the gradient's kernel it may write which outputs over."""
        of = [("saved", self.small + k) for k in range(len(self.wanted))]
        return [(self.sources.index(s), k) for k, s in enumerate(of) if self.ahead]

    @cached_property
    def over_y(self) -> int | None:
        """The number of the gradient that may be written over the value as it is read.

        In a cache, memory that was just read is written in 0.67 of the time.
        """
        if not self.needs_y or not self.backward().nest.flat:
            return None
        of_y = self.y.shape, np.dtype(self.y_dtype)
        return self.made.index(of_y) if of_y in self.made else None

    @cached_property
    def places(self) -> tuple[list[int], int]:
        """Where each of what is saved starts in one block of memory, and its size."""
        starts, size = [], 0
        for s in self.saved[: self.small]:
            starts.append(size)
            size += -(-s.size * s.dtype.itemsize // 64) * 64
        return starts, size

    def saved_of(self, arrays: Sequence[Any], as_array: Any) -> list[Any]:
        """What the forward kernel saves, composed: as `Program.portably`."""
        program = self.forward.program
        _, *saved = program.outputs
        if not saved:
            return []
        given = [
            gnp.astype(x, v.dtype.name) if str(x.dtype) in NARROW else x
            for x, v in zip(arrays, program.inputs, strict=True)
        ]
        found = without_dead(replace(program, outputs=saved)).portably(given, as_array)
        names = self.forward.storage[-len(saved) :]
        return [
            gnp.astype(v, name) if name in NARROW else v
            for v, name in zip(found, names, strict=True)
        ]

    def backward(self, dy: str = FULL) -> Kernel:
        """The gradient's kernel, for an upstream gradient that may repeat itself."""
        found = self._backward.get(dy)
        if found is None:
            assert self.gradient is not None
            repeated = {}
            if dy != FULL and ("dy", 0) in self.sources:
                repeated[self.sources.index(("dy", 0))] = dy
            found = Kernel(self.gradient, self.storage, repeated, self.in_place)
            self._backward[dy] = found
        return found


def plan_of(
    operation: Operation[..., Any],
    bound: Bound,
    wanted: Sequence[int],
    *,
    gpu: bool = False,
    ahead: bool = False,
) -> Plan:
    """Trace a call whose arrays are specs, and its gradient for those wanted.

    If `ahead`, the forward pass may make a gradient where that moves fewer bytes.
    """
    specs = [_computed_in(x) for x in bound.leaves]
    names = [
        x.dtype if isinstance(x.dtype, str) else x.dtype.name for x in bound.leaves
    ]
    narrow = {name for name in names if name in NARROW}
    if len(narrow) > 1 or (narrow and {"float32", "float64"} & {*names}):
        raise refuse(f"{operation.name!r} of arrays of several floating dtypes")

    def run(*xs: Any) -> Any:
        args, kwargs = bound.with_leaves(xs).given_arguments()
        return operation(*args, **kwargs)

    with for_kernel(gpu=gpu), fusing.kernels(False):
        first = replace(trace(run, *specs), name=operation.name)
        y = _single(operation, first)
        joint, dxs = first, ()
        if wanted:
            joint = trace(_with_gradient(run, wanted), Spec(y.shape, y.dtype), *specs)
            y, dxs = joint.outputs
    _refuse_captured(operation, joint)
    written = _parts_of(y, joint)
    parts = None if written is y else Spec(written.shape, written.dtype)
    precise = [] if parts is None else [written]  # in memory too
    (y_dtype,) = _storage([y], narrow)
    if not wanted:
        program = without_dead(replace(first, outputs=written))
        kernel = Kernel(program, _storage([*first.inputs, written], narrow, precise))
        none: list[Any] = []
        return Plan(
            operation, kernel, y, none, (), None, none, (), False, parts, y_dtype, {},
            gpu,
        )  # fmt: skip
    # An upstream gradient that scales float16 up comes too late for what is 0 there.
    # Only a GPU is short of memory's time, not of its own, in bfloat16.
    is_wide = not narrow or (gpu and narrow == {"bfloat16"})
    cut = _Cut(operation.name, joint, y, list(dxs), ahead=ahead and is_wide, gpu=gpu)
    cut.written = written
    precise += [v for v in cut.saved if v not in cut.factors]
    forward, (gradient, sources) = cut.forward(), cut.backward()
    plan = Plan(
        operation,
        Kernel(forward, _storage([*forward.inputs, *forward.results], narrow, precise)),
        y,
        [Spec(v.shape, v.dtype) for v in cut.saved],
        tuple(wanted),
        gradient,
        sources,
        _storage([*gradient.inputs, *gradient.results], narrow, precise),
        bool(cut.factors),
        parts,
        y_dtype,
        {},
        gpu,
    )
    plan.backward()  # so that what can't be fused is refused at the call
    return plan


def _storage(
    values: Sequence[Value], narrow: set[str], precise: Sequence[Value] = ()
) -> tuple[str, ...]:
    """The dtypes in memory: half precision, but for some."""
    return tuple(
        next(iter(narrow))
        if narrow and v.dtype == np.float32 and v not in precise
        else v.dtype.name
        for v in values
    )


def _computed_in(x: Any) -> Spec:
    """The spec in which an array is computed: half precision in float32."""
    name = x.dtype if isinstance(x.dtype, str) else x.dtype.name
    return Spec(tuple(x.shape), np.dtype("float32" if name in NARROW else name))


def _single(operation: Any, program: Program) -> Value:
    y = program.outputs
    if not isinstance(y, Value):
        raise refuse(f"{operation.name!r}, which returns more than one array,")
    if y.dtype.kind != "f":
        raise refuse(f"{operation.name!r}, whose result is of {y.dtype},")
    return y


def _parts_of(y: Value, program: Program) -> Value:
    """What a value is the sum of, if that is a number for each row; else itself.

    Whoever runs the kernel adds them up: a kernel sees one row at a time.
    """
    largest = max(v.size for v in program.inputs)
    for step in program.steps:
        if y in step.outputs and step.fn is np.sum and not step.kwargs:
            x, *axis = step.args
            is_small = 4 * x.size <= largest and x not in program.inputs
            if is_small and not axis and x.dtype == y.dtype:
                return x
    return y


def _with_gradient(run: Callable[..., Any], wanted: Sequence[int]) -> Any:
    def both(dy: Any, *xs: Any) -> Any:
        def of_wanted(*some: Any) -> Any:
            all_of_them = list(xs)
            for i, x in zip(wanted, some, strict=True):
                all_of_them[i] = x
            return run(*all_of_them)

        y, pull = vjp(of_wanted, *(xs[i] for i in wanted))
        return y, pull(dy)

    return both


def _refuse_captured(operation: Any, program: Program) -> None:
    held = operation.fn, operation.vjp_rule
    for x in reached(*held, stop=lambda x: isinstance(x, Traced)):
        raise refuse(
            f"{operation.name!r}, which captures a tensor of shape {x.shape} (make it "
            "an argument),"
        )
    for array in program.constants.values():
        if array.size and not is_uniform(array) and not is_counted(array):
            raise refuse(
                f"{operation.name!r}, which captures an array of shape {array.shape} "
                "(make it an argument),"
            )


class _Cut:
    """Where a program of value and gradient is cut in two."""

    def __init__(
        self,
        name: str,
        program: Program,
        y: Any,
        dxs: list[Any],
        *,
        ahead: bool,
        gpu: bool,
    ) -> None:
        for each in (y, *dxs):
            if not isinstance(each, Value):
                raise refuse(f"a gradient that is {each!r}")
        self.name, self.program, self.y, self.dxs = name, program, y, dxs
        self.gpu = gpu
        self.dy = program.inputs[0]
        self.made = {v: step for step in program.steps for v in step.outputs}
        late = {self.dy}
        for step in program.steps:
            if late.intersection(step.inputs):
                late.update(step.outputs)
        self.late = late
        self.largest = max(v.size for v in (*program.inputs, y))
        self.written = y
        self.factors: list[Value] = []
        self._follow()
        if ahead:
            self._make_ahead()
        for v in self.factors:
            self.taken[v] = ("saved", len(self.saved))
            self.saved.append(v)

    def _follow(self) -> None:
        """What the gradient is computed of."""
        self.for_value = self._computed_for([self.y, *self.factors])
        self.saved: list[Value] = []
        self.taken: dict[Value, tuple[str, int]] = {}  # inputs of the gradient
        self.again: set[Value] = set()  # computed in the gradient too
        for v in self.dxs:
            self._need(v)

    def _is_large(self, v: Value) -> bool:
        return v.size * 4 > self.largest

    def _make_ahead(self) -> None:
        """Let the forward pass make the gradients, if that moves fewer bytes.

        It does if dy is 1, as it is for a loss. Else an array that is made ahead is
        written, read and written again, where it was written once: that must be made
        up for by what is not read again, or not computed again, which takes a GPU no
        time.
        """
        found = [f for dx in self.dxs if (f := self._factor(dx)) is not None]
        if self._is_large(self.y) or len({*found}) < len(self.dxs):
            return
        read = sum(map(self._is_large, self.taken))
        takes_long = not self.gpu and any(map(self._takes_long, found))
        if self.y.size == 1 or 2 * len(found) <= read or takes_long:
            self.factors = found
            self._follow()
            if any(map(self._is_large, self.taken)):  # more than them is needed
                self.factors = []
                self._follow()

    def _factor(self, dx: Value) -> Value | None:
        step = self.made.get(dx)
        if step is None or step.fn is not np.multiply or len(step.inputs) != 2:
            return None
        for f, r in (step.inputs, step.inputs[::-1]):
            if (
                f in self.made
                and f not in self.late
                and (f.shape, f.dtype) == (dx.shape, dx.dtype)
                and self._is_large(f)
                and r in self.late
                and not self._is_large(r)
            ):
                return f
        return None

    def _takes_long(self, v: Value) -> bool:
        todo, seen = [v], set()
        while todo:
            step = self.made.get(todo.pop())
            if step is None or step in seen:
                continue
            if takes_long(step.fn):
                return True
            seen.add(step)
            todo += [x for x in step.inputs if self._is_large(x)]
        return False

    def _computed_for(self, todo: list[Value]) -> set[Value]:
        """All that the forward pass computes for some values, and these."""
        found = set()
        while todo:
            v = todo.pop()
            if v not in found:
                found.add(v)
                todo += self.made[v].inputs if v in self.made else ()
        return found

    def _is_worth_saving(self, v: Value) -> bool:
        """Whether it is small, and computed of what is not."""
        return not self._is_large(v) and any(
            map(self._is_large, self._computed_for([v]))
        )

    def _need(self, v: Value) -> None:
        todo = [v]
        while todo:
            v = todo.pop()
            if v in self.again or v in self.taken or v in self.factors:
                continue
            if v in self.program.constants:
                continue
            step = self.made.get(v)
            if v is self.dy:
                self.taken[v] = ("dy", 0)
            elif step is None:
                self.taken[v] = ("x", self.program.inputs.index(v) - 1)
            elif v in self.late or not step.inputs:
                self._compute(step, todo)
            elif v is self.y:
                self.taken[v] = ("y", 0)
            elif v in self.for_value and self._is_worth_saving(v):
                self.taken[v] = ("saved", len(self.saved))
                self.saved.append(v)
            else:
                self._compute(step, todo)

    def _compute(self, step: Step, todo: list[Value]) -> None:
        self.again.update(step.outputs)
        todo += step.inputs

    def forward(self) -> Program:
        early = [s for s in self.program.steps if not self.late.intersection(s.outputs)]
        inputs, outputs = self.program.inputs[1:], [self.written, *self.saved]
        return _part(self.name, self.program, inputs, early, outputs)

    def backward(self) -> tuple[Program, list[tuple[str, int]]]:
        steps = [s for s in self.program.steps if self.again.intersection(s.outputs)]
        first = sorted(self.taken.items(), key=lambda each: each[1])  # dy, then x
        inputs, sources = tuple(v for v, _ in first), [each for _, each in first]
        name = f"{self.name}_gradient"
        return _part(name, self.program, inputs, steps, self.dxs), sources


def _part(
    name: str,
    program: Program,
    inputs: Sequence[Value],
    steps: Sequence[Step],
    outputs: Any,
) -> Program:
    new = Program(name, tuple(inputs), tuple(steps), outputs, program.constants)
    return without_dead(new)
