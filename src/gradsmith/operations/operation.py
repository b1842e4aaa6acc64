"""Operations with their own gradient, bound to a framework when called."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper, wraps
from itertools import count
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload
from weakref import WeakValueDictionary

from ..core import hooks
from ..core.arity import OPTIONS
from ..core.arrays import FRAMEWORKS, QUICK, common_framework, is_array, unwrapped
from ..core.compilers import not_rewritten
from ..core.errors import GradsmithError
from .parameters import Signature, method_of

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
Q = ParamSpec("Q")  # P without `self`
F = TypeVar("F", bound=Callable[..., Any])

# The operations there are, by what a compiler's graph can name them by.
OPERATIONS: WeakValueDictionary[str, Operation[..., Any]] = WeakValueDictionary()
_numbers = count()


def _registered(operation: Operation[..., Any]) -> str:
    """Make a new operation known; the key that it is known by."""
    key = str(next(_numbers))  # a compiler may take a number for a variable
    OPERATIONS[key] = operation
    return key


@not_rewritten  # as the function that it wraps
class Operation(Generic[P, R_co]):
    """A function together with its gradient; call it like the function.

    Made by `custom_gradient`, `operation` and `with_gradient`. `name`, `surrogate` and
    `linear` say what was declared; `vjp` and `jvp` are decorators that give the rules.

    >>> import gradsmith as gs
    >>> @gs.operation
    ... def cube(x):
    ...     return x**3
    >>> @cube.vjp
    ... def _(dy, y, x):
    ...     return 3 * x**2 * dy
    >>> cube, cube.name, cube.surrogate
    (<operation cube>, 'cube', None)
    """

    hosted = False  # body and rules call back into Python, which no compiler traces
    # A python_op is run in frameworks as another operation; each knows the other.
    callback: Any = None  # the operation that frameworks run in place of this one
    original: Operation[..., Any] | None = None  # what users know this one as
    # The rule (or the code of `grad`) that was last found to take the plain arguments
    # and no options, so that it need not be looked at again.
    plain_rule: Any = ()
    examples: tuple[Callable[[], Any], ...] = ()  # functions that return arguments
    fused: Any = None  # its kernels, by the call
    # Gives the arguments that are meant by those that a call was given
    convert: Callable[..., tuple[tuple[Any, ...], dict[str, Any]]] | None = None

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        closure: bool,
        surrogate: str | None = None,
        linear: bool = True,
    ) -> None:
        _require_function(fn, "an operation is made of")
        _require_words(surrogate)
        if not isinstance(linear, bool):
            raise GradsmithError(f"linear= is True or False, not {linear!r}")
        update_wrapper(self, fn, updated=())
        self.fn = fn
        self.name = _name_of(fn)
        self.closure = closure
        self.surrogate = surrogate
        self.linear = linear
        self.vjp_rule: Callable[..., Any] | None = None
        self.jvp_rule: Callable[..., Any] | None = None
        self.signature = Signature(fn, is_array)
        # The place of the first argument that may be an array
        self.first = self.signature.static
        self.__signature__ = self.signature.full  # for those who don't follow wrappers
        if not closure:
            self._refuse_options_as_parameters()
        self.key = _registered(self)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        if hooks.CALL.wrappers:
            return hooks.CALL.run(Operation._call, self, args, kwargs)
        return self._call(args, kwargs)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if kwargs and self.signature.is_simple:
            args, kwargs = self.signature.by_position(args, kwargs)
        if not kwargs and len(args) > self.first:
            quick = QUICK.get(args[self.first].__class__)
            if quick is not None:
                y = quick(self, args)
                if y is not NotImplemented:
                    return y
        if self.convert is not None:
            args, kwargs = self.convert(args, kwargs)
        bound = self.signature.bind(args, kwargs)
        arrays = unwrapped(bound.leaves, f"operation {self.name!r}")
        if arrays is not bound.leaves:
            bound = bound.with_leaves(arrays)
        name = common_framework(bound.leaves, f"operation {self.name!r}")
        return FRAMEWORKS[name].call.call(self, bound)

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(
        self: Operation[Concatenate[Any, Q], R_co], instance: object, owner: Any = None
    ) -> Callable[Q, R_co]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else method_of(self, instance)

    def __repr__(self) -> str:
        return f"<operation {self.name}>"

    def __reduce__(self) -> str:
        # Found by its name, like the function that it was
        return getattr(self, "__qualname__", self.name)

    def vjp(self, rule: F) -> F:
        """Give the gradient: `rule(dy, y, *arguments)` returns one per array."""
        if self.closure:
            raise GradsmithError(
                f"{self.name!r} returns its gradient function already "
                f"(gs.custom_gradient). For a separate @{self.name}.vjp define it with "
                "gs.operation."
            )
        _require_function(rule, f"the vjp of {self.name!r} is")
        self.vjp_rule = rule
        if self.fused is not None:
            self.fused.forget()
        return rule

    def jvp(self, rule: F) -> F:
        """Give the tangent: `rule(dx, y, *arguments)`.

        With several array arguments dx is a tuple.
        """
        _require_function(rule, f"the jvp of {self.name!r} is")
        self.jvp_rule = rule
        return rule

    def example(self, make: Callable[[], Any]) -> Callable[[], Any]:
        """Give arguments to check it with; `make()` returns them.

        A tuple holds them in order, a dict by name; anything else is the only one.
        Arrays may be specs (`gs.spec`). There can be several examples.
        """
        _require_function(make, f"an example of {self.name!r} is")
        self.examples = (*self.examples, make)
        return make

    def kernels(self, *args: Any, **kwargs: Any) -> Any:
        """What a call runs as if it is fused: its loops, as text.

        Print it; `forward.source` and `backward.source` are LLVM's assembly.
        """
        if self.fused is None:
            raise GradsmithError(
                f"{self.name!r} has no kernels\n  what to do: gs.fuse it first"
            )
        if self.convert is not None:
            args, kwargs = self.convert(args, kwargs)
        return self.fused.kernels(self.signature.bind(args, kwargs))

    def altered(self, around: Callable[..., Any]) -> Self:
        """A copy whose gradient functions and rules are those that `around` returns.

        >>> from gradsmith import custom_gradient, grad
        >>> @custom_gradient
        ... def same(x):
        ...     return x, lambda dy: dy
        >>> tenfold = same.altered(lambda rule: lambda dy: 10 * rule(dy))
        >>> float(grad(tenfold)(3.0)), float(grad(same)(3.0))
        (10.0, 1.0)
        """
        fn = _with_grad(self.fn, around) if self.closure else self.fn
        new = type(self)(
            fn, closure=self.closure, surrogate=self.surrogate, linear=self.linear
        )
        for name, value in vars(self).items():  # what a subclass was told; no caches
            known = name in vars(new) or name == "fused"  # kernels are of one rule
            if not known and not name.startswith("_"):
                setattr(new, name, value)
        if self.vjp_rule is not None:
            new.vjp(around(self.vjp_rule))
        if self.jvp_rule is not None:
            new.jvp(around(self.jvp_rule))
        return new

    def _refuse_options_as_parameters(self) -> None:
        for name in OPTIONS:
            if name in self.signature.names:
                raise GradsmithError(
                    f"{self.name!r} has a parameter called {name!r}: rename it, since "
                    f"{name}= has another meaning in a rule"
                )


def _with_grad(fn: Callable[..., Any], around: Callable[..., Any]) -> Any:
    """A body in closure form whose gradient is the one that `around` returns."""

    @wraps(fn)
    def body(*args: Any, **kwargs: Any) -> Any:
        returned = fn(*args, **kwargs)
        if type(returned) in (tuple, list) and returned and callable(returned[-1]):
            return (*returned[:-1], around(returned[-1]))
        return returned

    return body


def _name_of(fn: Any) -> str:
    fn = getattr(fn, "func", fn)  # a partial's
    return getattr(fn, "__name__", type(fn).__name__)


def _require_function(fn: Any, what: str) -> None:
    if not callable(fn):
        raise GradsmithError(f"{what} a function, not {fn!r}")


def _require_words(surrogate: Any) -> None:
    if surrogate is not None and not (isinstance(surrogate, str) and surrogate.strip()):
        raise GradsmithError(
            "surrogate= must say in words what the rule stands for, for example "
            "'straight-through rounding'"
        )
