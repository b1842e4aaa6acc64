import numpy as np
import pytest

import gradsmith as gs
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
    ).reported
    assert finding.what == "purity"
    assert words in finding.message


def test_body_that_writes():
    def body(x):
        y = torch.tanh(x)
        x.data.add_(1)
        return y

    (finding,) = checked(check_purity, native("torch", body, tupled), X).reported
    assert "the operation changes" in finding.message


@pytest.mark.parametrize("restored", [True, False])
def test_a_rule_gives_back_what_the_body_took_and_nothing_else(restored):
    """As in a reversible block, which has its input again from its output."""

    class Frees(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.x, ctx.y = x, torch.tanh(x.detach())
            x.data.zero_()
            return ctx.y.clone()

        @staticmethod
        def backward(ctx, dy):
            ctx.x.data.copy_(torch.atanh(ctx.y) if restored else 3 * dy)
            return dy * (1 - ctx.y**2)

    verdict = gs.check(Frees, torch.tensor(X)).verdict
    assert verdict == ("right, with limits" if restored else "wrong")


def test_memory_that_is_freed_and_comes_again():
    """A block that has its input from its output, once; no other array has it."""

    class Frees(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.saved = [(x, torch.tanh(x.detach()))]
            y = ctx.saved[0][1].clone()
            x.untyped_storage().resize_(0)
            return y

        @staticmethod
        def backward(ctx, dy):
            x, y = ctx.saved.pop()
            x.untyped_storage().resize_(y.nbytes)
            x.data.set_(torch.atanh(y))
            return dy * (1 - y**2)

    report = gs.check(lambda x: Frees.apply(x), torch.tensor(X))
    assert report.verdict == "right, with limits", report
    assert "a second backward" in [limit.what for limit in report.limits]


@pytest.mark.parametrize("what", ["i", "w"])
def test_arguments_without_a_gradient_are_not_written_either(what):
    class Pick(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, i, w):
            ctx.saved = {"i": i, "w": w, "shape": x.shape}
            return x[i] * w

        @staticmethod
        def backward(ctx, dy):
            dx = torch.zeros(ctx.saved["shape"], dtype=dy.dtype)
            dx.index_add_(0, ctx.saved["i"], dy * ctx.saved["w"])
            ctx.saved[what].data.zero_()
            return dx, None, None

    check = gs.check.options(data=("w",))
    report = check(Pick, torch.tensor(X), torch.tensor([2, 1]), torch.tensor(X[:2]))
    assert report.verdict == "wrong", report
    assert f"the rule changes its argument {what}" in str(report)


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
