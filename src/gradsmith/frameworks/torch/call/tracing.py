"""What Dynamo is told, once it is there: importing it takes longer than PyTorch itself.

Functions that remember what they found are replaced, since a rule is traced where
Python objects from outside can't be changed.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch

from ....core import arity, arrays, errors, trees
from ....core.import_hooks import once_imported
from ....operations import application, parameters
from .compiled import opaque, structure
from .guards import forget
from .nodes import name_of
from .quick import QuickNode, backward_in_graph, quick


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


def _method_of(operation: Any, instance: Any) -> Any:
    return partial(operation, instance)


def _nothing() -> None:
    """For `forget`, which Dynamo runs itself, since it depends on no argument."""


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
    QuickNode.backward: backward_in_graph,
}


def register(dynamo: Any) -> None:
    for original, substitute in _SUBSTITUTES.items():
        torch.compiler.substitute_in_graph(original)(substitute)
    torch.compiler.allow_in_graph(opaque)
    torch.compiler.substitute_in_graph(forget, can_constant_fold_through=True)(_nothing)
    for constant in (name_of, structure):
        torch.compiler.assume_constant_result(constant)


once_imported("torch._dynamo", register)
