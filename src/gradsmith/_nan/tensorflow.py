"""TensorFlow: each eager operation is told of, and each gradient function."""

# pyright: reportAttributeAccessIssue=false
# (where these names come from is not there when the code is checked)

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import backprop
from tensorflow.python.framework import op_callbacks

from .. import _tree
from .._subject import is_floating
from .model import Result
from .places import Place, place_here
from .values import is_bad
from .watch import Call, Seen, Watch

version = tf.__version__
WHERE = "tf.where"
_CHOOSERS = {"Select", "SelectV2", "Maximum", "Minimum", "ClipByValue", "DynamicStitch"}
_ELEMENTWISE = {
    "Acos", "Acosh", "AddV2", "Asin", "Asinh", "Atan", "Atanh", "Cos", "Cosh", "Div",
    "DivNoNan", "Erf", "Erfinv", "Exp", "Expm1", "Log", "Log1p", "Mul", "Neg", "Pow",
    "RealDiv", "Reciprocal", "Rsqrt", "SelectV2", "Sigmoid", "Sin", "Sinh", "Softplus",
    "Sqrt", "Square", "Sub", "Tan", "Tanh", "Xlogy",
}  # fmt: skip


def array(x: Any) -> Any:
    return x if isinstance(x, (tf.Tensor, tf.Variable)) else tf.constant(x)


def numpy(x: Any) -> np.ndarray | None:
    """Tensors of floating numbers; nothing of what can't be NaN."""
    if isinstance(x, tf.IndexedSlices):
        x = x.values
    if not (hasattr(x, "numpy") and is_floating(x)):
        return None
    x = x.numpy()
    return x if x.dtype.kind in "fc" else np.asarray(x, np.float32)  # bfloat16


def key(x: Any) -> Any:
    x = x.values if isinstance(x, tf.IndexedSlices) else x
    return getattr(x, "_id", None) or id(x)


def look(fn: Any, args: Any, kwargs: Any, named: Sequence[tuple[str, Any]]) -> Any:
    """Run a function and its backward pass under a watch."""
    watch = Watch(numpy)
    for name, x in named:
        watch.given(name, x, key(x))
    eye = _Eye(watch)
    with eye.open():
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x for _, x in named])
            returned = fn(*args, **kwargs)
        with eye.closed():
            ys = [*_tree.leaves_with_names(returned, "the value")]
            found = [_result(watch, name, y) for name, y in ys]
        results = [each for each in found if each is not None]
        if results:
            return watch, results, []
        targets = [y for _, y in ys if is_floating(y) and isinstance(y, tf.Tensor)]
        return watch, *_backward(eye, tape, targets, named)


def _result(watch: Watch, name: str, x: Any) -> Result | None:
    array = numpy(x)
    if array is None or not is_bad(array):
        return None
    kind = "nan" if np.any(np.isnan(array)) else "inf"
    return Result(name, kind, watch.origin_of(key(x)))


def _backward(eye: _Eye, tape: Any, targets: Any, named: Any) -> Any:
    known = {id(x) for _, x in named}
    sources = [*named]
    sources += [(v.name, v) for v in tape.watched_variables() if id(v) not in known]
    eye.phase = "backward"
    gradients = tape.gradient(targets, [x for _, x in sources])
    if all(dx is None for dx in gradients):
        return [], ["the value does not depend on the inputs: no gradient to look at"]
    with eye.closed():
        found = [
            _result(eye.watch, f"the gradient of {name}", dx)
            for (name, _), dx in zip(sources, gradients, strict=True)
        ]
    return [each for each in found if each is not None], []


class _Eye:
    """Sees the operations of this thread, and tells a watch."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.phase = "forward"
        self.busy = False
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
        with self.closed():
            name = kind.decode() if isinstance(kind, bytes) else str(kind)
            names = ["x"] if len(inputs) == 1 else [f"x{i + 1}" for i in range(9)]
            pairs = zip(names, inputs, strict=False)
            call = Call(
                name, self.phase, self._place(),
                [Seen(n, x, key(x)) for n, x in pairs],
                [Seen("y", y, key(y)) for y in outputs],
                name in _ELEMENTWISE, name in _CHOOSERS,
            )  # fmt: skip
            self.calls[id(attrs)] = (attrs, call)
            self.watch.saw(call)

    def _place(self) -> Place | None:
        """In the backward pass only a rule's own lines count: who called us did not."""
        if self.phase == "forward":
            return place_here()
        return place_here(within=[_backward.__code__])

    def gradient(
        self, name: str, attrs: Any, n: int, inputs: Any, outputs: Any, dys: Any, *rest: Any
    ) -> Any:
        """The gradient of an operation, as TensorFlow computes it."""
        self.watch.enter()
        dxs = backprop._gradient_function(name, attrs, n, inputs, outputs, dys, *rest)
        call = self.calls[id(attrs)][1] if id(attrs) in self.calls else None
        with self.closed():
            ins = [Seen("dy", dy, key(dy)) for dy in dys if dy is not None]
            kept = [*call.ins, *call.outs] if call is not None else []
            outs = [Seen("dx", dx, key(dx)) for dx in dxs if dx is not None]
            self.watch.saw(
                Call(
                    name, "backward", call and call.place, [*ins, *kept], outs,
                    name in _ELEMENTWISE, name in _CHOOSERS, whole=True,
                )  # fmt: skip
            )
        return dxs
