"""JAX: the function is traced, and its equations are run one by one, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...core import trees
from ...core.places import place_here
from ...operations.info import is_floating
from .inside import looking_inside
from .jax_back import back
from .jax_eager import noting
from .jax_walk import Walk
from .watch import Watch

version = jax.__version__
WHERE = "jnp.where"


def array(x: Any) -> Any:
    return x if isinstance(x, jax.Array) else jnp.asarray(x)


def numpy(x: Any) -> np.ndarray | None:
    """Arrays of floating numbers; nothing of what can't be NaN."""
    if isinstance(x, (float, complex)):
        return np.asarray(x)
    if not (hasattr(x, "dtype") and is_floating(x)):
        return None
    x = np.asarray(x)
    return x if x.dtype.kind in "fc" else x.astype(np.float32)  # bfloat16


def look(fn: Any, args: Any, kwargs: Any, named: Sequence[tuple[str, Any]]) -> Any:
    """Run a function and its backward pass under a watch."""
    watch = Watch(numpy)
    xs = [x for _, x in named]
    for name, x in named:
        watch.given(name, x, id(x))
    walk = Walk(watch, active=xs)
    with looking_inside(watch, lambda: "forward"):
        names, ys = _run(walk, fn, args, kwargs, xs)
    found = [watch.result(name, y, id(y)) for name, y in zip(names, ys, strict=True)]
    results = [each for each in found if each is not None]
    if results:
        return watch, results, []
    if not any(walk.is_active(y) for y in ys):
        note = "the value does not depend on the inputs: no gradient to look at"
        return watch, [], [note]
    with looking_inside(watch, lambda: "backward"):
        gradients = back(walk, ys, xs)
    found = [
        watch.gradient(name, dx, id(dx))
        for (name, _), dx in zip(named, gradients, strict=True)
    ]
    return watch, [each for each in found if each is not None], []


def _run(walk: Walk, fn: Any, args: Any, kwargs: Any, xs: list[Any]) -> Any:
    """The outputs with their names, run step by step; at once if it looks at values."""
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
        with noting(walk):
            return names, flat(*xs)
    return names, walk.run(code.jaxpr, code.consts, xs, place_here())
