"""Recomputing on MLX, as a node whose rules run the function again.

MLX's own mx.checkpoint silently drops the gradient of what the function captures. The
compiler behind mx.compile may still keep what is computed twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mlx.core as mx
import numpy as np

from ...core import hooks, trees
from ...core.arrays import framework_of
from ...core.errors import UnsupportedOperationError
from ...core.reach import reached
from .._captured import with_captured
from .._randomness import Streams
from .._recompute import FlatCall, ScanPlan, name_of, require_same
from . import calculus
from .arrays import numpy
from .call.captured import DEPTH, captured_by, is_known, same_random_numbers
from .call.nodes import Arrays, attached


def checkpoint(
    fn: Callable[..., Any], args: Any, kwargs: Any, *, verify: bool = False
) -> Any:
    if verify:
        _require_equal(_flat(fn, args, kwargs), name_of(fn))
    if hooks.RECOMPUTE.wrappers:
        return hooks.RECOMPUTE.run(_checkpointed, fn, args, kwargs)
    return _checkpointed(fn, args, kwargs)


def _checkpointed(fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    flat = _flat(fn, args, kwargs)
    return flat.restored(attached(*_recomputed(flat)))


def _flat(fn: Callable[..., Any], args: Any, kwargs: Any) -> FlatCall:
    return FlatCall(fn, args, kwargs, lambda x: framework_of(x) == "mlx")


def _recomputed(flat: FlatCall) -> tuple[Recomputed, Arrays]:
    captured = Captured(flat.fn)
    inputs = [*flat.arrays, *captured.arrays]
    node = Recomputed(flat, captured, len(inputs))
    if captured.hidden:
        # MLX differentiates these results by what is captured, and nothing is saved.
        values = flat(*map(mx.stop_gradient, flat.arrays))
    else:
        values = node.again([mx.stop_gradient(x) for x in inputs])
    return node, [*inputs, *values]


class Captured:
    """The arrays that a function captures: parameters of modules, and its closure's."""

    def __init__(self, fn: Any) -> None:
        self.fn = fn
        found = [*reached(fn, stop=lambda x: _is_module(x) or isinstance(x, mx.array))]
        self.modules = [x for x in found if _is_module(x)]
        self.parameters = [module.parameters() for module in self.modules]
        self.closure = captured_by(fn)
        known = {id(x) for x in self.closure}
        arrays = [x for x in found if isinstance(x, mx.array)]
        self.hidden = [x for x in arrays if id(x) not in known]
        self.arrays = [*trees.leaves(self.parameters), *self.closure]

    @contextmanager
    def replaced(self, arrays: Arrays) -> Iterator[Any]:
        """The function with these arrays in the place of those that it captures."""
        n = len(self.arrays) - len(self.closure)
        new = trees.unflatten(self.parameters, arrays[:n])
        pairs = zip(self.closure, arrays[n:], strict=True)
        others = {id(x): other for x, other in pairs}
        try:
            for module, parameters in zip(self.modules, new, strict=True):
                module.update(parameters)
            yield with_captured(self.fn, lambda x: others.get(id(x), x), DEPTH)
        finally:
            for module, parameters in zip(self.modules, self.parameters, strict=True):
                module.update(parameters)


def _is_module(x: Any) -> bool:
    return isinstance(x, dict) and hasattr(x, "trainable_parameters")


class Recomputed:
    """A function that is run again for its derivatives."""

    def __init__(self, flat: FlatCall, captured: Captured, n: int) -> None:
        self.flat = flat
        self.captured = captured
        self.n = n

    def again(self, inputs: Arrays) -> Arrays:
        m = len(self.flat.arrays)
        replaced = self.captured.replaced(inputs[m:])
        with same_random_numbers(self.flat.fn), replaced as fn:
            return self.flat.of(fn, inputs[:m])

    def results(self, args: Arrays) -> Arrays:
        return args[self.n :]

    def pull(self, args: Arrays, ys: Arrays, dys: Arrays) -> Arrays:
        dxs = calculus.vjp(self.again, args[: self.n], nested=True)[1](dys)
        passed = dys if self.captured.hidden else [mx.zeros_like(y) for y in ys]
        return [*dxs, *passed]

    def push(self, args: Arrays, ys: Arrays, moved: Arrays) -> Arrays:
        _, dys = calculus.jvp(self.again, args[: self.n], moved[: self.n], nested=True)
        if not self.captured.hidden:
            return dys
        return [a + b for a, b in zip(dys, self.results(moved), strict=True)]


def scan(plan: ScanPlan) -> list[Any]:
    return plan.in_blocks(lambda leaves, inner: checkpoint(inner, (leaves,), {}))


def unstack(x: Any) -> Any:
    return mx.unstack(x)


@contextmanager
def unchanged(*roots: Any) -> Iterator[None]:
    """Let generators be afterwards what they were; MLX's own can't be set."""
    with Streams(*roots).unchanged():
        yield


def rewinding(*roots: Any) -> Callable[[], Any]:
    return Streams(*roots).unchanged


def _require_equal(flat: FlatCall, name: str) -> None:
    xs = [mx.stop_gradient(x) for x in flat.arrays]
    if not is_known(xs):
        raise UnsupportedOperationError(
            f"verify=True compares values, and MLX traces {name!r} without them "
            "(mx.compile, mx.vmap)\n  what to do: verify it outside them"
        )

    plain = _values(lambda xs: flat(*xs), xs, flat.names)
    again = _values(lambda xs: _on(flat, xs), xs, flat.names)
    require_same(name, plain, again, exact=False)


def _on(flat: FlatCall, xs: Arrays) -> Arrays:
    """The call on other arrays, recomputed."""
    other = FlatCall(flat.fn, *flat.arguments, flat.is_array)
    other.arrays = [*xs]
    return attached(*_recomputed(other))


def _values(fn: Callable[..., Any], xs: Arrays, names: list[str]) -> dict[str, Any]:
    """The results, and the gradients of all arrays for one upstream."""
    ys, pull = calculus.vjp(fn, xs)
    random = np.random.default_rng(0)
    dxs = pull([mx.array(random.standard_normal(y.shape), y.dtype) for y in ys])
    found = {f"the value {i}": numpy(y) for i, y in enumerate(ys)}
    for dx, each in zip(dxs, names, strict=True):
        found[f"the gradient for {each}"] = numpy(dx)
    return found
