"""What a recorder hooks into, and leaves as it was."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.core import hooks
from gradsmith.tools.recording.recorder import Recorder


@pytest.fixture
def recorder():
    found = Recorder()
    found.start()
    yield found
    found.stop()
    assert not found.problems


@gs.custom_gradient
def square(x):
    return x * x, lambda dy: 2 * x * dy


def _hooked():
    """What recording replaces in the frameworks, as it is now."""
    torch = pytest.importorskip("torch")
    jax = pytest.importorskip("jax")
    pytest.importorskip("tensorflow")
    from tensorflow.python.ops import custom_gradient
    from torch._dynamo.variables.misc import AutogradFunctionVariable
    from torch._library import autograd

    return [
        hooks.CALL.wrappers,
        vars(torch.autograd.Function)["apply"],
        autograd.make_autograd_impl,
        AutogradFunctionVariable.call_apply,
        jax.custom_vjp.__call__,
        jax.custom_jvp.__call__,
        custom_gradient._eager_mode_decorator,
        custom_gradient._graph_mode_decorator,
    ]


def test_everything_is_left_as_it_was():
    before = _hooked()
    recorder = Recorder()
    recorder.start()
    during = _hooked()
    recorder.stop()
    assert not any(a is b for a, b in zip(before, during, strict=True))
    assert _hooked() == before
    assert not recorder.problems


def test_calls_of_a_tool_are_not_recorded(recorder):
    with hooks.unrecorded():
        square(np.ones(3))
    gs.check(square, np.ones(3))
    assert not recorder.operations
    square(np.ones(3))
    (entry,) = recorder.operations.values()
    assert entry.definition.name == "square"


def test_another_thread_is_recorded_meanwhile(recorder):
    with hooks.unrecorded():
        thread = threading.Thread(target=square, args=(np.ones(3),))
        thread.start()
        thread.join()
        assert not hooks.is_recorded()
    assert hooks.is_recorded()
    assert len(recorder.operations) == 1
