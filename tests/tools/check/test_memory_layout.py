import numpy as np
import pytest

from gradsmith.tools.check.memory_layout import check_memory_layout

from .helpers import X, checked, kinds, native, ours, right

torch = pytest.importorskip("torch")


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
    ).reported
    assert finding.what == "layout"
    assert "transposed arguments" in finding.message


def test_repeated_upstream_read_as_it_lies():
    def rule(dy, y, x):
        dense = dy.stride() == (0, 0)
        wrong = torch.as_strided(dy, (1,), (1,)) * torch.eye(3, 4).to(dy.dtype)
        return ((wrong if dense else dy) * (1 - y * y),)

    (finding,) = checked(
        check_memory_layout, native("torch", torch.tanh, rule), X
    ).reported
    assert "broadcast upstream gradients" in finding.message


def test_the_engine_has_layouts_too():
    op = ours(lambda dy, y, x: dy * (1 - np.tanh(as_it_lies(x)) ** 2), np.tanh)
    assert kinds(checked(check_memory_layout, op, X)) == ["layout"]
    assert not checked(check_memory_layout, ours(right), X).reported


def test_refusing_a_layout_is_noted():
    def rule(dy, y, x):
        return (dy.view(-1).view(x.shape) * (1 - y * y),)

    session = checked(check_memory_layout, native("torch", torch.tanh, rule), X)
    assert not session.findings
    (limit, *_) = session.reported
    assert "raises for transposed upstream gradients: view size" in limit.limit
