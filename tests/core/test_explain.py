"""tape.explain: every reason for a missing gradient, in words, with the user's line."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import gradsmith as gs


def line():
    """The line this is called on."""
    return inspect.currentframe().f_back.f_lineno


def explained(fn, value=3.0, **options):
    """What is said of fn of a watched tensor, before the gradient is asked for."""
    x = gs.Tensor(value)
    with gs.GradientTape(**options) as tape:
        tape.watch(x)
        y = fn(x)
    return tape.explain(y, x)


HAS_GRADIENT = "The target depends on the source: it has a gradient."


def test_a_gradient_that_is_there():
    assert explained(lambda x: x * x) == HAS_GRADIENT


def test_the_same_after_the_gradient_was_given():
    x = gs.Tensor(3.0)
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert tape.gradient(y, x) == 6.0
    assert tape.explain(y, x) == HAS_GRADIENT


def test_asking_uses_nothing_up():
    x = gs.Tensor(3.0)
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        assert tape.explain(y, x) == HAS_GRADIENT
        y = y * x
    assert tape.gradient(y, x) == 27.0


# --- the source -----------------------------------------------------------------------


def test_not_watched():
    x = gs.Tensor(3.0)
    with gs.GradientTape() as tape:
        y = x * x
    assert tape.gradient(y, x) is None
    assert tape.explain(y, x).startswith("The source was not watched: call tape.watch")


def test_a_plain_source():
    with gs.GradientTape() as tape:
        y = gs.Variable(2.0) * 3.0
    assert "The source is a plain float. Make it a gs.Tensor" in tape.explain(y, 3.0)


def test_an_integer_source():
    x = gs.Tensor([1, 2])
    with gs.GradientTape() as tape:
        y = x * 2.0
    told = tape.explain(y, x)
    assert "The source has dtype int64; only floating" in told
    assert "gs.Tensor(x, dtype=float)" in told


@pytest.mark.parametrize(
    ("options", "tape_options", "words"),
    [
        ({"trainable": False}, {}, "'w' is not trainable"),
        ({}, {"watch_accessed_variables": False}, "watch_accessed_variables=False"),
        ({"dtype": int}, {}, "dtype int64"),
    ],
)
def test_variables_that_are_not_watched(options, tape_options, words):
    w = gs.Variable(3.0, name="w", **options)
    with gs.GradientTape(**tape_options) as tape:
        y = w * 2.0
    assert tape.gradient(y, w) is None
    assert words in tape.explain(y, w)


def test_a_variable_that_was_never_read():
    w, v = gs.Variable(3.0, name="w"), gs.Variable(3.0)
    with gs.GradientTape() as tape:
        y = v * 2.0
    assert tape.explain(y, w) == (
        "The variable 'w' was never read while the tape recorded."
    )
    assert tape.watched_variables() == (v,)


def test_a_reset_tape_has_forgotten():
    x = gs.Tensor(3.0)
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        tape.reset()
    assert "not watched" in tape.explain(y, x)


# --- the way off the tape -------------------------------------------------------------


@pytest.mark.parametrize(
    ("leave", "where"),
    [
        (lambda x: x.numpy(), "Tensor.numpy()"),
        (lambda x: gs.constant([x, x]), "gs.constant"),
        (lambda x: gs.Variable([x]), "gs.Variable()"),
        (lambda x: gs.stop_gradient(x), "gs.stop_gradient"),
    ],
)
def test_left_the_tape_at_the_users_line(leave, where):
    x = gs.Tensor(3.0)
    with gs.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(x)
        y = gs.Tensor(2.0) * leave(x * 1.0)
    assert tape.gradient(y, x) is None
    told = tape.explain(y, x)
    assert told.startswith("Nothing that the target was computed from is followed")
    assert f"{__file__}:{leave.__code__.co_firstlineno}: {where}" in told


def test_only_the_last_time_in_a_loop_is_told():
    x = gs.Tensor(3.0)
    with gs.GradientTape() as tape:
        tape.watch(x)
        for _ in range(100):
            y = gs.Tensor(x.numpy())
    assert tape.explain(y, x).count("Tensor.numpy()") == 1


def test_assigning_to_a_variable_leaves_the_tape():
    x, w = gs.Tensor(3.0), gs.Variable(0.0)
    with gs.GradientTape() as tape:
        tape.watch(x)
        w.assign(x * x)
        y = w * 2.0
    assert tape.gradient(y, x) is None
    assert "Variable.assign(): a variable holds a plain value" in tape.explain(y, x)


def test_a_plain_target():
    told = explained(lambda x: float(x.numpy()) * 2)
    assert told.startswith("The target is a plain float, which no tape follows.")
    assert "Tensor.numpy():" in told


# --- declared to have no gradient -----------------------------------------------------


@pytest.mark.parametrize(
    ("fn", "where", "why"),
    [
        (lambda x: np.floor(x) * 2, "np.floor", "constant between"),
        (lambda x: np.sign(x) * 2, "np.sign", "constant between"),
        (lambda x: (x > 2) * 2.0, "np.greater", "true or false"),
        (lambda x: np.argmax(x) * 2.0, "np.argmax", "positions"),
        (lambda x: x.astype(int) * 2.0, "np.astype", "integer or boolean"),
        (lambda x: np.zeros_like(x) * 2.0, "np.zeros_like", "shape and dtype alone"),
    ],
)
def test_functions_declared_to_have_no_gradient(fn, where, why):
    told = explained(fn)
    assert f"{__file__}:{fn.__code__.co_firstlineno}: " in told
    assert where in told
    assert why in told


def test_an_integer_target():
    told = explained(lambda x: np.argmax(x))
    assert told.startswith("The target has dtype int64; only floating")
    assert "np.argmax" in told


@pytest.mark.parametrize("ask_first", [False, True])
def test_an_argument_that_has_no_gradient(ask_first):
    """Recorded, since the other argument has one; the walk back ends there."""
    x, z = gs.Tensor(3.0), gs.Tensor(2.0)
    with gs.GradientTape() as tape:
        tape.watch((x, z))
        y = np.copysign(z, x) * 2
    if ask_first:
        assert tape.gradient(y, [x, z]) == [None, 2.0]
    told = tape.explain(y, x)
    assert "np.copysign has no gradient for an argument" in told
    assert "the sign of x2 is constant" in told
    assert tape.explain(y, z) == HAS_GRADIENT


def test_one_of_two_ways_without_a_gradient():
    assert explained(lambda x: np.copysign(x, x)) == HAS_GRADIENT
    assert explained(lambda x: np.where(x, x, 1.0)) == HAS_GRADIENT
    assert explained(lambda x: np.copysign(2.0, x * 2) + x * 2) == HAS_GRADIENT


@pytest.mark.parametrize("ask_first", [False, True])
def test_an_operation_that_declares_no_gradient(ask_first):
    @gs.custom_gradient
    def pick(a, label):
        return a * 2, lambda dy: (dy * 2, None)

    x = gs.Tensor(3.0)
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = pick(2.0 * gs.Tensor(1.0), x)
    if ask_first:
        assert tape.gradient(y, x) is None
    told = tape.explain(y, x)
    assert "'pick' declares no gradient for 'label'" in told
    assert "every path" in told


def test_an_operation_that_refuses():
    @gs.custom_gradient
    def pick(a, label):
        return a * 2, lambda dy: (dy * 2, gs.not_differentiable("labels are data"))

    told = explained(lambda x: pick(gs.Tensor(1.0), x))
    assert "computing it raises NotDifferentiableError" in told
    assert "labels are data" in told


# --- no way between them --------------------------------------------------------------


def test_no_way_between_them():
    x, z = gs.Tensor(3.0), gs.Tensor(2.0)
    with gs.GradientTape() as tape:
        tape.watch((x, z))
        y = x * x
    assert tape.explain(y, z) == (
        "The target does not depend on the source through recorded operations."
    )


def test_what_befell_another_source_is_not_told():
    x, z = gs.Tensor(3.0), gs.Tensor(2.0)
    with gs.GradientTape() as tape:
        tape.watch((x, z))
        lost = x * 2
        y = z * lost.numpy()
    assert "Tensor.numpy()" in tape.explain(y, x)
    unrelated = gs.Tensor(1.0)
    tape.watch(unrelated)
    assert "Tensor.numpy()" not in tape.explain(y, unrelated)


def test_when_the_graph_is_gone_the_answer_says_so():
    told = explained(lambda x: np.floor(x * 2.0))
    assert "or values of another source: the graph is gone" in told


def test_computed_outside_of_the_tape():
    x = gs.Tensor(3.0)
    with gs.GradientTape() as tape:
        tape.watch(x)
    y = x * x
    assert tape.explain(y, x) == (
        "Nothing that the target was computed from is followed by this tape."
    )
