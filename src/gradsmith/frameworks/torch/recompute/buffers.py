"""The modules that a function reaches: names of parameters, and buffers it writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch.nn.parameter import is_lazy

from ....core.reach import reached
from ..private import buffers_in, is_transformed


def modules_in(*roots: Any) -> list[torch.nn.Module]:
    return list(reached(*roots, stop=lambda x: isinstance(x, torch.nn.Module)))


def names_of_parameters(*roots: Any) -> dict[int, str]:
    return {
        id(parameter): name
        for module in modules_in(*roots)
        for name, parameter in module.named_parameters()
    }


class Buffer(NamedTuple):
    """A buffer of a module, and its value at some time."""

    module: torch.nn.Module
    name: str
    tensor: torch.Tensor  # which the module had then
    value: torch.Tensor | None  # None: it had no shape yet

    @property
    def now(self) -> Any:
        return buffers_in(self.module).get(self.name)


def buffers_of(*roots: Any) -> list[Buffer]:
    """All buffers, with copies of what they are now."""
    modules = {id(m): m for root in modules_in(*roots) for m in root.modules()}
    return [
        Buffer(module, name, tensor, None if is_lazy(tensor) else _copy(tensor))
        for module in modules.values()
        for name, tensor in buffers_in(module).items()
        if tensor is not None
    ]


def written_since(before: Sequence[Buffer]) -> list[Buffer]:
    """Those that are not what they were, as they were.

    BatchNorm writes its statistics without a new version of them, so values are
    compared; what torch.func's transforms hide can't be, and is kept.
    """
    known = [b for b in before if b.value is not None]
    if is_transformed():
        return known
    # One look at the device for all of them
    equal = [
        (b.tensor == b.value).all() if b.now is b.tensor else torch.tensor(False)
        for b in known
    ]
    flags = torch.stack([each.cpu() for each in equal]).tolist() if equal else []
    return [b for b, same in zip(known, flags, strict=True) if not same]


@contextmanager
def given(buffers: Sequence[Buffer]) -> Iterator[None]:
    """Let modules have copies of buffers as they were, for the time being.

    Nothing is written into the modules' own: a backward pass may hold them.
    """
    now = [b.now for b in buffers]
    for b in buffers:
        if b.value is not None:
            buffers_in(b.module)[b.name] = _copy(b.value)
    try:
        yield
    finally:
        for b, tensor in zip(buffers, now, strict=True):
            buffers_in(b.module)[b.name] = tensor


def _copy(x: torch.Tensor) -> torch.Tensor:
    return x.detach().clone()
