"""What is used of PyTorch that it does not promise to keep."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch._functorch.autograd_function import (
    autograd_function_apply as function_apply,
)
from torch._functorch.pyfunctorch import (
    retrieve_all_functorch_interpreters,
    retrieve_current_functorch_interpreter,
)
from torch._guards import TracingContext
from torch._library import autograd as library_autograd
from torch._library.custom_ops import OPDEFS, CustomOpDef
from torch.autograd import forward_ad
from torch.nn.utils import stateless
from torch.utils._python_dispatch import TorchDispatchMode as TorchDispatchMode

from ...core.patching import patched

_C: Any = torch._C
functorch: Any = _C._functorch  # what torch.func wraps tensors in
TransformType = functorch.TransformType
transforms = retrieve_all_functorch_interpreters  # outermost first
innermost_transform = retrieve_current_functorch_interpreter
is_functional: Any = getattr(torch, "_is_functional_tensor")  # noqa: B009
_autograd: Any = torch.autograd
_compiler: Any = torch.compiler

is_transformed = _C._are_functorch_transforms_active  # by torch.func
is_scripting = _C._get_tracing_state  # torch.jit.trace: None if it is not at work
is_alias = _C._is_alias_of  # whether two tensors see the same memory
is_any_autocast = _C._is_any_autocast_enabled
is_batched = functorch.is_legacy_batchedtensor  # by is_grads_batched=True
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
reparametrized = stateless._reparametrize_module  # a scope, as functional_call's


def _empty_on_cpu(
    shape: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype
) -> torch.Tensor:
    return torch.empty_strided(shape, strides, dtype=dtype)


# Memory as the code that Inductor writes asks for it: 0.5 us, and 1.6 by `torch.empty`
empty_on_cpu: Callable[..., torch.Tensor] = getattr(
    getattr(_C._dynamo, "guards", None), "_empty_strided_cpu", _empty_on_cpu
)


def call_directly(operators: dict[str, Callable[..., Any]]) -> None:
    """Let the code that Inductor writes call functions in place of operators.

    To dispatch an operator takes 6 us. A release that can't do so calls the operator.
    """
    if "torch._inductor.codegen.wrapper" not in sys.modules:
        return
    try:
        from torch._inductor.codegen import custom_extern_kernel_codegen as custom
        from torch._inductor.virtualized import V

        known, make = custom.CUSTOM_EXTERN_KERNEL_CODEGEN, custom.CustomCodegen
    except (ImportError, AttributeError):
        return
    for name, function in operators.items():
        module, called = function.__module__, function.__name__

        def write(
            node: Any, line: Any, module: str = module, called: str = called
        ) -> None:
            own = f"gradsmith_{called}"
            imported = f"from {module} import {called} as {own}"
            V.graph.wrapper_code.add_import_once(imported)
            for each in getattr(node, "outputs", ()):  # to look at each takes 0.3 us
                each.skip_size_stride_alignment_checks = True
            args = ", ".join([*node.codegen_args(), *node.codegen_kwargs()])
            line(f"{node.get_name()} = {own}({args})")

        known.setdefault(name, make(python=write))


def is_for_cpp() -> bool:
    """Whether Inductor writes C++ (`cpp_wrapper`), as far as it is loaded.

    Calls of operators that return a list of one tensor crash there.
    """
    config = sys.modules.get("torch._inductor.config")
    return bool(getattr(config, "cpp_wrapper", False))


def package_of_caller() -> str:
    """The package of the code that called the function that asks."""
    return str(sys._getframe(2).f_globals.get("__name__")).partition(".")[0]


def guard_of(tensors: Sequence[torch.Tensor]) -> Callable[..., bool]:
    """A function of as many tensors that tells whether they are like these.

    That is of the same class, dtype, device, shape, strides and `requires_grad`, and
    dispatched in the same way: also nothing of torch.func, autocast, inference mode or
    a dispatch mode is on that was not when this was called. It is what compiled code is
    guarded by. 0.08 us for one tensor. A release that has no such guard knows no call
    like another.
    """
    try:
        return _C._dynamo.guards.TensorGuards(
            *tensors,
            dynamic_dims_sizes=[[*x.shape] for x in tensors],
            dynamic_dims_strides=[[*x.stride()] for x in tensors],
        ).check
    except (AttributeError, TypeError):
        return lambda *_: False


def number_of(node: Any) -> int:
    """Nodes of a thread are numbered in the order in which they are made."""
    return node._sequence_nr()


def is_mutable(op: Any) -> bool:
    """Whether an operation writes into its arguments."""
    return op._schema.is_mutable


def is_view(x: torch.Tensor) -> bool:
    return x._is_view()


def buffers_in(module: torch.nn.Module) -> dict[str, torch.Tensor | None]:
    """A module's own buffers by name: the dict itself, which may be written into."""
    return module._buffers


def batched(x: Any, axis: Any, level: int) -> Any:
    """A tensor with a batch at a level of torch.func.vmap."""
    return _C._functorch._add_batch_dim(x, axis, level)


def accelerator() -> str:
    """The kind of the device beside the CPU."""
    return _C._get_accelerator().type


def is_in_mode() -> bool:
    """Whether calls are recorded or tried out (by compilers, export, make_fx)."""
    return _C._len_torch_dispatch_stack() > 0


def is_traced() -> bool:
    """Whether Dynamo, or a stage of torch.compile behind it, is at work."""
    return TracingContext.try_get() is not None


def is_static(x: float) -> bool:
    """Whether Dynamo, which traces the call, takes a number for a constant.

    It does not with one that changed since the last call. An older release can't tell.
    """
    from torch.fx.experimental import symbolic_shapes

    has_static_value = getattr(symbolic_shapes, "has_static_value", None)
    return has_static_value is None or has_static_value(x)


def is_exporting() -> bool:
    """Whether torch.export is at work."""
    # In PyTorch 2.11 the function is True in all that Dynamo traces.
    if hasattr(_compiler, "_is_exporting_flag"):
        return _compiler._is_exporting_flag
    return _compiler.is_exporting()


def guards_context() -> Any:
    """What holds the guards that Dynamo has collected; None if it is not at work."""
    return getattr(TracingContext.try_get(), "guards_context", None)


def watch_saved() -> None:
    """Let the Function that Dynamo traced last watch all that it saves for changes.

    By itself it watches what is given to `save_for_backward` alone.
    """
    try:
        output = _dynamo_output()
    except AttributeError:
        return  # nothing is traced: a graph broke before this
    nodes = [n for n in output.graph.nodes if n.target is function_apply]
    if not nodes:
        return  # or after the Function, which ran by itself
    node = nodes[-1]
    if "saved_for_backward_idx" in node.kwargs:  # older PyTorch watches everything
        backward = output.nn_modules[node.args[1].target].graph
        saved = range(len(backward.find_nodes(op="placeholder")))  # or fewer
        node.kwargs = {**node.kwargs, "saved_for_backward_idx": list(saved)}


def traced_versions() -> tuple[int, ...]:
    """How often each input of the function that Dynamo traces was changed in place.

    What the function turns out to capture is added at the end.
    """
    inputs = _dynamo_output().graph.find_nodes(op="placeholder")
    values = [node.meta["example_value"] for node in inputs]
    return tuple(x._version for x in values if isinstance(x, torch.Tensor))


def skip(function: FunctionType) -> None:
    """Keep Dynamo from compiling a function, if Dynamo is there."""
    eval_frame: Any = sys.modules.get("torch._dynamo.eval_frame")
    if eval_frame is not None:
        eval_frame.skip_code(function.__code__)


def never_compile(module: ModuleType) -> None:
    """Keep Dynamo from compiling a module's functions where their caller broke a graph.

    What they call is compiled. They are traced as before where a caller is.
    """
    from torch._dynamo.eval_frame import skip_code

    classes = [c for c in vars(module).values() if isinstance(c, type)]
    for place in (module, *(c for c in classes if c.__module__ == module.__name__)):
        for value in vars(place).values():
            function = getattr(value, "__func__", value)  # of a static method
            is_function = isinstance(function, FunctionType)
            if is_function and function.__module__ == module.__name__:
                skip_code(function.__code__)


def _dynamo_output() -> Any:
    from torch._dynamo.symbolic_convert import InstructionTranslator

    return InstructionTranslator.current_tx().output


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


@contextmanager
def unscripted() -> Iterator[None]:
    """Without `torch.jit.trace`, for which even a shape is an operation."""
    tracing = _C._get_tracing_state()
    _C._set_tracing_state(None)
    try:
        yield
    finally:
        _C._set_tracing_state(tracing)


@contextmanager
def dispatched_unseen() -> Iterator[None]:
    """Nobody who observes PyTorch's operations, or traces them, sees ours."""
    with (
        unscripted(),
        _C._DisableTorchDispatch(),
        _C._DisableFuncTorch(),
        _C.DisableTorchFunction(),
        torch.no_grad(),
    ):
        yield


@contextmanager
def before_custom_ops(see: Callable[..., None]) -> Iterator[None]:
    """Call `see(op, name, definitions, args, kwargs)` before a custom op with a rule.

    Of those that are registered from now on, by whichever name they are called.
    """
    make = library_autograd.make_autograd_impl

    @wraps(make)
    def making(op: Any, info: Any) -> Any:
        impl = make(op, info)

        @wraps(impl)
        def seen(keyset: Any, *args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            if info._backward_fn is not None:
                given = info if isinstance(info, CustomOpDef) else op
                body = getattr(info, "_init_fn", None) or info._backward_fn
                definitions = (body, info._backward_fn)
                see(given, op._schema.name, definitions, args, kwargs)
            return impl(keyset, *args, **kwargs)

        return seen

    with patched(library_autograd, make_autograd_impl=making):
        yield


@contextmanager
def before_traced_calls(see: Callable[[Any, Any], None], kind: type) -> Iterator[None]:
    """Call `see(called, inputs)` for each call that Dynamo traces without making it.

    `called` is the class of an `autograd.Function`, or an object of the given kind.
    `inputs` are `(args, kwargs)` with tensors that have no values, or None if not all
    of them can be told.
    """
    from torch._dynamo.variables import misc, user_defined

    functions, objects = (
        misc.AutogradFunctionVariable,
        user_defined.UserDefinedObjectVariable,
    )
    apply, call = functions.call_apply, objects.call_function

    @wraps(apply)
    def seen_apply(self: Any, tx: Any, args: Any, kwargs: Any) -> Any:
        see(self.fn_cls, _untraced(args, kwargs))
        return apply(self, tx, args, kwargs)

    @wraps(call)
    def seen_call(self: Any, tx: Any, args: Any, kwargs: Any) -> Any:
        if isinstance(self.value, kind):
            see(self.value, _untraced(args, kwargs))
        return call(self, tx, args, kwargs)

    with (
        patched(functions, call_apply=seen_apply),
        patched(objects, call_function=seen_call),
    ):
        yield


def _untraced(args: Any, kwargs: Any) -> Any:
    """The arguments as far as Dynamo knows them."""
    from torch._dynamo import variables as v

    def value(x: Any) -> Any:
        if x.is_tensor():
            return x.as_proxy().node.meta["example_value"]
        if isinstance(x, v.NNModuleVariable | v.UnspecializedNNModuleVariable):
            return x.value
        if isinstance(x, v.TupleVariable | v.ListVariable):
            return x.python_type()(map(value, x.items))
        return x.as_python_constant()

    try:
        return tuple(map(value, args)), {name: value(x) for name, x in kwargs.items()}
    except NotImplementedError:
        return None


CUSTOM_OP_FUNCTIONS = ("_init_fn", "_backward_fn", "_setup_context_fn")


def parts_of_custom_op(op: Any) -> tuple[str, Any, Any]:
    """The name of a custom_op, its body and its rule, or None if it has none."""
    return op._qualname, op._init_fn, op._backward_fn


def custom_op_with(op: Any, rule: Any) -> AbstractContextManager[None]:
    """The context in which a custom_op has another rule."""
    return patched(op, _backward_fn=rule)
