"""At which levels of torch.func, or of autograd below, a tensor is differentiated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd import forward_ad

from ....core.errors import UnsupportedOperationError
from ..private import (
    TransformType,
    batched,
    below_transforms,
    functorch,
    innermost_transform,
    transforms,
)
from .captured import require_same
from .specs import has_gradient


def levels_of(x: torch.Tensor) -> set[int]:
    """The levels at which a tensor is differentiated; 0 is autograd's own."""
    if functorch.peek_interpreter_stack() is None:
        return {0} if x.requires_grad or _has_tangent(x) else set()
    interpreter = innermost_transform()
    level, kind, levels = interpreter.level(), interpreter.key(), set()
    if functorch.maybe_get_level(x) == level:
        if (kind == TransformType.Grad and x.requires_grad) or (
            kind == TransformType.Jvp and _has_tangent(x)
        ):
            levels.add(level)
        x = functorch.get_unwrapped(x)
    with interpreter.lower():
        return levels | levels_of(x)


def alive(x: torch.Tensor) -> torch.Tensor:
    """A tensor out of the levels that have ended: a pullback may be called after."""
    return functorch.unwrap_if_dead(x)


def _has_tangent(x: torch.Tensor) -> bool:
    # Level 0 is the only one; in a compiler's graph `forward_ad` does not know of it
    return has_gradient(x) and forward_ad.unpack_dual(x, level=0).tangent is not None


def primal_of(x: torch.Tensor) -> torch.Tensor:
    """A tensor without its tangent at the innermost level that has tangents."""
    if not has_gradient(x):
        return x
    if functorch.peek_interpreter_stack() is not None:
        interpreter = innermost_transform()
        if interpreter.key() == TransformType.Vmap:  # it has no rule for what follows
            level = interpreter.level()
            is_batched = functorch.maybe_get_level(x) == level
            axis = functorch.maybe_get_bdim(x) if is_batched else None
            inner = functorch.get_unwrapped(x) if is_batched else x
            with interpreter.lower():
                inner = primal_of(inner)
            return batched(inner, axis, level) if is_batched else inner
    return forward_ad.unpack_dual(x, level=0).primal


def is_nested(leaves: Sequence[torch.Tensor]) -> bool:
    """Whether more than one derivative may be taken, at whatever levels."""
    kinds = [each.key() for each in transforms()]
    count = sum(kind in (TransformType.Grad, TransformType.Jvp) for kind in kinds)
    with below_transforms():
        plain = [_plain(x) for x in leaves]
        count += any(x.requires_grad for x in plain) + any(map(_has_tangent, plain))
    return count > 1


def require_same_values(
    operation: Any, saved: Sequence[torch.Tensor], again: Sequence[torch.Tensor]
) -> None:
    """Raise if a body that ran again computed something else.

    What is compared is below all transformations. Tensors of a compiler have no values,
    and a batch axis may be in one of the two alone.
    """
    pairs = [(_plain(x), _plain(y)) for x, y in zip(saved, again, strict=True)]
    pairs = [(x, y) for x, y in pairs if type(x) is type(y) is torch.Tensor]
    pairs = [(x, y) for x, y in pairs if x.shape == y.shape]
    with below_transforms():
        require_same(operation, [x for x, _ in pairs], [y for _, y in pairs])


def _plain(x: torch.Tensor) -> torch.Tensor:
    while functorch.is_functorch_wrapped_tensor(x):
        x = functorch.get_unwrapped(x)
    return x


def require_one_order(
    operation: Any, leaves: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]
) -> None:
    """Raise if the gradient of something captured is differentiated by an argument.

    The body ran on detached arguments, so that gradient does not depend on them. It is
    taken at the levels that the outputs have now, and differentiated at outer ones.
    """
    captured = set().union(*map(levels_of, outputs))
    if not captured:
        return
    given = set().union(*map(levels_of, leaves))
    if given and min(given) < max(captured):
        raise UnsupportedOperationError(
            f"operation {operation.name!r} captured a tensor that is differentiated, "
            "and its gradient is differentiated again, by an argument\n"
            "  what to do: make that tensor an argument of the operation"
        )
