"""TensorFlow's eager operations and gradient functions, as they are run."""

# pyright: reportAttributeAccessIssue=false
# (where these names come from is not there when the code is checked)

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

import tensorflow as tf
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import backprop
from tensorflow.python.framework import op_callbacks

from ...core.places import Place, place_here
from .steps import SUM, Call, seen
from .watch import Watch

_CHOOSERS = {"Select", "SelectV2", "Maximum", "Minimum", "ClipByValue", "DynamicStitch"}
_ELEMENTWISE = {
    "Acos", "Acosh", "AddV2", "Asin", "Asinh", "Atan", "Atanh", "Cos", "Cosh", "Div",
    "DivNoNan", "Erf", "Erfinv", "Exp", "Expm1", "Log", "Log1p", "Mul", "Neg", "Pow",
    "RealDiv", "Reciprocal", "Rsqrt", "SelectV2", "Sigmoid", "Sin", "Sinh", "Softplus",
    "Sqrt", "Square", "Sub", "Tan", "Tanh", "Xlogy",
}  # fmt: skip
# What they call back was seen while they ran.
_CALLBACKS = {"EagerPyFunc", "PyFunc", "PyFuncStateless"}


def key(x: Any) -> Any:
    """By which a tensor is known again."""
    x = x.values if isinstance(x, tf.IndexedSlices) else x
    return getattr(x, "_id", None) or id(x)


class Eye:
    """Sees the operations that are run, and tells a watch.

    `within` is our function that starts the way back: only lines that it called count
    as a rule's.
    """

    def __init__(self, watch: Watch, within: CodeType) -> None:
        self.watch = watch
        self.within = within
        self.phase = "forward"
        self.busy = False
        self.depth = 0  # how many gradient functions are running
        # The tape keeps this very tuple of an operation until its gradient is taken.
        self.calls: dict[int, tuple[Any, Call]] = {}

    @contextmanager
    def open(self) -> Iterator[None]:
        eagerly = tf.config.functions_run_eagerly()
        op_callbacks.add_op_callback(self.operation)
        pywrap_tfe.TFE_Py_RegisterGradientFunction(self.gradient)
        try:
            tf.config.run_functions_eagerly(True)
            yield
        finally:
            tf.config.run_functions_eagerly(eagerly)
            pywrap_tfe.TFE_Py_RegisterGradientFunction(backprop._gradient_function)
            op_callbacks.remove_op_callback(self.operation)

    @contextmanager
    def closed(self) -> Iterator[None]:
        """While we look ourselves: that is no operation of the user's."""
        before, self.busy = self.busy, True
        try:
            yield
        finally:
            self.busy = before

    def operation(
        self, kind: Any, inputs: Any, attrs: Any, outputs: Any, *_: Any, **__: Any
    ) -> None:
        """An operation was run; it is left as it is."""
        if self.busy or any(not hasattr(y, "numpy") for y in outputs):
            return
        place = self._place()
        if place is None and self.depth:
            return  # the gradient function tells of it as a whole
        name = kind.decode() if isinstance(kind, bytes) else str(kind)
        if place is None and name in ("AddN", "AddV2"):
            name = SUM
        ins, outs = seen(inputs, key, "x"), seen(outputs, key, "y")
        facts = name in _ELEMENTWISE, name in _CHOOSERS, name in _CALLBACKS
        call = Call(name, self.phase, place, ins, outs, *facts)
        self.calls[id(attrs)] = (attrs, call)
        with self.closed():
            self.watch.saw(call)

    def _place(self) -> Place | None:
        """In the backward pass only a rule's own lines count: who called us did not."""
        return place_here(within=[self.within] if self.phase == "backward" else [])

    def gradient(self, name: str, attrs: Any, *rest: Any) -> Any:
        """The gradient of an operation, as TensorFlow computes it."""
        _, inputs, outputs, dys, *_ = rest
        self.watch.enter()
        self.depth += 1
        try:
            dxs = backprop._gradient_function(name, attrs, *rest)
        finally:
            self.depth -= 1
        if id(attrs) in self.calls:
            call = self.calls[id(attrs)][1]
            # Of what is not needed nothing is kept.
            kept = [*(call.ins if inputs else ()), *(call.outs if outputs else ())]
            each = dxs if isinstance(dxs, (list, tuple)) else [dxs]
            ins = seen((dy for dy in dys if dy is not None), key, "dy")
            outs = seen((dx for dx in each if dx is not None), key, "dx")
            with self.closed():
                self.watch.saw(call.back([*ins, *kept], outs))
        return dxs
