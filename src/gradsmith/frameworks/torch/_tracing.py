"""What Dynamo is to trace in place of functions that remember what they found.

A rule is traced where Python objects from outside can't be changed.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch

from ... import _arrays, _parameters, _tree


@torch.compiler.substitute_in_graph(_parameters.takes)
def _takes(fn: Any) -> Any:
    return _parameters.read_code(fn)


@torch.compiler.substitute_in_graph(_tree.kind_of)
def _kind(node: Any) -> Any:
    return _tree.kind_of_type(type(node))


@torch.compiler.substitute_in_graph(_arrays.framework_of)
def _framework_of(x: Any) -> str | None:
    if isinstance(x, torch.Tensor):
        return "torch"
    return "numpy" if isinstance(x, np.ndarray) else None


@torch.compiler.substitute_in_graph(_parameters.method_of)
def _method_of(operation: Any, instance: Any) -> Any:
    return partial(operation, instance)
