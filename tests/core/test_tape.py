"""GradientTape: TensorFlow 2's semantics, scopes that close, memory given back."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import tracemalloc
import weakref
from collections import namedtuple
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.core.tape import state


@pytest.fixture(autouse=True)
def no_recorder_stays():
    """Whatever a test does, it leaves no recorder active."""
    yield
    assert state().recorders == ()


@contextmanager
def without_collector():
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def recorded(fn, *values, **options):
    """A tape on which fn of watched tensors is recorded, its result and the tensors."""
    xs = [gs.Tensor(value) for value in values]
    with gs.GradientTape(**options) as tape:
        tape.watch(xs)
        y = fn(*xs)
    return tape, y, xs


# --- first order ---------------------------------------------------------------------


def test_the_target_itself_has_gradient_one():
    tape, y, (x,) = recorded(lambda x: x, [2.0, 3.0])
    np.testing.assert_array_equal(tape.gradient(y, x), [1.0, 1.0])


def test_with_respect_to_an_intermediate():
    x = gs.Tensor(3.0)
    with gs.GradientTape() as tape:
        tape.watch(x)
        h = x * x
        y = h * h
    dh, dx = tape.gradient(y, [h, x])
    assert (dh, dx) == (18.0, 108.0)


def test_an_intermediate_target_of_its_own_source():
    """What lies behind the source is not walked, and what lies before it counts."""
    x = gs.Tensor(3.0)
    with gs.GradientTape(persistent=True) as tape:
        tape.watch(x)
        h = x * x
        y = np.sin(h) + h
    assert tape.gradient(h, y) is None
    assert tape.gradient(y, h) == np.cos(9.0) + 1


def test_the_same_source_twice():
    tape, y, (x,) = recorded(lambda x: x * x, 3.0)
    assert tape.gradient(y, [x, x]) == [6.0, 6.0]


def test_gradients_of_several_targets_add_up():
    tape, y, (x,) = recorded(lambda x: [x * 2, {"a": x * x}], 3.0)
    assert tape.gradient(y, x) == 8.0


def test_the_same_target_twice_counts_twice():
    tape, y, (x,) = recorded(lambda x: x * 2, 3.0)
    assert tape.gradient([y, y], x) == 4.0


Point = namedtuple("Point", "u v")


@dataclass
class Pair:
    a: object
    b: object


@pytest.mark.parametrize(
    "build",
    [
        lambda u, v: (u, v),
        lambda u, v: [u, [v]],
        lambda u, v: {"v": v, "u": {"w": u}},
        lambda u, v: Point(u, v),
        lambda u, v: Pair(u, (v,)),
    ],
    ids=["tuple", "list", "dict", "namedtuple", "dataclass"],
)
def test_gradients_are_structured_as_the_sources(build):
    u, v = gs.Tensor(2.0), gs.Tensor(5.0)
    with gs.GradientTape() as tape:
        tape.watch((u, v))
        y = u * v
    assert tape.gradient(y, build(u, v)) == build(5.0, 2.0)


def test_output_gradients_weigh_the_targets():
    tape, y, (x,) = recorded(lambda x: [x * x, x * 3], [1.0, 2.0])
    dx = tape.gradient(y, x, output_gradients=[np.array([1.0, 10.0]), None])
    np.testing.assert_array_equal(dx, [5.0, 43.0])


def test_output_gradients_meet_their_targets_by_name():
    tape, y, (x,) = recorded(lambda x: {"a": x * x, "b": x * 3}, 2.0, persistent=True)
    assert tape.gradient(y, x, {"b": 10.0, "a": 1.0}) == 34.0
    flat = [gs.Tensor(1.0), gs.Tensor(10.0)]
    assert tape.gradient(y, x, flat) == 34.0
    assert tape.gradient(y["b"], x, flat[1:]) == 30.0
    with pytest.raises(gs.GradsmithError, match="one structure"):
        tape.gradient(y, x, {"b": 10.0, "c": 1.0})


def test_output_gradients_take_the_dtype_of_the_target():
    tape, y, (x,) = recorded(np.sin, np.ones(2, np.float32))
    assert tape.gradient(y, x, gs.Tensor([1.0, 2.0])).dtype == np.float32


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (np.ones(3), r"output_gradients\[0\] has shape \(3,\)"),
        (np.array([1j, 2]), r"complex128, its target \(2,\) and float64"),
        ([np.ones(2), np.ones(2)], r"output_gradients\[0\] has shape \(2, 2\)"),
    ],
)
def test_output_gradients_that_do_not_fit_are_refused(given, words):
    tape, y, (x,) = recorded(np.sin, [1.0, 2.0])
    with pytest.raises(gs.GradsmithError, match=words):
        tape.gradient(y, x, given)
    assert tape.gradient(y, x) is not None, "a refused call must not use up the tape"


def test_unconnected_is_none_or_zero():
    tape, y, (x, z) = recorded(lambda x, z: x * x, 2.0, [1.0, 1.0], persistent=True)
    assert tape.gradient(y, [x, z])[1] is None
    dx, dz = tape.gradient(y, [x, z], unconnected_gradients="zero")
    assert dx == 4.0
    np.testing.assert_array_equal(dz, [0.0, 0.0])
    assert (
        tape.gradient(y, z, unconnected_gradients=gs.UnconnectedGradients.NONE) is None
    )
    with pytest.raises(gs.GradsmithError, match="'none' or 'zero', not 'nothing'"):
        tape.gradient(y, z, unconnected_gradients="nothing")


def test_a_plain_target_has_no_gradient():
    tape, _, (x,) = recorded(lambda x: x * x, 2.0)
    assert tape.gradient(4.0, x) is None


@pytest.mark.parametrize("target", [None, [None], {"loss": "low"}])
def test_a_target_that_is_no_number_is_refused(target):
    tape, _, (x,) = recorded(lambda x: x * x, 2.0)
    with pytest.raises(gs.TapeError, match=r"target.* is a (NoneType|str)"):
        tape.gradient(target, x)


def test_a_plain_source_is_refused():
    tape, y, _ = recorded(lambda x: x * x, 2.0)
    with pytest.raises(gs.TapeError, match=r"sources\['w'\] is a float"):
        tape.gradient(y, {"w": 2.0})


def test_watching_a_plain_array_is_refused():
    with pytest.raises(gs.TapeError, match="is an ndarray"):
        gs.GradientTape().watch([np.ones(2)])


def test_watching_integers_warns_and_does_nothing():
    x, tape = gs.Tensor([1, 2]), gs.GradientTape()
    with pytest.warns(UserWarning, match="dtype int64"):
        tape.watch(x)
    with tape:
        y = x * 1.5
    assert tape.gradient(y, x) is None


def test_no_gradient_passes_through_whole_numbers():
    tape, y, (x,) = recorded(lambda x: x.astype(int) * 2.0, [1.5, 2.5])
    assert tape.gradient(y, x) is None


def test_no_walk_into_branches_that_lead_nowhere():
    """The cotangent of a branch without a source is not computed."""
    asked = []

    @gs.custom_gradient
    def op(x):
        def grad(dy):
            asked.append(True)
            return dy

        return x + 0, grad

    tape, y, (_, z) = recorded(lambda x, z: op(x * 2) * z, 3.0, 5.0)
    assert tape.gradient(y, z) == 6.0
    assert not asked


@pytest.mark.parametrize("n", [4, 200_000])
def test_the_walk_changes_nobodys_array(n):
    """Cotangents are added in place only where nobody else holds them."""
    x, dh, dz = gs.Tensor(np.arange(n) / n), np.ones(n), np.ones(n)
    with gs.GradientTape(persistent=True) as tape:
        tape.watch(x)
        h = x + 0.0
        z = h.reshape(2, -1).reshape(-1)
        y = [np.max(z), z[1] * 3, np.sum(h * 2), z[-1] + np.max(h), z, h, np.sum(z[:2])]
    weights = [None, None, None, None, dz, dh, None]
    for _ in range(2):
        expected = np.full(n, 4.0)
        expected[1] += 3 + 1
        expected[0] += 1
        expected[-1] += 3
        for dx in tape.gradient(y, [x, h], weights):
            np.testing.assert_array_equal(dx, expected)
        np.testing.assert_array_equal(dz, np.ones(n))
        np.testing.assert_array_equal(dh, np.ones(n))


# --- variables -----------------------------------------------------------------------


def test_trainable_variables_are_watched_when_read():
    w, b = gs.Variable(2.0, name="w"), gs.Variable(1.0, trainable=False)
    unread = gs.Variable(7.0)
    with gs.GradientTape() as tape:
        y = w * w + b
    assert tape.watched_variables() == (w,)
    assert tape.gradient(y, [w, b, unread]) == [4.0, None, None]


def test_variables_are_not_watched_if_not_wanted():
    v, w = gs.Variable(2.0), gs.Variable(3.0)
    with gs.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(w)
        y = v * w
    assert tape.watched_variables() == (w,)
    assert tape.gradient(y, [v, w]) == [None, 2.0]


def test_a_variable_that_is_not_trainable_can_be_watched():
    w = gs.Variable(2.0, trainable=False)
    with gs.GradientTape() as tape:
        tape.watch(w)
        y = w * w
    assert tape.gradient(y, w) == 4.0


def test_a_variable_of_whole_numbers_is_not_followed():
    steps = gs.Variable(3)
    with gs.GradientTape() as tape:
        y = steps * 2.0
    assert tape.watched_variables() == ()
    assert tape.gradient(y, steps) is None


def test_asking_for_a_variable_does_not_watch_it():
    w = gs.Variable(2.0)
    tape, y, _ = recorded(lambda x: x * x, 2.0)
    assert tape.gradient(y, w) is None
    assert tape.watched_variables() == ()


@pytest.mark.parametrize("persistent", [False, True])
def test_assigning_later_does_not_change_what_was_saved(persistent):
    w = gs.Variable(3.0)
    with gs.GradientTape(persistent=persistent) as tape:
        y = w * w * w
    w.assign(100.0)
    assert tape.gradient(y, w) == 27.0


def test_assigning_between_two_reads():
    """Each read counts with the value that it saw."""
    w = gs.Variable(3.0)
    with gs.GradientTape() as tape:
        y = w * w
        w.assign(5.0)
        y = y + w * w * w
    assert tape.gradient(y, w) == 2 * 3.0 + 3 * 25.0


def test_assigning_later_does_not_change_higher_orders():
    w = gs.Variable(3.0)
    with gs.GradientTape() as outer:
        with gs.GradientTape() as inner:
            y = np.sin(w) * w * w
        w.assign(100.0)
        dy = inner.gradient(y, w)
    expected = 2 * np.sin(3.0) + 4 * 3 * np.cos(3.0) - 9 * np.sin(3.0)
    assert float(outer.gradient(dy, w)) == pytest.approx(expected)


def test_a_value_that_was_read_stays():
    w = gs.Variable(3.0)
    with gs.GradientTape() as tape:
        before = w.read_value()
        w.assign(100.0)
        y = before * before
    assert tape.gradient(y, w) == 6.0


# --- persistent, and not -------------------------------------------------------------


def test_a_tape_gives_its_gradients_once():
    tape, y, (x,) = recorded(lambda x: x * x, 2.0)
    tape.gradient(y, x)
    with pytest.raises(gs.TapeError, match="persistent=True"):
        tape.gradient(y, x)


def test_asking_inside_the_context_ends_the_recording():
    x = gs.Tensor(2.0)
    with gs.GradientTape() as tape:
        tape.watch(x)
        assert tape.gradient(x * x, x) == 4.0
        assert state().recorders == ()


def test_a_persistent_tape_gives_as_many_as_wanted():
    tape, y, (x,) = recorded(lambda x: [x * x, x * x * x], 2.0, persistent=True)
    assert [tape.gradient(part, x) for part in y * 2] == [4.0, 12.0, 4.0, 12.0]


@pytest.mark.parametrize("order", [2, 3, 4])
def test_a_persistent_tape_differentiates_itself(order):
    x = gs.Tensor(2.0)
    with gs.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = np.exp(x) * np.sin(x)  # the rules save the input, the output and both
        for _ in range(order - 1):
            y = tape.gradient(y, x)
    exact = np.real((1 - 1j) ** order * 1j * np.exp((1 - 1j) * 2.0))
    assert float(tape.gradient(y, x)) == pytest.approx(exact)


def test_outside_its_context_a_persistent_tape_does_not_record():
    tape, y, (x,) = recorded(lambda x: x * x * x, 2.0, persistent=True)
    dy = tape.gradient(y, x)
    assert dy == 12.0
    assert tape.gradient(dy, x) is None


def test_a_tape_can_go_on_after_a_pause():
    x, tape = gs.Tensor(2.0), gs.GradientTape()
    with tape:
        tape.watch(x)
        y = x * x
    z = y * 100
    with tape:
        y = y * x
    assert tape.gradient([y, z], x) == 12.0


def test_a_tape_is_not_entered_twice():
    with gs.GradientTape() as tape, pytest.raises(gs.TapeError, match="already"):
        tape.__enter__()


def test_reset_forgets_what_was_watched_and_recorded():
    x, w = gs.Tensor(2.0), gs.Variable(3.0)
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = x * w
        tape.reset()
        z = x * w
        assert tape.watched_variables() == (w,)
    assert tape.gradient([y, z], [x, w]) == [None, 2.0]


def test_reset_lets_a_used_tape_record_again():
    tape, y, (x,) = recorded(lambda x: x * x, 2.0)
    tape.gradient(y, x)
    tape.reset()
    with tape:
        tape.watch(x)
        y = x * 3
    assert tape.gradient(y, x) == 3.0


def test_stop_recording_leaves_a_gap():
    x = gs.Tensor(2.0)
    with gs.GradientTape() as tape:
        tape.watch(x)
        with tape.stop_recording():
            h = x * x
        y = h * x
    assert tape.gradient(y, x) == 4.0


def test_stop_recording_of_the_inner_tape_lets_the_outer_go_on():
    x = gs.Tensor(3.0)
    with gs.GradientTape() as outer:
        outer.watch(x)
        with gs.GradientTape() as inner:
            inner.watch(x)
            with inner.stop_recording():
                h = x * x
            y = h * x
        dy = inner.gradient(y, x)  # h, a constant to the inner tape
    assert dy == 9.0
    assert outer.gradient(dy, x) == 6.0


def test_stop_recording_of_the_outer_tape_lets_the_inner_go_on():
    x = gs.Tensor(3.0)
    with gs.GradientTape() as outer:
        outer.watch(x)
        with gs.GradientTape() as inner:
            inner.watch(x)
            with outer.stop_recording():
                y = x * x * x
        dy = inner.gradient(y, x)
    assert dy == 27.0
    # dy = x*x + x*(x + x), where the outer tape has seen all but the first x*x
    assert outer.gradient([y, dy], x) == 12.0


def test_stop_recording_wants_a_recording_tape():
    with (
        pytest.raises(gs.TapeError, match="not recording"),
        gs.GradientTape().stop_recording(),
    ):
        pass


# --- nesting -------------------------------------------------------------------------


def derivative_by_tapes(fn, x, order):
    if order == 0:
        return fn(x)
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = derivative_by_tapes(fn, x, order - 1)
    return tape.gradient(y, x)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_nested_tapes_to_any_order(order):
    x = gs.Tensor([0.3, 1.2])
    y = derivative_by_tapes(lambda x: np.exp(2 * x) + np.sin(x), x, order)
    exact = 2**order * np.exp(2 * x.value) + np.sin(x.value + order * np.pi / 2)
    np.testing.assert_allclose(y, exact, rtol=1e-12)


def test_the_outer_tape_may_be_asked_inside_the_inner():
    x = gs.Tensor(2.0)
    with gs.GradientTape() as outer:
        outer.watch(x)
        with gs.GradientTape() as inner:
            inner.watch(x)
            y = x * x * x
            dy = outer.gradient(y, x)
    assert dy == 12.0
    assert inner.gradient(dy, x) == 12.0


def test_two_tapes_side_by_side_do_not_mix():
    x, z = gs.Tensor(2.0), gs.Tensor(5.0)
    with gs.GradientTape() as a, gs.GradientTape() as b:
        a.watch(x)
        b.watch(z)
        y = x * z
    assert a.gradient(y, [x, z]) == [5.0, None]
    assert b.gradient(y, [x, z]) == [None, 2.0]


def test_perturbation_confusion():
    """d/dx (x * d/dy (x + y)) is 1, not 2."""
    x, z = gs.Tensor(1.0), gs.Tensor(1.0)
    with gs.GradientTape() as outer:
        outer.watch(x)
        with gs.GradientTape() as inner:
            inner.watch(z)
            y = x + z
        h = x * inner.gradient(y, z)
    assert outer.gradient(h, x) == 1.0


def test_mixed_partial_derivatives():
    x, w = gs.Tensor(2.0), gs.Variable(3.0)
    with gs.GradientTape() as outer:
        outer.watch(x)
        with gs.GradientTape() as inner:
            y = np.sin(x * w) * w
        dw = inner.gradient(y, w)
    expected = 2 * 3 * np.cos(6.0) - 2 * 9 * np.sin(6.0)
    assert float(outer.gradient(dw, x)) == pytest.approx(expected)


# --- Jacobians -----------------------------------------------------------------------

A = np.array([[1.0, -2.0], [0.5, 3.0], [2.0, 1.0]])


def test_jacobian_has_the_shapes_of_target_and_source():
    tape, y, (x,) = recorded(lambda x: np.sin(A @ x), np.ones((2, 4)))
    matrix = tape.jacobian(y, x)
    exact = np.zeros((3, 4, 2, 4))
    for j in range(4):
        exact[:, j, :, j] = np.cos(A.sum(axis=1))[:, None] * A
    np.testing.assert_allclose(matrix, exact)


def test_jacobian_of_several_sources():
    x, z, unused = gs.Tensor([1.0, 2.0]), gs.Tensor(3.0), gs.Tensor([1.0])
    with gs.GradientTape(persistent=True) as tape:
        tape.watch((x, z, unused))
        y = x * z
    sources = {"x": x, "z": z, "unused": unused}
    found = tape.jacobian(y, sources)
    np.testing.assert_array_equal(found["x"], 3 * np.eye(2))
    np.testing.assert_array_equal(found["z"], x)
    assert found["unused"] is None
    zero = tape.jacobian(y, sources, unconnected_gradients="zero")["unused"]
    np.testing.assert_array_equal(zero, np.zeros((2, 1)))


def test_jacobian_of_a_number_is_its_gradient():
    tape, y, (x,) = recorded(lambda x: np.sum(x * x), [1.0, 2.0])
    np.testing.assert_array_equal(tape.jacobian(y, x), [2.0, 4.0])


def test_jacobian_of_nothing():
    tape, y, (x,) = recorded(lambda x: x[:0] * 2, [1.0, 2.0])
    assert tape.jacobian(y, x).shape == (0, 2)


def test_jacobian_of_a_jacobian():
    x = gs.Tensor([1.0, 2.0])
    with gs.GradientTape() as outer:
        outer.watch(x)
        with gs.GradientTape() as inner:
            inner.watch(x)
            y = x**3
        first = inner.jacobian(y, x)
    second = np.zeros((2, 2, 2))
    second[0, 0, 0], second[1, 1, 1] = 6.0, 12.0
    np.testing.assert_array_equal(outer.jacobian(first, x), second)


def test_jacobian_uses_up_a_tape():
    tape, y, (x,) = recorded(lambda x: x * x, [1.0, 2.0])
    tape.jacobian(y, x)
    with pytest.raises(gs.TapeError, match="persistent=True"):
        tape.jacobian(y, x)


def test_batch_jacobian_is_the_diagonal_of_the_jacobian():
    tape, y, (x,) = recorded(
        lambda x: np.sin(x @ A.T)[:, :, None] * np.ones(4),
        np.ones((5, 2)),
        persistent=True,
    )
    whole = tape.jacobian(y, x).numpy()
    diagonal = np.stack([whole[b, :, :, b] for b in range(5)])
    np.testing.assert_allclose(tape.batch_jacobian(y, x), diagonal)


def test_batch_jacobian_unconnected():
    tape, y, (_, z) = recorded(
        lambda x, z: x * 2, np.ones((3, 2)), np.ones((3, 4)), persistent=True
    )
    assert tape.batch_jacobian(y, z) is None
    zero = tape.batch_jacobian(y, z, unconnected_gradients="zero")
    np.testing.assert_array_equal(zero, np.zeros((3, 2, 4)))


def test_batch_jacobian_wants_one_batch_axis():
    tape, y, (x,) = recorded(lambda x: x[:2] * 2, np.ones((3, 2)))
    with pytest.raises(gs.GradsmithError, match=r"shapes \(2, 2\) and \(3, 2\)"):
        tape.batch_jacobian(y, x)


@pytest.mark.parametrize("method", ["jacobian", "batch_jacobian"])
def test_jacobians_want_tensors(method):
    tape, _, (x,) = recorded(lambda x: x * 2, np.ones((3, 2)))
    with pytest.raises(gs.TapeError, match="not a list"):
        getattr(tape, method)([x], x)


# --- scopes --------------------------------------------------------------------------


def fail():
    raise KeyError("mine")


def test_an_exception_closes_every_tape():
    def run():
        with gs.GradientTape(), gs.GradientTape() as inner, inner.stop_recording():
            fail()

    with pytest.raises(KeyError):
        run()
    assert state().recorders == ()


def test_an_exception_in_a_pause_leaves_the_tape_recording():
    x = gs.Tensor(2.0)
    with gs.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(KeyError), tape.stop_recording():
            fail()
        y = x * x
    assert tape.gradient(y, x) == 4.0


def test_an_exception_in_a_rule_closes_everything():
    @gs.custom_gradient
    def op(x):
        return x * 2, lambda dy: fail()

    def run(x):
        with gs.GradientTape() as outer:
            outer.watch(x)
            with gs.GradientTape() as inner:
                inner.watch(x)
                y = op(x)
            inner.gradient(y, x)

    with pytest.raises(KeyError):
        run(gs.Tensor(2.0))
    assert state().recorders == ()


def test_a_tape_belongs_to_its_thread():
    x, found = gs.Tensor(2.0), []
    with gs.GradientTape() as tape:
        tape.watch(x)
        thread = threading.Thread(target=lambda: found.append(x * x))
        thread.start()
        thread.join()
    assert found[0] == 4.0
    assert tape.gradient(found[0], x) is None


def test_two_threads_with_a_tape_each():
    """They share a variable, and take turns after each operation."""
    w, found = gs.Variable(1.5), {}
    barrier = threading.Barrier(2, timeout=200)

    def work(power):
        with gs.GradientTape() as tape:
            y = 1.0
            for _ in range(power):
                barrier.wait()
                y = y * w
            assert state().recorders == (tape,)
        found[power] = float(tape.gradient(y, w))
        for _ in range(3 - power):
            barrier.wait()

    threads = [threading.Thread(target=work, args=(n,)) for n in (2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {2: 3.0, 3: pytest.approx(3 * 1.5**2)}


# --- size and memory -----------------------------------------------------------------

STEPS = 100_000


def test_a_chain_of_many_steps():
    tape, y, (x,) = recorded(_chain, 1.0)
    assert float(tape.gradient(y, x)) == pytest.approx(np.exp(-1.0), rel=1e-4)


def _chain(x):
    for _ in range(STEPS):
        x = x * (1 - 1 / STEPS)
    return x


@pytest.mark.parametrize(("steps", "persistent"), [(STEPS, False), (STEPS // 5, True)])
def test_a_loop_with_two_more_inputs_at_each_step(steps, persistent):
    """x -> a x + b, whose fixed point b / (1 - a) has known derivatives."""
    x, a, b = gs.Tensor(0.0), gs.Tensor(0.5), gs.Variable(3.0)
    with without_collector(), gs.GradientTape(persistent=persistent) as tape:
        tape.watch((x, a))
        y = x
        for _ in range(steps):
            y = y * a + b
    dx, da, db = map(float, tape.gradient(y, (x, a, b)))
    assert (dx, da, db) == (0.0, pytest.approx(12.0), 2.0)


def test_freeing_a_long_graph_that_was_not_walked():
    tape, y, _ = recorded(_chain, 1.0)
    node = weakref.ref(y.marks[tape.key])
    del y
    assert node() is None


def test_freeing_a_long_graph_of_nested_tapes():
    x = gs.Tensor(1.0)
    with gs.GradientTape() as outer, gs.GradientTape() as inner:
        outer.watch(x)
        inner.watch(x)
        y = x
        for _ in range(STEPS // 4):
            y = np.sin(y)
    nodes = [weakref.ref(y.marks[tape.key]) for tape in (outer, inner)]
    del y
    gc.collect()
    assert [node() for node in nodes] == [None, None]


SIZE = 50_000  # 400 kB, below what a pool of memory would keep


class Memory:
    """Counts arrays of SIZE float64, by what tracemalloc sees."""

    def __enter__(self):
        gc.collect()
        tracemalloc.start()
        self.before = tracemalloc.get_traced_memory()[0]
        return self

    def __exit__(self, *_):
        tracemalloc.stop()

    def arrays(self):
        return round((tracemalloc.get_traced_memory()[0] - self.before) / (8 * SIZE))

    def peak(self):
        """The most since the last call, in arrays."""
        peak = tracemalloc.get_traced_memory()[1] - self.before
        tracemalloc.reset_peak()
        return round(peak / (8 * SIZE))


def test_the_walk_gives_back_what_was_saved():
    x = gs.Tensor(np.ones(SIZE))
    with without_collector(), Memory() as memory:
        with gs.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in range(20):
                y = np.sin(y)
        assert memory.arrays() == 20
        memory.peak()
        dx = tape.gradient(y, x)
        assert memory.peak() <= 20 + 3  # a cotangent, a factor and their product
        assert memory.arrays() == 2  # y and dx
        del y, dx
        assert memory.arrays() == 0


def test_what_was_saved_goes_while_the_walk_goes_on():
    x, alive = gs.Tensor(np.ones(10)), []

    @gs.custom_gradient
    def op(x):
        saved = np.array(x)
        refs.append(weakref.ref(saved))

        def grad(dy):
            alive.append(sum(ref() is not None for ref in refs))
            return dy * np.sign(saved)

        return x * 1.0, grad

    refs = []
    with without_collector(), gs.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(5):
            y = op(y)
        tape.gradient(y, x)
    assert alive == [5, 4, 3, 2, 1]


def test_sums_save_nothing():
    with Memory() as memory:
        x = gs.Tensor(np.ones(SIZE))
        with gs.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in range(5):
                y = y + 1.0
        assert memory.arrays() == 2  # x and y
        assert tape.gradient(y, x) is not None


def scenario_gradient(x):
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = np.sum(np.exp(x) * x)
    tape.gradient(y, x)


def scenario_unwalked(x):
    with gs.GradientTape() as tape:
        tape.watch(x)
        np.sum(np.exp(x) * x)


def scenario_persistent(x):
    with gs.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = np.sum(np.exp(x) * x)
    tape.gradient(y, x)
    tape.gradient(y, x)


def scenario_nested(x):
    with gs.GradientTape() as outer:
        outer.watch(x)
        with gs.GradientTape() as inner:
            inner.watch(x)
            y = np.sum(np.exp(x) * x)
        dy = inner.gradient(y, x)
    outer.gradient(dy, x)


def scenario_variable(x):
    w = gs.Variable(x)
    with gs.GradientTape() as tape:
        y = np.sum(np.exp(w) * w)
    w.assign_sub(tape.gradient(y, w))


SCENARIOS = [
    scenario_gradient,
    scenario_unwalked,
    scenario_persistent,
    scenario_nested,
    scenario_variable,
    lambda x: gs.grad(lambda x: np.sum(np.exp(x) * x))(x.value),
    lambda x: gs.jvp(np.exp, (x.value,), (x.value,)),
    lambda x: gs.vjp(np.exp, x.value)[1](x.value),
    lambda x: gs.hvp(lambda x: np.sum(np.exp(x)), (x.value,), (x.value,)),
]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_large_arrays_do_not_wait_for_the_garbage_collector(scenario):
    x = gs.Tensor(np.ones(SIZE))
    scenario(x)
    with without_collector(), Memory() as memory:
        scenario(x)
        assert memory.arrays() == 0


def test_branches_that_nobody_holds_are_freed_while_the_tape_is_open():
    x = gs.Tensor(np.ones(SIZE))
    with without_collector(), Memory() as memory, gs.GradientTape() as tape:
        tape.watch(x)
        for _ in range(5):
            y = np.exp(x) * x
        assert memory.arrays() == 2  # the last exp(x), saved, and y
        del y
        assert memory.arrays() == 0


@pytest.mark.parametrize("persistent", [False, True])
def test_a_value_carried_from_tape_to_tape_does_not_carry_the_tapes(persistent):
    h, w = gs.Tensor(np.ones(SIZE)), gs.Variable(np.ones(SIZE))
    with Memory() as memory:
        for _ in range(10):
            with gs.GradientTape(persistent=persistent) as tape:
                h = h * w
            tape.gradient(h, w)
        assert memory.arrays() <= 4


def test_a_variable_does_not_grow_with_the_tapes_that_read_it():
    w = gs.Variable(2.0)

    def step():
        with gs.GradientTape() as tape:
            y = w * w
        tape.gradient(y, w)

    for _ in range(100):
        step()
    with without_collector():
        before = sys.getallocatedblocks()
        for _ in range(10_000):
            step()
        assert sys.getallocatedblocks() - before < 1_000


def test_a_gradient_does_not_share_memory_with_output_gradients():
    x, seed = gs.Tensor(np.ones(3)), np.ones(3)
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = x + 1.0
    dx = tape.gradient(y, x, output_gradients=seed)
    seed[:] = 7
    np.testing.assert_array_equal(dx.numpy(), np.ones(3))


# Whose operations a tape sees


def test_a_tape_in_an_asyncio_task_is_that_tasks_alone():
    w = gs.Variable(2.0)
    seen = []

    async def records(turn):
        with gs.GradientTape() as tape:
            y = w * w
            turn.set()
            await asyncio.sleep(0.001)
            y = y * w
        seen.append((len(tape.watched_variables()), float(tape.gradient(y, w))))

    async def plain(turn):
        await turn.wait()
        assert state().recorders == ()
        assert type(gs.grad(lambda x: x * x)(3.0)) is np.float64
        other = gs.Variable(1.0)
        return float(other * 2.0)

    async def main():
        turns = [asyncio.Event() for _ in range(3)]
        await asyncio.gather(*map(records, turns), *map(plain, turns))

    asyncio.run(main())
    assert seen == [(1, 12.0)] * 3


def test_tasks_that_are_started_within_a_tape_belong_to_it():
    x = gs.Tensor(3.0)

    async def square(x):
        await asyncio.sleep(0)
        return x * x

    async def main():
        with gs.GradientTape() as tape:
            tape.watch(x)
            a, b = await asyncio.gather(square(x), square(x * 2.0))
            y = a + b
        return float(tape.gradient(y, x))

    assert asyncio.run(main()) == 30.0


def test_stopped_recording_in_one_task_leaves_the_others_alone():
    x = gs.Tensor(3.0)

    async def main(turn, back):
        async def stops():
            with gs.GradientTape() as tape:
                tape.watch(x)
                y = x * x
                with tape.stop_recording():
                    turn.set()
                    await back.wait()
            return float(tape.gradient(y, x))

        async def records():
            await turn.wait()
            with gs.GradientTape() as tape:
                tape.watch(x)
                back.set()
                await asyncio.sleep(0.001)
                y = x * x * x
            return float(tape.gradient(y, x))

        return await asyncio.gather(stops(), records())

    async def run():
        return await main(asyncio.Event(), asyncio.Event())

    assert asyncio.run(run()) == [6.0, 27.0]


@pytest.mark.parametrize("stop", [False, True])
def test_a_suspended_generator_closes_its_own_tape_alone(stop):
    x = gs.Tensor(3.0)

    def steps():
        with gs.GradientTape() as tape:
            tape.watch(x)
            y = x * x
            with tape.stop_recording() if stop else nullcontext():
                yield None
            y = y * x
        yield tape.gradient(y, x).numpy()

    generator = steps()
    next(generator)
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = x * 5.0
        assert next(generator) == 27.0
        y = y * x
        assert state().recorders == (tape,)
    assert float(tape.gradient(y, x)) == 30.0
    assert state().recorders == ()


def test_a_generator_that_is_dropped_closes_its_tape():
    def steps():
        with gs.GradientTape():
            yield

    generator = steps()
    next(generator)
    del generator
    assert state().recorders == ()


GRADIENTS_IN_FINALIZERS = """
import contextvars, gc
import numpy as np
import gradsmith as gs

held = [contextvars.ContextVar(str(i)) for i in range(40)]  # a table that is a tree
for each in held:
    each.set(0)
x = np.ones(3)
f = gs.grad(lambda x: np.sum(x * x))

class Cycle:
    def __init__(self):
        self.me = self

    def __del__(self):
        f(x)

for n in range(1, 60):  # so that one collection falls into each step of a gradient
    gc.set_threshold(n, 1, 1)
    for _ in range(20):
        Cycle()
        assert (f(x) == 2).all()
"""


def test_gradients_in_finalizers_within_gradients():
    """In a process of its own, which Python 3.11's ContextVar.set would kill."""
    command = [sys.executable, "-c", GRADIENTS_IN_FINALIZERS]
    assert subprocess.run(command, check=False).returncode == 0
