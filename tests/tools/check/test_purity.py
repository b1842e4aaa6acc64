import numpy as np
import pytest

import gradsmith as gs
from gradsmith.tools.check.memory_layout import check_memory_layout
from gradsmith.tools.check.purity import RandomOperationError, check_purity

from .helpers import FRAMEWORKS, X, checked, kinds, native, ours, right

torch = pytest.importorskip("torch")


def tupled(*args):
    return (right(*args),)


def writes(which):
    def rule(dy, y, x):
        dx = right(dy, y, x)
        {"dy": dy, "y": y, "x": x}[which].data.mul_(0.5)
        return (dx,)

    return rule


@pytest.mark.parametrize(
    ("which", "words"),
    [("dy", "upstream gradient"), ("x", "argument"), ("y", "operation's output")],
)
def test_rules_that_write(which, words):
    (finding,) = checked(
        check_purity, native("torch", torch.tanh, writes(which)), X
    ).findings
    assert finding.what == "purity"
    assert words in finding.message


def test_body_that_writes():
    def body(x):
        y = torch.tanh(x)
        x.data.add_(1)
        return y

    (finding,) = checked(check_purity, native("torch", body, tupled), X).findings
    assert "the operation changes" in finding.message


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_pure_and_steady(framework):
    session = checked(check_purity, ours(right), X, framework=framework)
    assert [check.what for check in session.checks] == ["purity", "determinism"]


def test_random_operation_is_told_apart():
    random = np.random.default_rng(0)

    @gs.custom_gradient
    def dropout(x):
        mask = random.uniform(size=x.shape) > 0.5
        return x * mask, lambda dy: dy * mask

    with pytest.raises(RandomOperationError, match="seed"):
        checked(check_purity, dropout, X)


def test_random_rule_is_a_finding():
    random = np.random.default_rng(0)
    op = ours(lambda dy, y, x: right(dy, y, x) * (1 + random.uniform(size=x.shape)))
    assert kinds(checked(check_purity, op, X)) == ["determinism"]


# --- layouts


def as_it_lies(x):
    """The elements in the order in which they are in memory."""
    if isinstance(x, np.ndarray):
        return np.ravel(x, order="K").reshape(x.shape)
    return torch.as_strided(x, x.shape, (x.shape[1], 1))


def test_arguments_read_as_they_lie():
    def rule(dy, y, x):
        return (dy * (1 - torch.tanh(as_it_lies(x)) ** 2),)

    (finding,) = checked(
        check_memory_layout, native("torch", torch.tanh, rule), X
    ).findings
    assert finding.what == "layout"
    assert "transposed arguments" in finding.message


def test_repeated_upstream_read_as_it_lies():
    def rule(dy, y, x):
        dense = dy.stride() == (0, 0)
        wrong = torch.as_strided(dy, (1,), (1,)) * torch.eye(3, 4).to(dy.dtype)
        return ((wrong if dense else dy) * (1 - y * y),)

    (finding,) = checked(
        check_memory_layout, native("torch", torch.tanh, rule), X
    ).findings
    assert "broadcast upstream gradients" in finding.message


def test_the_engine_has_layouts_too():
    op = ours(lambda dy, y, x: dy * (1 - np.tanh(as_it_lies(x)) ** 2), np.tanh)
    assert kinds(checked(check_memory_layout, op, X)) == ["layout"]
    assert not checked(check_memory_layout, ours(right), X).findings


def test_refusing_a_layout_is_noted():
    def rule(dy, y, x):
        return (dy.view(-1).view(x.shape) * (1 - y * y),)

    session = checked(check_memory_layout, native("torch", torch.tanh, rule), X)
    assert not session.findings
    assert "it raises for transposed upstream gradients: view size" in session.notes[0]
