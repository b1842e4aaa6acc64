"""Autocast: a rule runs in the precision that its body ran in."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext

import torch

from ..private import accelerator, is_any_autocast

State = tuple[str, torch.dtype]
_NOTHING = nullcontext()


def states(tensors: Sequence[torch.Tensor]) -> list[State]:
    """The devices of tensors on which autocast is active, with its precision there."""
    return [
        (device, torch.get_autocast_dtype(device))
        for device in dict.fromkeys([x.device.type for x in tensors])
        if torch.is_autocast_enabled(device)
    ]


def _without() -> AbstractContextManager[object]:
    """The context of a rule whose body ran without, called where it is active."""
    stack = ExitStack()
    for device in ("cpu", accelerator()):
        stack.enter_context(torch.autocast(device, enabled=False))
    return stack


def entered(states: Sequence[State]) -> AbstractContextManager[object]:
    """The context in which autocast is as it was."""
    if not states:
        return _NOTHING if not is_any_autocast() else _without()
    if len(states) == 1:
        return torch.autocast(*states[0])
    stack = ExitStack()
    for device, dtype in states:
        stack.enter_context(torch.autocast(device, dtype))
    return stack
