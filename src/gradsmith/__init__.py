"""Custom gradients in Python: write an operation with its gradient once.

The public surface is this file, `gradsmith.numpy` and `gradsmith.ops`; the modules
behind it may change.
"""

from typing import TYPE_CHECKING

from . import frameworks, optimizers, rules  # noqa: F401  (they register)
from .core import operators  # noqa: F401  (tensors get theirs, from the rules)
from .core.errors import (
    GradientContractError,
    GradsmithError,
    NotDifferentiableError,
    TapeError,
    UnsupportedOperationError,
)
from .core.forward import ForwardAccumulator
from .core.gradient_tape import GradientTape
from .core.module import Module
from .core.pool import release_memory
from .core.tensor import Tensor, Variable, constant
from .core.transforms import (
    grad,
    hessian,
    hvp,
    jacobian,
    jvp,
    value_and_grad,
    vjp,
)
from .core.unconnected import UnconnectedGradients
from .operations.contract import not_differentiable, zero
from .operations.define import custom_gradient, operation, with_gradient
from .operations.operation import Operation
from .operations.portable import stop_gradient, unbroadcast
from .operations.spec import spec

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import ops
    from .operations.examples import example
    from .operations.python_op import python_op
    from .tools.audit import audit
    from .tools.check import assert_gradients, check
    from .tools.checkpoint import checkpoint, checkpoint_scan
    from .tools.memory import memory
    from .tools.nan import find_nan
    from .tools.override import override
    from .tools.survival import survival_table, survives

# Loaded when they are first asked for.
_LAZY = {
    "assert_gradients": "tools.check",
    "audit": "tools.audit",
    "check": "tools.check",
    "checkpoint": "tools.checkpoint",
    "checkpoint_scan": "tools.checkpoint",
    "example": "operations.examples",
    "find_nan": "tools.nan",
    "override": "tools.override",
    "ops": "ops",
    "memory": "tools.memory",
    "python_op": "operations.python_op",
    "survival_table": "tools.survival",
    "survives": "tools.survival",
}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f".{_LAZY[name]}", __name__)
    return module if name == "ops" else getattr(module, name)


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]


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
