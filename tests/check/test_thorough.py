import numpy as np
import pytest

import gradsmith.numpy as gnp
from gradsmith._check import thorough
from gradsmith._survival import Outcome, Survival
from gradsmith._survival import Verdict as Survived

from .looking import FRAMEWORKS, X, kinds, looked, native, ours, right

SMALL = X[:1, :2]


@pytest.fixture(autouse=True)
def _without_survival(monkeypatch):
    """Which has tests of its own, and takes seconds."""
    monkeypatch.setattr(thorough, "survives", lambda *_, **__: survived())


def survived(*outcomes):
    return Survival("op", "NumPy", "2", outcomes)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_same_everywhere(framework):
    session = looked(thorough.look, ours(right), SMALL, framework=framework)
    assert not session.findings
    seen = [look.what for look in session.looks]
    modes = [] if framework == "numpy" else ["compiled", "compiled", "vectorized"]
    assert seen == [*modes, "frameworks", "frameworks", "frameworks", "survival"]


def is_plain(framework, x):
    """Whether it runs eagerly, neither compiled nor vectorized."""
    if framework == "torch":
        import torch

        return not (
            torch.compiler.is_compiling() or torch._C._functorch.is_batchedtensor(x)
        )
    if framework == "jax":
        return "Tracer" not in repr(x) and "Traced" not in repr(x)
    import tensorflow as tf

    return tf.executing_eagerly()


@pytest.mark.parametrize("framework", ["torch", "tensorflow"])
def test_another_rule_when_compiled(framework):
    def rule(dy, y, x):
        factor = 1 if is_plain(framework, x) else 2
        return (right(dy, y, x) * factor,)

    found = kinds(looked(thorough.look, native(framework, gnp.tanh, rule), SMALL))
    assert "compiled" in found


def test_another_value_when_vectorized():
    jax = pytest.importorskip("jax")

    def op(x):
        batched = type(x).__name__ == "BatchTracer" or "Batch" in str(x)
        return jax.numpy.tanh(x) * (2 if batched else 1)

    found = kinds(looked(thorough.look, op, SMALL, framework="jax"))
    assert found == ["vectorized"]


def test_another_rule_in_another_framework():
    def rule(dy, y, x):
        return right(dy, y, x) * (1 if isinstance(x, np.ndarray) else 1.001)

    found = looked(thorough.look, ours(rule), SMALL).findings
    assert [f.what for f in found] == ["frameworks"] * 3
    assert "JAX gives another gradient" in found[1].message


def test_bodies_of_one_framework_are_noted():
    session = looked(thorough.look, ours(right, np.tanh), SMALL)
    assert not session.findings
    assert any(note.startswith("not in ") for note in session.notes)


def test_rules_that_get_lost(monkeypatch):
    outcomes = (
        Outcome("jvp", Survived.DROPPED, "the result is the same without the rule"),
        Outcome("vmap", Survived.REFUSED, "TypeError"),
        Outcome("grad", Survived.HONOURED),
    )
    monkeypatch.setattr(thorough, "survives", lambda *_, **__: survived(*outcomes))
    session = looked(thorough.look, native("torch", gnp.tanh, tupled), SMALL)
    (finding,) = session.findings
    assert finding.what == "survival"
    assert "dropped under jvp" in finding.message
    assert session.notes[-1].endswith("vmap")


def tupled(*args):
    return (right(*args),)
