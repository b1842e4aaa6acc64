"""`compile`: a function as straight-line code, for each signature that it is called by.

The code is Python's, one call of NumPy's per line: no tape, no tensors, no dispatch.
Memory is planned ahead: intermediate results lie in buffers that are used again as soon
as nobody needs what is in them, in the same call and in the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, update_wrapper
from types import FunctionType, MethodType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

import numpy as np

from ..core import trees
from ..core.foreign import refuse_as_tensor
from ..core.places import warn_user
from ..core.reach import Captures, is_plain, parts_of, reached
from ..core.symbolic import Symbolic
from ..core.tape import Traced, state
from ..core.tensor import Variable
from ..operations import fusing
from . import recorded
from .code import Code
from .graph import Program
from .passes import simplified
from .trace import input_spec, traced

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")

MANY = 8  # signatures of a function after which a word is said


def compile(fn: Callable[P, R]) -> Compiled[P, R]:
    """Return a function that runs the program of `fn`, without a tape.

    It is traced once for each signature: the shapes and dtypes of the arrays, the
    structure of trees, and the values of other arguments. Captured arrays become
    constants; a `gs.Variable` is read in each call. Results are new arrays.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> f = gs.compile(lambda x: np.sum(np.sin(x) ** 2))
    >>> float(f(np.zeros(3)))
    0.0

    Derivatives are compiled like everything else:
    `gs.compile(gs.value_and_grad(loss))`. `f.program(x)` is the program that a call
    runs. There are no floating-point warnings. With the extra `kernels` installed,
    sequences of elementwise steps and reductions along rows are fused into loops.

    Under a tape it is one operation, whose gradient is compiled as well, unless the
    function captures variables or tensors, or can't be traced.

    Raises
    ------
    TypeError
        If fn is not a function.
    UnsupportedOperationError
        When it is called first, if the function can't be traced.
    """
    return Compiled(fn)


class Compiled(Generic[P, R]):
    """A function that is traced when it is first called with a signature."""

    def __init__(self, fn: Callable[P, R]) -> None:
        if not callable(fn):
            raise TypeError(f"gs.compile takes a function, not {fn!r}")
        update_wrapper(self, fn)
        self.fn = fn
        self._codes: dict[Any, Code] = {}
        self._recorded: dict[Any, Any] = {}
        self._captures: Captures | None = None

    def __repr__(self) -> str:
        return f"<compiled {getattr(self.fn, '__name__', self.fn)}>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        key: list[Any] = []
        leaves: list[Any] = []
        for x in args:
            _read(x, key, leaves)
        if kwargs:
            for name in kwargs:
                key.append(name)
                _read(kwargs[name], key, leaves)
        signature = tuple(key)
        if recorded.is_observed():  # or changed, as by an override, which would stay
            return self.fn(*args, **kwargs)
        if state().recorders:  # which see what is computed
            run = self._under_tapes(signature, leaves, args, kwargs)
            return self._as_it_is(leaves, args, kwargs) if run is None else run(leaves)
        try:
            code = self._codes[signature]
        except KeyError:
            if _is_watched(leaves):
                return self._as_it_is(leaves, args, kwargs)
            code = self._new(signature, args, kwargs)
        if code.variables:
            leaves += [x.value for x in code.variables]
        return code.run(*leaves)

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(
        self: Compiled[Concatenate[Any, Q], R], instance: object, owner: Any = None
    ) -> Callable[Q, R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def _as_it_is(self, leaves: list[Any], args: Any, kwargs: Any) -> Any:
        """The steps of the function, for those who see them."""
        fn: Any = self.fn
        found = fn(*args, **kwargs)
        if not any(isinstance(x, Symbolic) for x in leaves):
            return found
        return trees.map(lambda y: y.copy() if isinstance(y, Symbolic) else y, found)

    def program(self, *args: P.args, **kwargs: P.kwargs) -> Program:
        """The program that a call with these arguments runs.

        Variables that the function captures are inputs too, after the arguments.
        """
        variables = self._variables(args, kwargs)
        return simplified(traced(self.fn, args, kwargs, variables))

    def _variables(self, args: Any, kwargs: Any) -> list[Variable]:
        """Those that the function captures, and that objects hold which it is given."""
        objects = [x for x in trees.leaves((args, kwargs)) if _is_object(x)]
        found = reached(self.fn, *objects, stop=lambda x: isinstance(x, Variable))
        return [x for x in found if x.dtype.kind in "biufc"]

    def _under_tapes(
        self, signature: Any, leaves: list[Any], args: Any, kwargs: Any
    ) -> Any:
        """The function as an operation for tapes; None if they follow its own steps."""
        if self._captures is None:
            self._captures = Captures(self.fn)
        if self._captures.hold_tensors() or not recorded.is_possible(leaves):
            return None
        if any(x.holds_tensors for x in signature if x.__class__ is _Object):
            return None
        if signature not in self._recorded:
            self._recorded[signature] = self._operation(args, kwargs)
            self._warn_of_many(self._recorded)
        return self._recorded[signature]

    def _operation(self, args: Any, kwargs: Any) -> Any:
        if self._variables(args, kwargs):  # tapes follow them too
            return None
        fn, guards = recorded.without_tensors(self.fn), (recorded.NoTensors(),)
        like: Any = trees.map(lambda x: input_spec(x) or x, (args, kwargs))
        trace = lambda: simplified(traced(fn, *like, recorders=guards))
        try:
            program = trace()
        except Exception:  # it can't be traced, or raises for whoever calls it
            return None
        if any(y.dtype.kind != "f" for y in program.results):
            return None
        if program.writes and not recorded.writes_like_tensors(fn, like, program):
            return None
        pullback = partial(recorded.pullback_of, self.fn, like, program, trace)
        pull = lambda chosen: Compiled(pullback(chosen))
        run = _code_of(replace(program, outputs=program.results)).run
        return recorded.Recorded(self.fn, run, program, pull)

    def _new(self, signature: Any, args: Any, kwargs: Any) -> Code:
        variables = self._variables(args, kwargs)
        program = simplified(traced(self.fn, args, kwargs, variables))
        code = self._codes[signature] = _code_of(program, variables)
        self._warn_of_many(self._codes)
        return code

    def _warn_of_many(self, signatures: Any) -> None:
        if len(signatures) == MANY:
            warn_user(
                f"{self!r} was traced for {MANY} signatures, which takes longer than "
                "running it: shapes, dtypes or numbers change from call to call. Keep "
                "shapes fixed, by padding for example, and pass what changes as an "
                "array"
            )


def _code_of(program: Program, variables: Sequence[Any] = ()) -> Code:
    if fusing.is_on() and fusing.runs_on_cpu():
        from .regions import fused  # which needs llvmlite

        program = fused(program)
    return Code(program, variables)


def _read(x: Any, key: list[Any], leaves: list[Any]) -> None:
    """Add what a program depends on to the key, and the arrays to the leaves."""
    cls = x.__class__
    if cls is np.ndarray:
        if not x.dtype.isnative:
            x = x.astype(x.dtype.newbyteorder("="))
        key.append(x.shape)
        key.append(x.dtype)
        leaves.append(x)
    elif cls is dict:
        key.append((*x,))
        for part in x.values():
            _read(part, key, leaves)
    elif cls is list or cls is tuple:
        key.append(cls)
        key.append(len(x))
        for part in x:
            _read(part, key, leaves)
    elif isinstance(x, np.generic):
        key.append(cls)
        leaves.append(x)
    else:
        _read_other(x, key, leaves)


def _read_other(x: Any, key: list[Any], leaves: list[Any]) -> None:
    kind = trees.kind_of(x)
    key.append(x.__class__)
    if kind is not None:
        key.append(tuple(kind.keys(x)))
        for part in kind.values(x):
            _read(part, key, leaves)
    elif isinstance(x, np.ndarray):
        refuse_as_tensor(x, "an argument of a compiled function")
        key.append(x.shape)
        key.append(x.dtype)
        leaves.append(np.asarray(x))
    elif isinstance(x, (Traced, Symbolic)):
        key.append(x.shape)
        key.append(x.dtype)
        leaves.append(x)
    elif isinstance(x, (float, complex)):
        # Equal numbers may differ: 1 and 1.0, 0.0 and -0.0; and NaN is not even itself.
        key.append(repr(x))
    else:
        key.append(_Object(x) if _is_object(x) else x)


def _is_object(x: Any) -> bool:
    """Whether it may have attributes that change, such as the `self` of a method."""
    return not is_plain(x) and not isinstance(x, (FunctionType, Symbolic))


def _is_same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    return a.__class__ is b.__class__ and a.__class__ in _VALUES and repr(a) == repr(b)


_VALUES = {int, float, complex, bool, str, bytes}


class _Object:
    """An object that a function is given, as a part of a signature.

    A program is of the attributes that it has: of numbers and words by their values,
    of all else by what it is. They are kept, so that no other object takes its place.
    """

    __slots__ = ("parts", "x")

    def __init__(self, x: Any) -> None:
        self.x = x
        self.parts = [*parts_of(x)]

    def __hash__(self) -> int:
        try:
            return hash(self.x)
        except TypeError:  # a dataclass, for one
            return id(self.x)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Object) or len(self.parts) != len(other.parts):
            return False
        if not all(map(_is_same, self.parts, other.parts)):
            return False
        return self.x is other.x or (hash(self) == hash(other) and self.x == other.x)

    @property
    def holds_tensors(self) -> bool:
        return any(isinstance(x, Traced) for x in self.parts)


def _is_watched(leaves: list[Any]) -> bool:
    """Whether somebody follows what is computed: a tape, or another trace."""
    return any(isinstance(x, (Traced, Symbolic)) for x in leaves)
