"""JAX: the function is traced, and its equations are run one by one, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from ....core import trees
from ....core.places import place_here
from ..._observe import Observer, Operand, inside_operations
from .eager import recorded
from .walk import EquationWalk

WHERE = "jnp.where"


def observe(
    fn: Any,
    args: Any,
    kwargs: Any,
    named: Sequence[tuple[str, Any]],
    observer: Observer,
) -> list[Operand] | None:
    """Run a function and its backward pass, and report each operation."""
    xs = [x for _, x in named]
    for name, x in named:
        observer.argument(Operand(name, x, id(x)))
    walk = EquationWalk(observer, active=xs)
    with inside_operations(observer, lambda: "forward"):
        names, ys = _run(walk, fn, args, kwargs, xs)
    pairs = zip(names, ys, strict=True)
    if not observer.outputs([Operand(name, y, id(y)) for name, y in pairs]):
        return []
    if not any(walk.is_active(y) for y in ys):
        return None
    with inside_operations(observer, lambda: "backward"):
        dxs = walk.gradients(ys, xs)
    pairs = zip(named, dxs, strict=True)
    return [Operand(name, dx, id(dx)) for (name, _), dx in pairs]


def _run(walk: EquationWalk, fn: Any, args: Any, kwargs: Any, xs: list[Any]) -> Any:
    """The outputs with their names, run step by step; at once if it reads values."""
    names: list[str] = []

    def flat(*new: Any) -> list[Any]:
        places = {id(x): each for x, each in zip(xs, new, strict=True)}
        called = trees.map(lambda x: places.get(id(x), x), (args, kwargs))
        returned = fn(*called[0], **called[1])
        named = [*trees.leaves_with_names(returned, "the value")]
        kept = [(name, y) for name, y in named if hasattr(y, "dtype")]
        names[:] = [name for name, _ in kept]
        return [y for _, y in kept]

    try:
        code = jax.make_jaxpr(flat)(*xs)
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError):
        with recorded(walk):
            return names, flat(*xs)
    return names, walk.run(code, xs, place_here())
