"""TensorFlow's tensors as the contract sees them, and what counts as one."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from ....core import trees
from ....core.arrays import framework_of
from ....core.cotangent import Spec
from ....core.errors import GradientContractError, GradsmithError
from ....core.specs import AnySpec, FrameworkSpec
from ....operations.application import OutputSpecs
from ..._dtypes import OtherDtype
from ..private import EagerTensor, SymbolicTensor, shape_of

_FLOATING = {
    tf.float16,
    tf.bfloat16,
    tf.float32,
    tf.float64,
    tf.complex64,
    tf.complex128,
}


_NUMBERS: Any = (np.ndarray, np.generic, float, complex)


def _numpy_dtype(dtype: Any) -> Any:
    try:
        found = np.dtype(dtype.as_numpy_dtype)
    except (TypeError, KeyError):
        return OtherDtype(dtype.name, "-")
    differentiable = found.kind in "fcOV"  # as the contract reads it
    if differentiable == (dtype in _FLOATING):
        return found
    return OtherDtype(dtype.name, "-")


_numpy_dtypes: dict[Any, Any] = {}


class TensorSpec(FrameworkSpec):
    """The shape (None where it is open) and dtype of a tensor."""

    __slots__ = ("native",)

    def __init__(self, x: Any) -> None:
        dtype = self.native = x.dtype
        try:
            self.dtype = _numpy_dtypes[dtype]
        except KeyError:
            self.dtype = _numpy_dtypes[dtype] = _numpy_dtype(dtype)
        self.shape = shape_of(x)

    def describes(self, x: Any) -> bool:
        if type(x) is not EagerTensor and type(x) is not SymbolicTensor:
            return False
        return x.dtype is self.native and shape_of(x) == self.shape

    def ones(self) -> Any:
        return tf.ones(self.shape, self.native)


def describe(x: Any) -> AnySpec:
    """The spec of anything that counts as TensorFlow's array."""
    if type(x) is EagerTensor or type(x) is SymbolicTensor:
        return TensorSpec(x)
    rank = x.shape.rank
    shape: Any = None if rank is None else tuple(x.shape)
    dtype = tf.as_dtype(x.dtype)
    return Spec(shape, _numpy_dtypes.setdefault(dtype, _numpy_dtype(dtype)))


def is_floating(x: Any) -> bool:
    """Whether a tensor has a gradient."""
    return x.dtype in _FLOATING


def is_known(spec: TensorSpec) -> bool:
    """Whether no axis is open."""
    return spec.shape is not None and None not in spec.shape


def specs_of(outputs: Any) -> OutputSpecs:
    """The specs of outputs; those without a gradient have none."""
    if type(outputs) is EagerTensor:
        spec = TensorSpec(outputs)
        return OutputSpecs(spec, [spec])
    flat: list[Any] = []

    def spec_of(y: Any) -> Any:
        if not has_gradient(y):
            return None
        flat.append(TensorSpec(y))
        return flat[-1]

    return OutputSpecs(trees.map(spec_of, outputs), flat)


def has_gradient(y: Any) -> bool:
    """Whether an output is a tensor that can be varied."""
    return isinstance(y, tf.Tensor) and is_floating(y)


def as_tensor(x: Any, operation: str) -> Any:
    """An argument as a tensor; a variable is read, so that it gets its gradient."""
    if isinstance(x, (tf.Tensor, tf.Variable, tf.IndexedSlices)):
        return tf.convert_to_tensor(x)
    raise _not_dense(f"operation {operation!r} was given", x)


def as_output(y: Any, operation: str) -> Any:
    """An output as a tensor, if it is an array or a number with a gradient."""
    if type(y) is EagerTensor or type(y) is SymbolicTensor:
        return y
    if isinstance(y, _NUMBERS):
        return tf.convert_to_tensor(y)
    if framework_of(y) != "tensorflow":
        return y
    if isinstance(y, (tf.Tensor, tf.Variable, tf.IndexedSlices)):
        return tf.convert_to_tensor(y)
    raise _not_dense(f"operation {operation!r} returned", y)


def dense(dx: Any, operation: str) -> Any:
    """A gradient or tangent as a tensor: a sum over some rows is spread out."""
    if type(dx) is EagerTensor or type(dx) is SymbolicTensor:
        return dx
    if isinstance(dx, (tf.SparseTensor, tf.RaggedTensor)):
        error = _not_dense(f"a rule of operation {operation!r} returned", dx)
        raise GradientContractError(str(error))
    return tf.convert_to_tensor(dx)


def _not_dense(who: str, x: Any) -> GradsmithError:
    way_out = {
        "RaggedTensor": "pass x.flat_values and x.row_splits, or x.to_tensor()",
        "SparseTensor": "pass x.indices and x.values, or tf.sparse.to_dense(x)",
    }
    name = type(x).__name__
    return GradsmithError(
        f"{who} a {name}, which is more than one tensor\n"
        "  expected: tf.Tensor or tf.Variable\n"
        f"  what to do: {way_out.get(name, 'pass its parts as tensors')}"
    )
