"""Scenarios of the embedded engine: memory, threads, generators, finalizers."""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np

import gradsmith as gs

from .scenarios import DY, X, same, square

ALONE: dict[str, Callable[[], None]] = {}
# A limit that the documentation states
NOT_COPIED = [
    f"{what} changed between forward and backward"
    for what in ("plain array", "mask", "index", "large array")
]
MANY = 300_000  # elements: beyond where memory is pooled


def alone(run: Callable[[], None]) -> Callable[[], None]:
    ALONE[run.__name__.replace("_", " ")] = run
    return run


def cubes(x: Any) -> Any:
    return np.sum(np.sin(x) * x * np.exp(-x * x))


def slope(x: np.ndarray) -> np.ndarray:
    e = np.exp(-x * x)
    return (np.cos(x) * x + np.sin(x) - 2 * x * x * np.sin(x)) * e


def right(x: np.ndarray) -> None:
    same(gs.grad(cubes)(x), slope(x), "the gradient")


@alone
def array_of_a_variable_changed() -> None:
    array = X.copy()
    v = gs.Variable(array)
    with gs.GradientTape() as tape:
        y = np.sum(v * v)
    array[:] = 7.0
    same(tape.gradient(y, v), 2 * X, "the gradient")


@alone
def variable_assigned_after_it_was_read() -> None:
    v = gs.Variable(X.copy())
    with gs.GradientTape() as tape:
        y = np.sum(v * v)
        v.assign(X + 5)
    same(tape.gradient(y, v), 2 * X, "the gradient")


@alone
def array_of_a_constant_changed() -> None:
    array = X.copy()
    c = gs.constant(array)
    array[:] = 7.0
    same(c, X, "the constant")


@alone
def plain_array_changed_between_forward_and_backward() -> None:
    weights = X.copy()
    with gs.GradientTape() as tape:
        v = gs.constant(X)
        tape.watch(v)
        y = np.sum(v * weights)
        weights[:] = 7.0
    same(tape.gradient(y, v), X, "the gradient")


@alone
def mask_changed_between_forward_and_backward() -> None:
    mask = np.array([True, False, True])
    with gs.GradientTape() as tape:
        v = gs.constant(X)
        tape.watch(v)
        y = np.sum(np.where(mask, v, 0.0) * v[::-1])
        mask[:] = False
    same(tape.gradient(y, v), gs.grad(lambda v: v[0] * v[2] * 2)(X), "the gradient")


@alone
def index_changed_between_forward_and_backward() -> None:
    index = np.array([0, 0, 2])
    with gs.GradientTape() as tape:
        v = gs.constant(X)
        tape.watch(v)
        y = np.sum(v[index])
        index[:] = 1
    same(tape.gradient(y, v), [2.0, 0.0, 1.0], "the gradient")


@alone
def large_array_changed_between_forward_and_backward() -> None:
    x = np.linspace(-1, 1, MANY)
    weights = x.copy()
    _, pull = gs.vjp(lambda v: v * weights, x)
    weights[:] = 7.0
    same(pull(np.ones(MANY))[0], x, "the gradient")


@alone
def result_kept_while_memory_is_reused() -> None:
    x = np.linspace(-1, 1, MANY)
    kept = [gs.grad(cubes)(x + i) for i in range(6)]
    for i, dx in enumerate(kept):
        same(dx, slope(x + i), "an earlier gradient")


@alone
def view_of_a_result_kept_while_memory_is_reused() -> None:
    x = np.linspace(-1, 1, MANY)
    kept = [gs.grad(cubes)(x + i)[10:20] for i in range(6)]
    for i, dx in enumerate(kept):
        same(dx, slope(x + i)[10:20], "a view of an earlier gradient")


@alone
def memory_view_of_a_result_kept() -> None:
    x = np.linspace(-1, 1, MANY)
    kept = [memoryview(gs.grad(cubes)(x + i)) for i in range(6)]
    for i, dx in enumerate(kept):
        same(np.asarray(dx), slope(x + i), "a buffer of an earlier gradient")


@alone
def gradient_inside_a_signal_handler() -> None:
    x = np.linspace(-1, 1, MANY)
    found: list[np.ndarray] = []

    def handler(*_: Any) -> None:
        found.append(gs.grad(cubes)(x + 1))
        signal.setitimer(signal.ITIMER_REAL, 0.01)

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    try:
        for _ in range(8):
            right(x)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    for dx in found:
        same(dx, slope(x + 1), "the gradient of the handler")


@alone
def gradient_inside_a_finalizer() -> None:
    x = np.linspace(-1, 1, MANY)
    found: list[np.ndarray] = []

    class Cycle:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            found.append(gs.grad(cubes)(x + 2))

    before = gc.get_threshold()
    gc.set_threshold(20, 2, 2)
    try:
        for _ in range(10):
            Cycle()
            right(x)
    finally:
        gc.set_threshold(*before)
        gc.collect()
    for dx in found:
        same(dx, slope(x + 2), "the gradient of the finalizer")


@alone
def gradient_inside_a_weak_reference_callback() -> None:
    x = np.linspace(-1, 1, 100)
    found: list[np.ndarray] = []

    class Thing:
        pass

    def step(v: Any) -> Any:
        thing = Thing()
        ref = weakref.ref(thing, lambda _: found.append(gs.grad(cubes)(x + 3)))
        y = np.sin(v)
        del thing
        assert ref() is None
        return np.sum(y * v)

    same(gs.grad(step)(x), np.cos(x) * x + np.sin(x), "the gradient")
    same(found[0], slope(x + 3), "the gradient of the callback")


@alone
def threads_at_the_same_time() -> None:
    xs = [np.linspace(-1, 1, MANY) + i for i in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for x, dx in zip(xs * 3, pool.map(gs.grad(cubes), xs * 3), strict=True):
            same(dx, slope(x), "the gradient of a thread")


@alone
def one_operation_in_many_threads() -> None:
    op = square()
    xs = [X + i for i in range(50)]
    run = lambda x: gs.grad(lambda v: np.sum(op(v)))(x)
    with ThreadPoolExecutor(8) as pool:
        for x, dx in zip(xs, pool.map(run, xs), strict=True):
            same(dx, 2 * x, "the gradient of a thread")


@alone
def tape_is_not_seen_by_another_thread() -> None:
    found: list[Any] = []
    with gs.GradientTape() as tape:
        v = gs.constant(X)
        tape.watch(v)
        thread = threading.Thread(target=lambda: found.append(gs.grad(cubes)(X)))
        thread.start()
        thread.join()
        y = np.sum(v * v)
    same(tape.gradient(y, v), 2 * X, "the gradient")
    same(found[0], slope(X), "the gradient of the thread")


@alone
def tape_in_a_suspended_generator() -> None:
    def steps() -> Any:
        with gs.GradientTape() as tape:
            v = gs.constant(X)
            tape.watch(v)
            y = np.sum(v * v)
            yield y
            yield None
        yield tape.gradient(y, v)

    running = steps()
    same(float(next(running)), np.sum(X * X), "the value, which nobody follows here")
    right(X)
    next(running)
    right(X)
    same(next(running), 2 * X, "the gradient of the generator")


@alone
def tapes_of_two_generators_interleaved() -> None:
    def steps(factor: float) -> Any:
        with gs.GradientTape() as tape:
            v = gs.constant(X)
            tape.watch(v)
            y = v * factor
            yield None
            y = np.sum(y * v)
            yield None
        yield tape.gradient(y, v)

    one, two = steps(2.0), steps(3.0)
    for _ in range(2):
        next(one)
        next(two)
    same(next(one), 4 * X, "the gradient of the first")
    same(next(two), 6 * X, "the gradient of the second")


@alone
def tapes_of_two_asyncio_tasks() -> None:
    async def task(factor: float) -> Any:
        with gs.GradientTape() as tape:
            v = gs.constant(X)
            tape.watch(v)
            y = v * factor
            await asyncio.sleep(0)
            y = np.sum(y * v)
        return tape.gradient(y, v)

    async def both() -> Any:
        return await asyncio.gather(task(2.0), task(3.0))

    one, two = asyncio.run(both())
    same(one, 4 * X, "the gradient of the first")
    same(two, 6 * X, "the gradient of the second")


@alone
def abandoned_generator_leaves_no_tape() -> None:
    def steps() -> Any:
        with gs.GradientTape():
            yield

    running = steps()
    next(running)
    del running
    gc.collect()
    x = gs.constant(X)
    same(np.sum(x * x).numpy(), np.sum(X * X), "the value")
    right(np.linspace(-1, 1, MANY))


@alone
def exception_leaves_no_tape() -> None:
    def fails(x: Any) -> Any:
        np.sin(x)
        raise KeyError("mine")

    for _ in range(3):
        with suppress(KeyError):
            gs.grad(fails)(X)
    right(np.linspace(-1, 1, MANY))


@alone
def large_gradient_under_another_tape() -> None:
    x = np.linspace(-1, 1, MANY)
    with gs.GradientTape() as tape:
        v = gs.constant(X)
        tape.watch(v)
        same(gs.grad(cubes)(x), slope(x), "the inner gradient")
        y = np.sum(v * v)
    same(tape.gradient(y, v), 2 * X, "the outer gradient")


@alone
def value_of_vjp_changed() -> None:
    y, pull = gs.vjp(np.exp, X)
    if y.flags.writeable:
        y[...] = 0.0
    same(pull(DY)[0], np.exp(X) * DY, "the gradient")


@alone
def jvp_with_one_array_as_primal_and_tangent() -> None:
    x = X.copy()
    y, dy = gs.jvp(lambda v: v * v, (x,), (x,))
    dy[...] = 0.0
    same(y, X * X, "the value")
    same(x, X, "the caller's array")


@alone
def gradient_of_a_broadcast_view() -> None:
    x = np.broadcast_to(np.array(0.5), (3,))
    dx = gs.grad(lambda v: np.sum(v * v * np.array([1.0, 2.0, 3.0])))(x)
    same(dx, [1.0, 2.0, 3.0], "the gradient")
    dx[0] = 5.0
    same(dx, [5.0, 2.0, 3.0], "the gradient after it was changed")


@alone
def gradient_of_a_sum_is_a_new_array() -> None:
    f = gs.grad(lambda v: np.sum(v))
    one = f(X)
    one[:] = 5.0
    same(f(X), np.ones(3), "the second gradient")


@alone
def two_gradients_share_no_memory() -> None:
    a, b = gs.grad(lambda a, b: np.sum(a + b), (0, 1))(X, X)
    a[:] = 5.0
    same(b, np.ones(3), "the gradient of the other")


@alone
def aux_shares_no_memory_with_the_input() -> None:
    x = X.copy()
    _, aux = gs.grad(lambda v: (np.sum(v * v), v), has_aux=True)(x)
    aux[...] = 9.0
    same(x, X, "the caller's array")


@alone
def optimizer_does_not_keep_the_gradient() -> None:
    v = gs.Variable(X.copy())
    adam = gs.optimizers.Adam(0.1)
    dx = np.ones(3)
    adam.apply_gradients([(dx, v)])
    first = v.numpy().copy()
    dx[:] = 1e6
    same(v, first, "the variable")


@alone
def checkpoint_under_other_threads_randomness() -> None:
    rng_before = np.random.default_rng(0).random(3)
    fun = gs.checkpoint(lambda x: np.sin(x) * x)
    drawn: list[float] = []
    stop = threading.Event()

    def draw() -> None:
        while not stop.is_set():
            drawn.append(np.random.random())

    thread = threading.Thread(target=draw)
    thread.start()
    try:
        for _ in range(50):
            gs.grad(lambda x: np.sum(fun(x)))(X)
    finally:
        stop.set()
        thread.join()
    if len(set(drawn)) != len(drawn):
        raise AssertionError("numbers of another thread came twice")
    same(rng_before, np.random.default_rng(0).random(3), "a generator")
