"""Reused memory: faster, and never shared by two live arrays."""

from __future__ import annotations

import gc
import os
import platform
import signal
import subprocess
import sys
import weakref
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from itertools import count
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from scipy import special

import gradsmith as gs
from gradsmith.core import pool as _pool
from gradsmith.core.cotangent import Scattered
from gradsmith.core.pool import SMALLEST, computed, is_held_once

N = SMALLEST // 8  # float64 elements from which on memory is reused

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _empty_pool():
    gs.release_memory()
    yield
    gs.release_memory()


def ramp(n=N):
    return np.arange(n, dtype=float)


def memory(x):
    return x.__array_interface__["data"][0]


def test_memory_that_nobody_holds_is_used_again():
    first = computed(np.negative, ramp())
    address = memory(first)
    del first
    assert memory(computed(np.negative, ramp())) == address


@pytest.mark.parametrize(
    "hold", [lambda y: y, lambda y: y[::7], lambda y: memoryview(y)]
)
def test_memory_that_is_held_is_not_used_again(hold):
    held = hold(computed(np.negative, ramp()))
    before = np.array(held)
    for _ in range(3):
        computed(np.square, ramp())
    np.testing.assert_array_equal(np.asarray(held), before)


def test_results_of_a_tape_stay_what_they_were():
    x = gs.Tensor(ramp() / N)
    kept = []
    for k in range(4):
        with gs.GradientTape() as tape:
            tape.watch(x)
            y = np.exp(x * float(k))
        kept.append((k, y, tape.gradient(y, x)))
    for k, y, dx in kept:
        np.testing.assert_allclose(y.numpy(), np.exp(x.value * k), rtol=1e-15)
        np.testing.assert_allclose(dx.numpy(), k * np.exp(x.value * k), rtol=1e-15)


# Whoever interrupts somebody who takes a block, never takes the same one

STEPS = 200


def is_intact(k):
    """Compute something large, let others do so, and look whether it has changed."""
    y = computed(np.multiply, np.ones(N), float(k))
    for _ in range(3):
        computed(np.negative, np.ones(N))
    return y[0] == y[-1] == k


def test_a_signal_handler_never_takes_memory_in_use():
    kept = deque(maxlen=3)
    corrupted, ended = [], []

    def handler(*_):
        if ended:  # else the next signal would come when nobody handles it
            return
        k = float(-len(kept) - 1)
        kept.append((k, computed(np.multiply, np.ones(N), k)))
        signal.setitimer(signal.ITIMER_REAL, 2e-4)

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 2e-4)
    try:
        for k in range(STEPS):
            if not is_intact(k):
                corrupted.append(k)
            corrupted.extend(k for k, y in list(kept) if not (y == k).all())
    finally:
        ended.append(True)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert kept, "no signal came"
    assert not corrupted


def computed_but_interrupted(line):
    """A large result and one of a trace function, which runs as a handler may."""
    events, taken = count(), []

    def interrupt(frame, *_):
        if frame.f_code.co_filename == _pool.__file__ and next(events) == line:
            taken.append(computed(np.multiply, np.ones(N), -1.0))
        return interrupt

    idle = [computed(np.negative, np.ones(N)) for _ in range(2)]
    del idle
    before = sys.gettrace()
    sys.settrace(interrupt)
    try:
        y = computed(np.multiply, np.ones(N), 3.0)
    finally:
        sys.settrace(before)
    return y, taken


def test_whoever_interrupts_at_any_line_never_takes_memory_in_use():
    for line in count():
        y, taken = computed_but_interrupted(line)
        if not taken:
            break
        assert (y == 3).all()
        assert (taken[0] == -1).all()
    assert line > 20


class Cycle:
    """Computes something large when it is collected, and keeps the result."""

    kept: ClassVar = deque(maxlen=3)

    def __init__(self):
        self.me = self
        self.held = computed(np.negative, np.ones(N))

    def __del__(self):
        self.kept.append(computed(np.multiply, self.held, 7.0))


def test_finalizers_never_take_memory_in_use():
    called = deque(maxlen=3)

    def callback(*_):
        called.append(computed(np.multiply, np.ones(N), 5.0))

    gc.callbacks.append(callback)
    try:
        for k in range(20):
            Cycle()
            watched = computed(np.negative, np.ones(N))
            reference = weakref.ref(watched, callback)
            del watched
            gc.collect(0)
            assert is_intact(k)
            assert reference() is None
            assert all((y == -7).all() for y in Cycle.kept)
            assert all((y == 5).all() for y in called)
    finally:
        gc.callbacks.remove(callback)
        Cycle.kept.clear()
    assert called


def test_threads_never_take_memory_in_use():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            assert all(threads.map(is_intact, range(STEPS)))
    finally:
        sys.setswitchinterval(interval)


def test_generators_never_take_memory_in_use():
    def values(k):
        while True:
            y = computed(np.multiply, np.ones(N), k)
            yield y
            assert (y == k).all()

    running = [values(float(k)) for k in range(6)]
    for _ in range(10):
        kept = [next(each) for each in running]
        assert [y[0] for y in kept] == [0, 1, 2, 3, 4, 5]


def test_the_pool_holds_few_blocks_after_all_was_dropped():
    held = [computed(np.negative, ramp()) for _ in range(20)]
    assert len({memory(x) for x in held}) == 20
    del held
    assert len(_pool._idle) <= _pool.MOST


@pytest.mark.parametrize(
    ("ufunc", "xs"),
    [
        (np.add, (ramp(), 2)),
        (np.add, (2.5, ramp())),
        (np.add, (ramp(), np.float64(3))),
        (np.add, (ramp(), np.float32(3))),
        (np.add, (ramp(), ramp().astype(np.float32))),
        (np.add, (ramp().astype(np.float32), np.float64(3))),
        (np.add, (ramp(), 2j)),
        (np.add, (ramp().reshape(2, -1), ramp(N // 2))),
        (np.add, (ramp().reshape(2, -1), np.ones((3, 1, 1)))),
        (np.exp, (ramp().reshape(4, -1).T / N,)),
        (np.absolute, (ramp() * 1j,)),
        (np.float_power, (ramp().astype(np.float32) / N, 2.0)),
        (special.erf, ((ramp(4 * N) / N).astype(np.float16),)),
        (np.exp, ((ramp() / N).astype(">f8"),)),
        (np.sinc, (ramp(),)),
    ],
)
def test_computed_is_what_numpy_computes(ufunc, xs):
    got, expected = computed(ufunc, *xs), ufunc(*xs)
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("n", [1000, 200_000])
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize(
    "f", [lambda x: x * 3.0, np.exp, np.sin, lambda x: np.tanh(x) * x, np.square]
)
def test_a_gradient_under_another_open_tape(f, persistent, n):
    """Its cotangents are tensors, which are not computed in place."""
    x = gs.Tensor(ramp(n) / n)
    with gs.GradientTape(persistent=persistent) as tape:
        tape.watch(x)
        y = np.sum(f(x))
    with gs.GradientTape() as other:
        other.watch(x)
        dx = tape.gradient(y, x)
        z = np.sum(dx * x)
    expected = gs.grad(lambda x: np.sum(f(x)))(x.numpy())
    np.testing.assert_allclose(dx.numpy(), expected, rtol=1e-14)
    assert other.gradient(z, x) is not None


def test_a_large_float16_gradient_is_float16():
    dx = gs.grad(lambda x: np.sum(special.erf(x)))(np.full(4 * N, 0.5, np.float16))
    assert dx.dtype == np.float16
    np.testing.assert_allclose(dx, 2 / np.sqrt(np.pi) * np.exp(-0.25), rtol=1e-3)


# Sparse cotangents are added in place where nobody else can see it


def alone(test):
    """Run a test in a process of its own: others' hooks may hold what it counts."""

    @wraps(test)
    def run():
        code = (
            f"from tests.core import test_pool; test_pool.{test.__name__}.__wrapped__()"
        )
        subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)

    return run


@alone
def test_held_once():
    def asks(x):
        return is_held_once(x)

    # Outside of an assert, which holds what it looks at.
    new, reused = asks([ramp()].pop()), asks([computed(np.negative, ramp())].pop())
    assert new
    assert reused
    held = computed(np.negative, ramp())
    named, part = asks(held), asks([held[1:]].pop())
    assert not named
    assert not part


@alone
def test_a_sparse_cotangent_is_added_in_place_if_it_can_be():
    spread = Scattered((np.array([1, 3]),), np.ones(2), (5,), distinct=True)
    total = [ramp(5)]
    address = memory(total[0])
    result = spread.added_to(total.pop())
    assert memory(result) == address


def test_a_sparse_cotangent_leaves_what_others_hold_alone():
    total = ramp(5)
    spread = Scattered((np.array([1, 3]),), np.ones(2), (5,), distinct=True)
    result = spread.added_to(total)
    np.testing.assert_array_equal(total, ramp(5))
    np.testing.assert_array_equal(result, [0, 2, 2, 4, 4])


def test_repeated_places_add_up():
    spread = Scattered((np.array([1, 1]),), np.ones(2), (3,), distinct=False)
    np.testing.assert_array_equal(spread.dense(), [0, 2, 0])
    np.testing.assert_array_equal((spread + spread), [0, 4, 0])


def test_output_gradients_are_not_changed():
    x = gs.Tensor(ramp())
    seed = np.ones(N)
    with gs.GradientTape() as tape:
        tape.watch(x)
        y, m = x + 0.0, np.max(x)
    dx = tape.gradient([y, m], x, output_gradients=[seed, np.float64(5.0)])
    assert (seed == 1).all()
    assert dx.numpy()[-1] == 6


@pytest.mark.parametrize("persistent", [False, True])
def test_a_cotangent_shared_by_two_is_not_changed_for_the_other(persistent):
    a, b = gs.Tensor(ramp()), gs.Tensor(ramp())
    with gs.GradientTape(persistent=persistent) as tape:
        tape.watch([a, b])
        y = np.sum(np.exp((a + b) / N)) + 100 * np.max(a)
    da, db = tape.gradient(y, [a, b])
    expected = np.exp(2 * ramp() / N) / N
    np.testing.assert_allclose(db.numpy(), expected, rtol=1e-14)
    expected[-1] += 100
    np.testing.assert_allclose(da.numpy(), expected, rtol=1e-14)


FAULTS = """
import resource
import numpy as np
import gradsmith as gs

step = gs.grad(lambda x: np.sum(np.sin(x) * np.exp(-x) + x))
x = np.ones(60_000)  # too small for the pool
faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    step(x)
before = faults()
for _ in range(20):
    step(x)
print((faults() - before) / 20)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="what glibc learns")
def test_the_c_library_keeps_the_memory_of_arrays_below_those_of_the_pool():
    run = subprocess.run(
        [sys.executable, "-c", FAULTS],
        capture_output=True,
        text=True,
        check=True,
        env={k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")},
    )
    assert float(run.stdout) < 50  # an array is 117 pages
