"""PyTorch."""

from __future__ import annotations

from itertools import count
from types import FunctionType
from typing import Any

import torch

NAMES = {"compiled": "torch.compile", "mapped": "torch.func.vmap"}
_numbers = count()


def compiled(fn: Any) -> Any:
    """Compiled whole, or else in pieces; without generating code, which takes long.

    Compiled code is kept with a function's code, so each gets its own; resetting the
    compiler would take away what the caller compiled.
    """
    whole, pieces = (_compile(fn, fullgraph=each) for each in (True, False))

    def call(*lists: Any) -> Any:
        try:
            return whole(*lists)
        except Exception:
            return pieces(*lists)

    return call


def _compile(fn: Any, *, fullgraph: bool) -> Any:
    def call(*lists: Any) -> Any:
        return fn(*lists)

    code = call.__code__.replace(co_name=f"checked_{next(_numbers)}")
    fresh = FunctionType(code, globals(), closure=call.__closure__)
    return torch.compile(fresh, backend="aot_eager", fullgraph=fullgraph)


def mapped(fn: Any, *lists: list[Any]) -> list[Any]:
    return torch.func.vmap(lambda *lists: fn(*lists))(*lists)


def gradient(fn: Any, xs: list[Any], dys: list[Any]) -> list[Any]:
    pull = torch.func.vjp(lambda *xs: tuple(fn(list(xs))), *xs)[1]
    return list(pull(tuple(dys)))


def stack(arrays: list[Any]) -> Any:
    return torch.stack(arrays)
