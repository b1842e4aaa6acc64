"""How PyTorch compiles and exports phi."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from types import FunctionType
from typing import Any

import torch

from ...core import trees
from .row import Noted

_numbers = count()


def compiled(fn: Any, use: Any) -> Any:
    """The result of using a compiled function, whole or else in pieces."""
    try:
        return use(_compile(fn, fullgraph=True))
    except Exception:
        return Noted(use(_compile(fn, fullgraph=False)), "with a graph break")


def _compile(fn: Any, *, fullgraph: bool) -> Any:
    """Compile with all that traces and differentiates, and without generating code.

    Compiled code is kept with a function's code, so each gets its own; resetting the
    compiler would take away what the caller compiled.
    """

    def call(t: Any) -> Any:
        return fn(t)

    code = call.__code__.replace(co_name=f"probe_{next(_numbers)}")
    fresh = FunctionType(code, globals(), closure=call.__closure__)
    return torch.compile(fresh, backend="aot_eager", fullgraph=fullgraph)


class Module(torch.nn.Module):
    """phi with its arrays as buffers: as constants, unused ones break the export."""

    def __init__(self, s: Any) -> None:
        super().__init__()
        self.s = s
        for i, x in enumerate(trees.leaves(self.parts())):
            if isinstance(x, torch.Tensor):
                self.register_buffer(f"x{i}", x)

    def parts(self) -> Any:
        return self.s.args, self.s.kwargs, self.s.directions, self.s.weights

    def forward(self, t: Any) -> Any:
        leaves = enumerate(trees.leaves(self.parts()))
        found = [getattr(self, f"x{i}", x) for i, x in leaves]
        args, kwargs, vs, ws = trees.unflatten(self.parts(), found)
        new = {"args": args, "kwargs": kwargs, "directions": vs, "weights": ws}
        return replace(self.s, **new).phi(t)
