"""Rules: what is differentiable, how, on which domain, and where its kinks are.

A rule is data about one NumPy function. There are five kinds, and each states its
formula once for both modes:

- `elementwise`: one partial derivative per argument,
- `linear`: the transpose; the tangent is the function itself,
- `bilinear`: one transpose per argument; the tangent is the product rule,
- `differentiable`: a `vjp` and, where it is worth one, a `jvp`,
- `composite`: the function written anew in functions that have rules,

besides `nondifferentiable`, which declares a zero gradient and says why. The names of a
partial's parameters say what is saved for it: `y` the result, `x` (or `x1`, `x2`, ...)
the arguments. Of a `vjp`'s arguments only those in `saves` are kept; the others arrive
as a `Spec` of shape and dtype.

Cotangents follow TensorFlow's and PyTorch's convention for complex values: the gradient
of a real loss points uphill, so `pull` is the conjugate transpose of `push`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from math import inf
from operator import add, mul, sub, truediv
from sys import maxsize
from typing import Any

import numpy as np

from .cotangent import Spec, cast, project, spec_of
from .errors import UnsupportedOperationError
from .pool import SMALLEST, computed, large_product

# What `gradsmith.rules` fills
RULES: dict[Any, Rule] = {}
REDUCTIONS: dict[tuple[np.ufunc, str], Any] = {}  # what `ufunc.reduce` stands for
NOT_YET: dict[Any, str] = {}  # why a function has no rule yet
BATCHED: dict[Any, Any] = {}  # how many tangents go through a function at once
LOADERS: list[Callable[[], bool]] = []  # of more rules; each says if any was new

_REAL = np.dtype(float)
ONE = 1  # compared by identity: a product with it is not computed


class Rule:
    """What the engine knows of one function.

    Attributes
    ----------
    fn, name : the function and how messages call it
    domain : the interval of (real) arguments on which the value is finite
    kinks : points where the derivative jumps or is infinite
    note : what the rule gives there
    """

    fn: Callable[..., Any]
    name: str
    domain: tuple[float, float]
    kinks: tuple[float, ...]
    note: str

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        domain: tuple[float, float] = (-inf, inf),
        kinks: tuple[float, ...] = (),
        note: str = "",
    ) -> None:
        self.fn = fn
        self.name = name_of(fn)
        self.domain = domain
        self.kinks = kinks
        self.note = note

    def __repr__(self) -> str:
        return f"<{type(self).__name__} rule of {self.name}>"


def name_of(fn: Any) -> str:
    """How a function is written: `np.linalg.solve`, `scipy.special.erf`."""
    module = getattr(fn, "__module__", None) or ""
    name = getattr(fn, "__name__", repr(fn))
    if isinstance(fn, np.ufunc):  # of NumPy's, one has no public name: np.clip's
        module = "numpy" if hasattr(np, name) else "scipy.special"
        if all(set(types) <= set("O->") for types in fn.types):
            module = ""  # somebody made it by np.frompyfunc
    return f"{module}.{name}".replace("numpy.", "np.", 1).lstrip(".")


def find_rule(fn: Any) -> Rule | None:
    """Return the rule of a function, or None."""
    rule = RULES.get(fn)
    if rule is None and _load_more():
        rule = RULES.get(fn)
    return rule


def find_batched(fn: Any) -> Any:
    """How many tangents go through a function at once, or None."""
    found = BATCHED.get(fn)
    if found is None and _load_more():
        found = BATCHED.get(fn)
    return found


def reduction_of(ufunc: np.ufunc, method: str) -> Any:
    """The function that `ufunc.reduce` or `ufunc.accumulate` stands for."""
    _load_more()
    if (ufunc, method) not in REDUCTIONS:
        raise UnsupportedOperationError(
            f"{name_of(ufunc)}.{method} has no gradient rule; those that have: "
            + ", ".join(f"{name_of(u)}.{m}" for u, m in REDUCTIONS)
        )
    return REDUCTIONS[ufunc, method]


def _load_more() -> bool:
    return sum(load() for load in LOADERS) > 0  # each of them


# --- elementwise ---------------------------------------------------------------------


class Elementwise(Rule):
    """y[i] depends on x[i] alone: dx = dy * conj(partial), dy = sum of partial * dx."""

    def __init__(self, fn: Any, *partials: Any, **facts: Any) -> None:
        super().__init__(fn, **facts)
        # On two float64, or on one and a number: in a tenth of a ufunc's 0.36 us
        self.of_scalars = _OF_SCALARS.get(fn, fn)
        self.partials = partials
        self.is_product = fn is np.multiply
        # What each partial is called with: -1 is y, other numbers are arguments.
        self.wants = [_wanted(partial) for partial in partials]
        self.quick = [
            _quick(partial, wants)
            for partial, wants in zip(partials, self.wants, strict=True)
        ]

    def pullback(self, tracked: Sequence[int], call: Sequence[Any], y: Any) -> Any:
        if len(tracked) == len(call) == 2 and _are_alike(call[0], call[1], y):
            return self.pull_two(call, y)
        pulls = [self.pull_one(i, call, y) for i in tracked]
        return lambda dy, needs: [
            pull(dy) if needs is None or needs[k] else None
            for k, pull in enumerate(pulls)
        ]

    def pull_two(self, call: Sequence[Any], y: Any) -> Any:
        """`pullback` for two real arrays of one shape and dtype, that of y."""
        partial1, partial2 = self.partials
        wants1, wants2 = self.wants
        if partial1 is partial2 is ONE:
            return _both
        if self.is_product:
            x1, x2 = call
            return lambda dy, needs: (
                dy * x2 if needs is None or needs[0] else None,
                dy * x1 if needs is None or needs[1] else None,
            )
        args1 = [y if j < 0 else call[j] for j in wants1]
        args2 = [y if j < 0 else call[j] for j in wants2]

        def pull(dy: Any, needs: Any) -> tuple[Any, Any]:
            return (
                _product(dy, partial1, args1) if needs is None or needs[0] else None,
                _product(dy, partial2, args2) if needs is None or needs[1] else None,
            )

        return pull

    def pull_one(self, i: int, call: Sequence[Any], y: Any) -> Any:
        """The function from dy to the cotangent of the i-th argument."""
        partial = self.partials[i]
        args = [y if j < 0 else call[j] for j in self.wants[i]]
        spec = Spec(call[i].shape, call[i].dtype)
        if args and y.dtype is spec.dtype and y.shape == spec.shape and _is_real(y):
            if _is_large(y):
                return lambda dy: _large_product(dy, partial, args)
            return lambda dy: dy * partial(*args)
        return lambda dy: _pull_edge(dy, partial, args, spec)

    def push(
        self, tangents: Sequence[Any], call: Sequence[Any], y: Any, lead: Any = ()
    ) -> Any:
        total = None
        for dx, partial, wants in zip(tangents, self.partials, self.wants, strict=True):
            if dx is not None and partial is not None:
                p = (
                    partial(*[y if j < 0 else call[j] for j in wants])
                    if wants
                    else partial
                )
                # In this order: 1j * np.float64(2) is a complex of Python's
                term = dx if p is ONE else dx * p
                total = term if total is None else total + term
        return None if total is None else fit(total, y, lead)


def _power(x1: Any, x2: Any) -> Any:
    return x1 * x1 if x2 == 2 else np.power(x1, x2)


_OF_SCALARS: dict[Any, Any] = {
    np.add: add,
    np.subtract: sub,
    np.multiply: mul,
    np.true_divide: truediv,
    np.power: _power,
}


def _quick(partial: Any, wants: list[int]) -> tuple[Any, int | None] | None:
    """The pullback dy * partial of a product that needs no fitting, without a closure.

    `(partial, j)` stands for dy * partial(saved), where what is saved is the j-th
    argument or, for -1, y; `(pull, None)` for pull(dy), which needs nothing.
    """
    if partial is None or len(wants) > 1:
        return None
    if wants:
        return partial, wants[0]
    return (unchanged if partial is ONE else lambda dy: dy * partial), None


def _product(dy: Any, partial: Any, args: Sequence[Any]) -> Any:
    if args:
        return dy * partial(*args)
    if partial is None or partial is ONE:
        return None if partial is None else dy
    return computed(np.multiply, dy, partial) if _is_large(dy) else dy * partial


def _both(dy: Any, needs: Any) -> tuple[Any, Any]:
    return dy, dy


def _are_alike(x1: Any, x2: Any, y: Any) -> bool:
    """Whether these are small real arrays, or tensors, of one shape and dtype."""
    dtype = y.dtype
    return (
        dtype is x1.dtype
        and dtype is x2.dtype
        and dtype.kind == "f"
        and x1.shape == x2.shape
        and not _is_large(y)
    )


def unchanged(dy: Any) -> Any:
    return dy


def _is_real(y: Any) -> bool:
    return y.dtype.kind == "f"


def _is_large(y: Any) -> bool:
    return y.__class__ is np.ndarray and y.nbytes >= SMALLEST


def _large_product(dy: Any, partial: Any, args: Sequence[Any]) -> Any:
    p = partial(*args)
    is_new = getattr(p, "base", p) is None and all(p is not x for x in args)
    return large_product(dy, p, is_mine=is_new)


def _pull_edge(dy: Any, partial: Any, args: Any, spec: Spec) -> Any:
    if partial is None:
        return None
    if partial.__class__ in (int, float):  # sum first, then scale what is left
        dx = project(dy, spec)
        return dx if partial is ONE else dx * partial
    p = partial(*args) if args else partial
    if isinstance(p, complex) or getattr(p, "dtype", _REAL).kind == "c":
        p = p.conjugate()
    return project(dy if p is ONE else dy * p, spec)


def fit(dy: Any, y: Any, lead: tuple[int, ...] = ()) -> Any:
    """Bring a tangent to the shape and dtype of the value it belongs to.

    `lead` are the lengths of axes that the tangent has before those of the value.
    """
    dy, shape = cast(dy, y.dtype), lead + y.shape
    return dy if dy.shape == shape else np.broadcast_to(dy, shape)


def aligned(dx: Any, ndim: int) -> Any:
    """Tangents along a leading axis, as they broadcast beside arrays of `ndim` axes."""
    missing = ndim + 1 - dx.ndim
    if missing <= 0:
        return dx
    return np.reshape(dx, (dx.shape[0], *(1,) * missing, *dx.shape[1:]))


def _wanted(partial: Any) -> list[int]:
    if not callable(partial):
        return []
    if isinstance(partial, np.ufunc):  # of x, without a frame of Python: 0.1 us less
        return [0]
    code = getattr(partial, "__wrapped__", partial).__code__
    names = code.co_varnames[: code.co_argcount]
    return [-1 if n == "y" else int(n[1:] or 1) - 1 for n in names]


def elementwise(fn: Any, *partials: Any, **facts: Any) -> None:
    """Declare a function of corresponding elements by its partial derivatives.

    A partial is a function whose parameters say what it needs (`y`, `x` or `x1`, `x2`,
    ...), a number, or `None` for an argument that has no gradient.
    """
    RULES[fn] = Elementwise(fn, *partials, **facts)


# --- functions of whole arrays -------------------------------------------------------


class Function(Rule):
    """A function of whole arrays, by its `vjp` and maybe its `jvp`.

    The array arguments are `args[arrays]`. A list counts as one array, but that at the
    position `list_at` as many.
    `vjp(dy, y, *args, **kwargs)` returns a cotangent for each array argument (a tuple
    if there can be several), or is itself a tuple of functions, one for each.
    """

    def __init__(
        self,
        fn: Any,
        vjp: Callable[..., Any] | tuple[Callable[..., Any] | None, ...],
        jvp: Callable[..., Any] | None = None,
        *,
        saves: str = "",
        arrays: slice | int = 1,
        list_at: int | None = None,
        **facts: Any,
    ) -> None:
        super().__init__(fn, **facts)
        self.run = fn  # on plain arrays; maybe a shorter way to the same
        self.list_at = list_at
        self.vjp = vjp
        self.jvp = jvp
        self.arrays = slice(0, arrays) if isinstance(arrays, int) else arrays
        self.of_one = self.arrays == slice(0, 1) and list_at is None
        # The first arguments, if these are all arrays there are: lists, or two
        self.leading = 1 if list_at == 0 and self.arrays == slice(0, 1) else 0
        first = next(filter(None, vjp)) if isinstance(vjp, tuple) else vjp
        self.saves_y = "y" in saves.split()
        self.saved_args = _positions(first, saves)
        self.saves_nothing = not self.saves_y and not self.saved_args
        names = first.__code__.co_varnames[2 : first.__code__.co_argcount]
        self.out_at = names.index("out") if "out" in names else maxsize

    @property
    def pushes(self) -> bool:
        """Whether there is a `push`; else forward mode transposes the pullback."""
        return self.jvp is not None

    def inputs(self, args: Sequence[Any]) -> list[Any]:
        """The arrays among the arguments, lists flattened."""
        flat = []
        for arg in args[self.arrays]:
            flat.extend(arg) if isinstance(arg, (list, tuple)) else flat.append(arg)
        return flat

    def with_inputs(self, args: Sequence[Any], flat: Sequence[Any]) -> list[Any]:
        """The arguments with other arrays in the places of the arrays."""
        rest, args = iter(flat), list(args)
        args[self.arrays] = [
            [next(rest) for _ in arg] if isinstance(arg, (list, tuple)) else next(rest)
            for arg in args[self.arrays]
        ]
        return args

    def keeps(self, i: int, tracked: Sequence[int]) -> bool:
        """Whether the i-th argument's value is needed for these inputs' cotangents."""
        return i in self.saved_args

    def bind(self, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Bring array arguments that were given by keyword to their positions."""
        bound = signature(self.fn).bind(*args, **kwargs)
        names = list(bound.signature.parameters)
        stop = self.arrays.indices(len(names))[1]
        given = [n for n in names[:stop] if n in bound.arguments]
        if given != names[: len(given)]:
            raise UnsupportedOperationError(
                f"{self.name} is differentiated with its arrays in their positions"
            )
        arguments = dict(bound.arguments)
        extra = arguments.pop("kwargs", {})
        args = [arguments.pop(name) for name in given]
        return args, {**arguments, **extra}

    def pullback(self, tracked: Sequence[int], call: Any, y: Any) -> Any:
        args, kwargs = call
        start, stop, _ = self.arrays.indices(len(args))
        kept = [
            arg if not start <= i < stop or self.keeps(i, tracked) else specs_of(arg)
            for i, arg in enumerate(args)
        ]
        flat = self.inputs(args)
        likes = [(i, spec_of(flat[i])) for i in tracked]
        kept_y = y if self.saves_y else specs_of(y)
        several = isinstance(y, (tuple, list))

        def pull(dy: Any, needs: Any) -> list[Any]:
            wanted = tracked
            if needs is not None:
                wanted = [i for i, need in zip(tracked, needs, strict=True) if need]
            dy = complete(dy, kept_y) if several else dy
            dxs = self.cotangents(wanted, dy, kept_y, kept, kwargs)
            return [
                project(dxs[i], like) if i in wanted and dxs[i] is not None else None
                for i, like in likes
            ]

        return pull

    def pull_first(self, args: Sequence[Any], kwargs: dict[str, Any], y: Any) -> Any:
        """`pullback` for the first argument, the only array, as a function of dy."""
        vjp: Any = self.vjp[0] if isinstance(self.vjp, tuple) else self.vjp
        x, options = args[0], args[1:]
        like = Spec(x.shape, x.dtype)
        kept = x if 0 in self.saved_args else like
        kept_y = y if self.saves_y else Spec(y.shape, y.dtype)

        def pull(dy: Any) -> Any:
            dx = vjp(dy, kept_y, kept, *options, **kwargs)
            if dx.__class__ is tuple or dx.__class__ is list:
                (dx,) = dx
            return None if dx is None else project(dx, like)

        return pull

    def cotangents(
        self, wanted: Sequence[int], dy: Any, y: Any, args: Any, kwargs: Any
    ) -> Sequence[Any]:
        """A cotangent for each flat input, at least for the wanted ones."""
        if isinstance(self.vjp, tuple):
            return [
                vjp(dy, y, *args, **kwargs) if i in wanted and vjp else None
                for i, vjp in enumerate(self.vjp)
            ]
        dxs = self.vjp(dy, y, *args, **kwargs)
        if not isinstance(dxs, (tuple, list)):
            return [dxs]
        return self.inputs(self.with_inputs(args, dxs)) if _nested(dxs) else dxs

    def completed(self, tangents: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        """The tangents of all inputs, zeros where there is none."""
        return [
            spec_of(x).zeros() if dx is None else dx
            for dx, x in zip(tangents, self.inputs(args), strict=True)
        ]

    def push(self, tangents: Sequence[Any], call: Any, y: Any) -> Any:
        args, kwargs = call
        dxs = self.completed(tangents, args)
        assert self.jvp is not None
        dy = self.jvp(dxs[0] if len(dxs) == 1 else dxs, y, *args, **kwargs)
        if isinstance(y, (tuple, list)):
            return dy
        return fit(dy if hasattr(dy, "dtype") else np.asarray(dy), y)


def _has_dtype(x: Any) -> bool:
    return hasattr(x, "dtype")


def _nested(dxs: Any) -> bool:
    return any(isinstance(dx, (tuple, list)) for dx in dxs)


def _positions(vjp: Any, saves: str) -> set[int]:
    """Positions of the arguments called `saves` in `vjp(dy, y, *arguments)`."""
    code = vjp.__code__
    names = code.co_varnames[2 : code.co_argcount]
    return {names.index(name) for name in saves.split() if name != "y"}


def specs_of(x: Any) -> Any:
    """The spec of an array, or the specs of a list of arrays."""
    if isinstance(x, (tuple, list)):
        return [spec_of(part) for part in x]
    return spec_of(x)


def complete(parts: Any, outputs: Sequence[Any]) -> list[Any]:
    """The cotangents of all outputs, zero where none has come."""
    return [
        parts[i] if i in parts else spec_of(y).zeros() for i, y in enumerate(outputs)
    ]


class Linear(Function):
    """Linear in its arrays together: the tangent is the function of the tangents."""

    @property
    def pushes(self) -> bool:
        return True

    def pullback(self, tracked: Sequence[int], call: Any, y: Any) -> Any:
        args, kwargs = call
        if self.leading != 1 or not isinstance(args[0], (list, tuple)):
            return super().pullback(tracked, call, y)
        # For a list of arrays, in 4 us less
        likes, like_y, options = specs_of(args[0]), spec_of(y), args[1:]
        transpose: Any = self.vjp

        def pull(dy: Any, needs: Any) -> list[Any]:
            dxs = transpose(dy, like_y, likes, *options, **kwargs)
            return [
                project(dxs[i], likes[i]) if needs is None or needs[k] else None
                for k, i in enumerate(tracked)
            ]

        return pull

    def push(self, tangents: Sequence[Any], call: Any, y: Any) -> Any:
        args, kwargs = call
        dxs = self.completed(tangents, args)
        return self.fn(*self.with_inputs(args, dxs), **kwargs)


class Bilinear(Function):
    """Linear in each of two arrays: the tangent is f(dx1, x2) + f(x1, dx2)."""

    def __init__(self, fn: Any, vjp: Any, jvp: Any = None, **facts: Any) -> None:
        super().__init__(fn, vjp, jvp, **facts)
        self.leading = 2 if self.arrays == slice(0, 2) else 0

    @property
    def pushes(self) -> bool:
        return True

    def keeps(self, i: int, tracked: Sequence[int]) -> bool:
        return 1 - (i - self.arrays.start) in tracked  # the other one's cotangent

    def pullback(self, tracked: Sequence[int], call: Any, y: Any) -> Any:
        args, kwargs = call
        if self.leading != 2 or len(args) != 2:
            return super().pullback(tracked, call, y)
        x1, x2 = args
        if not (_has_dtype(x1) and _has_dtype(x2) and _has_dtype(y)):
            return super().pullback(tracked, call, y)
        # For two arrays and nothing else, in 3 us less
        like1, like2 = Spec(x1.shape, x1.dtype), Spec(x2.shape, x2.dtype)
        x1 = x1 if 1 in tracked else like1
        x2 = x2 if 0 in tracked else like2
        transposes: Any = self.vjp
        like_y, (vjp1, vjp2) = Spec(y.shape, y.dtype), transposes

        def pull(dy: Any, needs: Any) -> list[Any]:
            return [
                None
                if needs is not None and not needs[k]
                else project(vjp2(dy, like_y, x1, x2, **kwargs), like2)
                if i
                else project(vjp1(dy, like_y, x1, x2, **kwargs), like1)
                for k, i in enumerate(tracked)
            ]

        return pull

    def push(self, tangents: Sequence[Any], call: Any, y: Any) -> Any:
        args, kwargs = call
        xs, total = self.inputs(args), None
        for i, dx in enumerate(tangents):
            if dx is not None:
                flat = [dx if i == j else x for j, x in enumerate(xs)]
                term = self.fn(*self.with_inputs(args, flat), **kwargs)
                total = term if total is None else total + term
        return fit(total, y)


def differentiable(fn: Any, vjp: Any, jvp: Any = None, **facts: Any) -> None:
    """Declare a function by its `vjp` (and `jvp`; else forward mode transposes it)."""
    RULES[fn] = Function(fn, vjp, jvp, **facts)


def linear(fn: Any, transpose: Any, **facts: Any) -> None:
    """Declare a linear function: `transpose(dy, y, *args, **kwargs)`, all as specs."""
    RULES[fn] = Linear(fn, transpose, **facts)


def bilinear(fn: Any, transpose1: Any, transpose2: Any, **facts: Any) -> None:
    """Declare a function linear in each of two arrays by its two transposes.

    The first is given the second array's value and the first's spec, and vice versa.
    """
    facts.setdefault("arrays", 2)
    RULES[fn] = Bilinear(fn, (transpose1, transpose2), **facts)


# --- neither -------------------------------------------------------------------------


class Composite(Rule):
    """A function written anew in functions that have rules.

    A list with tensors in it is given to the definition as one array, unless `lists`
    says that a list means several.
    """

    def __init__(
        self,
        fn: Any,
        definition: Callable[..., Any],
        *,
        lists: bool = False,
        **facts: Any,
    ) -> None:
        super().__init__(fn, **facts)
        self.definition = definition
        self.lists = lists


def composite(fn: Any, definition: Callable[..., Any], **facts: Any) -> None:
    """Declare a function by a definition in functions that have rules."""
    RULES[fn] = Composite(fn, definition, **facts)


class Nondifferentiable(Rule):
    """A function whose result carries no gradient, for a stated reason."""

    def __init__(self, fn: Any, why: str, **facts: Any) -> None:
        super().__init__(fn, **facts)
        self.why = why


def nondifferentiable(why: str, *fns: Any) -> None:
    """Declare that these functions' results carry no gradient, and why."""
    for fn in fns:
        RULES[fn] = Nondifferentiable(fn, why)


def not_yet(why: str, *fns: Any) -> None:
    """Declare why these functions have no rule: with a followed tensor they raise."""
    NOT_YET.update(dict.fromkeys(fns, why))


# --- functions of ours ---------------------------------------------------------------


_PLAINLY = np.ndarray.__array_function__  # also that of a memmap and its like


def primitive(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of ours dispatch on its arguments as NumPy's own functions do."""

    @wraps(fn)
    def dispatched(*args: Any, **kwargs: Any) -> Any:
        for arg in args:
            if type(arg) is dict:
                arg = tuple(arg.values())
            # A key, such as (rows, labels), is asked part by part
            for part in arg if type(arg) is tuple else (arg,):
                overload = getattr(type(part), "__array_function__", None)
                if overload is not None and overload is not _PLAINLY:
                    y = overload(part, dispatched, (type(part),), args, kwargs)
                    if y is not NotImplemented:
                        return y
        return fn(*args, **kwargs)

    return dispatched


# The two that tensors need and NumPy has no function for (np.astype wants an array)


@primitive
def index(x: Any, key: Any) -> Any:
    """Return `x[key]`."""
    return x[key]


def is_basic(key: Any) -> bool:
    """Whether a key is made of numbers, slices, None and an ellipsis."""
    cls = key.__class__
    if cls is tuple:
        return _BASIC.issuperset([part.__class__ for part in key])
    return cls in _BASIC


_BASIC = {int, slice, type(None), type(Ellipsis)}


@primitive
def convert(x: Any, dtype: Any, **options: Any) -> Any:
    """Return x in another dtype; to an integer one, it is a constant."""
    return np.asarray(x).astype(dtype, **options)
