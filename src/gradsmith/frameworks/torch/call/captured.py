"""What a body captured, and whether running it again gives the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch

from ....core.errors import UnsupportedOperationError
from ....operations.parameters import Bound
from ..private import number_of
from .specs import TensorSpec

Variable = tuple[torch.Tensor, TensorSpec]  # one that a rule speaks for


class Captured(NamedTuple):
    """What a body captured of tensors that have gradients.

    `outputs` are those that depend on it, with their `places` among all that vary;
    `leaves` the tensors without a past among what it captured; `computed` the node that
    made one of the others, if there is one.
    """

    places: list[int]
    outputs: list[torch.Tensor]
    leaves: list[torch.Tensor]
    computed: str


def captured_by(outputs: Any, start: int) -> Captured | None:
    """What a body captured, if it did; the arguments that it was given are detached.

    `start` is the number of the first node that it can have made.
    """
    flat = outputs.flat
    places = [k for k, i in enumerate(outputs.varied) if flat[i].requires_grad]
    if not places:
        return None
    ys = [flat[outputs.varied[k]] for k in places]
    leaves: dict[int, torch.Tensor] = {}
    computed = ""
    for node in _nodes([y.grad_fn or y for y in ys], start):
        leaf = _leaf(node)
        if leaf is not None:
            leaves.setdefault(id(leaf), leaf)
        elif number_of(node) < start:
            computed = node.name()
    return Captured(places, ys, list(leaves.values()), computed)


def _leaf(node: Any) -> torch.Tensor | None:
    if isinstance(node, torch.Tensor):
        return node
    return getattr(node, "variable", None)  # of a node that accumulates


def variables_of(operation: Any, bound: Bound, captured: Captured) -> list[Variable]:
    """The variables that a rule speaks for, with their names."""
    if captured.computed:
        raise UnsupportedOperationError(
            f"the gradient of operation {operation.name!r} takes variables=, and its "
            "body captured a tensor that was computed before "
            f"({captured.computed})\n"
            "  expected: parameters, or other tensors without a grad_fn\n"
            "  what to do: make that tensor an argument of the operation"
        )
    names = _names(bound)
    return [
        (x, TensorSpec(x, names.get(id(x), f"variables[{i}]")))
        for i, x in enumerate(captured.leaves)
    ]


def _nodes(nodes: list[Any], start: int) -> Iterator[Any]:
    """The nodes that a body made, and the first ones behind them, each once."""
    seen: set[Any] = set()
    while nodes:
        node = nodes.pop(0)
        if node is None or node in seen:
            continue
        seen.add(node)
        yield node
        if not isinstance(node, torch.Tensor) and number_of(node) >= start:
            nodes += [following for following, _ in node.next_functions]


def _names(bound: Bound) -> dict[int, str]:
    """What the parameters of the modules among the arguments are called."""
    return {
        id(parameter): name
        for value in bound.values
        if isinstance(value, torch.nn.Module)
        for name, parameter in value.named_parameters()
    }


def gradients_again(
    operation: Any,
    outputs: Sequence[torch.Tensor],
    dys: Sequence[torch.Tensor],
    captured: Captured,
) -> Sequence[torch.Tensor | None]:
    """The gradients of captured leaves, themselves to be differentiated.

    They depend on the arguments too, so `outputs` come from running the body again,
    connected to these.
    """
    if captured.computed:
        raise UnsupportedOperationError(
            f"a gradient through operation {operation.name!r} is being differentiated, "
            "and its body captured a tensor that was computed before "
            f"({captured.computed})\n"
            "  what to do: make that tensor an argument of the operation"
        )
    leaves = captured.leaves
    return torch.autograd.grad(
        outputs, leaves, dys, create_graph=True, allow_unused=True
    )


def require_same(
    operation: Any, saved: Sequence[torch.Tensor], again: Sequence[torch.Tensor]
) -> None:
    """Raise if a body that ran again computed something else."""
    if len(saved) == len(again) and all(map(_same, saved, again)):
        return
    raise not_the_same(operation)


def not_the_same(operation: Any) -> UnsupportedOperationError:
    """The error for a body that ran again and computed something else."""
    return UnsupportedOperationError(
        f"the gradient of operation {operation.name!r} is being differentiated, so its "
        "body ran again, and it computed other values for the gradient to capture: it "
        "is random, or depends on something that changed\n"
        "  what to do: draw random numbers outside and pass them as an argument, or "
        "write the rule in rule form (gs.operation and @op.vjp), which captures nothing"
    )


def _same(x: torch.Tensor, y: torch.Tensor) -> bool:
    """Whether two tensors are the same up to the order in which sums were taken."""
    if x is y:
        return True
    if x.shape != y.shape or x.dtype != y.dtype or x.layout != y.layout:
        return False
    if not (x.is_floating_point() or x.is_complex()):
        return torch.equal(x, y)
    tolerance = torch.finfo(x.dtype).eps ** 0.5
    size = float(torch.nan_to_num(x.detach().abs()).max()) if x.numel() else 0.0
    return torch.allclose(x, y, tolerance, tolerance * min(size, 1e30), equal_nan=True)
