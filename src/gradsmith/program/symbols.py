"""Arrays that have only a shape and a dtype, and write down what is computed of them.

A symbol goes wherever NumPy's functions take an array: by NumPy's protocols, each call
becomes a step of the trace that it belongs to. So plain NumPy code, `gradsmith.numpy`,
the rules and the tape trace as they are. What needs the elements is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, reduce
from inspect import signature
from math import prod
from operator import or_
from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..core import calls
from ..core.cotangent import Spec
from ..core.errors import GradsmithError, UnsupportedOperationError
from ..core.escapes import traced_in
from ..core.operators import METHODS, OPERATORS, PROPERTIES, require_kept
from ..core.places import place_here
from ..core.rule import convert, index, name_of
from ..core.symbolic import Symbolic
from ..rules.axes import NoValue
from ..rules.indexing import scatter
from .graph import Step, Value, changed, is_uniform, setitem
from .refusals import OpenShapeError, refuse
from .results import STRUCTURAL, NumberSpec, result_of, tried
from .writes import (
    CHANGING,
    NEW_BEGINNING,
    View,
    link,
    require_known,
    view_of,
    write,
)

LARGEST_LITERAL = 64  # elements; a larger array of equal ones is made when it runs


class Symbol(NDArrayOperatorsMixin, Symbolic):
    """An array of a function that is being traced."""

    __slots__ = (
        "__weakref__", "is_argument", "is_number", "lost", "overflows", "spec", "trace",
        "view", "views",
    )  # fmt: skip
    __hash__ = object.__hash__  # type: ignore[assignment]

    def __init__(self, trace: Trace, spec: Value) -> None:
        self.trace = trace
        self.spec = spec  # another one after a write
        self.overflows = False
        self.is_argument = False
        self.is_number = not spec.shape  # one of NumPy's, if nobody says otherwise
        self.view: View | None = None  # of other symbols
        self.views: list[Any] = []  # references to those of this one
        self.lost = ""  # where a write may have changed it, or not

    # What is known

    @property
    def shape(self) -> tuple[int, ...]:
        return self.spec.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.spec.dtype

    @property
    def ndim(self) -> int:
        return len(self.spec.shape)

    @property
    def size(self) -> int:
        return prod(self.spec.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def base(self) -> Symbol | None:
        return self.view.of[0] if self.view else None

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    def __repr__(self) -> str:
        return f"Symbol(shape={self.shape}, dtype={self.dtype})"

    # What is computed

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        if next(traced_in(inputs), None) is not None:
            return NotImplemented  # the tensor's to answer
        if method == "__call__":
            y = self.trace.call(ufunc, inputs, kwargs)
            return _product(y, *inputs) if ufunc is np.multiply else _passed(y, inputs)
        if method == "at":
            return self.trace.change(ufunc.at, inputs, kwargs)
        if method == "outer":
            x1, x2 = inputs
            x1 = np.reshape(x1, np.shape(x1) + (1,) * np.ndim(x2))
            return self.trace.call(ufunc, (x1, x2), kwargs)
        return _passed(self.trace.call(getattr(ufunc, method), inputs, kwargs), inputs)

    def __array_function__(
        self, fn: Any, types: Any, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        if next(traced_in((args, kwargs)), None) is not None:
            return calls.call(fn, args, kwargs)
        return _passed(self.trace.call(fn, tuple(args), kwargs), args)

    def overflowing(self, overflows: bool = True) -> Symbol:
        return self if self.overflows == overflows else self._view(overflows)

    def readonly(self) -> Symbol:
        same = self._view(self.overflows)
        same.is_argument = True
        return same

    def _view(self, overflows: bool) -> Symbol:
        """A view of all of it."""
        same = Symbol(self.trace, self.spec)
        same.overflows, same.is_number = overflows, self.is_number
        link(same, View((self,), lambda x: x, lambda x, new: new))
        return same

    def called(
        self, fn: Any, arrays: Any, specs: Any, *, in_list: bool = False
    ) -> list[Any]:
        ys = [self.trace.symbol(spec) for spec in specs]
        arrays = self.trace.values(tuple(arrays))
        self.trace.add(fn, arrays, {}, [y.spec for y in ys], in_list=in_list)
        return ys

    def __getitem__(self, key: Any) -> Any:
        return index(self, key)

    def astype(
        self,
        dtype: Any,
        order: Any = "K",
        casting: Any = "unsafe",
        subok: Any = True,
        copy: Any = True,
    ) -> Any:
        """Like `np.astype`."""
        if copy or np.dtype(dtype) != self.dtype:
            return convert(self, dtype)
        if order == "K":
            return self
        same = self.trace.copy_of(self)  # or not, by the layout of memory
        link(same, View((self,)))
        return same

    def copy(self, order: Any = "C") -> Any:
        """Like `np.copy`, but of a number it is one."""
        return self.trace.copy_of(self, is_number=self.is_number)

    def reshape(self, *shape: Any, **options: Any) -> Any:
        """Like `np.reshape`, also with the lengths one by one."""
        return np.reshape(self, _packed(shape), **options)  # type: ignore[call-overload]

    def transpose(self, *axes: Any) -> Any:
        """Like `np.transpose`, also with the axes one by one."""
        return np.transpose(self, _packed(axes) if axes else None)  # type: ignore[call-overload]

    def flatten(self, *order: Any) -> Any:
        """Like `np.ravel`, but always a copy."""
        return np.copy(np.ravel(self, *order))  # type: ignore[call-overload]

    # What is changed

    def __setitem__(self, key: Any, value: Any) -> None:
        view = value.view if isinstance(value, Symbol) else None
        if view is not None and view.of[0] is self and view.key is key:
            return  # as `x[key] += y` ends, after the write into the view
        self.trace.change(setitem, (self, key, value), {})

    def fill(self, value: Any) -> None:
        """Write a number into all elements."""
        self[...] = value

    def sort(self, axis: int = -1) -> None:
        """Sort the elements along an axis."""
        self[...] = np.sort(self, axis)  # type: ignore[call-overload]

    # What is refused

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        refuse(
            "np.array, np.asarray, a list of arrays or an assignment to an array's "
            "elements needs the elements",
            "np.stack([a, b]) or gnp.array([a, b]) instead of np.array([a, b]), "
            "gnp.asarray(x) for np.asarray(x), np.where instead of an assignment "
            "to elements, gnp.take(array, i, axis=0) instead of array[i] for an array "
            "that is no argument",
        )

    def __bool__(self) -> NoReturn:
        refuse(
            "a Python `if`, `while`, `and`, `or` or `not` needs the elements",
            "np.where(condition, a, b) computes both and chooses for each element; "
            "an option that decides is no array: pass a Python number or bool, which "
            "the program has built in",
        )

    def __float__(self) -> NoReturn:
        refuse("float(x), or a function of Python numbers, needs the elements", _NUMBER)

    def __int__(self) -> NoReturn:
        refuse("int(x) needs the elements", _NUMBER)

    def __complex__(self) -> NoReturn:
        refuse("complex(x) needs the elements", _NUMBER)

    def __index__(self) -> NoReturn:
        refuse(
            "an index, a length or range(x) needs the elements",
            "gnp.take(array, i, axis=0) instead of array[i] for an array that is no "
            "argument; lengths are Python numbers or come from x.shape",
        )

    def item(self, *_: Any) -> NoReturn:
        refuse("x.item() needs the elements", _NUMBER)

    def tolist(self) -> NoReturn:
        refuse("x.tolist() needs the elements", _NUMBER)

    def __contains__(self, x: Any) -> NoReturn:
        refuse("`x in array` needs the elements", "np.any(array == x)")

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __reduce__(self) -> NoReturn:
        raise TypeError("an array of a function that is being traced can't be pickled")


def _product(y: Any, x1: Any, x2: Any) -> Any:
    """y = x1 * x2, but 0 where one is 0 and the other has overflown."""
    zero = [np.equal(x, 0) for x, by in ((x1, x2), (x2, x1)) if _overflows(by)]
    return _passed(np.where(reduce(or_, zero), 0, y), (x1, x2)) if zero else y


def _passed(y: Any, args: Any) -> Any:
    """y, which can hold what overflown arguments hold."""
    if isinstance(y, Symbol) and y.dtype.kind in "fc" and any(map(_overflows, args)):
        return y.overflowing()
    return y


def _overflows(x: Any) -> bool:
    if isinstance(x, (list, tuple)):
        return any(map(_overflows, x))
    return isinstance(x, Symbol) and x.overflows


_NUMBER = (
    "compute with NumPy's functions, np.sin instead of math.sin, and np.stack of a "
    "list instead of array[i] = x; what decides the course of the program is passed as "
    "a Python number, which the program has built in"
)


def _packed(axes: tuple[Any, ...]) -> Any:
    alone = len(axes) == 1 and not isinstance(axes[0], (int, np.integer))
    return axes[0] if alone else axes


def _in_place(ufunc: np.ufunc) -> Callable[..., Any]:
    """`x += y`; of a number it is a new one."""

    def method(self: Symbol, other: Any) -> Any:
        return ufunc(self, other) if self.is_number else ufunc(self, other, out=self)

    return method


def _method(fn: Any) -> Callable[..., Any]:
    def method(self: Symbol, *args: Any, **kwargs: Any) -> Any:
        return fn(self, *args, **kwargs)

    method.__doc__ = f"Like `{name_of(fn)}`."
    return method


for _name, _ufunc in OPERATORS.items():
    if _name != "divmod":
        setattr(Symbol, f"__i{_name}__", _in_place(_ufunc))
for _name, _fn in METHODS.items():
    if not hasattr(Symbol, _name):
        setattr(Symbol, _name, _method(_fn))
for _name, _fn in PROPERTIES.items():
    setattr(Symbol, _name, property(_fn))


class Trace:
    """The steps of a function while it runs on symbols."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.constants: dict[Value, np.ndarray] = {}
        self.is_open = True
        self.writes = False  # into an array
        self._known: dict[int, tuple[np.ndarray, Value]] = {}

    def symbol(self, spec: Spec) -> Symbol:
        """A new array of this shape and dtype."""
        return Symbol(self, Value(tuple(spec.shape), np.dtype(spec.dtype)))

    def call(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a function gives for symbols: symbols, by one more step."""
        if not self.is_open:
            raise GradsmithError(
                "an array of a traced function is used after the trace has ended: the "
                "function kept it, in a global, an attribute or a list\n  what to do: "
                "return it instead"
            )
        args, kwargs = with_named_out(fn, args, kwargs)
        kwargs = {
            name: x
            for name, x in kwargs.items()
            if x is not NoValue
            and (name != "out" or _is_given(x))
            and name != "overwrite_input"  # what is in it then is left open
        }
        if "out" in kwargs:
            return self.call_into(kwargs.pop("out"), fn, args, kwargs)
        if fn in CHANGING:
            return self.change(fn, args, kwargs)
        if fn in STRUCTURAL:
            return tried(fn, args, kwargs)
        if fn is np.nan_to_num:
            options = dict(zip(_OF_NAN_TO_NUM, args, strict=False)) | kwargs
            if not options.pop("copy", True):
                return self._without_nan(**options)
        if fn is np.astype and not kwargs.get("copy", True):
            return args[0].astype(args[1], copy=False)
        fn, args, kwargs = _usual(fn, args, kwargs)
        if fn is np.copy:
            return self.copy_of(args[0] if args else kwargs["a"])
        if _is_ours(fn):
            n = len(self.steps)
            try:
                return fn.__wrapped__(*args, **kwargs)
            except OpenShapeError:
                raise
            except UnsupportedOperationError:  # it looks at elements: one step
                del self.steps[n:]
        made = result_of(fn, args, kwargs)
        several = isinstance(made, (tuple, list))
        specs = made if several else (made,)
        if not all(isinstance(spec, Spec) for spec in specs):
            refuse(f"what {name_of(fn)} returns is no array", "leave it out")
        ys = [self.symbol(spec) for spec in specs]
        for y, spec in zip(ys, specs, strict=True):
            y.is_number = isinstance(spec, NumberSpec)
            view = view_of(fn, args, kwargs, y)
            if view is not None:
                link(y, view)
        args, kwargs = self.values(args), self.values(kwargs)
        self.add(fn, args, kwargs, [y.spec for y in ys], in_list=several)
        if not several:
            return ys[0]
        return type(made)(*ys) if hasattr(made, "_fields") else type(made)(ys)

    def copy_of(self, x: Symbol, *, is_number: bool = False) -> Symbol:
        """The same in memory of its own, without a step."""
        same = Symbol(self, self.values(x))
        same.overflows, same.is_number = x.overflows, is_number
        return same

    def _without_nan(self, x: Symbol, **options: Any) -> Symbol:
        """`np.nan_to_num(x, copy=False)`, which writes into x."""
        y = self.call(np.nan_to_num, (x,), options)
        if not isinstance(x, Symbol) or x.is_number or x.dtype.kind not in "fc":
            return y
        y = self.copy_of(y)
        write(x, y)
        return x if x.shape else y

    def call_into(
        self, out: Any, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """`fn(..., out=x)`: x, which is written."""
        x = out[0] if isinstance(out, tuple) and len(out) == 1 else out
        if not isinstance(x, Symbol):
            refuse(
                f"{name_of(fn)} writes into an array by out= or an operator like "
                "`a += x`, and the array is no result of what is traced",
                NEW_BEGINNING,
            )
        where = kwargs.pop("where", True) if isinstance(fn, np.ufunc) else True
        if _accumulates(fn) and x.dtype.kind in "fc":
            args = args[:2] if args[2:] == (None,) else args
            if len(args) < 3 and kwargs.get("dtype") is None:
                kwargs["dtype"] = x.dtype
        y: Any = self.call(fn, args, kwargs)
        require_kept(x, y.shape, y.dtype)
        if where is not True:
            y = np.where(where, y, x)
        write(x, convert(y, x.dtype) if y.dtype != x.dtype else y)
        return x

    def change(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A function that writes into its first argument."""
        if not args or not isinstance(args[0], Symbol):
            refuse(
                f"{name_of(fn)} writes into an array that is no result of what is "
                "traced",
                NEW_BEGINNING,
            )
        x, *rest = args
        y = _chosen(x, *rest) if fn is setitem else None
        write(x, self.call(changed, (fn, *args), kwargs) if y is None else y)

    def add(
        self,
        fn: Any,
        args: Any,
        kwargs: Any,
        outputs: Sequence[Value],
        *,
        in_list: bool = False,
    ) -> None:
        """Append a step."""
        step = Step(fn, args, kwargs, tuple(outputs), place_here(), in_list)
        self.steps.append(step)

    def values(self, x: Any) -> Any:
        """Arguments with values in the places of symbols and of captured arrays."""
        if isinstance(x, Symbol):
            if x.trace is not self:
                raise GradsmithError(
                    "arrays of two traced functions were combined: a trace within "
                    "another one is given the outer one's arrays as arguments"
                )
            require_known(x)
            return x.spec
        if isinstance(x, np.ndarray):
            return self.constant(np.asarray(x))
        if isinstance(x, (list, tuple)):
            parts = [self.values(part) for part in x]
            if hasattr(x, "_fields"):
                return type(x)(*parts)
            return parts if isinstance(x, list) else tuple(parts)
        if isinstance(x, dict):
            return {key: self.values(part) for key, part in x.items()}
        return x

    def constant(self, x: np.ndarray) -> Any:
        """What stands for an array that the function captured or made.

        The array may be changed afterwards, so it is copied, and compared when it is
        seen again.
        """
        if not x.ndim:
            return x[()]  # a scalar of NumPy, which has the same dtype
        known = self._known.get(id(x))
        if known is not None and _equal(known[0], self.constants.get(known[1]), x):
            return known[1]
        value = Value(x.shape, x.dtype)
        if x.size > LARGEST_LITERAL and is_uniform(x):
            self.add(np.full, (x.shape, x.flat[0]), {}, [value])
            return value
        self.constants[value] = x.copy()
        self._known[id(x)] = (x, value)
        return value


def _is_ours(fn: Any) -> bool:
    """Whether a function of the rules can be looked into: it is written in NumPy's."""
    module = getattr(fn, "__module__", None) or ""
    return module.startswith("gradsmith.") and fn not in _WHOLE


_WHOLE = (index, convert, scatter, changed)  # steps by themselves
_OF_NAN_TO_NUM = ("x", "copy", "nan", "posinf", "neginf")


def _chosen(x: Symbol, key: Any, value: Any) -> Any:
    """x after `x[mask] = number`, element by element; None for other writes."""
    flags = getattr(key, "dtype", np.dtype(int)).kind == "b"
    if not flags or key.shape != x.shape or np.ndim(value):
        return None
    return np.where(key, value, x) if np.result_type(x, value) == x.dtype else None


def _equal(held: np.ndarray, copy: Any, x: np.ndarray) -> bool:
    return held is x and copy is not None and copy.tobytes() == x.tobytes()


def with_named_out(
    fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with `out`, and what stands behind it, by name."""
    n, names = _from_out_on(fn)
    if names and len(args) > n:
        return args[:n], dict(zip(names, args[n:], strict=False)) | kwargs
    return args, kwargs


@cache
def _from_out_on(fn: Any) -> tuple[int, list[str]]:
    """How many parameters of a function are before `out`, and the names of others."""
    if isinstance(fn, np.ufunc):  # NumPy has done that
        return 0, []
    if fn in (np.dot, np.concatenate):  # whose parameters older NumPy doesn't tell
        return 2, ["out"]
    try:
        found = signature(fn).parameters.values()
    except (TypeError, ValueError):
        return 0, []
    names = [p.name for p in found if p.kind <= p.POSITIONAL_OR_KEYWORD]
    n = names.index("out") if "out" in names else len(names)
    return n, names[n:]


def _accumulates(fn: Any) -> bool:
    """Whether it computes in the dtype of `out`, if nobody says another one."""
    return fn in _SUMS or getattr(fn, "__self__", None) in (np.add, np.multiply)


_SUMS = (np.sum, np.prod, np.mean, np.cumsum, np.cumprod)


def _is_given(out: Any) -> bool:
    return (
        any(o is not None for o in out) if isinstance(out, tuple) else out is not None
    )


def _usual(fn: Any, args: Any, kwargs: Any) -> tuple[Any, Any, dict[str, Any]]:
    """A call in the form that steps have: no data where the shape alone is meant."""
    if fn is np.astype or fn is convert:
        x, dtype = (*args, *kwargs.values())[:2]
        return convert, (x, np.dtype(dtype)), {}
    if fn in _FILLED:
        x = args[0] if args else kwargs.get("a", kwargs.get("prototype"))
        rest = dict(zip(_FILLED[fn][1], args[1:], strict=False)) | kwargs
        shape = rest.get("shape")
        shape = x.shape if shape is None else shape
        shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        dtype = np.dtype(rest.get("dtype") or x.dtype)
        fill = [rest["fill_value"]] if fn is np.full_like else []
        return _FILLED[fn][0], (shape, *fill), {"dtype": dtype}
    return fn, args, kwargs


_OPTIONS = ("dtype", "order", "subok", "shape")
_FILLED = {
    np.zeros_like: (np.zeros, _OPTIONS),
    np.ones_like: (np.ones, _OPTIONS),
    np.empty_like: (np.zeros, _OPTIONS),
    np.full_like: (np.full, ("fill_value", *_OPTIONS)),
}
