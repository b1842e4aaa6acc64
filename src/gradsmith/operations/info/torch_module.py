"""PyTorch's modules: their parameters are arguments by name."""

from __future__ import annotations

from typing import Any

import torch
from torch.func import functional_call

from .info import Subject, signature_of


def subject_of(module: torch.nn.Module) -> Subject:
    call = WithParameters(module)
    return Subject(
        type(module).__name__,
        call,
        signature_of(module.forward),
        None,
        "its rules are those of the operations inside of it, which can't be marked",
        module=type(module).__module__,
        captured=call.parameters,
    )


class WithParameters:
    """A module as a function of its arguments and, by name, of its parameters.

    What has no gradient (buffers, frozen parameters) takes the precision of the rest,
    and is a copy: a module in training changes it.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        self.module = module
        self.forward = type(module).forward
        named = dict(module.named_parameters())
        self.parameters = {n: x.detach() for n, x in named.items() if x.requires_grad}
        self._rest = {**named, **dict(module.named_buffers())}
        for name in self.parameters:
            del self._rest[name]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = {n: kwargs.pop(n) for n in self.parameters if n in kwargs}
        if not given:
            return self.module(*args, **kwargs)
        dtype = next(iter(given.values())).dtype
        rest = {n: _copy(x, dtype) for n, x in self._rest.items()}
        return functional_call(self.module, {**rest, **given}, args, kwargs)


def _copy(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    x = x.detach().clone()
    return x.to(dtype) if x.is_floating_point() else x
