"""Autocast: a rule runs in the precision that its body ran in."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext

import torch

State = tuple[str, torch.dtype]
_NOTHING = nullcontext()


def states(tensors: Sequence[torch.Tensor]) -> list[State]:
    """The devices of tensors on which autocast is active, with its precision there."""
    return [
        (device, torch.get_autocast_dtype(device))
        for device in dict.fromkeys([x.device.type for x in tensors])
        if torch.is_autocast_enabled(device)
    ]


def entered(states: Sequence[State]) -> AbstractContextManager[object]:
    """The context in which autocast is as it was."""
    if not states:
        return _NOTHING
    if len(states) == 1:
        return torch.autocast(*states[0])
    stack = ExitStack()
    for device, dtype in states:
        stack.enter_context(torch.autocast(device, dtype))
    return stack
