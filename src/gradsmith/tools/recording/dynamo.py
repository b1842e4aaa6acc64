"""What `torch.compile` traces without calling it: Functions and operations of ours."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from torch._dynamo.variables import (
    ListVariable,
    NNModuleVariable,
    TupleVariable,
    UnspecializedNNModuleVariable,
    misc,
    user_defined,
)

from ...operations.operation import Operation
from . import torch as eager
from .hooks import Hooks
from .ours import record_operation
from .recorder import Recorder
from .seen import Constant, Seen


def install(hooks: Hooks, module: Any) -> None:
    function, thing = (
        misc.AutogradFunctionVariable,
        user_defined.UserDefinedObjectVariable,
    )
    recorder = hooks.recorder
    hooks.replace(
        function, "call_apply", lambda call: _around(call, partial(_apply, recorder))
    )
    hooks.replace(
        thing, "call_function", lambda call: _around(call, partial(_ours, recorder))
    )


def _around(call: Any, record: Callable[..., None]) -> Any:
    @wraps(call)
    def recording(self: Any, tx: Any, args: Any, kwargs: Any) -> Any:
        record(self, args, kwargs)
        return call(self, tx, args, kwargs)

    return recording


def _apply(recorder: Recorder, variable: Any, args: Any, kwargs: Any) -> None:
    eager.record_function(recorder, variable.fn_cls, _inputs(args, kwargs), _read)


def _ours(recorder: Recorder, variable: Any, args: Any, kwargs: Any) -> None:
    if isinstance(variable.value, Operation):
        inputs = _inputs(args, kwargs)
        record_operation(recorder, variable.value, inputs, _read, "torch")


def _inputs(args: Any, kwargs: Any) -> Any:
    """The arguments as far as Dynamo knows them; None if not all can be told."""
    try:
        named = {name: _plain(x) for name, x in kwargs.items()}
        return tuple(map(_plain, args)), named
    except NotImplementedError:
        return None


def _plain(x: Any) -> Any:
    """Tensors as they are, which have no values; all else as the suite wrote it."""
    if x.is_tensor():
        return x
    if isinstance(x, NNModuleVariable | UnspecializedNNModuleVariable):
        return Constant(x.value)
    if isinstance(x, TupleVariable | ListVariable):
        return x.python_type()(map(_plain, x.items))
    return Constant(x.as_python_constant())


def _read(x: Any) -> Any:
    if isinstance(x, Constant):
        return x
    seen = eager.read(x.as_proxy().node.meta["example_value"])
    assert seen is not None
    return Seen(seen.shape, seen.dtype, None, seen.asked)
