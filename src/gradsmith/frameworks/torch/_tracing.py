"""What Dynamo is to trace in place of functions that remember what they found.

A rule is traced where Python objects from outside can't be changed.
"""

from __future__ import annotations

from typing import Any

import torch

from ... import _parameters, _tree


@torch.compiler.substitute_in_graph(_parameters.takes)
def _takes(fn: Any) -> Any:
    return _parameters.read_code(fn)


@torch.compiler.substitute_in_graph(_tree.kind_of)
def _kind(node: Any) -> Any:
    return _tree.kind_of_type(type(node))
