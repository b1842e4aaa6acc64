"""Derivatives by TensorFlow.

A function that is slow when its operations run one by one, such as a loop of many small
steps, is compiled as a whole when it is called again and again: 20 to 50 times faster.
It is compiled once, for arguments of any length, if it gives the same then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
import tensorflow as tf

from ...core.patching import patched
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
        'rule = tape.gradient(total, v, unconnected_gradients="zero")',
        "rule = tf.convert_to_tensor(rule).numpy()",
    ),
)


def value(fn: Any, xs: Any) -> list[Any]:
    return _run(_value, fn, list(xs))


def vjp(fn: Any, xs: Any, *, nested: bool = False, eager: bool = False) -> Any:
    xs = list(xs)
    if nested or eager:
        return _taped(fn, xs, nested)
    calls = _calls(_pulled, fn, xs)
    if calls.is_compiled:
        return value(fn, xs), lambda dys: _run(_pulled, fn, xs, list(dys))
    ys, pull = calls.timed(lambda: _taped(fn, xs, nested))

    def pull_again(dys: Any) -> list[Any]:
        return _run(_pulled, fn, xs, list(dys), single=lambda _, dys: pull(dys))

    return ys, pull_again


def _taped(fn: Any, xs: list[Any], nested: bool, *, once: bool = False) -> Any:
    # A persistent tape takes 20 times longer to compile, if there is a loop in fn.
    watch = {"persistent": not once, "watch_accessed_variables": not nested}
    with tf.GradientTape(**watch) as tape:
        tape.watch(xs)
        ys = fn(xs)
    unconnected = "zero" if nested else "none"

    def pull(dys: Any) -> list[Any]:
        return tape.gradient(ys, xs, list(dys), tf.UnconnectedGradients(unconnected))

    return ys, pull


def _value(fn: Any, xs: list[Any]) -> list[Any]:
    return fn(xs)


def _pulled(fn: Any, xs: list[Any], dys: list[Any]) -> list[Any]:
    return _taped(fn, xs, nested=False, once=True)[1](dys)


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
    graph = _calls(_value, fn, list(xs)).way.traced(list(xs)).graph.as_graph_def()
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

_SLOW = 0.002  # seconds; less is little beside the call itself
# Seconds of slow calls. Compiling takes 0.1 to 8; forward mode and second order 2 to 6,
# and few calls of them are made.
_OFTEN, _RARE = 1.0, 5.0
# The same, as multiples of what it takes to trace the value: what is left to be done of
# that takes 1 to 2, its gradient 4 to 5.
_AGAIN, _MORE = 1.0, 4.0
_KEPT = 0.1  # seconds; graphs take memory


@dataclass
class _Way:
    """A function in one way (its value, say), and what is compiled of it."""

    call: Any
    enough: Callable[[], float]  # seconds of slow calls, after which it is compiled
    seconds: float = 0.0  # of them until now
    tracing: float | None = None  # seconds that it took
    functions: list[Any] | None = None  # of which the first that fits is compiled
    compiled: Any = None
    is_tried: bool = False  # to compile it

    def compile(self, args: tuple[Any, ...], found: Any) -> None:
        """For any lengths, else for those given, if that gives the same."""
        self.is_tried = True
        every = self.functions or [*self._functions(args)]
        self.compiled = next((f for f in every if _fits(f, args, found)), None)

    def traced(self, *args: Any) -> Any:
        """The graph, which is kept for compiling if it took long to make."""
        start, every = time.process_time(), [*self._functions(args)]
        try:
            graph = every[0].get_concrete_function(*args)
        except Exception:  # as in `_fits`
            del every[0]
            graph = every[0].get_concrete_function(*args)
        self.tracing = time.process_time() - start
        self.functions = every if self.tracing > _KEPT else None
        return graph

    def _functions(self, args: tuple[Any, ...]) -> Iterator[Any]:
        for signature in (_any_length(args), None):
            yield tf.function(self.call, autograph=False, input_signature=signature)


@dataclass
class _Calls:
    """The calls of a function in one way, with arguments of some shapes and dtypes."""

    way: _Way
    fits: bool | None = None  # whether what is compiled gives the same for these shapes

    @property
    def is_compiled(self) -> bool:
        return bool(self.fits) and tf.executing_eagerly()

    def __call__(self, single: Any, args: tuple[Any, ...]) -> Any:
        """Run `single`, or in its place what was compiled."""
        if self.is_compiled:
            return self.way.compiled(*args)
        found = self.timed(lambda: single(*args))
        if self.fits is None and tf.executing_eagerly():
            if self.way.seconds > self.way.enough() and not self.way.is_tried:
                self.way.compile(args, found)
                self.fits = self.way.compiled is not None
            elif self.way.compiled is not None:
                self.fits = _fits(self.way.compiled, args, found)
        return found

    def timed(self, call: Callable[[], Any]) -> Any:
        start = time.process_time()  # whatever else runs on the machine
        found = call()
        took = time.process_time() - start
        self.way.seconds += took if took > _SLOW else 0.0
        return found


def _run(way: Any, fn: Any, *args: Any, single: Any = None) -> Any:
    return _calls(way, fn, args[0])(single or partial(way, fn), args)


def _calls(way: Any, fn: Any, xs: list[Any]) -> _Calls:
    return _calls_of(way, fn, tuple((tuple(x.shape), x.dtype) for x in xs))


@lru_cache(maxsize=256)
def _calls_of(way: Any, fn: Any, kinds: Any) -> _Calls:
    return _Calls(_way(way, fn, tuple((len(shape), dtype) for shape, dtype in kinds)))


@lru_cache(maxsize=256)
def _way(way: Any, fn: Any, kinds: Any) -> _Way:
    def enough() -> float:
        if way not in (_value, _pulled):
            return _RARE
        tracing = _way(_value, fn, kinds).tracing
        if tracing is None:
            return _OFTEN
        return _AGAIN * tracing if way is _value else max(_OFTEN, _MORE * tracing)

    return _Way(partial(way, fn), enough)


def _any_length(args: tuple[Any, ...]) -> Any:
    spec = lambda x: tf.TensorSpec([None] * len(x.shape), x.dtype)
    return [[spec(x) for x in each] for each in args]


def _fits(compiled: Any, args: tuple[Any, ...], found: Any) -> bool:
    try:
        return _is_same(found, compiled(*args))
    except Exception:  # it looks at values or lengths, which a compiler has none of
        return False


def _is_same(found: Any, other: Any) -> bool:
    one, two = (tf.nest.flatten(each) for each in (found, other))
    return len(one) == len(two) and all(map(_is_close, one, two))


def _is_close(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    a, b = (tf.convert_to_tensor(each).numpy() for each in (a, b))
    return a.shape == b.shape and np.allclose(a, b, 1e-3, 1e-6, equal_nan=True)


@contextmanager
def unstopped() -> Iterator[None]:
    """Functions that were traced before, which have stopped them already, run anew."""
    before = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(True)
    try:
        with patched(tf, stop_gradient=tf.identity):
            yield
    finally:
        tf.config.run_functions_eagerly(before)
