"""Operations for the tests, each x**4 with a right rule or one that betrays itself.

A canary's rule is 10 dy x**3: what uses it gives 10, what drops it 4.
"""

from __future__ import annotations

import torch

import gradsmith as gs


@gs.custom_gradient
def closure(x):
    cube = x * x * x
    return cube * x, lambda dy: 4 * dy * cube


@gs.custom_gradient
def captures_output(x):
    y = torch.exp(x)
    return y, lambda dy: dy * y


@gs.operation
def vjp_rule(x):
    return x**4


@vjp_rule.vjp
def _(dy, y, x):
    return 4 * dy * x**3


@gs.operation
def jvp_rule(x):
    return x**4


@jvp_rule.jvp
def _(dx, y, x):
    return 4 * dx * x**3


@gs.operation
def both_rules(x):
    return x**4


@both_rules.vjp
def _(dy, y, x):
    return 4 * dy * x**3


@both_rules.jvp
def _(dx, y, x):
    return 4 * dx * x**3


FOURTH = [closure, vjp_rule, jvp_rule, both_rules]


@gs.custom_gradient
def canary(x):
    cube = x * x * x
    return cube * x, lambda dy: 10 * dy * cube


@gs.operation
def ruled_canary(x):
    return x**4


@ruled_canary.vjp
def _(dy, y, x):
    return 10 * dy * x**3


@gs.operation
def forward_canary(x):
    return x**4


@forward_canary.jvp
def _(dx, y, x):
    return 10 * dx * x**3


CANARIES = [canary, ruled_canary, forward_canary]
name = lambda op: getattr(op, "__name__", str(op))


@gs.custom_gradient
def softmax(x, axis=-1):
    e = torch.exp(x - torch.amax(x, axis, keepdim=True))
    y = e / torch.sum(e, axis, keepdim=True)

    def grad(dy):
        return y * (dy - torch.sum(dy * y, axis, keepdim=True))

    return y, grad


def point(*, requires_grad=False):
    x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    return x.requires_grad_(requires_grad)


def writing(form):
    """x squared by a rule that writes into its upstream gradient, or its output."""
    if form == "closure":

        def body(x, *, scale=1):
            def grad(dy):
                dy *= 2 * x
                return dy

            return x * x, grad

        return gs.custom_gradient(body)
    op = gs.operation(lambda x, *, scale=1: torch.exp(x))

    @op.vjp
    def _(dy, y, x, *, scale=1):
        return y.mul_(dy)

    return op


@gs.custom_gradient
def writes_into_its_own(x, *, scale=1):
    y = torch.zeros_like(x)
    y.add_(x)

    def grad(dy):
        dx = dy * 10
        dx[0] = 0.0
        return dx.mul_(2)

    return y, grad
