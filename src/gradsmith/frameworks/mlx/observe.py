"""MLX: its functions and the methods of its arrays report their calls.

They are put in a list, and gone through backwards one by one. What is transformed
(mx.grad, mx.vmap) is one operation, and compiled functions run as they are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any

import mlx.core as mx

from ...core import hooks, trees
from ...core.arrays import framework_of
from ...core.patching import patched
from ...core.places import place_here
from .._observe import (
    Entry,
    Event,
    Observer,
    Operand,
    Walk,
    inside_operations,
    operands,
)
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


class CallWalk(Walk):
    """Takes note of what is run on arrays that have values."""

    ones_like, zeros_like = staticmethod(mx.ones_like), staticmethod(mx.zeros_like)
    busy = False  # what runs is a part of something that was reported

    @contextmanager
    def reporting(self, *, busy: bool) -> Iterator[None]:
        """The context in which nothing is differentiated."""
        before = self.busy, self.recording
        self.busy, self.recording = busy, False
        try:
            yield
        finally:
            self.busy, self.recording = before

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
        with self.reporting(busy=True):
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
        self.note(Entry(flat, ins, outs, event))
        return y

    def pull(self, entry: Entry, fn: Any, xs: Sequence[Any], dys: list[Any]) -> Any:
        with self.reporting(busy=True):
            dxs = mx.vjp(fn, list(xs), dys)[1]
            mx.eval(dxs)
        return dxs

    def add(self, dx: Any, other: Any) -> Any:
        with self.reporting(busy=True):
            return dx + other


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
    walk = CallWalk(observer, xs)
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
def observed(walk: CallWalk) -> Iterator[None]:
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


def _methods(walk: CallWalk) -> dict[str, Any]:
    found = {}
    for name in dir(mx.array):
        operator = _OPERATORS.get(name.strip("_")) if name[0] == "_" else name
        method = getattr(mx.array, name)
        if operator is not None and callable(method) and operator not in ("item",):
            found[name] = _reporting(walk, method, f"mx.{operator}")
    return found


def _reporting(walk: CallWalk, fn: Any, name: str, *, custom: bool = False) -> Any:
    @wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        return walk.apply(fn, args, kwargs, name, custom=custom)

    return call


def _transform(walk: CallWalk, name: str) -> Any:
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


def _checkpointed(walk: CallWalk) -> Any:
    def checkpointed(proceed: Any, fn: Any, args: Any, kwargs: Any) -> Any:
        return walk.apply(proceed, (fn, args, kwargs), {}, "checkpoint", custom=True)

    return checkpointed


def _operation(walk: CallWalk) -> Any:
    def operation(proceed: Any, op: Any, args: Any, kwargs: Any) -> Any:
        if all(framework_of(x) != "mlx" for x in trees.leaves((args, kwargs))):
            return proceed(op, args, kwargs)
        run = lambda *args, **kwargs: proceed(op, args, kwargs)
        return walk.apply(run, args, kwargs, f"operation {op.name!r}", custom=True)

    return operation


def _body(walk: CallWalk) -> Any:
    def body(proceed: Any, operation: Any, bound: Any) -> Any:
        # In the backward pass it is run again, which was reported before.
        with walk.reporting(busy=walk.phase == "backward"):
            return proceed(operation, bound)

    return body


def _rule(walk: CallWalk) -> Any:
    def rule(proceed: Any, *args: Any) -> Any:
        with walk.reporting(busy=walk.phase == "forward"):
            return proceed(*args)

    return rule
