"""Operations under torch.export, which knows no gradients and would drop the rule.

So an operation stays one operator in the exported graph. It finds the operation again
by its name, also in another process that imports the module which defines it. Exported
under torch.no_grad() the body is there instead, cut off from its arguments.
"""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing

from ....core import trees
from ....core.errors import UnsupportedOperationError
from ....operations.application import run_body
from ....operations.operation import OPERATIONS
from ....operations.parameters import Bound
from ..private import below_autograd, is_exporting, is_traced, is_transformed
from . import eager
from .nodes import decoded, encoded, numbered, refusing, with_tensors
from .outputs import Outputs


def call(operation: Any, bound: Bound) -> Any:
    """Run an operation while its graph is exported."""
    inner = bound.with_leaves([x.detach() for x in bound.leaves])
    if not torch.is_grad_enabled():
        return eager.plain(operation, inner)
    with disable_proxy_modes_tracing():  # to learn what is returned
        outputs = Outputs(operation, run_body(operation, inner)[0])
    if any(y.requires_grad for y in outputs.flat):
        raise UnsupportedOperationError(
            f"operation {operation.name!r} can't be exported with its rule, since its "
            "body captures a tensor that has a gradient\n"
            "  what to do: make that tensor an argument, or export for inference, "
            "under torch.no_grad()"
        )
    tensors: list[torch.Tensor] = []
    other = refusing(operation.name, "is exported", _path_of)
    given = encoded(bound.given_arguments(), other)
    text = repr(numbered(given, tensors))
    ys = torch.ops.gradsmith.apply(tensors, _reference(operation), text)
    return outputs.structured(ys)


def _path_of(cls: type) -> list[str]:
    return [cls.__module__, cls.__qualname__]


def _reference(operation: Any) -> str:
    """How an operation is found: by its name, or only in this process."""
    path = getattr(operation, "__qualname__", "<nowhere>")
    module = getattr(operation, "__module__", "")
    if _look_up(module, path) is (operation.original or operation):
        return f"{module}:{path}"
    return operation.key


def _look_up(module: str, path: str) -> Any:
    found: Any = sys.modules.get(module)
    for step in path.split("."):
        found = getattr(found, step, None)
    return found


def _found(reference: str) -> Any:
    module, colon, path = reference.partition(":")
    if colon:
        import_module(module)
        operation = _look_up(module, path)
    else:
        operation = OPERATIONS.get(reference)
    if operation is None:
        raise UnsupportedOperationError(
            f"this exported program calls an operation ({reference}) that is not found "
            "here\n"
            "  what to do: define the operation at the top level of a module that can "
            "be imported, and export the program again"
        )
    return operation.callback or operation


# --- the operator --------------------------------------------------------------------

_library = torch.library.Library("gradsmith", "FRAGMENT")
_library.define("apply(Tensor[] xs, str operation, str call) -> Tensor[]")


def _bound(xs: list[torch.Tensor], reference: str, text: str) -> tuple[Any, Bound]:
    operation = _found(reference)
    args, kwargs = decoded(with_tensors(ast.literal_eval(text), xs))
    return operation, operation.signature.bind(tuple(args), kwargs)


def _body(xs: list[torch.Tensor], reference: str, text: str) -> list[torch.Tensor]:
    operation, bound = _bound(xs, reference, text)
    ys = Outputs(operation, run_body(operation, bound)[0]).flat
    return [y.clone() for y in ys]  # an operator returns none of its arguments


def _differentiable(
    xs: list[torch.Tensor], reference: str, text: str
) -> list[torch.Tensor]:
    """The operation with its rule; but while a graph is exported, the operator."""
    if is_transformed():
        raise UnsupportedOperationError(
            "a program that was exported with operations in it is differentiated by "
            "autograd, not by torch.func: use y.backward() or torch.autograd.grad"
        )
    is_plain = all(type(x) in (torch.Tensor, torch.nn.Parameter) for x in xs)
    is_compiled = is_traced()
    if is_exporting() or not (is_plain or is_compiled):
        with below_autograd():
            return torch.ops.gradsmith.apply(xs, reference, text)
    from . import call

    outputs = call(*_bound(xs, reference, text))
    return [y for y in trees.leaves(outputs) if isinstance(y, torch.Tensor)]


_library.impl("apply", _body, "CompositeExplicitAutograd")
_library.impl("apply", _differentiable, "Autograd")
torch.library.register_fake("gradsmith::apply", _body, lib=_library)
