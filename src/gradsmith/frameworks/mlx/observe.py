"""MLX: its functions and the methods of its arrays report their calls.

They are put in a list, and gone through backwards one by one. What is transformed
(mx.grad, mx.vmap) is one operation, and compiled functions run as they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any, NamedTuple

import mlx.core as mx

from ...core import hooks, trees
from ...core.arrays import framework_of
from ...core.patching import patched
from ...core.places import place_here
from ...operations.info import is_floating
from .._observe import SUM, Event, Observer, Operand, inside_operations, operands
from .call.captured import is_known
from .kernels.elementwise import ELEMENTWISE

WHERE = "mx.where"
_SELECTS = {"where", "maximum", "minimum", "clip", "nan_to_num"}
_TRANSFORMS = (
    "grad", "value_and_grad", "vjp", "jvp", "vmap", "checkpoint", "custom_function",
)  # fmt: skip
_NOT_OBSERVED = {
    *_TRANSFORMS,
    "compile",
    "eval",
    "async_eval",
    "array",
    "save",
    "savez",
}
_OPERATORS = {
    "add": "add", "radd": "add", "sub": "subtract", "rsub": "subtract",
    "mul": "multiply", "rmul": "multiply", "truediv": "divide", "rtruediv": "divide",
    "pow": "power", "rpow": "power", "matmul": "matmul", "neg": "negative",
    "mod": "remainder", "floordiv": "floor_divide", "getitem": "take", "abs": "abs",
}  # fmt: skip


class Entry(NamedTuple):
    """What was run: `fn(*ins)` gave `outs`."""

    fn: Callable[..., list[Any]]
    ins: list[Any]
    outs: list[Any]
    event: Event


class Walk:
    """Takes note of what is run on arrays that have values."""

    def __init__(self, observer: Observer, active: Sequence[Any]) -> None:
        self.observer = observer
        self.phase = "forward"
        self.busy = False  # what runs is a part of something that was reported
        self.entries: list[Entry] | None = []  # None where nothing is differentiated
        self.active = {id(x) for x in active}

    def is_active(self, x: Any) -> bool:
        return id(x) in self.active and is_floating(x)

    @contextmanager
    def reporting(self, entries: list[Entry] | None, *, busy: bool) -> Iterator[None]:
        before = self.busy, self.entries
        self.busy, self.entries = busy, entries
        try:
            yield
        finally:
            self.busy, self.entries = before

    def apply(
        self, fn: Any, args: Any, kwargs: Any, name: str, *, custom: bool = False
    ) -> Any:
        """Run a function of trees with arrays, and report it."""
        leaves = trees.leaves((list(args), kwargs))
        places = [i for i, x in enumerate(leaves) if isinstance(x, mx.array)]
        ins = [leaves[i] for i in places]
        if self.busy or not ins or not is_known(ins):
            return fn(*args, **kwargs)
        returned: list[Any] = []

        def flat(*xs: Any) -> list[Any]:
            new = list(leaves)
            for i, x in zip(places, xs, strict=True):
                new[i] = x
            given, named = trees.unflatten((list(args), kwargs), new)
            returned[:] = [fn(*given, **named)]
            return _arrays(returned[0])

        if custom:
            self.observer.enter()
        with self.reporting(None, busy=True):
            outs = flat(*ins)
        y = returned[0]
        if not outs or not is_known(outs):
            return y
        event = Event(
            name, self.phase, place_here(),
            operands(ins, id, "x"), operands(outs, id, "y"),
            elementwise=name.removeprefix("mx.") in ELEMENTWISE,
            selects=name.removeprefix("mx.") in _SELECTS,
            encloses=custom,
        )  # fmt: skip
        self.observer.event(event)
        if self.entries is not None and any(map(self.is_active, ins)):
            self.active.update(map(id, outs))
            self.entries.append(Entry(flat, ins, outs, event))
        return y

    def pulled(self, entry: Entry, dys: list[Any]) -> list[Any]:
        """The gradients of the active inputs of what was run."""
        at = [i for i, x in enumerate(entry.ins) if self.is_active(x)]

        def outputs(*xs: Any) -> list[Any]:
            places = dict(zip(at, xs, strict=True))
            ins = [places.get(i, x) for i, x in enumerate(entry.ins)]
            return [y for y in entry.fn(*ins) if is_floating(y)]

        self.observer.enter()
        with self.reporting(None, busy=True):
            dxs = mx.vjp(outputs, [entry.ins[i] for i in at], dys)[1]
            mx.eval(dxs)
        ins = [*operands(dys, id, "dy"), *entry.event.inputs]
        self.observer.event(entry.event.backward(ins, operands(dxs, id, "dx")))
        return dxs

    def gradients(self, ys: Sequence[Any], xs: Sequence[Any]) -> list[Any]:
        """The gradients of the sum of ys by xs, None where there is none."""
        entries, self.entries, self.phase = self.entries or [], None, "backward"
        cotangents: dict[int, Any] = {}
        for y in filter(self.is_active, ys):
            self._receive(cotangents, y, mx.ones_like(y), None)
        for entry in reversed(entries):
            outs = [y for y in entry.outs if is_floating(y)]
            if any(id(y) in cotangents for y in outs):
                dys = [
                    cotangents[id(y)] if id(y) in cotangents else mx.zeros_like(y)
                    for y in outs
                ]
                moved = [x for x in entry.ins if self.is_active(x)]
                for x, dx in zip(moved, self.pulled(entry, dys), strict=True):
                    self._receive(cotangents, x, dx, entry.event)
        return [cotangents.get(id(x)) for x in xs]

    def _receive(
        self, cotangents: dict[int, Any], x: Any, dx: Any, event: Event | None
    ) -> None:
        before = cotangents.get(id(x))
        if before is not None:
            ins = operands([before, dx], id, "dy")
            with self.reporting(None, busy=True):
                dx = before + dx
            outs = [Operand("dy", dx, id(dx))]
            place = event and event.place
            total = Event(SUM, "backward", place, ins, outs, elementwise=True)
            self.observer.event(total)
        cotangents[id(x)] = dx


def _arrays(tree: Any) -> list[Any]:
    return [y for y in trees.leaves(tree) if isinstance(y, mx.array)]


def observe(
    fn: Any,
    args: Any,
    kwargs: Any,
    named: Sequence[tuple[str, Any]],
    observer: Observer,
) -> list[Operand] | None:
    """Run a function and its backward pass, and report each operation."""
    xs = [x for _, x in named]
    for name, x in named:
        observer.argument(Operand(name, x, id(x)))
    walk = Walk(observer, xs)
    with observed(walk), inside_operations(observer, lambda: walk.phase):
        returned = fn(*args, **kwargs)
        ys = [
            (name, y)
            for name, y in trees.leaves_with_names(returned, "the value")
            if isinstance(y, mx.array)
        ]
        if not observer.outputs([Operand(name, y, id(y)) for name, y in ys]):
            return []
        if not any(walk.is_active(y) for _, y in ys):
            return None
        dxs = walk.gradients([y for _, y in ys], xs)
    pairs = zip(named, dxs, strict=True)
    return [Operand(name, dx, id(dx)) for (name, _), dx in pairs]


# --- what is replaced ----------------------------------------------------------------


@contextmanager
def observed(walk: Walk) -> Iterator[None]:
    """The context in which a walk is told of all that is run."""
    with ExitStack() as stack:
        stack.enter_context(_uncompiled())
        for module, prefix in (
            (mx, "mx"),
            (mx.linalg, "mx.linalg"),
            (mx.fft, "mx.fft"),
        ):
            functions = {
                name: _reporting(walk, getattr(module, name), f"{prefix}.{name}")
                for name in dir(module)
                if name[0] != "_" and name not in _NOT_OBSERVED
                and type(getattr(module, name)) is type(mx.exp)
            }  # fmt: skip
            stack.enter_context(patched(module, **functions))
        transforms = {name: _transform(walk, name) for name in _TRANSFORMS}
        stack.enter_context(patched(mx, **transforms))
        stack.enter_context(patched(mx.array, **_methods(walk)))
        stack.enter_context(hooks.RECOMPUTE.wrapped(_checkpointed(walk)))
        stack.enter_context(hooks.CALL.wrapped(_operation(walk)))
        stack.enter_context(hooks.BODY.wrapped(_body(walk)))
        stack.enter_context(hooks.RULE.wrapped(_rule(walk)))
        yield


@contextmanager
def _uncompiled() -> Iterator[None]:
    mx.disable_compile()
    try:
        yield
    finally:
        mx.enable_compile()


def _methods(walk: Walk) -> dict[str, Any]:
    found = {}
    for name in dir(mx.array):
        operator = _OPERATORS.get(name.strip("_")) if name[0] == "_" else name
        method = getattr(mx.array, name)
        if operator is not None and callable(method) and operator not in ("item",):
            found[name] = _reporting(walk, method, f"mx.{operator}")
    return found


def _reporting(walk: Walk, fn: Any, name: str, *, custom: bool = False) -> Any:
    @wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        return walk.apply(fn, args, kwargs, name, custom=custom)

    return call


def _transform(walk: Walk, name: str) -> Any:
    """A transformation, whose results are run as one operation each."""
    transform = getattr(mx, name)
    if name in ("vjp", "jvp"):
        return _reporting(walk, transform, f"mx.{name}")

    @wraps(transform)
    def make(fn: Any, *args: Any, **kwargs: Any) -> Any:
        made = transform(fn, *args, **kwargs)
        if walk.busy or name == "custom_function":
            return made
        return _reporting(walk, made, f"mx.{name}")

    return make


def _checkpointed(walk: Walk) -> Any:
    def checkpointed(proceed: Any, fn: Any, args: Any, kwargs: Any) -> Any:
        return walk.apply(proceed, (fn, args, kwargs), {}, "checkpoint", custom=True)

    return checkpointed


def _operation(walk: Walk) -> Any:
    def operation(proceed: Any, op: Any, args: Any, kwargs: Any) -> Any:
        if all(framework_of(x) != "mlx" for x in trees.leaves((args, kwargs))):
            return proceed(op, args, kwargs)
        run = lambda *args, **kwargs: proceed(op, args, kwargs)
        return walk.apply(run, args, kwargs, f"operation {op.name!r}", custom=True)

    return operation


def _body(walk: Walk) -> Any:
    def body(proceed: Any, operation: Any, bound: Any) -> Any:
        # In the backward pass it is run again, which was reported before.
        with walk.reporting(None, busy=walk.phase == "backward"):
            return proceed(operation, bound)

    return body


def _rule(walk: Walk) -> Any:
    def rule(proceed: Any, *args: Any) -> Any:
        with walk.reporting(None, busy=walk.phase == "forward"):
            return proceed(*args)

    return rule
