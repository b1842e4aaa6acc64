"""Tensor and Variable: arrays whose NumPy calls are seen by the active recorders.

NumPy hands every call with a `Tensor` in it to `__array_ufunc__` or
`__array_function__`. The call is run on plain arrays; then each active recorder is told
of it, together with the rule from the registry.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ._errors import GradsmithError, UnsupportedOperationError
from ._rule import (
    RULES,
    Composite,
    Elementwise,
    Function,
    Nondifferentiable,
    Rule,
    name_of,
)
from ._tape import Traced, state
from .rules import find_rule, reduction_of
from .rules.indexing import index

_new = object.__new__


class Tensor(Traced):
    """An immutable array that NumPy functions record on the active tapes.

    >>> x = Tensor([1.0, 2.0])
    >>> np.exp(x) * 2
    Tensor([ 5.43656366, 14.7781122 ])
    """

    __slots__ = ("__weakref__",)
    __array_priority__ = 1000

    def __init__(self, data: Any, dtype: Any = None) -> None:
        super().__init__(np.array(unwrap(data), dtype=dtype))

    # Plain attributes

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.value.dtype

    @property
    def ndim(self) -> int:
        return self.value.ndim

    @property
    def size(self) -> int:
        return self.value.size

    @property
    def nbytes(self) -> int:
        return self.value.nbytes

    @property
    def T(self) -> Tensor:
        return np.transpose(self)

    @property
    def mT(self) -> Tensor:
        return np.matrix_transpose(self)

    @property
    def real(self) -> Tensor:
        return np.real(self)

    @property
    def imag(self) -> Tensor:
        return np.imag(self)

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[Tensor]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d Tensor")
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        body = np.array2string(np.asarray(self.value), separator=", ", prefix="Tensor(")
        usual = self.dtype in (np.float64, np.int64, np.bool_, np.complex128)
        return f"{type(self).__name__}({body}{'' if usual else f', dtype={self.dtype}'})"

    def __bool__(self) -> bool:
        return bool(self.value)

    def __index__(self) -> int:
        return self.value.__index__()

    __hash__ = object.__hash__

    # Ways off the tape. They are legal; `tape.explain` tells of them.

    def numpy(self) -> Any:
        """Return the plain array, read-only; it is not followed by any tape."""
        _tell_lost([self], "Tensor.numpy()", _LEFT)
        return readonly(self.value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        _tell_lost([self], "numpy.asarray (or a function that calls it)", _LEFT)
        if dtype is None and not copy:
            return readonly(self.value)
        return np.array(self.value, dtype=dtype, copy=copy)

    def item(self, *index: int) -> Any:
        _tell_lost([self], "Tensor.item()", _LEFT)
        return self.value.item(*index)

    def tolist(self) -> Any:
        _tell_lost([self], "Tensor.tolist()", _LEFT)
        return self.value.tolist()

    def __float__(self) -> float:
        _tell_lost([self], "float()", _LEFT)
        return float(self.value)

    def __complex__(self) -> complex:
        _tell_lost([self], "complex()", _LEFT)
        return complex(self.value)

    def __int__(self) -> int:
        _tell_lost([self], "int()", _LEFT)
        return int(self.value)

    def __format__(self, spec: str) -> str:
        return format(self.value if spec else repr(self), spec)

    # NumPy's protocols

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        rule = RULES.get(ufunc)
        if method == "__call__" and not kwargs and type(rule) is Elementwise:
            return (
                call_unary(rule, inputs[0])
                if len(inputs) == 1
                else call_elementwise(rule, inputs)
            )
        return _call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(
        self, fn: Any, types: Any, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        return call(fn, args, kwargs)

    def __getitem__(self, key: Any) -> Tensor:
        return index(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise GradsmithError(
            "a Tensor can't be changed in place: earlier operations may have saved it. "
            "Build the new value instead, e.g. np.where(mask, new, x), or fill a plain "
            "list and np.stack it."
        )


class Variable(Tensor):
    """A named tensor that can be assigned anew; tapes watch it when it is first read.

    >>> w = Variable([1.0, 2.0], name="w")
    >>> w.assign_add([1.0, 1.0])
    Variable([2., 3.])
    """

    __slots__ = ("name", "trainable")

    def __init__(
        self,
        initial_value: Any,
        *,
        trainable: bool = True,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(initial_value, dtype)
        self.trainable = trainable
        self.name = name or "variable"

    def assign(self, value: Any) -> Variable:
        """Replace the value by another of the same shape; the dtype stays."""
        value = np.array(unwrap(value), dtype=self.dtype)
        if value.shape != self.shape:
            raise GradsmithError(
                f"variable {self.name!r} has shape {self.shape} and can't be assigned "
                f"a value of shape {value.shape}"
            )
        self.value = value
        return self

    def assign_add(self, delta: Any) -> Variable:
        return self.assign(self.value + unwrap(delta))

    def assign_sub(self, delta: Any) -> Variable:
        return self.assign(self.value - unwrap(delta))

    def read_value(self) -> Tensor:
        """Return the present value as a tensor that later assignments don't touch."""
        marks = {
            r.key: mark
            for r in state.recorders
            if (mark := r.mark_of(self)) is not None
        }
        return wrap(self.value, marks)


def constant(value: Any, dtype: Any = None) -> Tensor:
    """Return a tensor that no tape follows until it is watched."""
    return Tensor(value, dtype)


def wrap(value: Any, marks: Any = None) -> Tensor:
    """Make a tensor of a plain array without copying it."""
    y = _new(Tensor)
    y.value = value
    y.marks = marks
    return y


def unwrap(x: Any) -> Any:
    """Replace tensors, also within lists, tuples, dicts and slices, by plain arrays."""
    if isinstance(x, Traced):
        return x.value
    if isinstance(x, (list, tuple)):
        parts = [unwrap(part) for part in x]
        return parts if type(x) is list else tuple(parts)
    if isinstance(x, dict):
        return {key: unwrap(part) for key, part in x.items()}
    if isinstance(x, slice):
        return slice(unwrap(x.start), unwrap(x.stop), unwrap(x.step))
    return x


def _frozen(x: Any) -> Any:
    """Replace variables by their present values, so that assignments don't matter."""
    if isinstance(x, Variable):
        return x.read_value()
    if isinstance(x, (list, tuple)):
        return [_frozen(part) for part in x]
    if isinstance(x, dict):
        return {key: _frozen(part) for key, part in x.items()}
    return x


def readonly(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value


# --- calling -------------------------------------------------------------------------


def call_elementwise(rule: Elementwise, inputs: Sequence[Any]) -> Tensor:
    """Run an elementwise function and tell the recorders."""
    if len(inputs) == 1:
        return call_unary(rule, inputs[0])
    if len(inputs) == 2:
        return call_binary(rule, *inputs)
    values = unwrap(tuple(inputs))
    y = wrap(rule.fn(*values))
    if state.recorders:
        _tell(rule, inputs, inputs, values, y)
    return y


# The two functions below are the hot path. A chain of small operations takes 3.2 us each
# with its gradient, of which 1.1 are NumPy's; through `_tell` alone it was 5.0.


def call_unary(rule: Elementwise, x: Tensor) -> Tensor:
    value = x.value
    y = _new(Tensor)
    y.value = rule.fn(value)
    y.marks = None
    recorders = state.recorders
    if recorders:
        tape = recorders[0]
        if len(recorders) == 1 and tape.records_one:
            node = tape.mark_of(x)
            if node is not None:
                tape.record_one(rule, 0, node, (value,), y, True)
        else:
            _tell(rule, (x,), (x,), (value,), y)
    return y


def call_binary(rule: Elementwise, x1: Any, x2: Any) -> Tensor:
    traced1, traced2 = isinstance(x1, Traced), isinstance(x2, Traced)
    values = (x1.value if traced1 else x1, x2.value if traced2 else x2)
    y = _new(Tensor)
    y.value = rule.fn(*values)
    y.marks = None
    recorders = state.recorders
    if recorders:
        tape = recorders[0]
        if len(recorders) == 1 and tape.records_one:
            node1 = tape.mark_of(x1) if traced1 else None
            node2 = tape.mark_of(x2) if traced2 else None
            if node1 is not None and node2 is not None:
                tape.record(rule, (x1, x2), values, y.value, y)
            elif node1 is not None:
                tape.record_one(rule, 0, node1, values, y, x2.__class__ in _NUMBERS)
            elif node2 is not None:
                tape.record_one(rule, 1, node2, values, y, x1.__class__ in _NUMBERS)
        else:
            _tell(rule, (x1, x2), (x1, x2), values, y)
    return y


_NUMBERS = (float, int)  # they change neither the shape nor the dtype of a real array


def _tell(rule: Rule, inputs: Sequence[Any], call: Any, plain: Any, y: Any) -> None:
    """Tell every recorder of an operation.

    If only one recorder can ever look at what the rule saves, it saves plain arrays.
    """
    recorders = state.recorders
    if len(recorders) == 1 and not recorders[0].lifts:
        recorders[0].record(rule, inputs, plain, unwrap(y), y)
    else:
        frozen = _frozen(call)
        for recorder in recorders:
            recorder.record(rule, inputs, frozen, y, y)


def call(fn: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Run any function of the registry and tell the recorders."""
    rule = find_rule(fn)
    if type(rule) is Elementwise and not kwargs:
        return call_elementwise(rule, args)
    if isinstance(rule, Composite):
        return rule.definition(*args, **kwargs)
    if isinstance(rule, Function):
        return _call_function(rule, args, kwargs)
    return _call_undifferentiated(fn, rule, args, kwargs)


def _call_function(rule: Function, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    if any(isinstance(x, Traced) for x in kwargs.values()):
        args, kwargs = rule.bind(args, kwargs)
    plain = unwrap(tuple(args)), unwrap(kwargs)
    y = _wrap_all(rule.fn(*plain[0], **plain[1]))
    if state.recorders:
        inputs = rule.inputs(args)
        _refuse_hidden(rule, inputs, args, kwargs)
        _tell(rule, inputs, (args, kwargs), plain, y)
    return y


def _wrap_all(y: Any) -> Any:
    if isinstance(y, tuple) and hasattr(y, "_fields"):
        return type(y)(*map(wrap, y))
    if isinstance(y, (tuple, list)):
        return type(y)(map(wrap, y))
    return wrap(y)


def _call_undifferentiated(
    fn: Any, rule: Rule | None, args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    followed = [x for x in _traced_in((args, kwargs)) if _is_followed(x)]
    if followed and not isinstance(rule, Nondifferentiable):
        raise UnsupportedOperationError(
            f"{name_of(fn)} has no gradient rule, and its argument is being "
            f"differentiated. Give it one with gs.with_gradient({name_of(fn)}, grad), "
            "or pass gs.stop_gradient(x) if it should count as a constant."
        )
    if followed:
        _tell_lost(followed, name_of(fn), rule.why)
    y = fn(*unwrap(tuple(args)), **unwrap(kwargs))
    return _wrap_arrays(y)


def _wrap_arrays(y: Any) -> Any:
    if isinstance(y, (np.ndarray, np.generic)):
        return wrap(y)
    return _wrap_all(y) if isinstance(y, (tuple, list)) else y


def _traced_in(x: Any) -> Iterator[Traced]:
    if isinstance(x, Traced):
        yield x
    elif isinstance(x, (list, tuple)):
        for part in x:
            yield from _traced_in(part)
    elif isinstance(x, dict):
        yield from _traced_in(list(x.values()))


def _is_followed(x: Traced) -> bool:
    return any(recorder.mark_of(x) is not None for recorder in state.recorders)


def _refuse_hidden(rule: Rule, inputs: Sequence[Any], args: Any, kwargs: Any) -> None:
    """A followed tensor in an argument that the rule does not differentiate raises."""
    known = {id(x) for x in inputs}
    for x in _traced_in((args, kwargs)):
        if id(x) not in known and x.dtype.kind in "fcO" and _is_followed(x):
            raise UnsupportedOperationError(
                f"{rule.name} can't be differentiated with respect to one of its "
                "options, and that one is being differentiated. Pass "
                "gs.stop_gradient(option) if it should count as a constant."
            )


def _tell_lost(xs: Sequence[Traced], where: str, why: str) -> None:
    for recorder in state.recorders:
        recorder.lost(xs, where, why)


_LEFT = "the value became a plain array or number, which no tape follows"


def _call_ufunc(
    ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """Ufuncs with options, and their methods `reduce`, `accumulate` and `outer`."""
    out = kwargs.pop("out", None)
    if out is not None and any(o is not None for o in out):
        raise UnsupportedOperationError(
            f"{name_of(ufunc)} can't write into an existing array (out=..., or an "
            "in-place operator like `array += tensor`): the tape would lose the result. "
            "Write `array = array + tensor`."
        )
    if method == "outer":
        x1, x2 = inputs
        inputs = np.reshape(x1, np.shape(x1) + (1,) * np.ndim(x2)), x2
    elif method != "__call__":
        return call(reduction_of(ufunc, method), inputs, kwargs)
    dtype = kwargs.pop("dtype", None)
    if kwargs and any(map(_is_followed, _traced_in(inputs))):
        raise UnsupportedOperationError(
            f"{name_of(ufunc)} is differentiated without {', '.join(kwargs)}=..."
        )
    if dtype is not None:
        inputs = [astype(x, dtype) for x in inputs]
    return call(ufunc, inputs, kwargs)


# --- operators and methods -----------------------------------------------------------


def _binary(ufunc: np.ufunc) -> tuple[Any, Any]:
    """An operator and its reflection."""
    rule = RULES[ufunc]
    if type(rule) is Elementwise:  # 0.5 us less than through NumPy's dispatch
        return (
            lambda self, other: call_binary(rule, self, other),
            lambda self, other: call_binary(rule, other, self),
        )
    return (
        lambda self, other: call(ufunc, (self, other), {}),
        lambda self, other: call(ufunc, (other, self), {}),
    )


def _unary(ufunc: np.ufunc) -> Any:
    return lambda self: call(ufunc, (self,), {})


def _method(fn: Any) -> Any:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return call(fn, (self, *args), kwargs)

    method.__doc__ = f"Like `{name_of(fn)}`."
    return method


def _axes_method(fn: Any) -> Any:
    """`x.reshape(2, 3)` is `x.reshape((2, 3))`."""

    def method(self: Tensor, *axes: Any, **kwargs: Any) -> Any:
        packed = axes[0] if len(axes) == 1 else axes or None
        return call(fn, (self, packed), kwargs)

    method.__doc__ = f"Like `{name_of(fn)}`, also with the numbers one by one."
    return method


_OPERATORS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.true_divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "pow": np.power,
    "matmul": np.matmul,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_COMPARISONS = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}
_UNARY = {
    "neg": np.negative,
    "pos": np.positive,
    "abs": np.absolute,
    "invert": np.invert,
}
_METHODS = (
    "all any argmax argmin argsort astype clip conj cumprod cumsum diagonal dot max "
    "mean min nonzero prod ravel repeat round squeeze std sum swapaxes take trace var"
)

for _name, _ufunc in _OPERATORS.items():
    _forward, _reflected = _binary(_ufunc)
    setattr(Tensor, f"__{_name}__", _forward)
    setattr(Tensor, f"__r{_name}__", _reflected)
for _name, _ufunc in _COMPARISONS.items():
    setattr(Tensor, f"__{_name}__", _binary(_ufunc)[0])
for _name, _ufunc in _UNARY.items():
    setattr(Tensor, f"__{_name}__", _unary(_ufunc))
for _name in _METHODS.split():
    setattr(Tensor, _name, _method(getattr(np, _name)))
Tensor.flatten = Tensor.ravel
Tensor.copy = Tensor.__pos__
Tensor.conjugate = Tensor.conj
Tensor.reshape = _axes_method(np.reshape)
Tensor.transpose = _axes_method(np.transpose)
