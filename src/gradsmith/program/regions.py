"""Parts of a program that are one loop nest each, as kernels among its other steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from math import prod
from typing import Any

import numpy as np

from .fusion import Nest, NotFusedError, adds_rows, nest_of
from .graph import Program, Step, Value
from .inner import added_in, inner_nest, is_inner, with_inner, without_inner
from .kernels.kernel import Kernel
from .passes import is_elementwise
from .unrolling import groups_of, lengths_of, unrolled_nest, with_slices

# Steps from which on a kernel pays: a call of one takes as long as six of NumPy's on a
# few elements, and saves a run through memory for each but one on many.
FEW, MANY = 6, 2
LARGE = 10_000  # elements
SHORT_ROW = 64
LONGEST = 100  # steps of a kernel: it is compiled in seconds, by functions that recur
_KINDS = "fiub"


class Fused:
    """Steps that run as one kernel: a function of arrays with several results."""

    def __init__(self, program: Program, nest: Nest | None = None) -> None:
        self.kernel = Kernel(program, nest=nest)
        self.function = self.kernel.launch_arrays
        self.__name__ = "fused"

    def __call__(self, *arrays: Any) -> Any:
        return self.kernel(*arrays)


def fused(program: Program) -> Program:
    """The program with kernels in the place of steps that are one loop nest."""
    program = with_slices(program)
    for n in lengths_of(program):
        program = _with_unrolled(program, n)
    program = with_inner(program)
    grouping = _Grouping(program)
    for i in range(len(program.steps)):
        grouping.place(i)
    parts = _Deferring(program, grouping.parts).parts
    found = _with_kernels(program, _paying(program, parts), _nest)
    return without_inner(found)


def _nest(program: Program) -> Nest:
    if any(map(is_inner, program.steps)):
        return inner_nest(program)
    return nest_of(program, repeats=True)


def _with_unrolled(program: Program, n: int) -> Program:
    """The program with loops over n rows of few numbers."""

    def nest(part: Program) -> Nest:
        return unrolled_nest(part, n)

    fits = [_is_nest(program, [step], nest) for step in program.steps]
    parts = [
        part
        for part in groups_of(program, fits)
        if _takes_rows_apart([program.steps[i] for i in part], n)
    ]
    return _with_kernels(program, parts, nest)


def _takes_rows_apart(steps: Sequence[Step], n: int) -> bool:
    """Whether a loop over rows does more than one over all elements, and pays.

    A call of NumPy's takes 1 us and 1 ns for each element, a reduction of short rows
    10; a kernel takes 2 us to call.
    """
    working = [step for step in steps if _works(step)]
    sizes = {x.size for step in steps for x in (*step.inputs, *step.outputs)}
    mixed = len([size for size in sizes if size >= n]) > 1
    mixed = mixed or any(step.fn is np.cross for step in steps)
    elements = sum(step.outputs[0].size + step.inputs[0].size for step in working)
    return mixed and len(working) >= MANY and elements >= LARGE


def _with_kernels(
    program: Program, parts: list[list[int]], nest: Callable[[Program], Nest]
) -> Program:
    """The program with a kernel for each part, if there is one of it."""
    taken = {i for part in parts for i in part}
    alone = [[i] for i in range(len(program.steps)) if i not in taken]
    units = _ordered(program, parts + alone)
    users, chosen = _users(program, units), {id(part) for part in parts}
    steps: list[Step] = []
    for unit in units:
        made = _fused(program, unit, users, nest) if id(unit) in chosen else None
        steps += [made] if made is not None else [program.steps[i] for i in unit]
    return replace(program, steps=tuple(steps))


def _is_nest(
    program: Program, steps: Sequence[Step], nest: Callable[[Program], Nest]
) -> bool:
    outputs = tuple(y for step in steps for y in step.outputs)
    if not all(map(_may_fuse, steps)):
        return False
    try:
        nest(_part_of(program, steps, outputs))
    except (NotFusedError, ValueError, KeyError, TypeError, IndexError):
        return False
    return True


class _Grouping:
    """Puts steps together, one after the other, as long as they are one nest.

    A group runs at once: nothing that it needs may depend on it.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.parts: list[list[int]] = []
        self.group_of: dict[Value, int] = {}
        # The groups that each one reads, and those that it needs by way of other steps
        self.reads: list[set[int]] = []
        self.behind: list[set[int]] = []
        self._behind: dict[Value, set[int]] = {}  # the same of values in no group

    def place(self, i: int) -> None:
        step = self.program.steps[i]
        reads = {self.group_of[x] for x in step.inputs if x in self.group_of}
        behind: set[int] = set()
        for x in step.inputs:
            behind |= self._behind.get(x, set())
        if not (_may_fuse(step) and self._is_nest([i])):
            self._behind.update(dict.fromkeys(step.outputs, behind | reads))
            return
        group = self._joined(i, reads, behind)
        if group is None:
            group = len(self.parts)
            self.parts.append([])
            self.reads.append(set())
            self.behind.append(set())
        self.reads[group] |= reads - {group}
        self.behind[group] |= behind
        self.parts[group].append(i)
        self.group_of.update(dict.fromkeys(step.outputs, group))

    def _joined(self, i: int, reads: set[int], behind: set[int]) -> int | None:
        """The group that a step can be in: all that it reads as one, or one of them."""
        alone = [{group} for group in sorted(reads, reverse=True)]
        for groups in ([reads] if len(reads) > 1 else []) + alone:
            part = sorted([*(k for group in groups for k in self.parts[group]), i])
            others = behind | (reads - groups)
            if not self._is_circular(groups, others) and self._is_nest(part):
                return self._merged(groups)
        return None

    def _is_circular(self, groups: set[int], others: set[int]) -> bool:
        """Whether groups, run at once, would need themselves by way of others."""
        waiting = set(others)
        for group in groups:
            waiting |= self.behind[group] | (self.reads[group] - groups)
        seen: set[int] = set()
        while waiting:
            group = waiting.pop()
            if group in groups:
                return True
            seen.add(group)
            waiting |= (self.reads[group] | self.behind[group]) - seen
        return False

    def _merged(self, groups: set[int]) -> int:
        """One group of several."""
        first, *rest = sorted(groups)
        for other in rest:
            for i in self.parts[other]:
                step = self.program.steps[i]
                self.group_of.update(dict.fromkeys(step.outputs, first))
            self.parts[first] = sorted(self.parts[first] + self.parts[other])
            self.parts[other] = []
            for needs in (*self.reads, *self.behind, *self._behind.values()):
                if other in needs:
                    needs.discard(other)
                    needs.add(first)
            self.reads[first] |= self.reads[other]
            self.behind[first] |= self.behind[other]
        self.reads[first].discard(first)
        return first

    def _is_nest(self, part: list[int]) -> bool:
        return _is_one_nest(self.program, part)


def _is_one_nest(program: Program, part: list[int]) -> bool:
    if len(part) > LONGEST:
        return False
    steps = [program.steps[i] for i in part]
    outputs = tuple(y for step in steps for y in step.outputs)
    alone = _part_of(program, steps, outputs)
    if _guesses(alone) > 4:
        return False
    try:
        _nest(alone)
    except (NotFusedError, ValueError, KeyError, TypeError, IndexError):
        return False
    return True


class _Deferring:
    """Moves steps to the later group that alone needs them, if that moves fewer bytes.

    What a group writes for another one is written and read; a mask of what is read
    there anyway takes next to nothing to compute.
    """

    def __init__(self, program: Program, parts: list[list[int]]) -> None:
        self.program, self.parts = program, parts
        self.group = {i: part for part in parts for i in part}
        self.maker = {y: i for i, s in enumerate(program.steps) for y in s.outputs}
        self.users: dict[Value, set[int]] = {}
        for i, step in enumerate(program.steps):
            for x in step.inputs:
                self.users.setdefault(x, set()).add(i)
        self.results = {*program.results}
        for i in reversed(range(len(program.steps))):
            if i in self.group:
                self._defer(i)
        for i, part in self.group.items():
            step = program.steps[i]
            x = step.inputs[0] if adds_rows(step) else added_in(step)
            if x is not None and self._is_written(step, x, part):
                part.remove(i)

    def _defer(self, i: int) -> None:
        part, (y,) = self.group[i], self.program.steps[i].outputs
        users = self.users.get(y, set())
        if y in self.results or not users or not users <= self.group.keys():
            return
        later = self.group[next(iter(users))]
        if later is part or any(self.group[k] is not later for k in users):
            return
        if self._moved(i, later) < 2 * _bytes(y):
            together = sorted([*later, i])
            if _is_one_nest(self.program, together):
                part.remove(i)
                later[:] = together
                self.group[i] = later

    def _is_written(self, step: Step, x: Value, part: list[int]) -> bool:
        """Whether what a step reads is in memory anyway: then BLAS adds rows up.

        Of 10,000 x 100 numbers in 0.11 ms, where a kernel takes 0.25 more for it; of
        25,000 x 10 in 0.07, and a kernel in 0.01.
        """
        short = x.shape[-1] <= SHORT_ROW and adds_rows(step)
        if short and self.group.get(self.maker.get(x, -1)) is part:
            return False
        users = self.users[x]
        outside = any(self.group.get(k) is not part for k in users)
        made_here = self.group.get(self.maker.get(x, -1)) is part
        return outside or x in self.results or not made_here

    def _moved(self, i: int, later: list[int]) -> int:
        """The bytes that are written and read if a later group computes a step."""
        part, total = self.group[i], 0
        for x in {*self.program.steps[i].inputs} - {*self.program.constants}:
            users = self.users[x] - {i}
            if users.isdisjoint(later):
                total += _bytes(x)
            outside = x in self.results or any(
                self.group.get(k) is not part for k in users
            )
            if self.group.get(self.maker.get(x, -1)) is part and not outside:
                total += _bytes(x)
        return total


def _bytes(x: Value) -> int:
    return x.size * x.dtype.itemsize


def _may_fuse(step: Step) -> bool:
    values = [*step.inputs, *step.outputs]
    if not step.inputs or len(step.outputs) > 1:
        return False
    return all(x.dtype.kind in _KINDS and x.size for x in values)


def _guesses(program: Program) -> int:
    """How many arrays could be rows or columns, all ways of which would be tried."""
    shapes = [x.shape for x in (*program.inputs, *program.constants)]
    lengths = {n for shape in shapes for n in shape}
    return sum(len(shape) == 1 for shape in shapes) if len(lengths) == 1 else 0


def _part_of(
    program: Program, steps: Sequence[Step], outputs: tuple[Value, ...]
) -> Program:
    """Steps as a program of their own."""
    made = {y for step in steps for y in step.outputs}
    needed = dict.fromkeys(x for step in steps for x in step.inputs if x not in made)
    constants = {x: program.constants[x] for x in needed if x in program.constants}
    inputs = tuple(x for x in needed if x not in constants)
    return Program(program.name, inputs, tuple(steps), outputs, constants)


def _paying(program: Program, parts: list[list[int]]) -> list[list[int]]:
    """The groups that are worth a kernel."""
    units = []
    for part in filter(None, parts):
        steps = [program.steps[i] for i in part]
        size = max(prod(x.shape) for s in steps for x in (*s.inputs, *s.outputs))
        working = sum(_works(step) for step in steps)
        many = 1 if any(map(_is_slow, steps)) else MANY
        if working >= (many if size >= LARGE else FEW):
            units.append(part)
    return units


def _is_slow(step: Step) -> bool:
    """Whether NumPy calls a loop for each of many short rows.

    For 25 x 1000 rows of 10 numbers less 1000 of them it takes 185 us, and a kernel 80.
    """
    y, xs = step.outputs[0], step.inputs
    short = len(y.shape) > 1 and 1 < y.shape[-1] <= SHORT_ROW
    return short and is_elementwise(step) and any(1 < x.size < y.size for x in xs)


def _works(step: Step) -> bool:
    """Whether a step runs through memory; views do not."""
    return isinstance(step.fn, np.ufunc) or step.fn in _WORKING or is_inner(step)


_WORKING = (np.where, np.sum, np.max, np.min, np.mean, np.count_nonzero, np.clip)


def _ordered(program: Program, units: list[list[int]]) -> list[list[int]]:
    """Units of steps, each after those that it needs."""
    unit_of = {i: k for k, unit in enumerate(units) for i in unit}
    maker = {y: i for i, step in enumerate(program.steps) for y in step.outputs}
    needed: list[set[int]] = [set() for _ in units]
    for i, step in enumerate(program.steps):
        for x in step.inputs:
            if x in maker:
                needed[unit_of[i]].add(unit_of[maker[x]])
    users: list[set[int]] = [set() for _ in units]
    for k, others in enumerate(needed):
        others.discard(k)
        for other in others:
            users[other].add(k)
    ready = [(unit[0], k) for k, unit in enumerate(units) if not needed[k]]
    heapify(ready)
    ordered = []
    while ready:
        _, k = heappop(ready)
        ordered.append(units[k])
        for user in users[k]:
            needed[user].discard(k)
            if not needed[user]:
                heappush(ready, (units[user][0], user))
    assert len(ordered) == len(units), "a group that needs itself"
    return ordered


def _users(program: Program, units: list[list[int]]) -> dict[Value, set[int]]:
    """The units that read each value; -1 is whoever called the program."""
    users: dict[Value, set[int]] = {y: {-1} for y in program.results}
    for k, unit in enumerate(units):
        for i in unit:
            for x in program.steps[i].inputs:
                users.setdefault(x, set()).add(id(units[k]))
    return users


def _fused(
    program: Program,
    unit: list[int],
    users: dict[Value, set[int]],
    nest: Callable[[Program], Nest],
) -> Step | None:
    """The steps of a unit as one; None if there is no kernel of them after all."""
    steps = [program.steps[i] for i in unit]
    outputs = tuple(
        y for step in steps for y in step.outputs if users.get(y, set()) - {id(unit)}
    )
    part = _part_of(program, steps, outputs)
    try:
        fn = Fused(part, nest(part))
    except (NotFusedError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return Step(fn, part.inputs, {}, outputs, steps[0].place)
