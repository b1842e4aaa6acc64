"""Reused memory: faster, and never shared by two live arrays."""

from __future__ import annotations

import subprocess
import sys
import threading
from functools import wraps
from pathlib import Path

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


def test_threads_do_not_share_a_pool():
    addresses = set()

    def work():
        for _ in range(3):
            addresses.add(memory(computed(np.negative, ramp())))
        pools.append(_pool._pool.blocks)

    pools = []
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    blocks = [id(block) for pool in pools for block in pool]
    assert len(blocks) == len(set(blocks)) == 2


def test_the_pool_holds_few_blocks_after_all_was_dropped():
    held = [computed(np.negative, ramp()) for _ in range(20)]
    assert len({memory(x) for x in held}) == 20
    del held
    assert len(_pool._pool.blocks) <= _pool.MOST


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
