"""Custom gradients in Python: write an operation with its gradient once.

The public surface is this file; modules that start with an underscore are private.
"""

from typing import TYPE_CHECKING

from . import _operators, _scipy_hook, optimizers  # noqa: F401  (tensors get theirs)
from ._contract import not_differentiable, zero
from ._define import custom_gradient, operation, with_gradient
from ._errors import (
    GradientContractError,
    GradsmithError,
    NotDifferentiableError,
    TapeError,
    UnsupportedOperationError,
)
from ._forward import ForwardAccumulator
from ._gradient_tape import GradientTape
from ._module import Module
from ._operation import Operation
from ._pool import release_memory
from ._portable import stop_gradient, unbroadcast
from ._spec import spec
from ._tensor import Tensor, Variable, constant
from ._transforms import (
    grad,
    hessian,
    hvp,
    jacobian,
    jvp,
    value_and_grad,
    vjp,
)
from ._unconnected import UnconnectedGradients

__version__ = "0.1.0"

_scipy_hook.install()

if TYPE_CHECKING:
    from . import ops
    from ._audit import audit
    from ._check import assert_gradients, check
    from ._checkpoint import checkpoint, checkpoint_scan
    from ._examples import example
    from ._memory import memory
    from ._nan import find_nan
    from ._override import override
    from ._python_op import python_op
    from ._survival import survival_table, survives

# Loaded when they are first asked for.
_LAZY = {
    "assert_gradients": "_check",
    "audit": "_audit",
    "check": "_check",
    "checkpoint": "_checkpoint",
    "checkpoint_scan": "_checkpoint",
    "example": "_examples",
    "find_nan": "_nan",
    "override": "_override",
    "ops": "ops",
    "memory": "_memory",
    "python_op": "_python_op",
    "survival_table": "_survival",
    "survives": "_survival",
}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f".{_LAZY[name]}", __name__)
    return module if name == "ops" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})


__all__ = [
    "ForwardAccumulator",
    "GradientContractError",
    "GradientTape",
    "GradsmithError",
    "Module",
    "NotDifferentiableError",
    "Operation",
    "TapeError",
    "Tensor",
    "UnconnectedGradients",
    "UnsupportedOperationError",
    "Variable",
    "assert_gradients",
    "audit",
    "check",
    "checkpoint",
    "checkpoint_scan",
    "constant",
    "custom_gradient",
    "example",
    "find_nan",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "memory",
    "not_differentiable",
    "operation",
    "ops",
    "optimizers",
    "override",
    "python_op",
    "release_memory",
    "spec",
    "stop_gradient",
    "survival_table",
    "survives",
    "unbroadcast",
    "value_and_grad",
    "vjp",
    "with_gradient",
    "zero",
]
