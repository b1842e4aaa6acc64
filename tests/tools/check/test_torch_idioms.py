"""What PyTorch code does: in place, by backward(), with parameters run again."""

import numpy as np
import pytest

import gradsmith as gs
from gradsmith import Verdict

torch = pytest.importorskip("torch")


def normal(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def in_place(x):
    return x.mul_(2).sin()


def test_what_is_left_out_if_it_needs_no_gradient():
    class Affine(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, bias):
            ctx.save_for_backward(x)
            return x**2 + bias if bias.requires_grad else x**2

        @staticmethod
        def backward(ctx, dy):
            return 2 * dy * ctx.saved_tensors[0], dy

    assert gs.check(Affine, normal(5), normal(5)).ok


@pytest.mark.parametrize("op", [torch.nn.ReLU(inplace=True), in_place])
def test_in_place(op):
    assert gs.check(op, normal(5)).verdict is Verdict.RIGHT


def test_the_arguments_of_an_operation_in_place():
    class Shift(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            y = torch.sin(x)
            x.copy_(x + 2 * torch.pi)
            return y

        @staticmethod
        def backward(ctx, dy):
            return dy * torch.cos(ctx.saved_tensors[0])

    report = gs.check(Shift, normal(5))
    assert report.verdict is Verdict.LIMITED, str(report)
    assert "changes its argument x in place" in report.limits[0].message


def test_freed_memory():
    class Frees(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = torch.exp(x)
            ctx.save_for_backward(y)
            x.untyped_storage().resize_(0)
            return y

        @staticmethod
        def backward(ctx, dy):
            return dy * ctx.saved_tensors[0]

    report = gs.check(Frees, normal(5))
    assert report.ok, str(report)
    assert "purity" in [limit.what for limit in report.limits]


def test_a_checkpoint_that_takes_backward_only():
    from torch.utils.checkpoint import checkpoint

    def twice(x):
        return checkpoint(lambda z: torch.tanh(z) ** 2, x, use_reentrant=True)

    report = gs.check(twice, normal(4))
    assert report.ok, str(report)


class Reversible(torch.nn.Module):
    """x + net(x), with a rule that runs the net again and calls backward itself."""

    def __init__(self, factor=1.0):
        super().__init__()
        torch.manual_seed(0)
        self.net, self.factor = torch.nn.Linear(3, 3), factor

    def forward(self, x):
        return Recomputed.apply(x, self)


class Recomputed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, block):
        ctx.save_for_backward(x)
        ctx.block = block
        return x + torch.tanh(block.net(x))

    @staticmethod
    def backward(ctx, dy):
        x = ctx.saved_tensors[0].detach().requires_grad_()
        with torch.enable_grad():
            y = torch.tanh(ctx.block.net(x))
        torch.autograd.backward(y, ctx.block.factor * dy)
        return dy + x.grad / ctx.block.factor, None


def test_parameters_of_a_block_that_is_run_again():
    block = Reversible()
    weights = block.net.weight
    before = weights.clone()
    assert gs.check(block, normal(2, 3)).verdict is Verdict.LIMITED  # no second order
    assert block.net.weight is weights
    assert torch.equal(weights, before)
    assert weights.grad is None
    wrong = gs.check(Reversible(factor=2.0), normal(2, 3))
    assert {finding.argument for finding in wrong.findings} == {
        "net.weight",
        "net.bias",
    }
    assert wrong.findings[0].diagnosis == "factor"


@pytest.mark.parametrize(
    ("op", "shapes"),
    [
        (lambda a, b: torch.linalg.lstsq(a, b).solution, [(5, 3), (5, 2)]),
        (
            torch.nn.functional.scaled_dot_product_attention,
            [(1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4)],
        ),
    ],
)
def test_no_steps_far_from_the_given_inputs(op, shapes):
    """A value that saturates, or has no full rank, is not one that is rounded."""
    random = np.random.default_rng(0)
    xs = [torch.tensor(random.normal(size=each).astype("float32")) for each in shapes]
    report = gs.check(op, *xs)
    assert report.verdict in (Verdict.RIGHT, Verdict.LIMITED), str(report)


def test_errors_of_ours_are_no_part_of_a_report():
    class Clamped(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.atanh(torch.clamp(x, -1 + 1e-6, 1 - 1e-6))

        @staticmethod
        def backward(ctx, dy):
            x = torch.clamp(ctx.saved_tensors[0], -1 + 1e-6, 1 - 1e-6)
            return dy / (1 - x * x)

    x = torch.tensor([0.3, 0.5, -0.2, 0.8, -0.77])
    assert "zip()" not in str(gs.check(lambda x: Clamped.apply(x), x))


def test_an_operation_of_the_first_elements_alone():
    """Which looks like an elementwise one, as long as there are no more."""
    report = gs.check(lambda x: torch.sin(x[:4]), normal(4))
    assert report.verdict is Verdict.RIGHT, str(report)


@pytest.mark.parametrize("seed", range(3))
def test_probabilities_that_have_to_sum_to_one(seed):
    cost = torch.tensor([0.3, 1.2, -0.4, 2.0], dtype=torch.float64)

    class Transport(torch.autograd.Function):
        """The gradient is a potential, known up to a constant."""

        @staticmethod
        def forward(ctx, p):
            if torch.any(p < 0) or abs(torch.sum(p) - 1) > 1e-6:
                raise ValueError("no probabilities")
            return torch.sum(p * cost)

        @staticmethod
        def backward(ctx, dy):
            return dy * (cost - cost.mean())

    p = torch.tensor([0.003, 0.497, 0.2, 0.3], dtype=torch.float64)
    report = gs.check.options(seed=seed)(Transport, p)
    assert report.verdict in (Verdict.LIMITED, Verdict.UNKNOWN), str(report)


def test_gradients_that_are_stopped():
    def loss(x, target):
        return torch.mean((x - target.detach()) ** 2 + x * torch.sin(x).detach())

    report = gs.check(loss, normal(5), 2 * normal(5))
    assert report.verdict is Verdict.SURROGATE, str(report)
    assert "its code stops gradients: detach" in str(report)


def test_terms_that_cancel_are_no_gradient():
    """Attention to equal values does not depend on the scores."""

    def attention(q, k, v):
        return torch.softmax(q @ k.T, -1) @ v

    q, k = normal(3, 4), 2 * normal(5, 4)
    v = torch.tensor([0.3, 1.7]).expand(5, 2).contiguous()
    for seed in range(3):
        report = gs.check.options(seed=seed)(attention, q, k, v)
        assert report.verdict in (Verdict.RIGHT, Verdict.LIMITED), str(report)


def test_one_of_several_that_is_drawn():
    """Only differences of its arguments count, so that all of them may be moved."""

    class Choice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            noise = torch.tensor([0.0, 3.0, 1.0, 0.5], dtype=x.dtype)
            return torch.nn.functional.one_hot(torch.argmax(x + noise), 4).to(x.dtype)

        @staticmethod
        def backward(ctx, dy):
            return dy - dy.mean()

    report = gs.check(Choice, 0.5 * normal(4))
    assert report.verdict is Verdict.SURROGATE, str(report)
