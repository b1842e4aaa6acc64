"""What PyTorch's graph keeps alive: what it saves goes through hooks."""

from __future__ import annotations

from typing import Any
from weakref import ref

import torch
from torch.overrides import TorchFunctionMode

from ...core import trees
from ...core.places import Place, place_here
from .._protocol import Residual
from .recompute import current
from .recompute.buffers import modules_in


class _Saved:
    """A tensor that the graph keeps; it dies with that."""

    __slots__ = ("__weakref__", "tensor")

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor


class _Names(TorchFunctionMode):
    """Knows the name of the function that is being called."""

    name = "?"

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.name = getattr(func, "__name__", str(func))
        return func(*args, **(kwargs or {}))


def residuals(fn: Any, args: Any, kwargs: Any) -> list[Residual]:
    """The arrays that a gradient keeps."""
    args, kwargs = trees.map(_leaf, (args, kwargs))
    names = _Names()
    saved: list[tuple[str, Place | None, ref[_Saved]]] = []

    def pack(tensor: torch.Tensor) -> _Saved:
        held = _Saved(tensor)
        saved.append((current.name or names.name, place_here(), ref(held)))
        return held

    hooks = torch.autograd.graph.saved_tensors_hooks(pack, lambda held: held.tensor)
    with torch.enable_grad(), hooks, names:
        result = fn(*args, **kwargs)
    given = [x for x in trees.leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
    for module in modules_in(fn, args, kwargs):
        given += [*module.parameters(), *module.buffers()]
    taken = {_memory_of(x) for x in given}
    found = []
    for name, place, reference in saved:
        held = reference()
        if held is None or _memory_of(held.tensor) in taken:
            continue
        # A tensor that has a gradient itself (a captured parameter) is alive anyway.
        if held.tensor.is_leaf and held.tensor.requires_grad:
            continue
        taken.add(_memory_of(held.tensor))
        found.append(Residual(name, place, held.tensor.untyped_storage().nbytes()))
    del result
    return found


def _leaf(x: Any) -> Any:
    if isinstance(x, torch.Tensor) and (x.is_floating_point() or x.is_complex()):
        return x.detach().requires_grad_()
    return x


def _memory_of(x: torch.Tensor) -> int:
    return x.untyped_storage().data_ptr()
