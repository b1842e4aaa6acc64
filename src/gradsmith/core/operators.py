"""The operators and methods of tensors, made from NumPy's functions."""

from __future__ import annotations

from operator import eq, ge, gt, le, lt, ne
from typing import Any

import numpy as np

from .calls import KNOWN, call, call_function
from .elementwise import SCALARS, call_binary, call_unary, call_with_number
from .foreign import computes_differently, foreign_in, goes_first
from .hooks import FUNCTION
from .rule import RULES, Elementwise, Function, name_of
from .tape import state
from .tensor import Tensor, wrap


def _comparison(ufunc: np.ufunc, run: Any, reflection: str) -> Any:
    """An operator whose result has no gradient."""
    asking, _ = _binary(ufunc, reflection)

    def operator(self: Tensor, other: Any) -> Any:
        known = other.__class__ in KNOWN and not FUNCTION.wrappers
        if not (known and state().private):
            return asking(self, other)
        # Nobody needs to be told: 1.2 us less
        x2 = other.value if isinstance(other, Tensor) else other
        scalars = self.value.__class__ in SCALARS and x2.__class__ in SCALARS
        return wrap((run if scalars else ufunc)(self.value, x2))

    return operator


def _binary(ufunc: np.ufunc, reflection: str) -> tuple[Any, Any]:
    """An operator and its reflection."""
    rule = RULES.get(ufunc)
    if type(rule) is not Elementwise:

        def slow_operator(self: Tensor, other: Any) -> Any:
            if other.__class__ not in KNOWN:
                if goes_first(type(other), reflection):
                    return NotImplemented
                return ufunc(self, other)  # which may ask the other type
            if FUNCTION.wrappers or not isinstance(rule, Function):
                return call(ufunc, (self, other), {})
            return call_function(rule, (self, other), {})  # 0.5 us less

        return slow_operator, lambda self, other: ufunc(other, self)

    # 0.5 us less than through NumPy's dispatch

    def operator(self: Tensor, other: Any) -> Any:
        if FUNCTION.wrappers:
            return call(ufunc, (self, other), {})
        cls = other.__class__
        if cls is float or cls is int:
            return call_with_number(rule, self, (self, other), 0)
        if cls not in KNOWN:
            if goes_first(cls, reflection):
                return NotImplemented
            if computes_differently(cls):
                return ufunc(self, other)  # asks the other type
        return call_binary(rule, self, other)

    def reflected(self: Tensor, other: Any) -> Any:
        if FUNCTION.wrappers:
            return call(ufunc, (other, self), {})
        if other.__class__ is float or other.__class__ is int:
            return call_with_number(rule, self, (other, self), 1)
        return call_binary(rule, other, self)

    return operator, reflected


def _unary(fn: Any) -> Any:
    rule = RULES.get(fn)
    if type(rule) is not Elementwise:
        return lambda self: call(fn, (self,), {})

    def operator(self: Tensor) -> Any:  # 0.2 us less
        return call(fn, (self,), {}) if FUNCTION.wrappers else call_unary(rule, self)

    return operator


def _method(fn: Any) -> Any:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        if foreign_in((*args, *kwargs.values())) is not None:
            return fn(self, *args, **kwargs)  # asks the other type
        return call(fn, (self, *args), kwargs)

    method.__doc__ = f"Like `{name_of(fn)}`."
    return method


# np.power does this itself from NumPy 2.3 on; before, only the operator of arrays does.
_EXACT_POWERS = {-1: np.reciprocal, 0.5: np.sqrt}


def _with_exact_powers(operator: Any) -> Any:
    """`x ** -1` and `x ** 0.5` to the last bit what they are of arrays."""

    def power(self: Tensor, other: Any) -> Any:
        if other.__class__ in (int, float) and self.dtype.kind in "fc":
            ufunc = _EXACT_POWERS.get(other)
            if ufunc is not None:
                return call(ufunc, (self,), {})
        return operator(self, other)

    return power


def _in_place(operator: Any) -> Any:
    """`x += y`: a new tensor, of the shape and dtype that NumPy keeps."""

    def method(self: Tensor, other: Any) -> Any:
        y = operator(self, other)
        if y is NotImplemented or not isinstance(self.value, np.ndarray):
            return y
        require_kept(self, y.shape, y.dtype)
        if y.dtype == self.dtype:
            return y
        return call(np.astype, (y, self.dtype), {})

    return method


def require_kept(x: Any, shape: tuple[int, ...], dtype: Any) -> None:
    """Raise if x can't be replaced by a result of this shape and dtype in place."""
    if shape != x.shape:
        raise ValueError(
            f"an in-place operator can't change the shape {x.shape} of an array to "
            f"{shape}. Write `x = x + y`"
        )
    if not np.can_cast(dtype, x.dtype, "same_kind"):
        raise TypeError(
            f"an in-place operator can't change the dtype {x.dtype} of an array to "
            f"{dtype}. Write `x = x + y`"
        )


def _axes_method(fn: Any) -> Any:
    """`x.reshape(2, 3)` is `x.reshape((2, 3))`."""

    def method(self: Tensor, *axes: Any, **kwargs: Any) -> Any:
        alone = len(axes) == 1 and not isinstance(axes[0], (int, np.integer))
        packed = axes[0] if alone else axes or None
        return call(fn, (self, packed), kwargs)

    method.__doc__ = f"Like `{name_of(fn)}`, also with the numbers one by one."
    return method


OPERATORS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.true_divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "divmod": np.divmod,
    "pow": np.power,
    "matmul": np.matmul,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
}
_COMPARISONS = {
    "lt": (np.less, lt, "__gt__"),
    "le": (np.less_equal, le, "__ge__"),
    "gt": (np.greater, gt, "__lt__"),
    "ge": (np.greater_equal, ge, "__le__"),
    "eq": (np.equal, eq, "__eq__"),
    "ne": (np.not_equal, ne, "__ne__"),
}
_UNARY = {
    "neg": np.negative,
    "pos": np.positive,
    "abs": np.absolute,
    "invert": np.invert,
}
PROPERTIES = {
    "T": np.transpose,
    "mT": np.matrix_transpose,
    "real": np.real,
    "imag": np.imag,
}
_LIKE_FUNCTIONS = (
    "all any argmax argmin argpartition argsort astype choose clip conj copy cumprod "
    "cumsum diagonal dot max mean min nonzero prod ravel repeat round searchsorted "
    "squeeze std sum swapaxes take trace var"
)
METHODS = {name: getattr(np, name) for name in _LIKE_FUNCTIONS.split()} | {
    "flatten": np.ravel,
    "conjugate": np.conj,
}

for _name, _ufunc in OPERATORS.items():
    _forward, _reflected = _binary(_ufunc, f"__r{_name}__")
    if _ufunc is np.power and np.lib.NumpyVersion(np.__version__) < "2.3.0":
        _forward = _with_exact_powers(_forward)
    setattr(Tensor, f"__{_name}__", _forward)
    setattr(Tensor, f"__r{_name}__", _reflected)
    if _name != "divmod":
        setattr(Tensor, f"__i{_name}__", _in_place(_forward))
for _name, _compared in _COMPARISONS.items():
    setattr(Tensor, f"__{_name}__", _comparison(*_compared))
for _name, _ufunc in _UNARY.items():
    setattr(Tensor, f"__{_name}__", _unary(_ufunc))
for _name, _fn in PROPERTIES.items():
    setattr(Tensor, _name, property(_unary(_fn)))
for _name, _fn in METHODS.items():
    setattr(Tensor, _name, _method(_fn))
for _name in ("reshape", "transpose"):
    setattr(Tensor, _name, _axes_method(getattr(np, _name)))
