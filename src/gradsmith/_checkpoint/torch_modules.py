"""The modules that a function reaches: names of parameters, and buffers it writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from .reach import reached


def modules_in(*roots: Any) -> list[torch.nn.Module]:
    return list(reached(*roots, stop=lambda x: isinstance(x, torch.nn.Module)))


def buffers_of(*roots: Any) -> list[torch.Tensor]:
    return [b for module in modules_in(*roots) for b in module.buffers()]


def names_of_parameters(*roots: Any) -> dict[int, str]:
    return {
        id(parameter): name
        for module in modules_in(*roots)
        for name, parameter in module.named_parameters()
    }


@contextmanager
def kept(buffers: list[torch.Tensor]) -> Iterator[None]:
    """Let buffers be afterwards what they were.

    Only those are written that differ: a backward pass may hold the others. BatchNorm
    writes its statistics without a new version of them, so values are compared.
    """
    before = [b.detach().clone() for b in buffers]
    try:
        yield
    finally:
        with torch.no_grad():
            for b, value in zip(buffers, before, strict=True):
                if not torch.equal(b, value):
                    b.copy_(value)
