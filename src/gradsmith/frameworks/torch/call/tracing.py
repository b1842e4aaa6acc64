"""What Dynamo is told, once it is there: importing it takes longer than PyTorch itself.

Functions that remember what they found are replaced, since a rule is traced where
Python objects from outside can't be changed.
"""

from __future__ import annotations

from functools import partial, wraps
from typing import Any

import numpy as np
import torch

from ....core import arity, arrays, errors, trees
from ....core.import_hooks import once_imported
from ....operations import application, fusing, parameters
from ..private import never_compile, skip, traced_versions, watch_saved
from . import (
    captured,
    closures,
    eager,
    eager_call,
    hidden,
    levels,
    outputs,
    residuals,
    rules,
    transformed,
)
from . import quick as quick_call
from .again import MADE
from .compiled import opaque, structure
from .guards import forget
from .nodes import name_of
from .quick import (
    FusedNode,
    QuickNode,
    backward_in_graph,
    fused_backward_in_graph,
    quick,
)


def _read(fn: Any) -> Any:
    return arity.read_code(fn)


def _kind(node: Any) -> Any:
    return trees.kind_of_type(type(node))


def _framework_of(x: Any) -> str | None:
    if isinstance(x, torch.Tensor):
        return "torch"
    return "numpy" if isinstance(x, np.ndarray) else None


def _not_quick(operation: Any, args: tuple[Any, ...]) -> Any:
    return NotImplemented


def _not_again(operation: Any, *args: Any) -> Any:
    return NotImplemented


def _method_of(operation: Any, instance: Any) -> Any:
    return partial(operation, instance)


def _add_note(error: Any, note: str) -> None:
    """Dynamo's exceptions have no notes."""


def _add_notes(error: Any, where: str) -> None:
    """As above."""


_SUBSTITUTES = {
    arity.arity_of: _read,
    application.add_notes: _add_notes,
    errors.add_note: _add_note,
    parameters.method_of: _method_of,
    trees.kind_of: _kind,
    arrays.framework_of: _framework_of,
    quick: _not_quick,
    fusing.made_again: _not_again,
    QuickNode.backward: backward_in_graph,
    FusedNode.backward: fused_backward_in_graph,
}


# Where a body breaks a graph the call is made in eager mode, as far as we do it
_EAGER = (captured, closures, eager, eager_call, hidden, levels, outputs, quick_call)
_EAGER += (residuals, rules, transformed)


def register(dynamo: Any) -> None:
    for original, substitute in _SUBSTITUTES.items():
        torch.compiler.substitute_in_graph(original)(substitute)
    torch.compiler.allow_in_graph(opaque)
    # Run by Dynamo itself, not traced; what they are replaced by is never called
    for run in (forget, watch_saved, traced_versions):
        replaced = torch.compiler.substitute_in_graph(
            run, can_constant_fold_through=True
        )
        replaced(wraps(run)(lambda *_: None))
    for constant in (name_of, structure):
        torch.compiler.assume_constant_result(constant)
    for module in _EAGER:
        never_compile(module)
    for call in MADE:
        skip(call)


once_imported("torch._dynamo", register)
