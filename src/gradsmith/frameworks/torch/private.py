"""What is used of PyTorch that it does not promise to keep."""

from __future__ import annotations

from typing import Any

import torch
from torch._functorch.pyfunctorch import (
    retrieve_all_functorch_interpreters,
    retrieve_current_functorch_interpreter,
)
from torch._guards import TracingContext
from torch._library.custom_ops import OPDEFS, CustomOpDef
from torch.autograd import forward_ad
from torch.utils._python_dispatch import TorchDispatchMode as TorchDispatchMode

_C: Any = torch._C
functorch: Any = _C._functorch  # what torch.func wraps tensors in
TransformType = functorch.TransformType
transforms = retrieve_all_functorch_interpreters  # outermost first
innermost_transform = retrieve_current_functorch_interpreter
_autograd: Any = torch.autograd
_compiler: Any = torch.compiler

is_transformed = _C._are_functorch_transforms_active  # by torch.func
is_scripting = _C._get_tracing_state  # torch.jit.trace: None if it is not at work
is_alias = _C._is_alias_of  # whether two tensors see the same memory
is_any_autocast = _C._is_any_autocast_enabled
below_autograd = _C._AutoDispatchBelowAutograd
below_transforms = _C._DisableFuncTorch
forward_mode = forward_ad._set_fwd_grad_enabled
next_node_number = _autograd._get_sequence_nr  # of this thread
saved_tensors_hooks = _C._autograd._top_saved_tensors_default_hooks
running_node = _C._current_autograd_node  # on the way back; None elsewhere
TensorBase = _C.TensorBase  # the class of a tensor's methods that are written in C
DisableTorchFunction = _C.DisableTorchFunction
schemas_of = _C._jit_get_schemas_for_operator
keeps_graph = _C._autograd._get_current_graph_task_keep_graph


def accelerator() -> str:
    """The kind of the device beside the CPU."""
    return _C._get_accelerator().type


def is_in_mode() -> bool:
    """Whether calls are recorded or tried out (by compilers, export, make_fx)."""
    return _C._len_torch_dispatch_stack() > 0


def is_traced() -> bool:
    """Whether Dynamo, or a stage of torch.compile behind it, is at work."""
    return TracingContext.try_get() is not None


def is_exporting() -> bool:
    """Whether torch.export is at work."""
    # In PyTorch 2.11 the function is True in all that Dynamo traces.
    if hasattr(_compiler, "_is_exporting_flag"):
        return _compiler._is_exporting_flag
    return _compiler.is_exporting()


def guards_context() -> Any:
    """What holds the guards that Dynamo has collected; None if it is not at work."""
    return getattr(TracingContext.try_get(), "guards_context", None)


def has_forward_level() -> bool:
    """Whether forward mode is on, outside of torch.func."""
    return forward_ad._current_level >= 0


def apply_of(function: type[torch.autograd.Function]) -> Any:
    """`apply` without the Python around it, which serves torch.func: 1.6 us less."""
    base: Any = super(torch.autograd.Function, function)
    backward: Any = function.backward
    function._backward_cls.apply = backward  # what is called on the way back
    return base.apply


def vjp(fn: Any, *xs: Any) -> tuple[Any, Any]:
    """The value of a function and its pullback."""
    found: Any = torch.func.vjp(fn, *xs)
    return found


def is_operator(op: Any) -> bool:
    """Whether it is of `torch.ops`."""
    return isinstance(op, torch._ops.OpOverload | torch._ops.OpOverloadPacket)


def custom_op_of(op: Any) -> CustomOpDef | None:
    """The custom_op behind `torch.ops.library.name`, if there is one."""
    return OPDEFS.get(getattr(op, "_qualified_op_name", None) or op.name())


def uncompiled(module: Any) -> Any:
    """What `torch.compile` was given, whose own call nobody makes; else the module."""
    compiled = isinstance(module, torch._dynamo.OptimizedModule)
    return module._orig_mod if compiled else module
