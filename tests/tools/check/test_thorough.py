import numpy as np
import pytest

import gradsmith.numpy as gnp
from gradsmith.core.arrays import FRAMEWORKS as REGISTRY
from gradsmith.tools.check.thorough import check_thoroughly
from gradsmith.tools.survival import Fate, Outcome, Survival

from .helpers import FRAMEWORKS, X, checked, kinds, native, ours, right

OTHERS = sum(each.is_installed for each in REGISTRY.values()) - 1
SURVIVES = "gradsmith.tools.check.thorough.survives"
SMALL = X[:1, :2]


@pytest.fixture(autouse=True)
def _without_survival(monkeypatch):
    """Which has tests of its own, and takes seconds."""
    monkeypatch.setattr(SURVIVES, lambda *_, **__: survived())


def survived(*outcomes):
    return Survival("op", "NumPy", "2", outcomes)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_same_everywhere(framework):
    session = checked(check_thoroughly, ours(right), SMALL, framework=framework)
    assert not session.findings
    seen = [check.what for check in session.checks]
    modes = [] if framework == "numpy" else ["compiled", "compiled", "vectorized"]
    assert seen == [*modes, *["frameworks"] * OTHERS, "survival"]


def test_another_rule_in_a_tf_function():
    tf = pytest.importorskip("tensorflow")

    def rule(dy, y, x):
        return right(dy, y, x) * (1 if tf.executing_eagerly() else 2)

    found = kinds(checked(check_thoroughly, native("tensorflow", tf.tanh, rule), SMALL))
    assert found == ["compiled", "compiled", "vectorized"]


def test_another_value_in_a_compiled_function():
    torch = pytest.importorskip("torch")

    def op(x):
        return torch.sin(x) if torch.compiler.is_compiling() else torch.tanh(x)

    assert (
        kinds(checked(check_thoroughly, op, SMALL, framework="torch"))[0] == "compiled"
    )


def test_another_gradient_when_vectorized():
    jax = pytest.importorskip("jax")
    same = jax.custom_batching.custom_vmap(lambda dy: dy)
    same.def_vmap(lambda size, batched, dy: (2 * dy, True))

    def rule(dy, y, x):
        return (right(same(dy), y, x),)

    op = native("jax", gnp.tanh, rule)
    assert kinds(checked(check_thoroughly, op, SMALL)) == ["vectorized"]


def test_another_rule_in_another_framework():
    def rule(dy, y, x):
        return right(dy, y, x) * (1 if isinstance(x, np.ndarray) else 1.001)

    found = checked(check_thoroughly, ours(rule), SMALL).findings
    assert [f.what for f in found] == ["frameworks"] * OTHERS
    assert any("JAX gives another gradient" in f.message for f in found)


def test_bodies_of_one_framework_are_noted():
    def body(x):
        if not isinstance(x, np.ndarray):
            raise TypeError("NumPy alone")
        return np.tanh(x)

    session = checked(check_thoroughly, ours(right, body), SMALL)
    assert not session.findings
    assert "not checked in JAX: NumPy alone" in session.notes


LOST = (
    Outcome("jvp", Fate.DROPPED, "the result is the same without the rule"),
    Outcome("vmap", Fate.REFUSED, "TypeError"),
    Outcome("grad", Fate.HONOURED),
)


def test_rules_that_get_lost(monkeypatch):
    monkeypatch.setattr(SURVIVES, lambda *_, **__: survived(*LOST))
    session = checked(check_thoroughly, ours(right), SMALL)
    (finding,) = session.findings
    assert finding.what == "survival"
    assert "dropped under jvp" in finding.message
    assert session.notes[-1].endswith("vmap")


def test_rules_that_a_framework_loses_are_not_wrong(monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(SURVIVES, lambda *_, **__: survived(*LOST))
    session = checked(check_thoroughly, native("torch", gnp.tanh, tupled), SMALL)
    assert not session.findings
    assert "PyTorch silently drops the rule under jvp" in session.notes[-1]


def tupled(*args):
    return (right(*args),)
