"""What compiled code does not look at whenever it is called: ourselves.

Dynamo guards all that it reads, so also the names in our modules, and those of Python
and PyTorch that our functions use. Nobody changes them between two calls. They were 102
of 132 guards, 14 of 112 us for an operation on 1000 numbers with its gradient. Of those
left 19 are on the operation, which another may replace: 2 us. A hand-written Function
has 20 in all; what Inductor generates is the same.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import torch

from ..private import guards_context

_OURS, _TORCHS = (
    f"{folder}{os.sep}"
    for folder in (Path(__file__).parents[3], Path(str(torch.__file__)).parent)
)
_NAMES = re.compile(r"[a-z.(]*G\['__(import_(gradsmith|torch)(_dot_|')|builtins_dict)")


def forget() -> None:
    """Drop the guards on ourselves. While Dynamo traces, this is run, not traced."""
    context = guards_context()
    if context is None:  # the body broke the graph, and the rest is not traced
        return
    guards = context.dynamo_guards
    kept = [guard for guard in guards if not _is_ours(guard)]
    context.dynamo_guards = type(guards)(type(guards.inner)(kept))


def _is_ours(guard: Any) -> bool:
    """Whether we have read this name, and not something of the user's that we call."""
    if not _NAMES.match(guard.name):
        return False
    files = [frame.filename for frame in guard.user_stack or ()]
    while files and files[-1].startswith(_TORCHS):
        files.pop()
    return bool(files) and files[-1].startswith(_OURS)
