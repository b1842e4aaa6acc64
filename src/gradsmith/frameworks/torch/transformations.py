"""PyTorch: its transformations."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import forward_ad
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from torch.utils.checkpoint import checkpoint

from .._transformations import BATCH, GRADIENT, SECOND, TANGENT, Noted, Row
from .compiled import traced


def _backward(phi: Any, t: Any) -> Any:
    t = t.clone().requires_grad_()
    phi(t).backward()
    return t.grad


def _vjp(s: Any) -> Any:
    y, pull, *_ = vjp(s.phi, s.t)
    return pull(torch.ones_like(y))[0]


def _hessian(s: Any) -> Any:
    return torch.tensordot(hessian(s.phi)(s.t), s.dt, s.dt.ndim)


def _grad_of_vmap(s: Any) -> Any:
    return grad(lambda points: vmap(s.phi)(points).sum())(s.points)


def _double_backward(s: Any) -> Any:
    t = s.t.clone().requires_grad_()
    (first,) = torch.autograd.grad(s.phi(t), t, create_graph=True)
    return torch.autograd.grad(torch.sum(first * s.dt), t)[0]


def _dual_numbers(s: Any) -> Any:
    with forward_ad.dual_level():
        y = s.phi(forward_ad.make_dual(s.t, s.dt))
        return forward_ad.unpack_dual(y).tangent


def _tangent(phi: Any, s: Any) -> Any:
    return jvp(phi, (s.t,), (s.dt,))[1]


# --- compiled, exported --------------------------------------------------------------


def _compiled(fn: Any, use: Any) -> Any:
    """The result of using a compiled function, whole or else in pieces."""
    try:
        return use(traced(fn, fullgraph=True))
    except Exception:
        return Noted(use(traced(fn, fullgraph=False)), "with a graph break")


def _exported(s: Any) -> Any:
    return _backward(torch.export.export(_Module(s), (s.t,)).module(), s.t)


class _Module(torch.nn.Module):
    """phi with its arrays as buffers: as constants, unused ones break the export."""

    def __init__(self, s: Any) -> None:
        super().__init__()
        self.s = s
        for i, x in enumerate(s.arrays):
            if isinstance(x, torch.Tensor):
                self.register_buffer(f"x{i}", x)

    def forward(self, t: Any) -> Any:
        found = [getattr(self, f"x{i}", x) for i, x in enumerate(self.s.arrays)]
        return self.s.with_arrays(found).phi(t)


ROWS = [
    Row("backward", GRADIENT, lambda s: _backward(s.phi, s.t)),
    Row("double backward", SECOND, _double_backward),
    Row("func.grad", GRADIENT, lambda s: grad(s.phi)(s.t)),
    Row("func.vjp", GRADIENT, _vjp),
    Row("func.jvp", TANGENT, lambda s: _tangent(s.phi, s), forward=True),
    Row("dual numbers", TANGENT, _dual_numbers, forward=True),
    Row("func.vmap(grad)", BATCH, lambda s: vmap(grad(s.phi))(s.points)),
    Row("func.grad(vmap)", BATCH, _grad_of_vmap),
    Row("func.jacrev", GRADIENT, lambda s: jacrev(s.vector)(s.t).sum(0), full=True),
    Row(
        "func.jacfwd",
        GRADIENT,
        lambda s: jacfwd(s.vector)(s.t).sum(0),
        forward=True,
        full=True,
    ),
    Row("func.hessian", SECOND, _hessian, full=True),
    Row(
        "compile, then backward",
        GRADIENT,
        lambda s: _compiled(s.phi, lambda phi: _backward(phi, s.t)),
    ),
    Row(
        "compile(func.grad)",
        GRADIENT,
        lambda s: _compiled(grad(s.phi), lambda fn: fn(s.t)),
    ),
    Row(
        "compile(func.jvp)",
        TANGENT,
        lambda s: _compiled(lambda t: _tangent(s.phi, s.at(t)), lambda fn: fn(s.t)),
        forward=True,
    ),
    Row(
        "compile(func.vmap(grad))",
        BATCH,
        lambda s: _compiled(vmap(grad(s.phi)), lambda fn: fn(s.points)),
    ),
    Row("export, then backward", GRADIENT, _exported),
    Row(
        "checkpoint",
        GRADIENT,
        lambda s: _backward(lambda t: checkpoint(s.phi, t, use_reentrant=False), s.t),
    ),
    Row("keyword call", GRADIENT, lambda s: _backward(s.phi, s.t), keyword=True),
]
