"""The nodes of PyTorch's graph: what each is called, and what it has saved."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ....core.places import Place
from ..._observe import Event, Operand

# Their gradient is 0 for what was not taken.
_SELECTS = {
    "where", "maskedfill", "maskedscatter", "maximum", "minimum", "clamp", "clampmin",
    "clampmax", "indexput",
}  # fmt: skip
_ELEMENTWISE = {
    "acos", "acosh", "add", "asin", "asinh", "atan", "atanh", "cos", "cosh", "div",
    "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2",
    "mul", "neg", "pow", "reciprocal", "rsqrt", "sigmoid", "sin", "sinh", "softplus",
    "sqrt", "sub", "tan", "tanh", "where",
}  # fmt: skip
# What they have saved, in the order in which it is shown
_SAVED = ("self", "input", "other", "exponent", "result", "mat1", "mat2")
_NAMES = {"self": "x", "input": "x", "result": "y"}


def nodes_behind(ys: Sequence[Any]) -> list[Any]:
    """All nodes that lead to these tensors, which stay alive in the list."""
    ahead = [y.grad_fn if y.grad_fn is not None else _leaf_node(y) for y in ys]
    found: dict[Any, None] = {}
    while ahead:
        node = ahead.pop()
        if node is not None and node not in found:
            found[node] = None
            ahead += [parent for parent, _ in node.next_functions]
    return list(found)


def _leaf_node(x: Any) -> Any:
    return torch.autograd.graph.get_gradient_edge(x).node


def _name_of(node: Any) -> str:
    """The operation whose gradient a node computes.

    PyTorch's own are called SqrtBackward0, those of a Function by its name.
    """
    name = node.name().rpartition("::")[2]
    return re.sub(r"Backward\d*$", "", name)


def _is_users(node: Any) -> bool:
    return isinstance(node, torch.autograd.function.BackwardCFunction)


def event_of(
    node: Any,
    dxs: Sequence[Any],
    dys: Sequence[Any],
    place: Place | None,
    key: Callable[[Any], Any],
) -> Event:
    """A node as an event: the key of a gradient is the node that it goes to."""
    name = _name_of(node)
    plain = name.lower()
    ins = [Operand("dy", dy, (id(node), i)) for i, dy in enumerate(dys)]
    ins += [Operand(label, x, key(x)) for label, x in _saved(node)]
    pairs = zip(node.next_functions, dxs, strict=False)
    outs = [
        Operand("dx", dx, (id(parent), i))
        for (parent, i), dx in pairs
        if parent is not None and dx is not None
    ]
    return Event(
        name if _is_users(node) else re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower(),
        "backward",
        place,
        ins,
        outs,
        elementwise=plain in _ELEMENTWISE,
        selects=plain in _SELECTS,
        encloses=True,
    )


def _saved(node: Any) -> list[tuple[str, Any]]:
    if _is_users(node):
        found = [x for x in node.saved_tensors if x is not None]
        names = [f"saved {i + 1}" for i in range(len(found))]
        return list(zip(names, found, strict=True))
    values = ((name, getattr(node, f"_saved_{name}", None)) for name in _SAVED)
    return [
        (_NAMES.get(name, name), x)
        for name, x in values
        if isinstance(x, (torch.Tensor, float))
    ]


def sources_of(nodes: Sequence[Any], inputs: Any) -> list[tuple[str, Any, Any]]:
    """The inputs and parameters that were used, with the keys of their gradients."""
    names = {id(x): name for name, x in inputs}
    return [
        (
            names.get(id(node.variable), _name(node.variable)),
            node.variable,
            (id(node), 0),
        )
        for node in nodes
        if hasattr(node, "variable")
    ]


def _name(parameter: Any) -> str:
    return f"a parameter of shape {tuple(parameter.shape)}"
