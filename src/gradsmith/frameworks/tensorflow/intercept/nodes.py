"""The nodes of a graph, run one by one, and those of the functions that they call."""

# pyright: reportAttributeAccessIssue=false
# (pywrap_tfe has no source)

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, cast
from weakref import WeakSet

import tensorflow as tf

from ....core.errors import GradsmithError
from ....core.patching import patched
from ..._intercept import ProcessWide, cache_key, is_intercepted, note_call
from ..private import (
    TensorShapeProto,
    context,
    execute,
    function_context,
    function_def_to_graph,
    operation_builder,
    ops,
    pywrap_tfe,
    traced_calls_by,
    variable_accessed,
)

_CALLS = {"PartitionedCall", "StatefulPartitionedCall"}
_BRANCHES = {"If", "StatelessIf"}
_LOOPS = {"While", "StatelessWhile"}
_INNER = ("f", "then_branch", "else_branch", "cond", "body")


# The names that a tape, and tf.gradients, give to the nodes of a gradient
_BACKWARD = re.compile(r"(^|/)(gradient_tape|gradients(_\d+)?/.*_grad)/")


def kinds_in(graph: Any) -> set[str]:
    """The types of the operations in a graph and in all that it calls."""
    return {node.type for node in _nodes_in(graph)}


def has_gradient_in(graph: Any) -> bool:
    """Whether a gradient was computed while a graph, or what it calls, was built."""
    return any(_BACKWARD.search(node.name) for node in _nodes_in(graph))


def _nodes_in(graph: Any) -> Iterator[Any]:
    graphs, seen = [graph], set()
    while graphs:
        for node in graphs.pop().get_operations():
            yield node
            for name in _inner_names(node):
                if name not in seen:
                    seen.add(name)
                    graphs.append(_graph(name))


def _inner_names(node: Any) -> Iterator[str]:
    if node.type in _CALLS | _BRANCHES | _LOOPS:
        for attr in _INNER:
            if attr in node.node_def.attr:
                yield node.node_def.attr[attr].func.name


@lru_cache(maxsize=256)
def _graph(name: str) -> Any:
    functions: Any = context.context()
    definition = functions.get_function_def(name)
    return function_def_to_graph(definition)


def run(graph: Any, args: Sequence[Any]) -> list[Any]:
    """The outputs of a graph for its inputs."""
    values = dict(zip([x.name for x in graph.inputs], args, strict=True))
    waiting = [node for node in graph.get_operations() if node.type != "Placeholder"]
    while waiting:  # a node may come before its inputs: gradients add some to loops
        later = []
        for node in waiting:
            if all(x.name in values for x in node.inputs):
                ys = _run_node(node, [values[x.name] for x in node.inputs])
                values.update(zip([y.name for y in node.outputs], ys, strict=True))
            else:
                later.append(node)
        if len(later) == len(waiting):
            raise GradsmithError(
                f"{later[0].name!r} in the traced function {graph.name!r} can't be run "
                "by itself\n  what to do: override the function as a whole"
            )
        waiting = later
    return [values[y.name] for y in graph.outputs]


def _run_node(node: Any, xs: list[Any]) -> Sequence[Any]:
    inner = lambda attr: _graph(node.node_def.attr[attr].func.name)
    if node.type == "NoOp":
        return []
    if node.type == "Const":
        return [tf.constant(tf.make_ndarray(node.get_attr("value")))]
    if node.type in _CALLS:
        return run(inner("f"), xs)
    if node.type in _BRANCHES:
        then, other = inner("then_branch"), inner("else_branch")
        return tf.cond(xs[0], lambda: run(then, xs[1:]), lambda: run(other, xs[1:]))
    if node.type in _LOOPS:
        cond, body = inner("cond"), inner("body")
        shapes = [y.shape for y in body.outputs]
        going = lambda *xs: run(cond, xs)[0]
        return tf.while_loop(going, lambda *xs: run(body, xs), xs, shapes)
    if "_gradient_op_type" in node.node_def.attr:
        return _with_own_gradient(node, xs)
    return _run_operation(node, xs)


def _with_own_gradient(node: Any, xs: list[Any]) -> Sequence[Any]:
    """A custom gradient inside of the model stays what it is."""
    gradient: Any = ops.get_gradient_function(node)

    @tf.custom_gradient
    def custom(*xs: Any) -> Any:
        return _run_operation(node, xs), lambda *dys: gradient(node, *dys)

    return custom(*xs)


def _run_operation(node: Any, xs: Sequence[Any]) -> list[Any]:
    """As the functions do that TensorFlow generates, by the names of the definition."""
    definition, rest, inputs = node.op_def, list(xs), {}
    inferred = set()  # attributes that follow from the inputs
    for arg in definition.input_arg:
        several = arg.number_attr or arg.type_list_attr
        inferred |= {arg.type_attr, arg.number_attr, arg.type_list_attr}
        if not several:
            inputs[arg.name] = rest.pop(0)
            continue
        size = node.get_attr(several)
        n = size if arg.number_attr else len(size)
        inputs[arg.name], rest = rest[:n], rest[n:]
    names = [attr.name for attr in definition.attr if attr.name not in inferred]
    attrs = {name: _plain(node.get_attr(name)) for name in names}
    if not tf.executing_eagerly():
        return _put_into_graph(node.type, inputs, attrs)
    pairs = [each for pair in attrs.items() for each in pair]
    ys = pywrap_tfe.TFE_Py_FastPathExecute(
        context.context(), node.type, None, *inputs.values(), *pairs
    )
    return [] if ys is None else list(ys) if isinstance(ys, (tuple, list)) else [ys]


def _put_into_graph(kind: str, inputs: dict[str, Any], attrs: dict[str, Any]) -> Any:
    *_, node, ys = operation_builder()(kind, **inputs, **attrs)
    if ys and execute.must_record_gradient():
        pairs = [(attr.name, node.get_attr(attr.name)) for attr in node.op_def.attr]
        flat = tuple(each for pair in pairs for each in pair)
        execute.record_gradient(kind, node.inputs, flat, ys)
    return list(ys)


def _plain(value: Any) -> Any:
    is_shape = isinstance(value, TensorShapeProto)
    return tf.TensorShape(cast(Any, value)) if is_shape else value


# --- functions that were traced before: concrete ones, and those of a loaded SavedModel
#
# Their Python is gone. If a target is in their graph, its operations are run one by one
# instead, and each can be changed as any other.


# Graphs in which something was changed when they were built
_changed: WeakSet[Any] = WeakSet()


def note_changed(graph: Any) -> None:
    """A call was changed while this graph, and those around it, were built."""
    while graph is not None:
        _changed.add(graph)
        graph = getattr(graph, "outer_graph", None)


def _computed_before(function: Any, kind: str) -> GradsmithError:
    return GradsmithError(
        f"{kind} can't be changed in the traced function {function.graph.name!r}: it "
        "also computes a gradient, built when it was traced, which can't change\n"
        "  what to do: call the Python function that it was traced from; or trace (and "
        "save) the function without its gradient, and compute that in the scope"
    )


def _intercepting(theirs: Any) -> Any:
    def call(self: Any, tensor_inputs: Any, captured_inputs: Any) -> Any:
        kinds = set() if self.graph in _changed else kinds_in(self.graph)
        due = [kind for kind in kinds if is_intercepted(("tensorflow", kind))]
        if not due:
            for kind in kinds:
                note_call(kind)
            return theirs(self, tensor_inputs, captured_inputs)
        if has_gradient_in(self.graph) or any(f"{kind}Grad" in kinds for kind in due):
            raise _computed_before(self, due[0])
        for variable in self.graph.variables:  # tapes that watch variables are told
            variable_accessed(variable)
        flat = run(self.graph, [*tensor_inputs, *captured_inputs])
        return self.function_type.pack_output(flat)

    return call


@ProcessWide
@contextmanager
def traced_functions() -> Iterator[None]:
    """Calls of traced functions; what is traced inside stays inside."""
    make = function_context.make_function_context

    def function_key(scope_type: Any = None) -> Any:
        within = cache_key()
        return make((scope_type, within) if within else scope_type)

    with (
        traced_calls_by(_intercepting),
        patched(function_context, make_function_context=function_key),
    ):
        yield
