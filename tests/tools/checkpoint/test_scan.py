"""gs.checkpoint_scan on the embedded engine."""

from __future__ import annotations

import os
import tracemalloc
from math import comb
from typing import NamedTuple

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.tools.checkpoint.budget import parse
from gradsmith.tools.checkpoint.schedule import actions, forward_steps, pieces

RNG = np.random.default_rng(0)
U, V, F = RNG.normal(size=8), RNG.normal(size=8), RNG.normal(size=(30, 8))
W = gs.Variable(RNG.normal(size=8), name="w")
N = 30


class Count:
    def __init__(self):
        self.n = 0

    def __call__(self, s, x):
        self.n += 1
        u, v = s["u"], s["v"]
        return {
            "u": u + 0.05 * np.sin(v * W) + 0.1 * x,
            "v": v * np.cos(u) * 0.9,
        }


def plain(u, v, f):
    s, step = {"u": u, "v": v}, Count()
    for i in range(N):
        s = step(s, f[i])
    return np.sum(s["u"] * s["v"] ** 2)


def scanned(u, v, f, step=None, snapshots=4, **options):
    s = gs.checkpoint_scan(
        step or Count(), {"u": u, "v": v}, N, inputs=f, snapshots=snapshots, **options
    )
    return np.sum(s["u"] * s["v"] ** 2)


@pytest.mark.parametrize("options", [
    {"snapshots": 1}, {"snapshots": 2}, {"snapshots": 4}, {"snapshots": 29},
    {"snapshots": 99}, {"snapshots": 3, "disk": 4}, {"snapshots": 1, "disk": 40},
])  # fmt: skip
def test_the_gradient_is_bitwise_the_plain_one_in_revolves_number_of_steps(options):
    step = Count()
    ours = gs.grad(lambda *xs: scanned(*xs, step=step, **options), (0, 1, 2))(U, V, F)
    for dx, expected in zip(ours, gs.grad(plain, (0, 1, 2))(U, V, F), strict=True):
        np.testing.assert_array_equal(dx, expected)
    assert step.n == revolve(N, options["snapshots"] + options.get("disk", 0))


def revolve(steps, snapshots):
    """Griewank and Walther's number: r steps + steps - C(s + r, s + 1)."""
    s = min(snapshots, steps - 1)
    r = next(r for r in range(steps) if comb(s + r, s) >= steps)
    return steps + r * steps - comb(s + r, s + 1)


@pytest.mark.parametrize(("steps", "snapshots"), [(1000, 20), (1000, 3), (7, 2)])
def test_the_schedule_has_revolves_number_of_steps(steps, snapshots):
    assert forward_steps(steps, snapshots) == revolve(steps, snapshots)
    assert forward_steps(1000, 20) == 3747


def test_the_library_agrees_on_the_number():
    from checkpoint_schedules import Forward, Revolve

    found = sum(len(a) for a in Revolve(40, 5) if isinstance(a, Forward))
    assert found == forward_steps(40, 5)


@pytest.mark.parametrize("snapshots", [1, 2, 5, 60])
def test_the_nest_of_blocks_takes_as_many_steps(snapshots):
    def taken(body):
        inside = sum(p.stop - p.start + taken(p.body) for p in body if p.body)
        return inside + sum(not p.body for p in body)

    assert taken(pieces(40, snapshots)) == revolve(40, snapshots)


def test_no_more_states_are_stored_than_asked_for():
    stored, most = 0, 0
    for action in actions(200, 7):
        stored += bool(action.store) and action.kind == "advance"
        most = max(most, stored)
        stored -= action.last
    assert (stored, most) == (0, 7)


def test_peak_memory_above_the_bare_loop_is_that_of_the_snapshots():
    from benchmarks import checkpoint

    s, peaks = checkpoint.start(100), []
    size = sum(x.nbytes for x in s.values())
    for run in (
        lambda: checkpoint.gradient(checkpoint.start(4), 60, 20),  # imports, caches
        lambda: checkpoint.gradient(checkpoint.start(100), 60, 20),
        lambda: checkpoint.bare(100, 60),
    ):
        tracemalloc.start()
        run()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[2] <= 1.1 * 20 * size


def test_higher_orders_and_forward_mode():
    flat = lambda fn: lambda u: fn(u, V, F)
    for derive in (
        lambda f: gs.hessian(f)(U),
        lambda f: gs.jvp(f, (U,), (V,))[1],
        lambda f: gs.grad(lambda u: np.sum(gs.grad(f)(u) ** 2))(U),
    ):
        np.testing.assert_allclose(
            derive(flat(scanned)), derive(flat(plain)), rtol=1e-10
        )


def test_a_nest_that_is_too_deep_says_how_many_snapshots_will_do():
    def total(x, snapshots):
        return np.sum(gs.checkpoint_scan(np.sin, x, 150, snapshots=snapshots))

    assert gs.grad(lambda x: total(x, 1))(np.ones(1)).shape == (1,)
    with pytest.raises(gs.GradsmithError, match="snapshots=2 or more"):
        gs.hessian(lambda x: total(x, 1))(np.ones(1))
    assert gs.hessian(lambda x: total(x, 2))(np.ones(1)).shape == (1, 1)


def test_captured_variables_and_a_persistent_tape():
    found = []
    for fn in (plain, scanned):
        u = gs.Tensor(U)
        with gs.GradientTape(persistent=True) as tape:
            tape.watch(u)
            y = fn(u, V, F)
        found.append([tape.gradient(y, [u, W]) for _ in range(2)])
    for one in found[1]:
        for dx, expected in zip(one, found[0][0], strict=True):
            # Sums over steps are taken block by block: in another order.
            np.testing.assert_allclose(dx, expected, rtol=1e-14)


def test_a_pullback_can_be_called_again():
    _, pull = gs.vjp(lambda u: scanned(u, V, F), U)
    _, expected = gs.vjp(lambda u: plain(u, V, F), U)
    for dy in (1.0, 1.0, 3.0):
        np.testing.assert_array_equal(pull(dy)[0], expected(dy)[0])
    with gs.GradientTape() as tape:
        dy = gs.Tensor(2.0)
        tape.watch(dy)
        total = np.sum(pull(dy)[0])
    np.testing.assert_allclose(tape.gradient(total, dy), np.sum(pull(1.0)[0]))


def test_variables_assigned_since_count_as_they_were():
    w = gs.Variable(2.0)
    with gs.GradientTape() as tape:
        y = gs.checkpoint_scan(lambda x: x * w, gs.Tensor(1.0), 5, snapshots=2)
    w.assign(100.0)
    assert float(tape.gradient(y, w)) == 5 * 2.0**4
    assert float(w) == 100.0


class Body(NamedTuple):
    x: object
    count: object


def test_the_step_gets_its_number_and_whole_numbers_in_the_state_are_carried():
    def step(body, i):
        return Body(body.x * (1 + 0.1 * i), body.count + 1)

    def total(x):
        body = gs.checkpoint_scan(step, Body(x, np.array(0)), 6, snapshots=2)
        assert int(np.asarray(gs.stop_gradient(body.count))) == 6
        return np.sum(body.x)

    expected = np.prod(1 + 0.1 * np.arange(6))
    np.testing.assert_allclose(gs.grad(total)(np.ones(2)), expected)


def test_a_captured_start_counts_twice():
    def total(x):
        return np.sum(gs.checkpoint_scan(lambda s: s + x, x, 10, snapshots=3))

    np.testing.assert_array_equal(gs.grad(total)(np.ones(2)), [11.0, 11.0])


@pytest.mark.parametrize("first", [0, 3])
def test_randomness_in_steps_is_replayed(first):
    def run(scan, rng):
        def step(x, i):
            return x * rng.normal(size=3) if i >= first else x * 1.5

        def loop(x):
            for i in range(20):
                x = step(x, i)
            return np.sum(x)

        ours = lambda x: np.sum(gs.checkpoint_scan(step, x, 20, snapshots=3))
        dx = gs.grad(ours if scan else loop)(np.ones(3))
        return dx.tolist(), rng.random()

    seeds = [np.random.default_rng(5) for _ in range(2)]
    assert run(True, seeds[0]) == run(False, seeds[1])


def test_files_are_removed(tmp_path):
    seen = []

    def step(x):
        seen.append(sum(len(files) for _, _, files in os.walk(tmp_path)))
        return np.sin(x)

    gs.grad(
        lambda x: np.sum(
            gs.checkpoint_scan(step, x, 20, snapshots=2, disk=3, folder=str(tmp_path))
        )
    )(np.ones(2))
    assert max(seen) == 3
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("damage", ["a bit", "the end", "all", "the shape"])
def test_a_state_that_was_changed_on_disk_is_refused(tmp_path, damage):
    steps = []

    def step(x):
        steps.append(None)
        if len(steps) == 20:  # the forward sweep is done
            for path in tmp_path.glob("*/*"):
                data = bytearray(path.read_bytes())
                if damage == "a bit":
                    data[-1] ^= 1
                elif damage == "the shape":
                    data = data.replace(b"(4,)", b"(2,)")
                path.write_bytes({"the end": data[:-5], "all": b""}.get(damage, data))
        return np.sin(x)

    def loss(x):
        options = {"snapshots": 2, "disk": 3, "folder": str(tmp_path)}
        return np.sum(gs.checkpoint_scan(step, x, 20, **options))

    with pytest.raises(gs.GradsmithError, match="not as it was written"):
        gs.grad(loss)(np.ones(4))
    assert os.listdir(tmp_path) == []


def test_a_budget_is_as_many_states_as_fit():
    assert parse("2 KiB") == 2048
    step = Count()
    size = U.nbytes + V.nbytes
    gs.grad(
        lambda u: np.sum(
            gs.checkpoint_scan(
                step, {"u": u, "v": V}, N, inputs=F, budget=f"{5 * size + 1} B"
            )["u"]
        )
    )(U)
    assert step.n == forward_steps(N, 5)


@pytest.mark.parametrize("budget", [10**6, 1e6, np.int64(10**6), np.float32(1e6)])
def test_a_budget_may_be_any_number(budget):
    assert parse(budget) == 10**6


def test_without_a_tape_it_is_a_loop_on_plain_arrays():
    step = Count()
    s = gs.checkpoint_scan(lambda s: {"u": s["u"] * 2}, {"u": U}, 3, snapshots=1)
    assert type(s["u"]) is np.ndarray
    np.testing.assert_array_equal(s["u"], 8 * U)
    assert step.n == 0
    assert gs.checkpoint_scan(step, U, 0, snapshots=1) is U
