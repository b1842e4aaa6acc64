"""What compiled code does not look at whenever it is called: ourselves.

Dynamo guards all that it reads, so also the names in our modules, and those of Python
and PyTorch that our functions use. Nobody changes them between two calls. They were 102
of 132 guards, 14 of 112 us for an operation on 1000 numbers with its gradient. Of those
left 19 are on the operation, which another may replace: 2 us. Of an operation that is
called by its key, that and its kernels are enough. A hand-written Function has 20 in
all; what Inductor generates is the same.
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
_NAMES = re.compile(
    r"(?!.*\._current_level\b)"  # whether forward mode is on does change
    r"[a-z.(]*G\['_(_import_(gradsmith|torch)(_dot_|')|_builtins_dict|\d+_c\d+'\])"
)


def forget() -> None:
    """Drop the guards on ourselves. While Dynamo traces, this is run, not traced."""
    context = guards_context()
    if context is None:  # the body broke the graph, and the rest is not traced
        return
    guards = context.dynamo_guards
    ours = {guard for guard in guards if _is_read_by_us(guard)}
    names = [_NAMES, *_names_of_known({guard.name for guard in ours})]
    kept = [
        guard
        for guard in guards
        if guard not in ours or not any(name.match(guard.name) for name in names)
    ]
    context.dynamo_guards = type(guards)(type(guards.inner)(kept))


def _names_of_known(names: set[str]) -> list[re.Pattern[str]]:
    """What belongs to operations with a known key, but for that and their kernels."""
    known = [name.removesuffix(".key") for name in names if name.endswith(".key")]
    return [re.compile(rf".*{re.escape(op)}(?!\.key$|\.fused)[.)]") for op in known]


def _is_read_by_us(guard: Any) -> bool:
    """Whether it is not of something of the user's that we call."""
    files = [frame.filename for frame in guard.user_stack or ()]
    while files and files[-1].startswith(_TORCHS):
        files.pop()
    return bool(files) and files[-1].startswith(_OURS)
