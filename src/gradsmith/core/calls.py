"""Calling any NumPy function on tensors.

NumPy hands every call with a `Tensor` in it to `__array_ufunc__` or
`__array_function__`. The call is run on plain arrays; then each active recorder is told
of it, together with the rule from the registry.
"""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any

import numpy as np

from .cotangent import Scattered, Spec
from .elementwise import call_elementwise, call_unary, tell
from .errors import UnsupportedOperationError
from .escapes import is_followed, tell_lost, traced_in
from .foreign import answer_of, computes_differently, foreign_in, read
from .hooks import FUNCTION
from .rule import (
    NOT_YET,
    RULES,
    Composite,
    Elementwise,
    Function,
    Nondifferentiable,
    Rule,
    convert,
    find_rule,
    index,
    is_basic,
    name_of,
    reduction_of,
)
from .symbolic import PLAIN
from .tape import INSIDE, Traced, record_pull, state
from .tensor import Tensor, joined, unwrap, wrap


def _array_ufunc(
    self: Tensor, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any
) -> Any:
    for x in inputs if len(inputs) > 1 else ():
        if x.__class__ not in KNOWN and computes_differently(type(x)):
            call_of = (ufunc, method, *inputs)
            return answer_of(x, "__array_ufunc__", ufunc, *call_of, **kwargs)
    rule = RULES.get(ufunc)
    if method == "__call__" and not kwargs and type(rule) is Elementwise:
        if FUNCTION.wrappers:
            return call(ufunc, inputs, kwargs)
        return (
            call_unary(rule, inputs[0])
            if len(inputs) == 1
            else call_elementwise(rule, inputs)
        )
    plain = method == "__call__" and not kwargs and not FUNCTION.wrappers
    if plain and isinstance(rule, Function):  # np.matmul: 1 us less
        return call_function(rule, inputs, kwargs)
    return _call_ufunc(ufunc, method, inputs, kwargs)


def _array_function(
    self: Tensor, fn: Any, types: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    if not KNOWN.issuperset(types) and any(map(computes_differently, types)):
        other = foreign_in((*args, *kwargs.values()))
        return answer_of(other, "__array_function__", fn, fn, types, args, kwargs)
    rule = None if FUNCTION.wrappers else RULES.get(fn)
    if isinstance(rule, Function):  # what `call` finds out, 0.3 us less
        return call_function(rule, args, kwargs)
    return call(fn, args, kwargs)


class _Taken:
    """The pullback of x[key], for a key that names no element twice."""

    __slots__ = ("key", "like", "rule")

    def __init__(self, rule: Any, key: Any, x: Any) -> None:
        self.rule = rule
        self.key = key
        self.like = Spec(x.shape, x.dtype)

    def __call__(self, dy: Any) -> Any:
        if dy.__class__ in _ARRAYS:
            return Scattered(self.key, dy, self.like.shape, distinct=True)
        return self.rule.vjp(dy, None, self.like, self.key)


def _getitem(self: Tensor, key: Any) -> Tensor:
    """What `index` does, which takes 12 us more to find it out."""
    value = self.value
    if FUNCTION.wrappers or value.__class__ is not np.ndarray or not is_basic(key):
        return index(self, key)
    y, rule = wrap(value[key]), RULES[index]
    active = state()
    tape = active.sole or active.follower((self,))
    if tape and value.dtype.kind == "f":
        node = tape.mark_of(self)
        if node is not None:
            record_pull(tape, rule, node, _Taken(rule, key, value), y)
    elif active.recorders:
        if value.dtype.kind not in "fcO":
            return index(self, key)
        nested = active.now().nested if tape is None else ()
        if nested and value.dtype.kind == "f":
            _record_each(nested, rule, self, _Taken(rule, key, value), y)
            return y
        tell(rule, (self,), ((self, key), {}), ((value, key), {}), y)
    return y


# Types of which nobody needs to ask whether they compute differently
KNOWN = {Tensor, np.ndarray, np.float64, int, float}


setattr(Tensor, "__array_ufunc__", _array_ufunc)  # noqa: B010 (no attribute for pyright)
setattr(Tensor, "__array_function__", _array_function)  # noqa: B010
setattr(Tensor, "__getitem__", _getitem)  # noqa: B010


def call(fn: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Run any function of the registry and tell the recorders."""
    if FUNCTION.wrappers:
        return FUNCTION.run(_call, fn, args, kwargs)
    return _call(fn, args, kwargs)


def _call(fn: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    rule = find_rule(fn)
    if type(rule) is Elementwise:
        if kwargs and not isinstance(fn, np.ufunc):
            bound = signature(fn).bind(*args, **kwargs)
            args, kwargs = bound.args, bound.kwargs
        if not kwargs:
            return call_elementwise(rule, args)
    if isinstance(rule, Function):
        return call_function(rule, args, kwargs)
    if kwargs.get("out") is not None:
        raise UnsupportedOperationError(_WRITES.format(name_of(fn)))
    if isinstance(rule, Composite):
        return _call_composite(rule, args, kwargs)
    return _call_undifferentiated(fn, rule, args, kwargs)


def _call_composite(rule: Composite, args: Sequence[Any], kwargs: Any) -> Any:
    """Run a definition; what is lost in it is lost in the function that it defines."""
    if not rule.lists:
        args = [_one_array(x, rule) for x in args]
        kwargs = {name: _one_array(x, rule) for name, x in kwargs.items()}
    outer = INSIDE.get()
    INSIDE.set(outer or rule.name)
    try:
        return rule.definition(*args, **kwargs)
    finally:
        INSIDE.set(outer)


def call_function(rule: Function, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    if kwargs and kwargs.get("out") is not None:
        raise UnsupportedOperationError(_WRITES.format(rule.name))
    one = rule.of_one and args and isinstance(args[0], Traced)
    if one and (len(args) + len(kwargs) == 1 or _are_plain(args[1:], kwargs)):
        return _call_of_one(rule, args, kwargs)
    if rule.leading and _are_plain(args[rule.leading :], kwargs):
        y = _call_of_reals(rule, args, kwargs)
        if y is not NotImplemented:
            return y
    return _call_in_general(rule, args, kwargs)


def _call_in_general(rule: Function, args: Sequence[Any], kwargs: Any) -> Any:
    if kwargs and next(traced_in(kwargs), None) is not None:
        args, kwargs = rule.bind(args, kwargs)
    if not all(isinstance(x, _TAKEN) for x in args):
        args = _as_arrays(rule, args)
    if len(args) > rule.out_at and args[rule.out_at] is not None:
        raise UnsupportedOperationError(_WRITES.format(rule.name))
    plain = unwrap(tuple(args)), unwrap(kwargs)
    y = _wrap_all(rule.fn(*plain[0], **plain[1]))
    if state().recorders:
        inputs = rule.inputs(args)
        if not any(output.dtype.kind in "fcO" for output in traced_in(y)):
            tell_lost([*traced_in(inputs)], rule.name, _WHOLE)
            return y
        _refuse_hidden(rule, inputs, args, kwargs)
        tell(rule, inputs, (args, kwargs), plain, y)
    return y


def _are_plain(options: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether no tensor can be among these."""
    for x in (*options, *kwargs.values()) if kwargs else options:
        cls = x.__class__
        if cls not in _OPTIONS and (cls is not tuple or not _are_plain(x, {})):
            return False
    return True


_FOLLOWED = frozenset("fcO")  # kinds of dtypes
_OPTIONS = {int, bool, float, str, type(None)}


def _call_of_one(rule: Function, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """`call_function` of one tensor and options that hide none: 10 us less."""
    if len(args) > rule.out_at and args[rule.out_at] is not None:
        raise UnsupportedOperationError(_WRITES.format(rule.name))
    x: Any = args[0]
    value = x.value
    plain = (value, *args[1:])
    result = rule.run(*plain, **kwargs) if kwargs else rule.run(*plain)
    y = wrap(result) if isinstance(result, PLAIN) else _wrap_all(result)
    active = state()
    if not active.recorders:
        return y
    one = isinstance(y, Traced)
    tape = active.sole or active.follower((x,))
    real = one and y.value.dtype.kind == value.dtype.kind == "f"
    if real and tape:
        marks = x.marks
        node: Any = (marks and marks.get(tape.key)) or tape.mark_of(x)
        if node is not None:
            record_pull(tape, rule, node, rule.pull_first(plain, kwargs, y.value), y)
        return y
    nested = active.now().nested if real and tape is None and rule.saves_nothing else ()
    if nested:
        pull = rule.pull_first(plain, kwargs, y.value)
        _record_each(nested, rule, x, pull, y)
        return y
    kinds = y.dtype.kind if one else "".join([part.dtype.kind for part in y])
    if not _FOLLOWED.intersection(kinds):
        tell_lost([x], rule.name, _WHOLE)
    else:
        tell(rule, (x,), (args, kwargs), (plain, kwargs), y)
    return y


def _record_each(tapes: Any, rule: Any, x: Any, pull: Any, y: Any) -> None:
    """Record what saves nothing on all of nested gradients that follow x."""
    for tape in tapes:
        node = tape.mark_of(x)
        if node is not None:
            record_pull(tape, rule, node, pull, y)


def _call_of_reals(rule: Function, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """`call_function` of real arrays, in a list or alone: 20 us less.

    NotImplemented if there is something else among them.
    """
    leading = rule.leading
    inputs = args[0] if rule.list_at == 0 else args[:leading]
    if inputs.__class__ not in (list, tuple) or len(args) < leading:
        return NotImplemented
    values, tracked, parents = [], [], []
    tape: Any = state().follower(inputs)  # False if nobody follows any of them
    for i, x in enumerate(inputs):
        value = x
        if isinstance(x, Traced):
            value = x.value
            node = tape.mark_of(x) if tape else None
            if node is not None:
                tracked.append(i)
                parents.append(node)
        if value.__class__ not in _ARRAYS or value.dtype.kind != "f":
            return NotImplemented
        values.append(value)
    plain = values if rule.list_at is None else [values]
    plain += args[leading:]
    y = wrap(rule.run(*plain, **kwargs))
    if y.value.dtype.kind != "f":
        tell_lost([*traced_in(inputs)], rule.name, _WHOLE)
    elif tracked:
        pull = rule.pullback(tracked, (plain, kwargs), y.value)
        if len(tracked) == 1:
            record_pull(tape, rule, parents[0], _alone(pull), y)
        else:
            record_pull(tape, rule, parents, pull, y)
    elif not tape and state().recorders:
        tell(rule, inputs, (args, kwargs), (plain, kwargs), y)
    return y


def _alone(pull: Any) -> Any:
    return lambda dy: pull(dy, None)[0]


_ARRAYS = (np.ndarray, np.float64)

_WHOLE = "its result has an integer or boolean dtype here"


def _as_arrays(rule: Function, args: Sequence[Any]) -> list[Any]:
    """Make one array of each list, but where the rule takes a list of arrays."""
    args = list(args)
    array = lambda x: joined(x) if isinstance(x, (list, tuple)) else read(x, rule.fn)
    for i in range(len(args))[rule.arrays]:
        if i != rule.list_at:
            args[i] = array(args[i])
        elif isinstance(args[i], (list, tuple)):
            args[i] = type(args[i])(map(array, args[i]))
    return args


_TAKEN = (Traced, np.ndarray, np.generic, int, float, complex, str, type(None))


def _one_array(x: Any, rule: Rule) -> Any:
    """A list as one array, if there are tensors in it; else it may be a shape."""
    if not isinstance(x, (list, tuple)):
        is_array = hasattr(type(x), "__array__") and hasattr(type(x), "shape")
        return read(x, rule.fn) if is_array else x
    return x if next(traced_in(x), None) is None else joined(x)


def _wrap_all(y: Any) -> Any:
    if isinstance(y, tuple) and hasattr(y, "_fields"):
        return type(y)(*map(wrap, y))
    if isinstance(y, (tuple, list)):
        return type(y)(map(wrap, y))
    return wrap(y if hasattr(y, "dtype") else np.asarray(y))  # of an array of objects


def _call_undifferentiated(
    fn: Any, rule: Rule | None, args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    followed = []
    known = isinstance(rule, Nondifferentiable)
    if state().recorders and not (known and state().private):
        given = (args, kwargs) if kwargs else args
        followed = [x for x in traced_in(given) if is_followed(x)]
    if known:
        if followed:
            tell_lost(followed, rule.name, rule.why)
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
    if isinstance(y, PLAIN):
        return wrap(y)
    if isinstance(y, (tuple, list)):
        parts = map(_wrap_arrays, y)
        return type(y)(*parts) if hasattr(y, "_fields") else type(y)(parts)
    return y


def _refuse_hidden(
    rule: Function, inputs: Sequence[Any], args: Any, kwargs: Any
) -> None:
    """A followed tensor in an argument that the rule does not differentiate raises."""
    start, stop, _ = rule.arrays.indices(len(args))
    known = {id(x) for x in inputs}
    hidden = [x for x in traced_in(args[start:stop]) if id(x) not in known]
    for x in (*traced_in((args[:start], args[stop:], kwargs)), *hidden):
        if x.dtype.kind in "fcO" and is_followed(x):
            raise UnsupportedOperationError(
                f"{INSIDE.get() or rule.name} can't be differentiated with respect to "
                "one of its options, and that one is being differentiated. Pass "
                "gs.stop_gradient(option) if it should count as a constant."
            )


_WRITES = (
    "{} can't write into an existing array (out=..., or an in-place operator like "
    "`array += tensor`): the tape would lose the result. Write `array = array + tensor`"
)


def _call_ufunc(
    ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """Ufuncs with options, and their methods `reduce`, `accumulate` and `outer`."""
    out = kwargs.pop("out", None)
    if out is not None and any(o is not None for o in out):
        raise UnsupportedOperationError(_WRITES.format(name_of(ufunc)))
    if method == "outer":
        x1, x2 = inputs
        inputs = np.reshape(x1, np.shape(x1) + (1,) * np.ndim(x2)), x2
    elif method != "__call__":
        return _call_method(ufunc, method, inputs, kwargs)
    dtype = kwargs.pop("dtype", None)
    if kwargs and any(map(is_followed, traced_in(inputs))):
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
    if not any(map(is_followed, traced_in((inputs, kwargs)))):
        run = getattr(ufunc, method)
        return _wrap_arrays(run(*unwrap(tuple(inputs)), **unwrap(kwargs)))
    return call(reduction_of(ufunc, method), inputs, kwargs)
