"""JAX's operations as they are run, for functions that can't be traced.

Such a function reads values (`if x > 0`), so each primitive is run at once, without
compilation. What has a rule of its own is traced by itself.
"""

# pyright: reportAttributeAccessIssue=false
# (where these names come from is not there when the code is checked)

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
from jax.core import Tracer
from jax.extend.core import Primitive

from ....core import hooks, trees
from ....core.arrays import framework_of, unwrapped
from ....core.patching import patched
from ....core.places import place_here
from .equations import kind_of_name
from .walk import EquationWalk


@contextmanager
def recorded(walk: EquationWalk) -> Iterator[None]:
    """A context in which a walk records all that is run."""
    bind = Primitive.bind
    busy = False

    def alone(run: Callable[..., Any], *args: Any) -> Any:
        """Run something whose parts are not recorded one by one."""
        nonlocal busy
        busy = True
        try:
            return run(walk, *args)
        finally:
            busy = False

    def primitive(self: Any, *args: Any, **params: Any) -> Any:
        if busy or any(isinstance(x, Tracer) for x in args):
            return bind(self, *args, **params)

        def run(*args: Any) -> Sequence[Any]:
            ys = bind(self, *args, **params)
            return ys if self.multiple_results else [ys]

        ys = alone(_primitive, run, list(args), self.name)
        return ys if self.multiple_results else ys[0]

    def operation(proceed: Any, op: Any, args: Any, kwargs: Any) -> Any:
        leaves = trees.leaves((args, kwargs))
        at = [i for i, x in enumerate(leaves) if framework_of(x) == "jax"]
        arrays = unwrapped([leaves[i] for i in at], f"operation {op.name!r}")
        if busy or not at or any(isinstance(x, Tracer) for x in arrays):
            return proceed(op, args, kwargs)
        returned: list[Any] = []

        def run(*xs: Any) -> Sequence[Any]:
            places = dict(zip(at, xs, strict=True))
            new = [places.get(i, x) for i, x in enumerate(leaves)]
            returned[:] = [proceed(op, *trees.unflatten((args, kwargs), new))]
            return trees.leaves(returned[0])

        ys = alone(_traced, run, arrays)
        return trees.unflatten(returned[0], ys)

    with (
        jax.disable_jit(),
        patched(Primitive, bind=primitive),
        hooks.CALL.wrapped(operation),
    ):
        yield


def _primitive(
    walk: EquationWalk, run: Callable[..., Any], args: list[Any], name: str
) -> Any:
    kind = kind_of_name(name)
    if kind.custom:
        return _traced(walk, run, args)
    return walk.apply(run, args, name, place_here(), kind)


def _traced(
    walk: EquationWalk, run: Callable[..., Any], args: Sequence[Any]
) -> list[Any]:
    """Trace what has a rule of its own, and run it step by step."""
    code = jax.make_jaxpr(run)(*args)
    return walk.run(code, args, place_here())
