"""Tensor and Variable: arrays whose NumPy calls are seen by the active recorders."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from .errors import GradsmithError
from .escapes import (
    FOR_ARRAYS,
    FOR_NUMBERS,
    LEFT,
    refuse_conversion,
    tell_lost,
    traced_in,
)
from .foreign import PRIORITY, refuse_as_tensor
from .infinite import plain
from .rule import convert, index
from .symbolic import Symbolic
from .tape import Traced, forget_the_dead, marks_of, state

_ASSIGNED = "a variable holds a plain value, wherever it comes from"


class Tensor(Traced):
    """An immutable array that NumPy functions record on the active tapes.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> x = gs.Tensor([1.0, 2.0])
    >>> np.exp(x) * 2
    Tensor([ 5.43656366, 14.7781122 ])

    Raises
    ------
    GradsmithError
        On assignment to its elements.
    UnsupportedOperationError
        If a tensor that is being differentiated would become a constant
        (`np.asarray(x)`; `x.numpy()` does so on purpose), and for functions that the
        engine has no rule for.
    """

    __slots__ = ("__weakref__",)
    __array_priority__ = PRIORITY

    def __init__(self, data: Any, dtype: Any = None) -> None:
        if state().recorders and next(traced_in(data), None) is not None:
            y = joined(data) if dtype is None else convert(joined(data), dtype)
            super().__init__(y.value, marks_of(y))
        else:
            refuse_as_tensor(data, "what a tensor is made of")
            super().__init__(_read(unwrap(data), dtype))

    # Plain attributes

    @property
    def ndim(self) -> int:
        return self.value.ndim

    @property
    def size(self) -> int:
        return self.value.size

    @property
    def nbytes(self) -> int:
        return self.value.nbytes

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[Tensor]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d Tensor")
        # One operation, so that n cotangents don't cost n**2.
        parts: Any = np.unstack(self)  # type: ignore[arg-type]
        return iter(parts)

    def __repr__(self) -> str:
        if isinstance(self.value, Symbolic):
            return f"{type(self).__name__}({self.value})"
        body = np.array2string(np.asarray(self.value), separator=", ", prefix="Tensor(")
        usual = self.dtype in (np.float64, np.int64, np.bool_, np.complex128)
        dtype = "" if usual else f", dtype={self.dtype}"
        return f"{type(self).__name__}({body}{dtype})"

    def __bool__(self) -> bool:
        return bool(self.value)

    def __index__(self) -> int:
        return operator.index(self.value)

    __hash__ = object.__hash__

    def __contains__(self, x: Any) -> bool:
        return unwrap(x) in np.asarray(self.value)

    def __copy__(self) -> Tensor:
        return self  # it never changes

    def __deepcopy__(self, memo: Any) -> Tensor:
        return self

    # Ways off the tape: on purpose, of which `tape.explain` tells, or refused.

    def numpy(self) -> Any:
        """Return the plain array, read-only; it is not followed by any tape."""
        tell_lost([self], "Tensor.numpy()", LEFT)
        return readonly(self.value)

    def __reduce__(self) -> Any:
        refuse_conversion(self, "pickling it")
        return wrap, (self.value,)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        refuse_conversion(
            self, "np.array, np.asarray or an assignment to an array", FOR_ARRAYS
        )
        array = np.array(self.value, dtype=dtype, copy=copy)
        return array if copy else readonly(array)

    def view(self, *args: Any, **kwargs: Any) -> Any:
        """Return other views of the plain array, as `np.ndarray.view` does."""
        how = "x.view(), or another library that reads it,"
        refuse_conversion(self, how, FOR_ARRAYS)
        return np.asarray(readonly(self.value)).view(*args, **kwargs)

    def item(self, *index: int) -> Any:
        refuse_conversion(self, "x.item()")
        return self.value.item(*index)

    def tolist(self) -> Any:
        refuse_conversion(self, "x.tolist()")
        return self.value.tolist()

    def __float__(self) -> float:
        refuse_conversion(
            self, "float(x), or a function of Python numbers,", FOR_NUMBERS
        )
        return float(self.value)

    def __complex__(self) -> complex:
        refuse_conversion(
            self, "complex(x), or a function of Python numbers,", FOR_NUMBERS
        )
        return complex(self.value)

    def __int__(self) -> int:
        refuse_conversion(self, "int(x)")
        return int(self.value)

    def __format__(self, spec: str) -> str:
        return format(self.value if spec else repr(self), spec)

    # NumPy's protocols, `__array_ufunc__` and `__array_function__`, are in `calls`.

    def __getitem__(self, key: Any) -> Tensor:
        return index(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise GradsmithError(
            "a Tensor can't be changed in place: earlier operations may have saved it. "
            "Build the new value instead, e.g. np.where(mask, new, x), or fill a plain "
            "list and np.stack it."
        )


class Variable(Tensor):
    """A named tensor that can be reassigned; tapes watch it when it is first read.

    >>> import gradsmith as gs
    >>> w = gs.Variable([1.0, 2.0], name="w")
    >>> w.assign_add([1.0, 1.0])
    Variable([2., 3.])

    Raises
    ------
    GradsmithError
        If the assigned value has another shape or kind of dtype.
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
        tell_lost([*traced_in(initial_value)], "gs.Variable()", _ASSIGNED)
        super().__init__(unwrap(initial_value), dtype)
        self.trainable = trainable
        self.name = name or "variable"

    def assign(self, value: Any) -> Variable:
        """Replace the value by another of the same shape; the dtype stays."""
        tell_lost([*traced_in(value)], "Variable.assign()", _ASSIGNED)
        refuse_as_tensor(value, f"the new value of {self.name!r}")
        value = np.asarray(unwrap(value))
        fits = np.can_cast(value.dtype, self.dtype, "same_kind")
        if value.shape != self.shape or not fits:
            raise GradsmithError(
                f"variable {self.name!r} has shape {self.shape} and dtype {self.dtype}:"
                f" a value of shape {value.shape} and dtype {value.dtype} doesn't fit"
            )
        self.value = np.array(value, self.dtype)
        return self

    def assign_add(self, delta: Any) -> Variable:
        return self.assign(self.value + unwrap(delta))

    def assign_sub(self, delta: Any) -> Variable:
        return self.assign(self.value - unwrap(delta))

    def read_value(self) -> Tensor:
        """Return the present value as a tensor that later assignments don't touch."""
        return wrap(self.value, marks_of(self))

    def __copy__(self) -> Variable:
        return Variable(self.value, trainable=self.trainable, name=self.name)

    def __deepcopy__(self, memo: Any) -> Variable:
        return self.__copy__()

    def __reduce__(self) -> Any:
        return _variable, (self.value, self.trainable, self.name)


def _variable(value: Any, trainable: bool, name: str) -> Variable:
    return Variable(value, trainable=trainable, name=name)


class Kept(Tensor):
    """A result as its own operation saves it: it finds its node, weakly.

    Result, node and what the rule saved would else be a cycle, in which large arrays
    wait for the garbage collector. Compiled code may read the field behind `marks`,
    which is None: it then asks the tape, `mark_of`, which reads the property.
    """

    __slots__ = ("key", "node")

    def __init__(self, y: Traced) -> None:
        self.value = y.value

    @property
    def marks(self) -> Any:
        node = self.node()
        return None if node is None else {self.key: node}


def constant(value: Any, dtype: Any = None) -> Tensor:
    """Return a tensor that no tape follows until it is watched.

    >>> import gradsmith as gs
    >>> x = gs.constant([1.0, 2.0])
    >>> with gs.GradientTape() as tape:
    ...     y = x * x
    >>> print(tape.gradient(y, x))
    None
    """
    tell_lost([*traced_in(value)], "gs.constant", "it makes its argument a constant")
    return Tensor(unwrap(value), dtype)


def wrap(value: Any, marks: Any = None) -> Tensor:
    """Make a tensor of a plain array without copying it."""
    y = Traced.__new__(Tensor)
    y.value = value
    y.marks = marks
    return y


def finished(dx: Any) -> Tensor:
    """A tensor of what a walk has found, as everybody else computes with it."""
    if not isinstance(dx, Tensor):
        return wrap(plain(dx))
    dx.value = plain(dx.value)
    return dx


def _read(data: Any, dtype: Any) -> Any:
    """A new array of what a tensor is made of."""
    if isinstance(data, Symbolic):
        return data if dtype is None else convert(data, dtype)
    return native(np.array(data, dtype=dtype))


def joined(x: Any) -> Any:
    """One array of nested lists, followed if there are followed tensors in them."""
    if not isinstance(x, (list, tuple)):
        return x
    if next(traced_in(x, (Traced, Symbolic)), None) is None:
        return np.asarray(x)
    return np.stack([joined(part) for part in x])


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


def frozen(x: Any) -> Any:
    """Replace variables by their present values, so that assignments don't matter."""
    if isinstance(x, Variable):
        return x.read_value()
    if isinstance(x, Traced):
        forget_the_dead(x)
        return x
    if isinstance(x, (list, tuple)):
        parts = [frozen(part) for part in x]
        return parts if type(x) is list else tuple(parts)  # x[1, 2] is not x[[1, 2]]
    if isinstance(x, dict):
        return {key: frozen(part) for key, part in x.items()}
    return x


def native(value: Any) -> Any:
    """An array in the machine's order of bytes, as all that is computed from it is."""
    if value.dtype.isnative:
        return value
    return value.astype(value.dtype.newbyteorder("="))


def readonly(value: Any) -> Any:
    """A view that nobody can make writable: its memory says that it is not."""
    if isinstance(value, Symbolic):
        return value.readonly()
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind in "fciub":
        return np.asarray(value.data.toreadonly())
    value = value.view()  # what a memoryview can't describe
    value.setflags(False)
    return value
