"""ForwardAccumulator: alone, in itself, in tapes and around them."""

from __future__ import annotations

import gc
import tracemalloc
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from threading import Barrier
from weakref import ref

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.core.rule import RULES
from gradsmith.core.tape import state


@pytest.fixture(autouse=True)
def no_recorder_stays():
    yield
    assert state().recorders == ()


def f(x):
    """With rules that save the input, the output and both, and two reads of x."""
    return np.exp(x) * np.sin(x) + x * x


def derivative(order, x):
    exact = np.real((1 - 1j) ** order * 1j * np.exp((1 - 1j) * x))
    return exact + {0: x * x, 1: 2 * x, 2: 2.0}.get(order, 0.0)


def forward(fn, x):
    """The derivative of fn by an accumulator."""
    with gs.ForwardAccumulator(x, np.ones(x.shape)) as accumulator:
        y = fn(x)
    return accumulator.jvp(y)


def reverse(fn, x):
    """The derivative of fn by a tape."""
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = fn(x)
    return tape.gradient(y, x)


MODES = {"f": forward, "r": reverse}


@pytest.mark.parametrize("modes", ["f", "ff", "fr", "rf", "fff", "ffr", "frf", "rff",
                                   "frr", "rfr", "rrf", "ffff", "frfr"])  # fmt: skip
def test_any_nesting_of_both_modes(modes):
    fn = f
    for mode in modes:
        fn = partial(MODES[mode], fn)
    x = np.array([0.4, 1.3])
    np.testing.assert_allclose(fn(gs.Tensor(x)), derivative(len(modes), x), rtol=1e-12)


def test_a_jacobian_times_a_vector():
    a, v = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.array([1.0, -1.0])
    x = gs.Tensor([0.1, 0.2])
    with gs.ForwardAccumulator(x, v) as accumulator:
        y = np.sin(a @ x)
    np.testing.assert_allclose(accumulator.jvp(y), np.cos(a @ x.value) * (a @ v))


def test_several_primals_add_up():
    x, z = gs.Tensor(2.0), gs.Variable(3.0)
    with gs.ForwardAccumulator((x, {"z": z}), (1.0, {"z": 10.0})) as accumulator:
        y = x * z
    assert accumulator.jvp(y) == 3.0 + 20.0


def test_the_primal_itself_has_its_tangent():
    x = gs.Tensor(2.0)
    accumulator = gs.ForwardAccumulator(x, 7.0)
    assert accumulator.jvp(x) == 7.0


def test_tangents_are_structured_as_the_outputs():
    x = gs.Tensor(2.0)
    with gs.ForwardAccumulator(x, 1.0) as accumulator:
        y = {"a": (x * 2, [x * x]), "constant": gs.Tensor([1.0, 1.0])}
    assert accumulator.jvp(y) == {"a": (2.0, [4.0]), "constant": None}
    zero = accumulator.jvp(y, unconnected_gradients="zero")["constant"]
    np.testing.assert_array_equal(zero, [0.0, 0.0])
    with pytest.raises(gs.GradsmithError, match="'none' or 'zero'"):
        accumulator.jvp(y, unconnected_gradients="nothing")


def test_a_plain_number_has_a_zero_tangent():
    accumulator = gs.ForwardAccumulator(gs.Tensor(2.0), 1.0)
    assert accumulator.jvp(3.0) is None
    assert accumulator.jvp(3.0, unconnected_gradients="zero") == 0.0


def test_a_tangent_takes_the_dtype_of_its_primal():
    x = gs.Tensor(np.ones(2, np.float32))
    with gs.ForwardAccumulator(x, [1, 2]) as accumulator:
        y = np.sin(x)
    assert accumulator.jvp(y).dtype == np.float32


@pytest.mark.parametrize(
    ("primals", "tangents", "words"),
    [
        (2.0, 1.0, r"primals\[0\] is a float"),
        (gs.Tensor([1, 2]), [1, 2], r"primals\[0\] has dtype int64"),
        (gs.Tensor([1.0, 2.0]), 1.0, r"tangents\[0\] has shape \(\)"),
        (gs.Tensor(1.0), 1j, "complex128, its primal"),
        ([gs.Tensor(1.0)], [1.0, 2.0], r"one structure: \[\*\] and \[\*, \*\]"),
        ([gs.Tensor(1.0)] * 2, [1.0, 2.0], r"primals\[1\] is given twice"),
    ],
)
def test_what_does_not_fit_is_refused(primals, tangents, words):
    with pytest.raises(gs.GradsmithError, match=words):
        gs.ForwardAccumulator(primals, tangents)


def test_it_is_not_entered_twice():
    accumulator = gs.ForwardAccumulator(gs.Tensor(1.0), 1.0)
    with accumulator, pytest.raises(gs.TapeError, match="already"):
        accumulator.__enter__()


def test_primals_and_tangents_meet_by_name():
    x, z = gs.Tensor(2.0), gs.Tensor(3.0)
    primals, tangents = {"x": x, "z": z}, {"z": 10.0, "x": 1.0}
    with gs.ForwardAccumulator(primals, tangents) as accumulator:
        y = x * z
    assert accumulator.jvp(y) == 3.0 + 20.0


def test_assigning_a_variable_later_does_not_matter():
    w = gs.Variable(3.0)
    with gs.ForwardAccumulator(w, 1.0) as accumulator:
        with gs.GradientTape() as tape:
            y = w * w * w
        w.assign(100.0)
        dy = tape.gradient(y, w)
    assert accumulator.jvp(dy) == 18.0


def test_no_tangent_passes_through_whole_numbers():
    x = gs.Tensor([1.5, 2.5])
    with gs.ForwardAccumulator(x, np.ones(2)) as accumulator:
        y = x.astype(int) * 2.0
    assert accumulator.jvp(y) is None


# --- perturbation confusion ----------------------------------------------------------


@pytest.mark.parametrize("outer", MODES.values(), ids=MODES)
@pytest.mark.parametrize("inner", MODES.values(), ids=MODES)
def test_perturbations_are_not_confused(outer, inner):
    """d/dx (x * d/dy (x + y)) is 1, not 2."""
    result = outer(lambda x: x * inner(lambda y: x + y, gs.Tensor(1.0)), gs.Tensor(1.0))
    assert result == 1.0


@pytest.mark.parametrize("outer", MODES.values(), ids=MODES)
@pytest.mark.parametrize("inner", MODES.values(), ids=MODES)
def test_perturbations_are_not_confused_by_equal_values(outer, inner):
    """d/dx (d/dy (x * y**2) at y = x) is d/dx 2 x**2: inner and outer meet in x."""
    result = outer(
        lambda x: inner(lambda y: x * y * y, x * 1.0),
        gs.Tensor(3.0),
    )
    assert result == 12.0


def test_the_same_tensor_in_two_accumulators():
    x = gs.Tensor(3.0)
    with gs.ForwardAccumulator(x, 1.0) as outer:
        with gs.ForwardAccumulator(x, 10.0) as inner:
            y = x * x
        dy = inner.jvp(y)
    assert (outer.jvp(y), dy, outer.jvp(dy)) == (6.0, 60.0, 20.0)


def test_tangents_with_tangents():
    """The direction depends on the outer variable: d/dx (2x * x) = 4x."""
    x, z = gs.Tensor(3.0), gs.Tensor(5.0)
    with gs.ForwardAccumulator(x, 1.0) as outer:
        with gs.ForwardAccumulator(z, x * x) as inner:
            y = z * z
        dy = inner.jvp(y)
    assert (dy, outer.jvp(dy)) == (90.0, 60.0)


# --- rules without a tangent of their own --------------------------------------------


def test_a_rule_is_transposed_under_an_outer_tape():
    """The transposed rule meets a comparison, which the tapes are told of."""

    @gs.custom_gradient
    def leaky(x):
        return np.where(x > 0, x * x, 0.1 * x), (
            lambda dy: dy * np.where(x > 0, 2 * x, 0.1)
        )

    x = gs.Tensor([3.0, -2.0])
    np.testing.assert_array_equal(reverse(lambda x: forward(leaky, x), x), [2.0, 0.0])
    np.testing.assert_array_equal(forward(lambda x: forward(leaky, x), x), [2.0, 0.0])


# --- scopes and memory ---------------------------------------------------------------


def fail():
    raise KeyError("mine")


def test_an_exception_in_a_jvp_closes_everything():
    @gs.operation
    def op(x):
        return x * 2

    op.jvp(lambda dx, y, x: fail())
    x = gs.Tensor(1.0)
    with pytest.raises(KeyError, match="mine"):
        reverse(lambda x: forward(op, x), x)
    assert state().recorders == ()


def test_an_exception_in_the_function_closes_everything():
    with pytest.raises(KeyError, match="mine"):
        forward(lambda x: forward(lambda x: fail(), x), gs.Tensor(1.0))
    assert state().recorders == ()


def test_a_long_loop():
    a, b = gs.Tensor(0.5), gs.Tensor(3.0)
    with gs.ForwardAccumulator((a, b), (1.0, 10.0)) as accumulator:
        x = gs.Tensor(0.0)
        for _ in range(100_000):
            x = x * a + b
    assert float(accumulator.jvp(x)) == pytest.approx(12.0 + 20.0)


def test_the_memory_of_a_chain_is_constant():
    size = 50_000
    x = gs.Tensor(np.ones(size))
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        with gs.ForwardAccumulator(x, np.ones(size)) as accumulator:
            y = x
            for _ in range(30):
                y = np.sin(y)
            del y
        peak = tracemalloc.get_traced_memory()[1] / (8 * size)
    finally:
        tracemalloc.stop()
        gc.enable()
    assert peak < 8, "two steps' values and tangents, and what is between"
    assert accumulator.jvp(x) is not None


def test_scalars_with_complex_numbers():
    """1j * np.float64(2) is Python's complex, which has neither dtype nor shape."""
    y, dy = gs.jvp(lambda x: np.abs(x * (3 - 4j) + 1j * x) ** 2, (2.0,), (1.0,))
    assert (round(float(y), 9), round(float(dy), 9)) == (72.0, 72.0)
    dx = gs.grad(lambda x: np.angle(np.exp(x * 1j)))(0.5)
    assert round(float(dx), 12) == 1


def columns(g):
    """The Jacobian of a function by forward mode, summed."""
    return lambda x: sum(gs.jvp(g, (x,), (v,))[1] for v in np.eye(len(x)))


@pytest.mark.parametrize("second", [gs.grad, columns], ids=["reverse", "forward"])
def test_derivatives_do_not_tell_of_what_underflows_in_them(second):
    """In the first walk back, and in the second one or the tangents of the first."""
    gradient = gs.grad(lambda x: np.sum(np.tanh(x)))
    with np.errstate(all="raise"):
        found = second(lambda x: np.sum(gradient(x)))(np.array([400.0, 0.5]))
    y = np.tanh(0.5)
    np.testing.assert_allclose(np.sum(found), -2 * y * (1 - y**2))


@pytest.fixture
def in_a_push(monkeypatch):
    """Run something amid each push of `np.sin`, as a signal's handler is run."""

    def install(run):
        rule = RULES[np.sin]
        partial, j = rule.quick[0]
        monkeypatch.setattr(rule, "quick", [(lambda x: (run(), partial(x))[1], j)])

    return install


def test_who_interrupts_a_push_has_tangents_too(in_a_push):
    x, found = gs.Tensor([0.5, 1.0]), []
    with gs.ForwardAccumulator(x, [1.0, 2.0]) as accumulator:
        in_a_push(lambda: found.append(x * x))
        for _ in range(3):
            y = np.sin(x)
    np.testing.assert_allclose(accumulator.jvp(y), np.cos([0.5, 1.0]) * [1, 2])
    assert len(found) == 3
    for square in found:
        np.testing.assert_allclose(accumulator.jvp(square), [1.0, 4.0])


def test_threads_that_share_a_context_push_at_a_time(in_a_push):
    """A context is entered by one thread only."""
    x, both = gs.Tensor([0.5, 1.0]), Barrier(2, timeout=10)
    with gs.ForwardAccumulator(x, [1.0, 2.0]) as accumulator:
        np.cos(x)
        in_a_push(both.wait)
        with ThreadPoolExecutor(2) as pool:
            runs = [pool.submit(copy_context().run, np.sin, x) for _ in range(2)]
            ys = [run.result() for run in runs]
    for y in ys:
        np.testing.assert_allclose(accumulator.jvp(y), np.cos([0.5, 1.0]) * [1, 2])


def test_an_accumulator_goes_with_its_last_reference():
    x = gs.Tensor(np.ones(3))
    gc.collect()
    gc.disable()
    try:
        with gs.ForwardAccumulator(x, np.ones(3)) as accumulator:
            np.sin(x)
        gone = ref(accumulator)
        del accumulator
        assert gone() is None
    finally:
        gc.enable()


def test_a_push_is_silent_and_the_function_is_not():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        gs.jvp(lambda x: np.sqrt(x) + np.log(x - x), (np.zeros(2),), (np.ones(2),))
    assert [str(w.message) for w in told] == ["divide by zero encountered in log"]
