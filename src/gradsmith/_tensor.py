"""Tensor and Variable: arrays whose NumPy calls are seen by the active recorders.

NumPy hands every call with a `Tensor` in it to `__array_ufunc__` or
`__array_function__`. The call is run on plain arrays; then each active recorder is told
of it, together with the rule from the registry.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from inspect import signature
from numbers import Rational
from typing import Any
from weakref import ref

import numpy as np

from ._errors import GradsmithError, UnsupportedOperationError
from ._pool import SMALLEST, Large, computed
from ._rule import (
    RULES,
    Composite,
    Elementwise,
    Function,
    Nondifferentiable,
    Rule,
    name_of,
)
from ._tape import NOTHING, Traced, forget_the_dead, marks_of, state
from .rules import find_rule, reduction_of
from .rules.indexing import index
from .rules.not_yet import NOT_YET
from .rules.shaping import convert

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
        if state.recorders:
            _tell_lost([*_traced_in(data)], f"gs.{type(self).__name__}()", LEFT)
        super().__init__(np.array(unwrap(data), dtype=dtype))

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

    @property
    def T(self) -> Tensor:  # noqa: N802 (NumPy's name)
        return call(np.transpose, (self,), {})

    @property
    def mT(self) -> Tensor:  # noqa: N802 (NumPy's name)
        return call(np.matrix_transpose, (self,), {})

    @property
    def real(self) -> Tensor:
        return call(np.real, (self,), {})

    @property
    def imag(self) -> Tensor:
        return call(np.imag, (self,), {})

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[Tensor]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d Tensor")
        # One operation, so that n cotangents don't cost n**2.
        return iter(call(np.unstack, (self,), {}))

    def __repr__(self) -> str:
        body = np.array2string(np.asarray(self.value), separator=", ", prefix="Tensor(")
        usual = self.dtype in (np.float64, np.int64, np.bool_, np.complex128)
        dtype = "" if usual else f", dtype={self.dtype}"
        return f"{type(self).__name__}({body}{dtype})"

    def __bool__(self) -> bool:
        return bool(self.value)

    def __index__(self) -> int:
        return self.value.__index__()

    __hash__ = object.__hash__

    def __contains__(self, x: Any) -> bool:
        return unwrap(x) in np.asarray(self.value)

    def __copy__(self) -> Tensor:
        return self  # it never changes

    def __deepcopy__(self, memo: Any) -> Tensor:
        return self

    def __reduce__(self) -> Any:
        return wrap, (self.value,)

    # Ways off the tape. They are legal; `tape.explain` tells of them.

    def numpy(self) -> Any:
        """Return the plain array, read-only; it is not followed by any tape."""
        _tell_lost([self], "Tensor.numpy()", LEFT)
        return readonly(self.value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        _refuse_scipy(self, sys._getframe(1))
        _tell_lost([self], "numpy.asarray (or a function that calls it)", LEFT)
        array = np.array(self.value, dtype=dtype, copy=copy)
        return array if copy else readonly(array)

    def item(self, *index: int) -> Any:
        _tell_lost([self], "Tensor.item()", LEFT)
        return self.value.item(*index)

    def tolist(self) -> Any:
        _tell_lost([self], "Tensor.tolist()", LEFT)
        return self.value.tolist()

    def __float__(self) -> float:
        _tell_lost([self], "float()", LEFT)
        return float(self.value)

    def __complex__(self) -> complex:
        _tell_lost([self], "complex()", LEFT)
        return complex(self.value)

    def __int__(self) -> int:
        _tell_lost([self], "int()", LEFT)
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
        for cls in types:
            if cls is not np.ndarray:
                _refuse_foreign(cls, fn)
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
        if state.recorders:
            _tell_lost([*_traced_in(value)], "Variable.assign()", _ASSIGNED)
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


class _Kept(Tensor):
    """A result as its own operation saves it: it finds its node, weakly.

    Result, node and what the rule saved would else be a cycle, in which large arrays
    wait for the garbage collector.
    """

    __slots__ = ("key", "node")

    def __init__(self, y: Traced) -> None:
        self.value = y.value

    @property
    def marks(self) -> Any:
        node = self.node()
        return None if node is None else {self.key: node}


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
    if isinstance(x, Traced):
        forget_the_dead(x)
        return x
    if isinstance(x, (list, tuple)):
        parts = [_frozen(part) for part in x]
        return parts if type(x) is list else tuple(parts)  # x[1, 2] is not x[[1, 2]]
    if isinstance(x, dict):
        return {key: _frozen(part) for key, part in x.items()}
    return x


def readonly(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.view()
        value.setflags(False)  # write=False; a third of the time by position
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


# The three functions below are the hot path, hence alike and not one. A chain of small
# operations takes 2.7 us each with its gradient, of which 1.1 are NumPy's; through
# `_tell` alone it was 5.0.


def call_unary(rule: Elementwise, x: Tensor) -> Tensor:
    value = x.value
    if value.nbytes >= SMALLEST:
        return _call_large(rule, (x,), (value,))
    y = _new(Tensor)
    y.value = rule.fn(value)
    y.marks = None
    tape = state.sole
    if tape is not None:
        marks = x.marks
        node: Any = (marks and marks.get(tape.key)) or tape.mark_of(x)
        if node is not None:
            tape.record_one(rule, 0, node, (value,), y, True)
    elif state.recorders:
        _tell(rule, (x,), (x,), (value,), y)
    return y


def call_with_number(
    rule: Elementwise, x: Tensor, inputs: tuple[Any, Any], i: int
) -> Tensor:
    """`call_binary` for a tensor x, the i-th of the inputs, and a number."""
    value = x.value
    values = (inputs[0], value) if i else (value, inputs[1])
    if value.nbytes >= SMALLEST:
        return _call_large(rule, inputs, values)
    y = _new(Tensor)
    y.value = rule.fn(*values)
    y.marks = None
    tape = state.sole
    if tape is not None:
        marks = x.marks
        node: Any = (marks and marks.get(tape.key)) or tape.mark_of(x)
        if node is not None:
            tape.record_one(rule, i, node, values, y, True)
    elif state.recorders:
        _tell(rule, inputs, inputs, values, y)
    return y


def call_binary(rule: Elementwise, x1: Any, x2: Any) -> Tensor:
    traced1, traced2 = isinstance(x1, Traced), isinstance(x2, Traced)
    if not (traced1 and traced2) and (x2 if traced1 else x1).__class__ not in _PLAIN:
        x1, x2 = _operand(x1, rule.fn), _operand(x2, rule.fn)
        traced1, traced2 = isinstance(x1, Traced), isinstance(x2, Traced)
    values = (x1.value if traced1 else x1, x2.value if traced2 else x2)
    if values[not traced1].nbytes >= SMALLEST:
        return _call_large(rule, (x1, x2), values)
    y = _new(Tensor)
    y.value = rule.fn(*values)
    y.marks = None
    tape = state.sole
    if tape is not None:
        node1 = tape.mark_of(x1) if traced1 else None
        node2 = tape.mark_of(x2) if traced2 else None
        if node1 is not None and node2 is not None:
            tape.record(rule, (x1, x2), values, y.value, y)
        elif node1 is not None:
            tape.record_one(rule, 0, node1, values, y, False)
        elif node2 is not None:
            tape.record_one(rule, 1, node2, values, y, False)
    elif state.recorders:
        _tell(rule, (x1, x2), (x1, x2), values, y)
    return y


def _call_large(rule: Elementwise, inputs: Sequence[Any], values: Any) -> Tensor:
    """Put a large result into reused memory, which matters more than the path here."""
    y = wrap(computed(rule.fn, *values))
    tape = state.sole
    if tape is None:
        if state.recorders:
            _tell(rule, inputs, inputs, values, y)
        return y
    nodes: list[Any] = [
        tape.mark_of(x) if isinstance(x, Traced) else None for x in inputs
    ]
    followed = [i for i, node in enumerate(nodes) if node is not None]
    if len(followed) == 1:
        i = followed[0]
        tape.record_one(rule, i, nodes[i], values, y, False)
        node: Any = tape.mark_of(y)
        node.saved, node.pull = _large(node.saved, node.pull)
    elif followed:
        tape.record(rule, inputs, values, y.value, y)
    return y


def _large(saved: Any, pull: Any) -> tuple[Any, Any]:
    """What a node of a large operation saves and pulls, in reused memory."""
    if type(saved) is np.ndarray:
        return Large(saved), pull
    if saved.__class__ is float:
        p = pull(saved)
        return NOTHING, lambda dy: computed(np.multiply, dy, p)
    return saved, pull


_PLAIN = (float, int, np.ndarray)


def _operand(x: Any, fn: Any) -> Any:
    """What stands beside a tensor, as a rule can read it: no lists, no matrices."""
    if isinstance(x, (list, tuple)):
        if next(_traced_in(x), None) is None:
            return np.asarray(x)
        return np.stack([_operand(part, fn) for part in x])
    if isinstance(x, Rational) and not isinstance(x, (int, np.generic)):
        return float(x)
    _refuse_foreign(type(x), fn)
    return np.asarray(x) if isinstance(x, np.ndarray) else x


def _refuse_foreign(cls: type, fn: Any) -> None:
    """Arrays that have their own way with NumPy's functions don't mix with tensors."""
    overrides = hasattr(cls, "__array_ufunc__") or hasattr(cls, "__array_function__")
    known = issubclass(cls, (Traced, np.ndarray, np.generic))
    if (overrides and not known) or issubclass(cls, np.ma.MaskedArray):
        raise UnsupportedOperationError(
            f"{name_of(fn)} was given a gs.Tensor together with a {cls.__name__}, and "
            "neither knows the other. Convert it first: np.asarray(...)."
        )


def _tell(rule: Rule, inputs: Sequence[Any], call: Any, plain: Any, y: Any) -> None:
    """Tell every recorder of an operation.

    If only one recorder can ever look at what the rule saves, it saves plain arrays.
    """
    recorder = state.recorders[0]
    alone = len(state.recorders) == 1
    if alone and not recorder.lifts:
        recorder.record(rule, inputs, plain, unwrap(y), y)
    elif alone and isinstance(y, Traced):
        kept = _Kept(y)
        recorder.record(rule, inputs, _frozen(call), kept, y)
        if y.marks:
            kept.key, kept.node = recorder.key, ref(y.marks[recorder.key])
    else:
        frozen = _frozen(call)
        for recorder in state.recorders:
            recorder.record(rule, inputs, frozen, y, y)


def call(fn: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Run any function of the registry and tell the recorders."""
    rule = find_rule(fn)
    if type(rule) is Elementwise:
        if kwargs and not isinstance(fn, np.ufunc):
            bound = signature(fn).bind(*args, **kwargs)
            args, kwargs = bound.args, bound.kwargs
        if not kwargs:
            return call_elementwise(rule, args)
    if kwargs.get("out") is not None:
        raise UnsupportedOperationError(_WRITES.format(name_of(fn)))
    if isinstance(rule, Composite):
        return _call_composite(rule, args, kwargs)
    if isinstance(rule, Function):
        return _call_function(rule, args, kwargs)
    return _call_undifferentiated(fn, rule, args, kwargs)


def _call_composite(rule: Composite, args: Sequence[Any], kwargs: Any) -> Any:
    """Run a definition; what is lost in it is lost in the function that it defines."""
    outer = state.inside
    state.inside = outer or rule.name
    try:
        return rule.definition(*args, **kwargs)
    finally:
        state.inside = outer


def _call_function(rule: Function, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    if len(args) == 1 and isinstance(args[0], Traced) and _are_plain(kwargs):
        return _call_of_one(rule, args[0], kwargs)
    if any(isinstance(x, Traced) for x in kwargs.values()):
        args, kwargs = rule.bind(args, kwargs)
    if not rule.lists and any(isinstance(x, (list, tuple)) for x in args):
        args = _one_array_each(rule, args)
    if len(args) > rule.out_at and args[rule.out_at] is not None:
        raise UnsupportedOperationError(_WRITES.format(rule.name))
    plain = unwrap(tuple(args)), unwrap(kwargs)
    y = _wrap_all(rule.fn(*plain[0], **plain[1]))
    if state.recorders:
        inputs = rule.inputs(args)
        if not any(output.dtype.kind in "fcO" for output in _traced_in(y)):
            _tell_lost([*_traced_in(inputs)], rule.name, _WHOLE)
            return y
        _refuse_hidden(rule, inputs, args, kwargs)
        _tell(rule, inputs, (args, kwargs), plain, y)
    return y


def _are_plain(options: dict[str, Any]) -> bool:
    return all(x.__class__ in _OPTIONS for x in options.values())


_OPTIONS = (int, bool, float, str, type(None))


def _call_of_one(rule: Function, x: Traced, options: dict[str, Any]) -> Any:
    """`_call_function` of one tensor and options that hide none: 5 us less."""
    value = rule.fn(x.value, **options)
    y = wrap(value) if isinstance(value, (np.ndarray, np.generic)) else _wrap_all(value)
    if state.recorders:
        if not any(part.dtype.kind in "fcO" for part in _traced_in(y)):
            _tell_lost([x], rule.name, _WHOLE)
        else:
            _tell(rule, (x,), ((x,), options), ((x.value,), options), y)
    return y


_WHOLE = "its result has an integer or boolean dtype here"


def _one_array_each(rule: Function, args: Sequence[Any]) -> list[Any]:
    """Make an array of a list, for a rule by which an argument is one input."""
    args = list(args)
    for i in range(len(args))[rule.arrays]:
        if isinstance(args[i], (list, tuple)):
            if next(_traced_in(args[i]), None) is not None:
                raise UnsupportedOperationError(
                    f"{rule.name} was given a list that holds tensors. Make one tensor "
                    "of it first: np.stack(list)."
                )
            args[i] = np.asarray(args[i])
    return args


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
    if isinstance(rule, Nondifferentiable):
        _tell_lost(followed, name_of(fn), rule.why)
    elif followed:
        why = f" yet ({NOT_YET[fn]})" if fn in NOT_YET else ""
        raise UnsupportedOperationError(
            f"{name_of(fn)} has no gradient rule{why}, and its argument is being "
            f"differentiated. Give it one with gs.with_gradient({name_of(fn)}, grad), "
            "or pass gs.stop_gradient(x) if it should count as a constant."
        )
    y = fn(*unwrap(tuple(args)), **unwrap(kwargs))
    return _wrap_arrays(y)


def _wrap_arrays(y: Any) -> Any:
    if isinstance(y, (np.ndarray, np.generic)):
        return wrap(y)
    if isinstance(y, (tuple, list)):
        parts = map(_wrap_arrays, y)
        return type(y)(*parts) if hasattr(y, "_fields") else type(y)(parts)
    return y


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


def _refuse_hidden(
    rule: Function, inputs: Sequence[Any], args: Any, kwargs: Any
) -> None:
    """A followed tensor in an argument that the rule does not differentiate raises."""
    start, stop, _ = rule.arrays.indices(len(args))
    known = {id(x) for x in inputs}
    hidden = [x for x in _traced_in(args[start:stop]) if id(x) not in known]
    for x in (*_traced_in((args[:start], args[stop:], kwargs)), *hidden):
        if x.dtype.kind in "fcO" and _is_followed(x):
            raise UnsupportedOperationError(
                f"{rule.name} can't be differentiated with respect to one of its "
                "options, and that one is being differentiated. Pass "
                "gs.stop_gradient(option) if it should count as a constant."
            )


def _refuse_scipy(x: Traced, frame: Any) -> None:
    """SciPy's Python functions make plain arrays of their arguments without a word."""
    fn = None
    while frame:
        module = frame.f_globals.get("__name__", "")
        if module.startswith("scipy."):
            fn = f"{module}.{frame.f_code.co_name}"
        elif not module.startswith("numpy."):
            break
        frame = frame.f_back
    if fn and _is_followed(x):
        raise UnsupportedOperationError(
            f"{fn} has no gradient rule, and its argument is being differentiated. "
            "Give it one with gs.with_gradient, or pass gs.stop_gradient(x) or "
            "x.numpy() if it should count as a constant."
        )


def _tell_lost(xs: Sequence[Traced], where: str, why: str) -> None:
    for recorder in state.recorders:
        recorder.lost(xs, state.inside or where, why)


_WRITES = (
    "{} can't write into an existing array (out=..., or an in-place operator like "
    "`array += tensor`): the tape would lose the result. Write `array = array + tensor`"
)
_ASSIGNED = "a variable holds a plain value, wherever it comes from"
LEFT = "the value became a plain array or number, which no tape follows"


def _call_ufunc(
    ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """Ufuncs with options, and their methods `reduce`, `accumulate` and `outer`."""
    out = kwargs.pop("out", None)
    if out is not None and any(o is not None for o in out):
        raise UnsupportedOperationError(_WRITES.format(name_of(ufunc)))
    for x in inputs:
        _refuse_foreign(type(x), ufunc)
    if method == "outer":
        x1, x2 = inputs
        inputs = np.reshape(x1, np.shape(x1) + (1,) * np.ndim(x2)), x2
    elif method != "__call__":
        return _call_method(ufunc, method, inputs, kwargs)
    dtype = kwargs.pop("dtype", None)
    if kwargs and any(map(_is_followed, _traced_in(inputs))):
        raise UnsupportedOperationError(
            f"{name_of(ufunc)} is differentiated without {', '.join(kwargs)}=..."
        )
    if dtype is not None:
        inputs = [convert(x, dtype) for x in inputs]
    return call(ufunc, inputs, kwargs)


def _call_method(
    ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """`ufunc.reduce` and its like: as `np.sum` and its like where there is one."""
    if method == "at":
        raise UnsupportedOperationError(_WRITES.format(f"{name_of(ufunc)}.at"))
    if not any(map(_is_followed, _traced_in((inputs, kwargs)))):
        run = getattr(ufunc, method)
        return _wrap_arrays(run(*unwrap(tuple(inputs)), **unwrap(kwargs)))
    return call(reduction_of(ufunc, method), inputs, kwargs)


# --- operators and methods -----------------------------------------------------------


def _binary(ufunc: np.ufunc) -> tuple[Any, Any]:
    """An operator and its reflection."""
    rule = RULES.get(ufunc)
    if type(rule) is Elementwise:  # 0.5 us less than through NumPy's dispatch
        return (
            lambda self, other: (
                call_with_number(rule, self, (self, other), 0)
                if other.__class__ is float
                else call_binary(rule, self, other)
            ),
            lambda self, other: (
                call_with_number(rule, self, (other, self), 1)
                if other.__class__ is float
                else call_binary(rule, other, self)
            ),
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
    "all any argmax argmin argpartition argsort astype choose clip conj copy cumprod "
    "cumsum diagonal dot max mean min nonzero prod ravel repeat round searchsorted "
    "squeeze std sum swapaxes take trace var"
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
for _name, _fn in {"flatten": np.ravel, "conjugate": np.conj}.items():
    setattr(Tensor, _name, _method(_fn))
for _name in ("reshape", "transpose"):
    setattr(Tensor, _name, _axes_method(getattr(np, _name)))
