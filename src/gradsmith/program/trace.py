"""`trace`: a function becomes a program."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..core import trees
from ..core.arrays import described, require_plain
from ..core.cotangent import Spec
from ..core.errors import GradsmithError
from ..core.symbolic import Symbolic
from ..core.tape import Traced, only
from ..core.tensor import unwrap
from ..frameworks._randomness import Streams
from ..operations.spec import InputSpec
from .graph import Program, Value
from .passes import simplified
from .symbols import Symbol, Trace


def trace(fn: Callable[..., Any], *examples: Any, **options: Any) -> Program:
    """Return the program of a function: its steps as straight-line NumPy code.

    The function runs once, on arrays that have only a shape and a dtype. `examples` are
    its arguments: arrays or specs (`gs.spec`), alone or in trees. Everything else,
    including numbers, is built into the program.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> program = gs.trace(lambda x: np.sum(x * x), np.ones(3))
    >>> print(program)
    import numpy as np
    <BLANKLINE>
    <BLANKLINE>
    def program(x):
        a = x * x
        b = np.sum(a)
        return b
    >>> float(program(np.array([1.0, 2.0, 3.0])))
    14.0

    Derivatives are traced like everything else: `gs.trace(gs.grad(f), x)`.

    Raises
    ------
    TypeError
        If fn is not a function.
    UnsupportedOperationError
        If the function needs the elements of an array, as in a Python `if`.
    GradsmithError
        If it draws random numbers or assigns a variable, or a spec leaves axes
        open.
    """
    if not callable(fn):
        raise TypeError(f"gs.trace takes a function, not {fn!r}")
    return simplified(traced(fn, examples, options))


def traced(
    fn: Callable[..., Any],
    args: Any,
    kwargs: Any,
    variables: Sequence[Any] = (),
    recorders: tuple[Any, ...] = (),
) -> Program:
    """The program as it was traced.

    `variables` that the function captures become inputs too, after the arguments.
    `recorders` see what is computed of tensors.
    """
    tracing = Trace()
    inputs: dict[str, Value] = {}

    def symbol(name: str, x: Any) -> Any:
        spec = input_spec(x)
        if spec is None:
            return x
        y = tracing.symbol(spec)
        y.is_argument = not isinstance(x, np.generic)
        y.is_number = y.is_number and not isinstance(x, np.ndarray)
        inputs[name] = y.spec
        return y

    given = _named(fn, args)
    symbols = [_map_named(symbol, x, name) for name, x in given]
    options = {name: _map_named(symbol, x, name) for name, x in kwargs.items()}
    values = [symbol(f"{x.name}_{i}", x.value) for i, x in enumerate(variables)]
    streams = Streams(fn)
    before = streams.begin()
    try:
        with only(recorders), _holding(variables, values):
            returned = fn(*symbols, **options)
    except ValueError as error:  # by NumPy, where an element is set to a symbol
        if isinstance(error.__cause__, GradsmithError):
            raise error.__cause__ from None
        raise
    else:
        outputs = trees.map(lambda y: _output(tracing, unwrap(y)), returned)
    finally:
        tracing.is_open = False
        drawn = streams.drawn_since(before)
    if drawn is not None:
        raise GradsmithError(
            f"{_name(fn)} draws random numbers, which would be the same ones in each "
            "run of the program\n  what to do: draw them outside, and pass them as an "
            "argument"
        )
    return Program(
        _name(fn),
        tuple(inputs.values()),
        tuple(tracing.steps),
        outputs,
        tracing.constants,
        tuple(inputs),
        tracing.writes,
    )


_holds = threading.RLock()


@contextmanager
def _holding(variables: Sequence[Any], values: Sequence[Any]) -> Iterator[None]:
    """Let variables have other values."""
    if not variables:
        yield
        return
    with _holds:
        before = [x.value for x in variables]
        try:
            for x, value in zip(variables, values, strict=True):
                x.value = value
            yield
            for x, value in zip(variables, values, strict=True):
                if x.value is not value:
                    raise GradsmithError(
                        f"the function assigns the variable {x.name!r}, which a "
                        "program does not\n  what to do: return the new value, and "
                        "assign it outside"
                    )
        finally:
            for x, value in zip(variables, before, strict=True):
                x.value = value


def input_spec(x: Any) -> Spec | None:
    """The spec of what becomes an input; None for what is built in."""
    if isinstance(x, InputSpec) or (isinstance(x, Spec) and None in (x.shape or ())):
        raise GradsmithError(
            f"{x!r} has open axes or bounds, and a program is for one shape\n  what to "
            "do: give all lengths, as in gs.spec((2, 3), 'float32')"
        )
    if isinstance(x, Spec):
        return x
    if isinstance(x, (np.ndarray, np.generic, Traced, Symbolic)):
        if x.dtype.kind in "biufc":
            return Spec(x.shape, x.dtype)
        return None
    if described(x) is not None:
        require_plain(x, "an argument of gs.trace")
    return None


def _named(fn: Any, args: Any) -> list[tuple[str, Any]]:
    """Arguments by position with the names of their parameters."""
    import inspect

    try:
        bound = inspect.signature(fn).bind_partial(*args)
    except (TypeError, ValueError):
        return [(f"x{i}", x) for i, x in enumerate(args)]
    names: list[tuple[str, Any]] = []
    for name, x in bound.arguments.items():
        if bound.signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
            names += [(f"{name}{i}", part) for i, part in enumerate(x)]
        else:
            names.append((name, x))
    return names


def _map_named(fn: Callable[[str, Any], Any], tree: Any, name: str) -> Any:
    """`trees.map` with the name of each leaf."""
    names = [name for name, _ in trees.leaves_with_names(tree, name)]
    rest = iter(names)
    return trees.map(lambda leaf: fn(next(rest), leaf), tree)


def _output(tracing: Trace, y: Any) -> Any:
    if isinstance(y, (Symbol, np.ndarray)):
        return tracing.values(y)
    return y


def _name(fn: Any) -> str:
    name = getattr(fn, "__name__", None) or type(fn).__name__
    return "program" if name == "<lambda>" else name
