"""What we use of TensorFlow beside its public interface, and why.

- `record`: telling tapes and accumulators of an operation, with both of its modes;
  `tf.custom_gradient` is made with it, and has no forward mode.
- `forwardprop_util`: tapes in what computes a tangent.
- `pywrap_tfe`: a tape without the 10 us of `tf.GradientTape`, and the question whether
  a value is followed, and by how many.
- `op_callbacks`: which operations run, and which tensors they use.
- `EagerTensor(array, ...)` and `_numpy`: a tensor in the memory of an array, and the
  other way round. Kernels read and write there.
- `context`: the device on which operations run.
- `_gradient_function`: what a tape calls for the gradient of each operation.
- `ops`: eager mode, the graph, the registry of gradients and the tensor classes.
- `_GradientsHelper`: `tf.gradients` through a graph that is not the current one.
- `GraphOrParentsInXlaContext`: whether XLA will compile what is being traced.
- `custom_gradient`: what every function that `tf.custom_gradient` decorated calls,
  whenever that was; `_f`, what it decorated.
- autograph's rules: our code is not for it to rewrite, nor are our errors
  (`ag_pass_through`): it would raise others in their place, without notes.
- `pfor.wrap`: a value of a loop body, as the vectorized loop has it.
- `ag_ctx` and `tf_convert`: a user's function that we call, as autograph rewrites it.
- `Function` and `ConcreteFunction`: which of them run while something is recomputed.
- `Function._lock`, which it keeps where it refuses its arguments.
- the generated modules of stateful operations: what these return is replayed.
- `conversion`: what autograph does not convert.
- `TFE_Py_FastPathExecute`, `_apply_op_helper`, `record_gradient`: how operations run,
  come into a graph and onto a tape; calls are intercepted there.
- `function_context`: the key by which what a `tf.function` has traced is found.
- `function_def_to_graph`: the graph of a function that is called in another.
- `variable_accessed`: telling the tapes that watch variables.
- `Weakref`: how an object that is an argument of a `tf.function` is told from others.
"""

# pyright: reportAttributeAccessIssue=false
# (where these names come from is not there when the code is checked)
# ruff: noqa: F401
# (the other files of this folder take them from here)

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial, wraps
from typing import Any
from weakref import ref

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.tensor_shape_pb2 import TensorShapeProto
from tensorflow.core.function.trace_type.default_types import Weakref
from tensorflow.python import pywrap_tfe
from tensorflow.python.autograph.core import ag_ctx
from tensorflow.python.autograph.core import config as autograph
from tensorflow.python.autograph.impl import conversion as autograph_conversion
from tensorflow.python.autograph.impl.api import tf_convert
from tensorflow.python.eager import (
    backprop,
    context,
    execute,
    forwardprop_util,
    record,
)
from tensorflow.python.eager.polymorphic_function import (
    concrete_function,
    function_context,
    polymorphic_function,
)
from tensorflow.python.framework import (
    op_callbacks,
    op_def_library,
    op_def_registry,
    ops,
)
from tensorflow.python.framework.function_def_to_graph import function_def_to_graph
from tensorflow.python.framework.registry import _TYPE_TAG
from tensorflow.python.ops import (
    control_flow_util,
    custom_gradient,
    gen_array_ops,
    gen_random_ops,
    gen_resource_variable_ops,
    gen_stateful_random_ops,
    gradients_util,
)
from tensorflow.python.ops.parallel_for.pfor import wrap
from tensorflow.python.ops.resource_variable_ops import variable_accessed

from ...core.patching import patched

EagerTensor: Any = ops.EagerTensor
SymbolicTensor: Any = ops.SymbolicTensor
Function: Any = polymorphic_function.Function
ConcreteFunction: Any = concrete_function.ConcreteFunction

executing_eagerly = context.executing_eagerly
could_record = record.could_possibly_record
record_operation = record.record_operation
stop_recording = record.stop_recording
default_graph = ops.get_default_graph
VariableWatcher: Any = record.VariableWatcher

# Called after each operation, with what it was given and what it returned
add_op_callback: Any = op_callbacks.add_op_callback
remove_op_callback: Any = op_callbacks.remove_op_callback


@contextmanager
def after_operations(see: Callable[[str, Any, Any, Any], None]) -> Iterator[None]:
    """Call `see(name, inputs, attributes, outputs)` after each eager operation."""

    def callback(
        kind: Any, xs: Any, attrs: Any, ys: Any, op_name: Any = None, graph: Any = None
    ) -> None:
        if graph is None:
            see(kind.decode() if isinstance(kind, bytes) else str(kind), xs, attrs, ys)

    add_op_callback(callback)
    try:
        yield
    finally:
        remove_op_callback(callback)


@contextmanager
def around_gradients(wrapper: Callable[..., Any]) -> Iterator[None]:
    """Let tapes call `wrapper(compute, name, attributes, ...)` for each gradient."""
    register = pywrap_tfe.TFE_Py_RegisterGradientFunction
    register(partial(wrapper, backprop._gradient_function))
    try:
        yield
    finally:
        register(backprop._gradient_function)


@contextmanager
def before_custom_gradients(see: Callable[[Any, Any, Any], None]) -> Iterator[None]:
    """Call `see(function, args, kwargs)` before each call of a `tf.custom_gradient`."""

    def seeing(call: Any) -> Any:
        @wraps(call)
        def seen(f: Any, args: Any, kwargs: Any) -> Any:
            __tracebackhide__ = True
            see(f, args, kwargs)
            return call(f, args, kwargs)

        return seen

    names = ("_eager_mode_decorator", "_graph_mode_decorator")
    calls = {name: seeing(getattr(custom_gradient, name)) for name in names}
    with patched(custom_gradient, **calls):
        yield


@contextmanager
def functions_run_eagerly() -> Iterator[None]:
    """Run each `tf.function` operation by operation."""
    before = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(before)


# Where an accumulator works out a tangent, it hides what is computed from the tapes
# that were opened later, those in a user's rule among them. This shows it to them, and
# to the accumulator.
tapes_see: Any = forwardprop_util.push_forwardprop_state

# How often what is computed from some tensors may be differentiated: 0, 1, or 2 for
# "more than once". A forward accumulator counts like a tape.
orders_of: Any = pywrap_tfe.TFE_Py_TapeSetPossibleGradientTypes

# The functions of TensorFlow's that compute a gradient, with the same operations
GRADIENT_BUILDERS = {
    backprop._gradient_function.__code__,
    gradients_util._GradientsHelper.__code__,
}


# Whether an accumulator follows any of some tensors: the tangents of those
has_tangents: Any = lambda xs: bool(pywrap_tfe.TFE_Py_PackJVPs(xs)[1])


def runs_on_host(xs: Sequence[Any]) -> bool:
    """Whether tensors are in the memory of this process, and operations run there.

    And nobody is to be told of each operation.
    """
    mine: Any = context.context()
    device = mine.device_name or ("" if mine.num_gpus() else _HOST)
    if device != _HOST or mine.op_callbacks:
        return False
    return all(x.backing_device == _HOST for x in xs)


_HOST = "/job:localhost/replica:0/task:0/device:CPU:0"


def memory_of(x: Any) -> np.ndarray:
    """A tensor on the host as an array in the same memory; a single number is copied.

    It makes no array of a single bfloat16 by itself.
    """
    return np.asarray(x._numpy())


def tensor_of(array: Any) -> Any:
    """An array that nobody writes to any more as a tensor.

    It is in the same memory if that is aligned (`core.pool.aligned`).
    """
    mine: Any = context.context()
    return EagerTensor(array, mine.device_name, None)


def alias(x: Any) -> Any:
    """The same values as another tensor, which nobody follows."""
    if type(x) is EagerTensor:
        return x._copy_to_device(x.device)  # no copy on the same device; 5 us less
    with record.stop_recording():
        return gen_array_ops.identity(x)


class Tape:
    """A persistent tape that follows some tensors, and the variables that are read."""

    __slots__ = ("_tape",)

    def __init__(self, followed: Sequence[Any]) -> None:
        self._tape = pywrap_tfe.TFE_Py_TapeSetNew(True, True)
        for x in followed:
            pywrap_tfe.TFE_Py_TapeWatch(self._tape, x)

    def stop(self) -> None:
        pywrap_tfe.TFE_Py_TapeSetRemove(self._tape)

    def variables(self) -> list[Any]:
        return list(pywrap_tfe.TFE_Py_TapeWatchedVariables(self._tape))

    def gradient(self, ys: Any, xs: Any, dys: Any) -> list[Any]:
        return pywrap_tfe.TFE_Py_TapeGradient(self._tape, ys, xs, dys, None, "none")


def gradients_in_graph(ys: Any, xs: Any, dys: Any, stops: Any) -> list[Any]:
    """The gradients of xs through the graph of ys, up to `stops`."""
    return gradients_util._GradientsHelper(
        ys, xs, grad_ys=dys, stop_gradients=stops, src_graph=ys[0].graph
    )


def outside_of(x: Any) -> Any:
    """What a tensor of a function stands for outside of it, if it was captured.

    Functions that are called capture their variables without telling the tapes.
    """
    pairs = getattr(x.graph, "captures", ())
    return next((outer for outer, inner in pairs if inner is x), x)


def identities(xs: Sequence[Any], gradient_name: str) -> list[Any]:
    """The same tensors as outputs of one operation, whose gradient has a name."""
    override = default_graph().gradient_override_map({"IdentityN": gradient_name})
    with record.stop_recording(), override:
        found: Any = gen_array_ops.identity_n(xs)
    return list(found)


def resolve_gradients_by(find: Any, prefix: str) -> None:
    """Let the registry of gradients ask `find` for names that begin with `prefix`.

    A name that is registered stays for ever, with the graph that its gradient captures.
    """

    class Entries(dict[str, Any]):
        def __contains__(self, name: object) -> bool:
            return super().__contains__(name) or (
                isinstance(name, str)
                and name.startswith(prefix)
                and find(name) is not None
            )

        def __missing__(self, name: str) -> Any:
            found = find(name)
            if found is None:
                raise KeyError(name)
            return {_TYPE_TAG: found}

    registry = ops.gradient_registry
    registry._registry = Entries(registry._registry)


def compiled_by_xla() -> bool:
    return control_flow_util.GraphOrParentsInXlaContext(default_graph())


def leave_alone(module: str) -> None:
    """Keep autograph from rewriting the functions of a module."""
    rules = autograph.CONVERSION_RULES
    autograph.CONVERSION_RULES = (autograph.DoNotConvert(module), *rules)


# Whether autograph converts what is called here
autograph_context: Any = ag_ctx.control_status_ctx


def autographed(fn: Any, context: Any = None) -> Any:
    """A user's function as a `tf.function` that calls it would run it.

    Autograph does not look into our code, and would not come to it by itself.
    """
    if executing_eagerly():
        return fn
    return tf_convert(fn, context or autograph_context())


def without_autograph() -> Any:
    return ag_ctx.ControlStatusCtx(ag_ctx.Status.DISABLED)


def pass_on(error: Any) -> None:
    """Let autograph raise an exception of the user's code as it is."""
    error.ag_pass_through = True


def tracing_type(x: Any) -> Any:
    """What an argument of a `tf.function` is to it: this object and no other."""
    return Weakref(ref(x))


def in_forward_mode() -> bool:
    """Whether a function's gradient is being built to be transposed.

    For a forward accumulator TensorFlow transposes the gradient of a whole graph.
    """
    frame: Any = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_name
        if name == "_jvp_helper" or (
            name == "_build_functions_for_outputs"
            and frame.f_locals.get("input_tangents")
        ):
            return True
        frame = frame.f_back
    return False


_ASSIGNMENTS = [
    "assign_variable_op", "assign_add_variable_op", "assign_sub_variable_op",
    "resource_scatter_update", "resource_scatter_add", "resource_scatter_sub",
]  # fmt: skip


def _operations(module: Any) -> list[str]:
    """The operations of a module: each has a function for eager mode beside it."""
    return [name for name in vars(module) if f"{name}_eager_fallback" in vars(module)]


# The functions that run stateful operations, by their modules
STATEFUL: dict[Any, list[str]] = {
    gen_random_ops: _operations(gen_random_ops),
    gen_stateful_random_ops: _operations(gen_stateful_random_ops),
    gen_resource_variable_ops: _ASSIGNMENTS,
}
variable_operations: Any = gen_resource_variable_ops


def seeds_of_operations() -> Any:
    """What eager operations draw their seeds from; None before the first one."""
    return getattr(context.context(), "_rng", None)


@contextmanager
def global_seed(seed: int) -> Iterator[None]:
    """What operations draw in this context begins at a seed, and then as it was."""
    mine: Any = context.context()
    before = mine._seed, getattr(mine, "_rng", None)
    tf.random.set_seed(seed)
    try:
        yield
    finally:
        mine._seed, mine._rng = before


def shape_of(x: Any) -> Any:
    """As a tuple, without TensorFlow's class for shapes: 1 us less."""
    return x._shape_tuple()


def number_of(op: Any) -> int:
    """Operations of a graph are numbered in the order in which they are made."""
    return op._id


def give_gradient(op: Any, gradient: Callable[..., Any]) -> None:
    op._gradient_function = gradient


def converted_by(loop: Any, x: Any) -> Any:
    """What a tensor of a loop body is in the code for all iterations."""
    return loop.pfor._convert_helper(x)


def call_with_captured(traced: Any, args: list[Any], captured: list[Any]) -> Any:
    """A traced function, with others in the places of the tensors it captured."""
    return traced._call_flat(args, captured)


def around_traced_calls(wrapper: Callable[[Any], Any]) -> None:
    """Let each call of a traced function go through a wrapper, from now on."""
    ConcreteFunction._call_flat = wrapper(ConcreteFunction._call_flat)


def traced_calls_by(wrapper: Callable[[Any], Any]) -> Any:
    """The context in which they go through a wrapper."""
    return patched(ConcreteFunction, _call_flat=wrapper(ConcreteFunction._call_flat))


def copy_of(fn: Any, body: Callable[..., Any]) -> Any:
    """A tf.function with the options of another one."""
    return fn._clone(body)


def is_autographed(fn: Any) -> bool:
    return fn._autograph


def loss_lists(layer: Any) -> Iterator[list[Any]]:
    """The lists in which a Keras layer and those inside of it keep added losses."""
    for each in layer._flatten_layers():
        yield each._losses


def operation_builder() -> Callable[..., Any]:
    """The function that puts an operation into a graph."""
    return op_def_library._apply_op_helper


def built_by(builder: Callable[..., Any]) -> Any:
    """The context in which another function puts operations into graphs."""
    return patched(op_def_library, _apply_op_helper=builder)


def body_of(op: Any) -> Any:
    """What `tf.custom_gradient` decorated; None if it is not that.

    `tf.recompute_grad` names as wrapped what does not return its gradient.
    """
    body = getattr(op, "__wrapped__", None)
    is_custom = type(op).__module__ == custom_gradient.__name__
    return body if is_custom and body is op._f else None


def unlocked(fn: Any) -> Callable[..., Any]:
    """A `tf.function` that other threads can call after it refused its arguments."""

    @wraps(fn.python_function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except Exception:
            with suppress(RuntimeError):  # it is free
                while True:
                    fn._lock.release()
            raise

    return call
