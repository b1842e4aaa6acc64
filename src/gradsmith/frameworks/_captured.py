"""Following what a body captures: tensors and variables that are not its arguments.

While a body runs, a stand-in for each active recorder follows what comes from outside,
and is blind to the arguments, for which the operation's rule speaks. What it finds out
about an output becomes one more input of the operation, whose gradient is the upstream
itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CellType, FunctionType
from typing import Any

from ..core.forward import ForwardAccumulator
from ..core.tape import Key, Node, Tape, Traced, leave_mark, state
from ..core.tensor import Variable, unwrap, wrap

_BLIND: Any = object()  # the mark on what comes from an argument


class Captures:
    """The stand-ins for the active recorders during one run of a body.

    With `beside` the recorders stay active, since they must know the body's values too:
    what rules compute from these may be differentiated again.
    """

    def __init__(self, recorders: Sequence[Any], *, beside: bool) -> None:
        self.stand_ins: list[Any] = []
        active: list[Any] = []
        for recorder in recorders:
            stand_ins = _stand_ins_for(recorder)
            self.stand_ins += stand_ins
            active += [recorder, *stand_ins] if beside else stand_ins
        self.active = tuple(active)

    def blinded(self, x: Any, marks: dict[Key, Any]) -> Traced:
        """A tensor with the recorders' marks, which the stand-ins don't follow."""
        return wrap(unwrap(x), {**marks, **{s.key: _BLIND for s in self.stand_ins}})

    def have_seen(self, y: Traced) -> bool:
        """Whether a tensor was made by the body, from something that is followed."""
        return y.marks is not None and any(s.key in y.marks for s in self.stand_ins)

    def parts_of(self, y: Traced) -> list[Traced]:
        """An output as far as it depends on captured tensors, and on variables."""
        parts: list[dict[Key, Any]] = [{}, {}]
        for stand_in in self.stand_ins:
            mark = stand_in.mark_of(y)
            if mark is not None:
                parts[stand_in.part][stand_in.outer.key] = mark
        return [wrap(y.value, marks) for marks in parts if marks]

    def take_variables(self) -> list[Variable]:
        """The variables that the body read, from now on a matter of its rule alone."""
        variables: dict[int, Variable] = {}
        for stand_in in self.stand_ins:
            variables |= stand_in.give_up_variables()
        self.stand_ins = [s for s in self.stand_ins if s.part == 0]
        return list(variables.values())


def _stand_ins_for(recorder: Any) -> list[Any]:
    if isinstance(recorder, Tape):
        return [_CapturedTape(recorder)]
    if not _follows_variables(recorder):
        return [_CapturedTangents(recorder, None)]
    variables = _VariableTangents(recorder)
    return [_CapturedTangents(recorder, variables), variables]


def _follows_variables(accumulator: ForwardAccumulator) -> bool:
    return isinstance(accumulator, _VariableTangents) or any(
        isinstance(x, Variable) for x, _ in accumulator.leaves.values()
    )


class _StandIn:
    """Follows for a recorder what a body captures."""

    outer: Any
    key: Key
    part = 0  # of an output: 1 is what comes from variables, if it is told apart
    saves = False

    def mark_of(self, x: Traced, *, reading: bool = True) -> Any:
        mark = x.marks.get(self.key) if x.marks else None
        if mark is not None:
            return None if mark is _BLIND else mark
        mark = self.mark_from_outside(x)
        self.saves = self.saves or mark is not None
        return mark

    def mark_from_outside(self, x: Traced) -> Any:
        return self.outer.mark_of(x)

    def lost(self, xs: Sequence[Traced], where: str, why: str) -> None:
        self.outer.lost([x for x in xs if self.mark_of(x) is not None], where, why)

    def record(
        self, rule: Any, inputs: Any, call: Any, kept: Any, y: Any
    ) -> bool | None:
        followed = super().record(rule, inputs, call, kept, y)  # type: ignore[misc]
        if any(self._is_blind(x) for x in inputs):
            for output in (y,) if isinstance(y, Traced) else y:
                if output.marks is None or self.key not in output.marks:
                    leave_mark(output, self.key, _BLIND)
        return followed

    def _is_blind(self, x: Any) -> bool:
        marks = x.marks if isinstance(x, Traced) else None
        return marks is not None and marks.get(self.key) is _BLIND

    def give_up_variables(self) -> dict[int, Variable]:
        return {}


class _CapturedTape(_StandIn, Tape):
    def __init__(self, outer: Tape) -> None:
        self.key = Key(self)  # all of a tape that it needs: it has no leaves of its own
        self.lifts = outer.lifts
        self.records_one = outer.records_one
        self.plain = True
        self.outer = outer
        self.variables: dict[int, tuple[Variable, Node]] = {}

    def mark_from_outside(self, x: Traced) -> Node | None:
        if not isinstance(x, Variable):
            return self.outer.mark_of(x)
        if id(x) not in self.variables:
            node = self.outer.mark_of(x)
            if node is None:
                return None
            # One of our own, which can be cut off
            self.variables[id(x)] = (x, Node(None, (node,), lambda dy, needs: (dy,)))
        return self.variables[id(x)][1]

    def give_up_variables(self) -> dict[int, Variable]:
        for _, node in self.variables.values():
            node.parents = ()
        return {key: x for key, (x, _) in self.variables.items()}


class _Tangents(_StandIn, ForwardAccumulator):
    private = False

    def __init__(self, outer: ForwardAccumulator) -> None:
        super().__init__((), ())
        self.outer = outer
        self.many = outer.many

    def outside(self) -> tuple[Any, ...]:
        return self.outer.outside() if self.outer in state().recorders else ()


class _CapturedTangents(_Tangents):
    """The tangents that come from captured tensors."""

    def __init__(
        self, outer: ForwardAccumulator, variables: _VariableTangents | None
    ) -> None:
        super().__init__(outer)
        self.of_variables = variables

    def mark_from_outside(self, x: Traced) -> Any:
        variables = self.of_variables
        if variables is not None and variables.mark_of(x) is not None:
            return None
        return self.outer.mark_of(x)


class _VariableTangents(_Tangents):
    """The tangents that come from variables: apart, for a rule may speak for them."""

    part = 1

    def __init__(self, outer: ForwardAccumulator) -> None:
        super().__init__(outer)
        self.variables: dict[int, Variable] = {}

    def mark_from_outside(self, x: Traced) -> Any:
        if not isinstance(x, Variable):
            return None
        mark = self.outer.mark_of(x)
        if mark is not None:
            self.variables[id(x)] = x
        return mark

    def give_up_variables(self) -> dict[int, Variable]:
        return self.variables


# --- functions with other tensors in place of those that they captured


_DEPTH = 4  # from a gradient to its helper, to a list of tensors


def with_captured(fn: Any, swap: Callable[[Any], Any], depth: int = _DEPTH) -> Any:
    """A copy of a function with `swap(x)` for each x that it captured.

    Looks into lists, tuples, dicts and functions; what `swap` returns as it is, stays.
    """
    return _swapped(fn, swap, depth)


def _swapped(x: Any, swap: Callable[[Any], Any], depth: int) -> Any:
    if not depth:
        return x
    inner = lambda x: _swapped(x, swap, depth - 1)
    if type(x) is FunctionType and x.__closure__:
        return _with_cells(x, inner)
    if type(x) is list or type(x) is tuple:
        found: Any = type(x)([inner(part) for part in x])
        return found if any(a is not b for a, b in zip(found, x, strict=True)) else x
    if type(x) is dict:
        found = {key: inner(part) for key, part in x.items()}
        return found if any(found[key] is not x[key] for key in x) else x
    return swap(x)


def _with_cells(fn: FunctionType, inner: Callable[[Any], Any]) -> FunctionType:
    cells = [_with_contents(cell, inner) for cell in fn.__closure__ or ()]
    if all(a is b for a, b in zip(cells, fn.__closure__ or (), strict=True)):
        return fn
    code, defaults = fn.__code__, fn.__defaults__
    copy = FunctionType(code, fn.__globals__, fn.__name__, defaults, tuple(cells))
    copy.__kwdefaults__ = fn.__kwdefaults__
    return copy


def _with_contents(cell: CellType, inner: Callable[[Any], Any]) -> CellType:
    if cell == CellType():  # not assigned yet
        return cell
    found = inner(cell.cell_contents)
    return cell if found is cell.cell_contents else CellType(found)
