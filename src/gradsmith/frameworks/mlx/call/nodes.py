"""Results as outputs of a node of MLX's graph, with rules for all transformations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import mlx.core as mx

Arrays = list[Any]


class NodeRules(Protocol):
    """What MLX asks of a node. `args` are all arrays that it depends on.

    They are others under another transformation, so nothing else is to be used.
    """

    def results(self, args: Arrays) -> Arrays:
        """Those of the arguments that are its results, known before."""
        ...

    def pull(self, args: Arrays, ys: Arrays, dys: Arrays) -> Arrays:
        """A gradient for each argument."""
        ...

    def push(self, args: Arrays, ys: Arrays, moved: Arrays) -> Arrays:
        """A tangent for each result, from one for each argument."""
        ...


def attached(node: NodeRules, args: Arrays) -> Arrays:
    """The results of a node, differentiated by its rules."""
    if not node.results(args):
        return []  # MLX 0.32 crashes on a function without arrays to return

    def vjp(args: Arrays, dys: Arrays, ys: Arrays) -> Arrays:
        return node.pull(args, ys, dys)

    def jvp(args: Arrays, moved: Sequence[Any]) -> Arrays:
        pairs = zip(args, moved, strict=True)
        filled = [mx.zeros_like(x) if dx is None else dx for x, dx in pairs]
        # MLX does not give the results, which are differentiated by the rule too.
        return node.push(args, attached(node, args), filled)

    def vmap(args: Arrays, axes: list[int | None]) -> tuple[Arrays, list[int]]:
        ys = attached(Mapped(node, axes), args)
        return ys, [0] * len(ys)

    fn: Any = mx.custom_function(node.results)
    fn.vjp(vjp)
    fn.jvp(jvp)
    fn.vmap(vmap)
    return fn(args)


class Mapped:
    """A node over a batch, which lies along an axis of each argument, or of none."""

    def __init__(self, node: NodeRules, axes: list[int | None]) -> None:
        self.node = node
        self.axes = axes

    def results(self, args: Arrays) -> Arrays:
        return mx.vmap(self.node.results, self.axes)(args)

    def pull(self, args: Arrays, ys: Arrays, dys: Arrays) -> Arrays:
        pull = mx.vmap(self.node.pull, (self.axes, 0, 0))
        pairs = zip(pull(args, ys, dys), self.axes, strict=True)
        # What is the same for the whole batch collects the gradients of all
        return [
            mx.sum(dx, 0) if axis is None else mx.moveaxis(dx, 0, axis)
            for dx, axis in pairs
        ]

    def push(self, args: Arrays, ys: Arrays, moved: Arrays) -> Arrays:
        push = mx.vmap(self.node.push, (self.axes, 0, self.axes))
        return push(args, ys, moved)
