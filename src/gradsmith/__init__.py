"""Custom gradients in Python: write an operation with its gradient once.

The public surface is this file, `gradsmith.numpy` and `gradsmith.ops`; the modules
behind it may change.
"""

from typing import TYPE_CHECKING

from . import frameworks, rules  # noqa: F401  (they register)
from .core import __version__, operators  # noqa: F401  (tensors get theirs)
from .core.errors import (
    GradientContractError,
    GradientError,
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
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    value_and_grad,
    vjp,
)
from .core.unconnected import UnconnectedGradients
from .operations.contract import not_differentiable, zero
from .operations.define import custom_gradient, operation, with_gradient
from .operations.fusing import PLANNERS, fuse, kernels
from .operations.operation import Operation
from .operations.portable import stop_gradient, unbroadcast
from .operations.spec import spec

if TYPE_CHECKING:
    from . import numpy, ops, optimizers
    from .operations.examples import example
    from .operations.python_op import python_op
    from .program.compile import compile
    from .program.graph import Program
    from .program.trace import trace
    from .tools.audit import Audit, audit
    from .tools.check import CheckReport, Finding, Verdict, assert_gradients, check
    from .tools.checkpoint import checkpoint, checkpoint_scan
    from .tools.memory import MemoryReport, memory
    from .tools.nan import NanReport, find_nan
    from .tools.override import Override, OverrideRecord, override
    from .tools.survival import Survival, SurvivalTable, survival_table, survives

# Loaded when they are first asked for: modules, and what others hold
_MODULES = ("numpy", "ops", "optimizers")
_HOLDERS = {
    "operations.examples": ("example",),
    "operations.python_op": ("python_op",),
    "program.compile": ("compile",),
    "program.graph": ("Program",),
    "program.trace": ("trace",),
    "tools.audit": ("Audit", "audit"),
    "tools.check": ("CheckReport", "Finding", "Verdict", "assert_gradients", "check"),
    "tools.checkpoint": ("checkpoint", "checkpoint_scan"),
    "tools.memory": ("MemoryReport", "memory"),
    "tools.nan": ("NanReport", "find_nan"),
    "tools.override": ("Override", "OverrideRecord", "override"),
    "tools.survival": ("Survival", "SurvivalTable", "survival_table", "survives"),
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _MODULES:
        return import_module(f".{name}", __name__)
    for holder, names in _HOLDERS.items():
        if name in names:
            found = getattr(import_module(f".{holder}", __name__), name)
            globals()[name] = found  # the next one is found without being asked for
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _planner() -> object:
    from .program.fuse import plan_of

    return plan_of


PLANNERS[:] = [_planner]


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


__all__ = [
    "Audit",
    "CheckReport",
    "Finding",
    "ForwardAccumulator",
    "GradientContractError",
    "GradientError",
    "GradientTape",
    "GradsmithError",
    "MemoryReport",
    "Module",
    "NanReport",
    "NotDifferentiableError",
    "Operation",
    "Override",
    "OverrideRecord",
    "Program",
    "Survival",
    "SurvivalTable",
    "TapeError",
    "Tensor",
    "UnconnectedGradients",
    "UnsupportedOperationError",
    "Variable",
    "Verdict",
    "assert_gradients",
    "audit",
    "check",
    "checkpoint",
    "checkpoint_scan",
    "compile",
    "constant",
    "custom_gradient",
    "example",
    "find_nan",
    "fuse",
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "kernels",
    "memory",
    "not_differentiable",
    "numpy",
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
    "trace",
    "unbroadcast",
    "value_and_grad",
    "vjp",
    "with_gradient",
    "zero",
]
