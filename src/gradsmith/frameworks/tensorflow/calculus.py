"""Derivatives by TensorFlow.

A function that is slow when its operations run one by one, such as a loop of many small
steps, is compiled as a whole when it is called again and again: 20 to 50 times faster.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
import tensorflow as tf

from .._calculus import Script, Traits

REPRODUCER = Script(
    imports=("import tensorflow as tf",),
    array="tf.constant",
    total="tf.reduce_sum",
    gradient=(
        "v = tf.constant({x})",
        "with tf.GradientTape() as tape:",
        "    tape.watch(v)",
        "    total = loss(v)",
        "rule = tape.gradient(total, v).numpy()",
    ),
)


def value(fn: Any, xs: Any) -> list[Any]:
    return _run(_value, fn, list(xs))


def vjp(fn: Any, xs: Any, *, nested: bool = False, eager: bool = False) -> Any:
    xs = list(xs)
    if nested or eager:
        return _taped(fn, xs, nested)
    calls = _calls(_pulled, fn, xs)
    if calls.compiled is not None:
        return value(fn, xs), lambda dys: _run(_pulled, fn, xs, list(dys))
    ys, pull = calls.timed(lambda: _taped(fn, xs, nested))

    def pull_again(dys: Any) -> list[Any]:
        return _run(_pulled, fn, xs, list(dys), single=lambda _, dys: pull(dys))

    return ys, pull_again


def _taped(fn: Any, xs: list[Any], nested: bool) -> Any:
    with tf.GradientTape(persistent=True, watch_accessed_variables=not nested) as tape:
        tape.watch(xs)
        ys = fn(xs)
    unconnected = "zero" if nested else "none"

    def pull(dys: Any) -> list[Any]:
        return tape.gradient(ys, xs, list(dys), tf.UnconnectedGradients(unconnected))

    return ys, pull


def _value(fn: Any, xs: list[Any]) -> list[Any]:
    return fn(xs)


def _pulled(fn: Any, xs: list[Any], dys: list[Any]) -> list[Any]:
    return _taped(fn, xs, nested=False)[1](dys)


def jvp(fn: Any, xs: Any, dxs: Any, *, nested: bool = False) -> Any:
    pushed = _pushed if nested else partial(_run, _pushed)
    return pushed(fn, list(xs), list(dxs))


def _pushed(fn: Any, xs: list[Any], dxs: list[Any]) -> Any:
    with tf.autodiff.ForwardAccumulator(xs, dxs) as forward:
        ys = fn(xs)
    return ys, [forward.jvp(y, unconnected_gradients="zero") for y in ys]


def second(fn: Any, xs: Any, dys: Any, vs: Any) -> Any:
    return _run(_second, fn, list(xs), list(dys), list(vs))


def _second(fn: Any, xs: list[Any], dys: list[Any], vs: list[Any]) -> Any:
    with tf.GradientTape() as outer:
        outer.watch([*xs, *dys])
        slope = _slope(_pulled(fn, xs, dys), vs)
    if slope is None:
        return [None] * len(xs), [None] * len(dys)
    return outer.gradient(slope, (xs, dys))


def _slope(gradients: list[Any], vs: Any) -> Any:
    parts = [
        tf.reduce_sum(tf.math.real(tf.math.conj(v) * tf.convert_to_tensor(g)))
        for g, v in zip(gradients, vs, strict=True)
        if g is not None
    ]
    return tf.add_n(parts) if parts else None


def traits(fn: Any, xs: Any) -> Traits:
    whole = tf.function(fn, autograph=False).get_concrete_function(list(xs))
    graph = whole.graph.as_graph_def()
    functions = {each.signature.name: each.node_def for each in graph.library.function}
    every = [*_nodes(graph.node, functions)]
    names = {name for name, _ in every}
    drawn = {name for name, is_repeated in every if is_repeated and "Random" in name}
    return Traits(
        iterates=bool(names & {*_LOOPS, "PyFunc", "EagerPyFunc"}),
        rejects=bool(drawn) or any("RandomGamma" in name for name in names),
    )


_LOOPS = ("While", "StatelessWhile")


def _nodes(
    nodes: Any, functions: dict[str, Any], is_repeated: bool = False
) -> Iterator[tuple[str, bool]]:
    """The names of all operations, and whether they are in a loop without an end."""
    for node in nodes:
        yield node.op, is_repeated
        called = [each.func.name for each in node.attr.values()]
        for name in filter(None, (node.op, *called)):
            inner = functions.get(name, ())
            yield from _nodes(inner, functions, is_repeated or node.op in _LOOPS)


# --- compiling what is slow
#
# Compiling takes as long as about ten calls, of a loop with many operations 1 to 8 s.

_SLOW = 0.002  # seconds; less is little beside the call itself
_OFTEN = 12


@dataclass
class _Calls:
    """The calls of a function in one way, with arguments of some shapes and dtypes."""

    slow: int = 0
    compiled: Any = None
    is_tried: bool = False  # to compile it

    def __call__(self, single: Any, compilable: Any, args: tuple[Any, ...]) -> Any:
        """Run `single`; in its place, when it was slow often, the other compiled."""
        if self.compiled is not None and tf.executing_eagerly():
            return self.compiled(*args)
        found = self.timed(lambda: single(*args))
        if self.slow >= _OFTEN and not self.is_tried and tf.executing_eagerly():
            self.is_tried = True
            self.compiled = _compiled(compilable, args, found)
        return found

    def timed(self, call: Callable[[], Any]) -> Any:
        start = time.process_time()  # whatever else runs on the machine
        found = call()
        self.slow += time.process_time() - start > _SLOW
        return found


def _run(way: Any, fn: Any, *args: Any, single: Any = None) -> Any:
    whole = partial(way, fn)
    return _calls(way, fn, args[0])(single or whole, whole, args)


def _calls(way: Any, fn: Any, xs: list[Any]) -> _Calls:
    return _calls_of(way, fn, tuple((tuple(x.shape), x.dtype) for x in xs))


@lru_cache(maxsize=256)
def _calls_of(way: Any, fn: Any, kinds: Any) -> _Calls:
    return _Calls()


def _compiled(call: Any, args: tuple[Any, ...], found: Any) -> Any:
    """The call as a compiled function, if that gives the same; else None."""
    compiled = tf.function(call, autograph=False)
    try:
        return compiled if _is_same(found, compiled(*args)) else None
    except Exception:  # it looks at values, which a compiler has none of
        return None


def _is_same(found: Any, other: Any) -> bool:
    one, two = (tf.nest.flatten(each) for each in (found, other))
    return len(one) == len(two) and all(map(_is_close, one, two))


def _is_close(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    a, b = (tf.convert_to_tensor(each).numpy() for each in (a, b))
    return a.shape == b.shape and np.allclose(a, b, 1e-3, 1e-6, equal_nan=True)
