"""Compiled functions under tapes: one operation, whose pullback is compiled as well.

The pullback computes the function's values again: compiled code does that in less time
than a tape takes to save them. Under several tapes it is itself a compiled function
that is called with tensors, so any order of derivative is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from itertools import count
from typing import Any

from ..core import hooks, trees
from ..core.cotangent import project, spec_of
from ..core.elementwise import tell
from ..core.errors import GradsmithError, UnsupportedOperationError
from ..core.escapes import is_followed
from ..core.infinite import Infinite
from ..core.rule import Rule, complete
from ..core.symbolic import Symbolic
from ..core.tape import Tape, Traced, state
from ..core.tensor import wrap
from ..core.transforms import pullback
from .code import literal
from .graph import Program, Value, replaced
from .passes import simplified
from .trace import input_spec, traced

_HOOKS = (hooks.CALL, hooks.FUNCTION, hooks.BODY, hooks.RULE, hooks.RECOMPUTE)


def is_observed() -> bool:
    """Whether somebody looks at each call of a function or rule, or replaces it."""
    a, b, c, d, e = _HOOKS  # 0.1 us
    return bool(a.wrappers or b.wrappers or c.wrappers or d.wrappers or e.wrappers)


def is_possible(leaves: Sequence[Any]) -> bool:
    """Whether what is computed of these is for tapes alone to see."""
    for recorder in state().recorders:
        if not isinstance(recorder, Tape):
            return False
    for x in leaves:
        value = x.value if isinstance(x, Traced) else x
        if isinstance(value, Symbolic) or (value is not x and value.dtype.kind != "f"):
            return False
    return True


def is_symbol(x: Traced) -> bool:
    return isinstance(x.value, Symbolic)


class CapturedError(Exception):
    """The function computes with a tensor that is no argument."""


def without_tensors(fn: Any) -> Any:
    """The function, which raises if it returns a tensor that it captured."""

    @wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        returned = fn(*args, **kwargs)
        for y in trees.leaves(returned):
            NoTensors.require(y)
        return returned

    return run


def writes_like_tensors(fn: Any, like: Any, program: Program) -> bool:
    """Whether the program computes what the function does of tensors.

    Of these `x += y` makes a new one, which another name of x does not see. What they
    forbid is refused where a gradient is asked for.
    """

    def of_tensors(*args: Any, **kwargs: Any) -> Any:
        lifted = lambda x: wrap(x) if isinstance(x, Symbolic) else x
        args, kwargs = trees.map(lifted, (args, kwargs))
        return fn(*args, **kwargs)

    try:
        found = simplified(traced(of_tensors, *like))
    except Exception:
        return True
    return found == program


class NoTensors:
    """A recorder for a trace, to which each tensor stands for an array of the trace.

    Another one is captured, and a tape may follow it: as a constant of the program it
    would lose its gradient.
    """

    private = True
    lifts = records_one = pulls = saves = False

    def __init__(self) -> None:
        self.key: Any = object()

    def mark_of(self, x: Traced) -> None:
        self.require(x)

    def lost(self, xs: Sequence[Traced], where: str, why: str) -> None: ...

    def record(
        self, rule: Any, inputs: Sequence[Any], call: Any, kept: Any, y: Any
    ) -> bool:
        for x in inputs:
            self.require(x)
        return False

    @staticmethod
    def require(x: Any) -> None:
        if isinstance(x, Traced) and not is_symbol(x):
            raise CapturedError


class Recorded:
    """A compiled function of the arrays in its arguments, as tapes record it.

    An output that depends on nothing that a tape follows is a constant to it.
    """

    def __init__(self, fn: Any, run: Any, program: Program, pull: Any) -> None:
        self.fn, self.run = fn, run  # arrays to a list of arrays
        self.pull = pull  # chosen outputs to the compiled pullback of these
        self.built = _builder(program.outputs)
        self.reach = _reach(program)
        self.rules: dict[tuple[int, ...], OfOutputs] = {}

    def __call__(self, leaves: list[Any]) -> Any:
        values = [x.value if isinstance(x, Traced) else x for x in leaves]
        found = self.run(*values)
        places = [i for i, x in enumerate(leaves) if isinstance(x, Traced)]
        if not places:
            return self.built(*found)
        ys = [wrap(y) for y in found]
        followed = {i for i in places if is_followed(leaves[i])}
        chosen: tuple[int, ...] = tuple(
            k for k, reach in enumerate(self.reach) if not reach.isdisjoint(followed)
        )
        if chosen:
            if chosen not in self.rules:
                self.rules[chosen] = OfOutputs(self.fn, self.pull(chosen), len(chosen))
            reach = set().union(*[self.reach[k] for k in chosen])
            inputs = [x if i in reach else values[i] for i, x in enumerate(leaves)]
            told = [ys[k] for k in chosen]
            one = told[0] if len(told) == 1 else told
            tell(self.rules[chosen], inputs, leaves, values, one)
        return self.built(*ys)


class OfOutputs(Rule):
    """The rule of a compiled function with these outputs alone."""

    def __init__(self, fn: Any, pull: Any, many: int) -> None:
        super().__init__(fn)
        self.pull, self.one = pull, many == 1

    def pullback(self, tracked: Sequence[int], call: Any, y: Any) -> Any:
        xs, likes = [*call], [spec_of(call[i]) for i in tracked]
        specs = [] if self.one else [spec_of(part) for part in y]

        def pull(dy: Any, needs: Any) -> list[Any]:
            wanted = tuple(
                i for k, i in enumerate(tracked) if needs is None or needs[k]
            )
            dys = [dy] if self.one else complete(dy, specs)
            # Compiled code does not know a cotangent that has overflown
            overflown = any(isinstance(part, Infinite) for part in dys)
            try:
                dxs = (self.pull.fn if overflown else self.pull)(xs, dys, wanted)
            except UnsupportedOperationError:  # a rule that looks at elements
                dxs = self.pull.fn(xs, dys, wanted)
            found = dict(zip(wanted, dxs, strict=True))
            return [
                None if found.get(i) is None else project(found[i], like)
                for i, like in zip(tracked, likes, strict=True)
            ]

        return pull


def pullback_of(
    fn: Any, given: Any, program: Program, trace: Callable[[], Program], chosen: Any
) -> Any:
    """The function from arrays, cotangents and places to the cotangents there.

    It is None for an array that they do not depend on, as by a tape of the steps.
    `given` are arguments like those that the program was traced with, `trace` makes it
    anew, and `chosen` are the numbers of the outputs whose cotangents these are.
    """
    is_array = [input_spec(x) is not None for x in trees.leaves(given)]
    static = [
        None if array else x
        for x, array in zip(trees.leaves(given), is_array, strict=True)
    ]
    tree = trees.unflatten(given, static)
    content = _content(program)

    def pulled(xs: Any, dys: Any, places: Any) -> Any:
        if _content(trace()) != content:
            raise GradsmithError(
                f"{getattr(fn, '__name__', fn)} has changed since it was compiled, and "
                "its gradient is not the one of its value: an array, number or "
                "attribute that it captures is another one now\n  what to do: pass it "
                "as an argument, or compile the function again"
            )

        def run(*variables: Any) -> Any:
            arrays = [*xs]
            for i, x in zip(places, variables, strict=True):
                arrays[i] = x
            rest = iter(arrays)
            leaves = [
                next(rest) if array else x
                for x, array in zip(static, is_array, strict=True)
            ]
            args, kwargs = trees.unflatten(tree, leaves)
            ys = _arrays(fn(*args, **kwargs), program.outputs)
            return [ys[k] for k in chosen]

        variables = tuple(xs[i] for i in places)
        _, pull = pullback(run, variables, unconnected="none")
        return pull([*dys])

    return pulled


def _content(program: Program) -> tuple[list[str], list[bytes]]:
    """The calls and the captured arrays of a program.

    Functions have their names: a lambda is another one in each run.
    """
    values = [v for step in program.steps for v in (*step.inputs, *step.outputs)]
    known = {v: (v.shape, v.dtype.str) for v in values}
    calls = []
    for step in program.steps:
        given = replaced((step.args, step.kwargs), known)
        named = trees.map(lambda x: _name(x) if callable(x) else x, given)
        calls.append(f"{_name(step.fn)} {named}")
    return calls, [array.tobytes() for array in program.constants.values()]


def _name(fn: Any) -> str:
    return getattr(fn, "__name__", type(fn).__name__)


def _arrays(found: Any, outputs: Any) -> list[Any]:
    """The arrays of a result, which stand in the places of values."""
    pairs = zip(trees.leaves(found), trees.leaves(outputs), strict=True)
    return [y for y, value in pairs if isinstance(value, Value)]


def _builder(outputs: Any) -> Any:
    """The function from arrays to the tree that the function returned."""
    static = [y for y in trees.leaves(outputs) if not isinstance(y, Value)]
    names = (f"s[{i}]" for i in range(len(static))), (f"y{i}" for i in count())
    leaves = [next(names[isinstance(y, Value)]) for y in trees.leaves(outputs)]
    arrays = [name for name in leaves if name.startswith("y")]
    written = literal(outputs, iter(leaves))
    if written:
        return eval(f"lambda {', '.join(arrays)}: {written}", {"s": static})

    def built(*ys: Any) -> Any:
        rest = iter(ys)
        return trees.map(lambda y: next(rest) if isinstance(y, Value) else y, outputs)

    return built


def _reach(program: Program) -> list[set[int]]:
    """The numbers of the inputs that each output depends on."""
    reach: dict[Value, set[int]] = {x: {i} for i, x in enumerate(program.inputs)}
    for step in program.steps:
        found = set().union(*[reach.get(x, set()) for x in step.inputs])
        reach.update(dict.fromkeys(step.outputs, found))
    return [reach.get(y, set()) for y in program.results]
