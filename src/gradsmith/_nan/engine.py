"""The embedded engine: a tape that looks at what it records, and at the walk back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .. import _tree
from .._application import Application
from .._cotangent import Scattered
from .._gradient_tape import GradientTape
from .._rule import Elementwise
from .._subject import is_floating, replaced
from .._tape import Node, Traced, state
from .._tensor import Tensor, unwrap
from ..frameworks import numpy as adapter
from .arrays import plain, telling, telling_class
from .model import Result
from .places import place_here
from .values import is_bad
from .watch import Call, Seen, Watch

version = np.__version__
WHERE = "np.where"
_CHOOSERS = {"where", "select", "choose", "piecewise", "maximum", "minimum", "clip"}


def array(x: Any) -> np.ndarray:
    return np.asarray(x)


def numpy(x: Any) -> np.ndarray | None:
    """Arrays and numbers; nothing of what can't be NaN."""
    x = x.dense() if isinstance(x, Scattered) else unwrap(x)
    if not isinstance(x, (np.ndarray, np.generic, float, complex)):
        return None
    x = np.asarray(x)
    return x if x.dtype.kind in "fc" else None


def key(x: Any) -> Any:
    """By which an array is known again, also as a view of it."""
    x = unwrap(x)
    if isinstance(x, np.ndarray):
        return (x.__array_interface__["data"][0], x.shape)
    return id(x)


def look(fn: Any, args: Any, kwargs: Any, named: Sequence[tuple[str, Any]]) -> Any:
    """Run a function and its backward pass under a watch."""
    watch = Watch(numpy)
    tape = _Tape(watch)
    tensors = {id(x): Tensor(x) for _, x in named}
    for name, x in named:
        watch.given(name, tensors[id(x)], key(tensors[id(x)]))
    args, kwargs = _tree.map(lambda x: tensors.get(id(x), x), (args, kwargs))
    with np.errstate(all="ignore"), _looking_into(tape):
        with tape:
            for x in tensors.values():
                tape.follow(x)
            returned = fn(*args, **kwargs)
        ys = [*_tree.leaves_with_names(returned, "the value")]
        found = [result(watch, name, y, key(y)) for name, y in ys if is_floating(y)]
        results = [each for each in found if each is not None]
        if results:
            return watch, results, []
        targets = [y for _, y in ys if isinstance(y, Traced) and y.dtype.kind in "fc"]
        return watch, *_backward(tape, targets, named, tensors)


def result(watch: Watch, name: str, x: Any, key: Any) -> Result | None:
    """A result that is not finite."""
    array = None if x is None else watch.numpy(x)
    if array is None or not is_bad(array):
        return None
    kind = "nan" if np.any(np.isnan(array)) else "inf"
    return Result(name, kind, watch.origin_of(key))


def _backward(tape: _Tape, targets: Any, named: Any, tensors: Any) -> Any:
    if all(tape.mark_of(y, reading=False) is None for y in targets):
        return [], ["the value does not depend on the inputs: no gradient to look at"]
    sources = [(name, tensors[id(x)]) for name, x in named]
    sources += [(v.name or "a variable", v) for v in tape.watched_variables()]
    tape.phase = "backward"
    gradients = tape.gradient(targets, [x for _, x in sources])
    pairs = zip(sources, gradients, strict=True)
    found = [
        result(tape.watch_, f"the gradient of {name}", dx, tape.mark_of(x))
        for (name, x), dx in pairs
    ]
    return [each for each in found if each is not None], []


class _Tape(GradientTape):
    """A tape that tells a watch of each operation, and of its pullback."""

    def __init__(self, watch: Watch) -> None:
        super().__init__(persistent=True)
        self.lifts = self.records_one = False
        self.watch_ = watch
        self.phase = "forward"

    def record(
        self, rule: Any, inputs: Sequence[Any], call: Any, kept: Any, y: Any
    ) -> None:
        super().record(rule, inputs, call, kept, y)
        ys = [y] if isinstance(y, Traced) else list(y)
        names = ["x"] if len(inputs) == 1 else [f"x{i + 1}" for i in range(len(inputs))]
        ins = [Seen(n, x, key(x)) for n, x in zip(names, inputs, strict=True)]
        outs = [Seen("y", each, key(each)) for each in ys]
        name = rule.name + f" (in {state.inside})" * bool(state.inside)
        call = Call(
            name, self.phase, place_here(), ins, outs,
            elementwise=isinstance(rule, Elementwise),
            selects=name.partition(" ")[0].rpartition(".")[2] in _CHOOSERS,
            whole=not hasattr(rule, "fn"),
        )  # fmt: skip
        self.watch_.saw(call)
        marks = (each.marks and each.marks.get(self.key) for each in ys)
        node = next(filter(None, marks), None)
        if node is not None:
            _wrap(node if len(ys) == 1 else node.parents[0], call, self.watch_)


def _wrap(node: Node, call: Call, watch: Watch) -> None:
    """Let a node tell of its pullback; cotangents are known by the nodes they are of."""
    pull = node.pull

    def told(dy: Any, needs: Any) -> Any:
        watch.enter()
        dxs = pull(dy, needs)
        dys = dy.values() if isinstance(dy, dict) else [dy]
        ins = [Seen("dy", each, node) for each in dys]
        outs = [
            Seen("dx", dx, parent)
            for parent, dx in zip(node.parents, dxs, strict=True)
            if dx is not None
        ]
        watch.saw(
            Call(
                call.operation, "backward", call.place, [*ins, *call.ins, *call.outs],
                outs, call.elementwise, call.selects, whole=True,
            )  # fmt: skip
        )
        return dxs

    node.pull = told


@contextmanager
def _looking_into(tape: _Tape) -> Iterator[None]:
    """Run the bodies and the rules of operations on arrays that tell."""
    run_body, call_rule, watch = adapter.run_body, Application.call_rule, tape.watch_

    def told(name: str, xs: Sequence[Any], ys: Sequence[Any], each: bool) -> None:
        xs = [x for x in xs if isinstance(x, (np.ndarray, np.generic, float))]
        names = ["x"] if len(xs) == 1 else [f"x{i + 1}" for i in range(len(xs))]
        ins = [Seen(n, x, key(x)) for n, x in zip(names, xs, strict=True)]
        outs = [Seen("y", y, key(y)) for y in ys]
        watch.saw(Call(name, tape.phase, place_here(), ins, outs, elementwise=each))

    cls = telling_class(told)

    def body(operation: Any, bound: Any) -> Any:
        watch.enter()
        leaves = [telling(x, cls) for x in bound.leaves]
        outputs, grad = run_body(operation, bound.with_leaves(leaves))
        return plain(outputs), grad

    def rule(self: Any, what: str, fn: Any, args: Any, kwargs: Any) -> Any:
        args = [telling(x, cls) for x in args]
        return plain(call_rule(self, what, fn, args, telling(kwargs, cls)))

    with replaced(adapter, run_body=body), replaced(Application, call_rule=rule):
        yield
