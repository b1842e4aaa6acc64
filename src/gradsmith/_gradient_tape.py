"""GradientTape: reverse mode with TensorFlow 2's interface."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from . import _tree
from ._errors import GradsmithError, TapeError
from ._explain import Loss, Losses, explain
from ._tape import Node, Tape, Traced, only, state, walk_back
from ._tensor import Tensor, Variable, wrap


class UnconnectedGradients:
    """What a gradient is where the target does not depend on the source."""

    NONE = "none"
    ZERO = "zero"


class GradientTape(Tape):
    """Record operations, then differentiate them backwards.

    >>> x = Tensor(3.0)
    >>> with GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x * x
    >>> tape.gradient(y, x)
    Tensor(6.)

    Parameters
    ----------
    persistent : keep what was saved, so that several gradients can be taken
    watch_accessed_variables : follow every trainable `Variable` from its first use on
    """

    def __init__(
        self, persistent: bool = False, watch_accessed_variables: bool = True
    ) -> None:
        super().__init__(lifts=persistent, watch_variables=watch_accessed_variables)
        self.persistent = persistent
        self._losses = Losses()
        self._walked = False

    # Recording

    def __enter__(self) -> GradientTape:
        if self in state.recorders:
            raise TapeError("this tape is recording already")
        state.recorders = (*state.recorders, self)
        return self

    def __exit__(self, *_: object) -> None:
        state.recorders = tuple(r for r in state.recorders if r is not self)

    def watch(self, tensor: Any) -> None:
        """Follow a tensor (or each in a tree of them)."""
        for name, x in _tree.leaves_with_names(tensor, "the argument"):
            if not isinstance(x, Traced):
                raise TapeError(
                    f"tape.watch follows tensors, and {name} is a "
                    f"{type(x).__name__}. Make it one first: x = gs.Tensor(x)."
                )
            if x.dtype.kind not in "fcO":
                warnings.warn(
                    f"{name} has dtype {x.dtype}: only floating and complex tensors "
                    "have gradients, so it is not followed",
                    stacklevel=2,
                )
                continue
            self.follow(x)

    def watched_variables(self) -> tuple[Variable, ...]:
        """The variables followed so far, in the order of their first use."""
        return tuple(x for x, _ in self.leaves.values() if isinstance(x, Variable))

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Leave out what is done within."""
        if self not in state.recorders:
            raise TapeError("stop_recording: this tape is not recording")
        with only(tuple(r for r in state.recorders if r is not self)):
            yield

    def reset(self) -> None:
        """Forget all that was recorded and watched; keep recording."""
        self.leaves = {}
        self._losses = Losses()
        self._walked = False
        self.key = object()

    def lost(self, xs: Sequence[Traced], where: str, why: str) -> None:
        for x in xs:
            node = self.mark_of(x)
            if node is not None:
                self._losses.add(Loss.here(where, why, node))

    # Gradients

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: str = UnconnectedGradients.NONE,
    ) -> Any:
        """Return the gradient of the target's sum for each source.

        Where the target does not depend on a source the result is `None`, or zeros with
        `unconnected_gradients="zero"`; `explain` says why.
        """
        zero = _wants_zero(unconnected_gradients)
        targets = _tree.leaves(target)
        seeds = _seeds(targets, output_gradients)
        sources_flat = self._checked_sources(sources)
        self._stop_for_good()
        found = self._pull(targets, seeds, sources_flat, keep=self.persistent)
        results = [
            np.zeros_like(x) if dx is None and zero else dx
            for x, dx in zip(sources_flat, found, strict=True)
        ]
        return _tree.unflatten(sources, results)

    def jacobian(
        self,
        target: Tensor,
        sources: Any,
        unconnected_gradients: str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """Return d target[i] / d source[j] in the shape target.shape + source.shape.

        The last two parameters are accepted for TensorFlow's sake and do nothing.
        """
        zero = _wants_zero(unconnected_gradients)
        sources_flat = self._checked_sources(sources)
        self._stop_for_good()
        rows = [
            self._pull([target], [seed], sources_flat, keep=True)
            for seed in basis(target)
        ]
        results = []
        for k, x in enumerate(sources_flat):
            shape = target.shape + x.shape
            column = [row[k] for row in rows]
            if any(dx is not None for dx in column):
                column = [np.zeros_like(x) if dx is None else dx for dx in column]
                results.append(np.reshape(np.stack(column), shape))
            else:
                results.append(wrap(np.zeros(shape, x.dtype)) if zero else None)
        return _tree.unflatten(sources, results)

    def batch_jacobian(
        self,
        target: Tensor,
        source: Tensor,
        unconnected_gradients: str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """Return d target[b, i] / d source[b, j], example by example.

        Example b of the target must depend on example b of the source alone.
        """
        zero = _wants_zero(unconnected_gradients)
        (source,) = self._checked_sources(source)
        if not target.shape or not source.shape or len(target) != len(source):
            raise GradsmithError(
                "batch_jacobian wants a target and a source with one first axis, and "
                f"they have shapes {target.shape} and {source.shape}"
            )
        self._stop_for_good()
        batch, rest = target.shape[0], wrap(np.zeros(target.shape[1:], target.dtype))
        seeds = [np.broadcast_to(e, target.shape) for e in basis(rest)]
        rows = [self._pull([target], [e], [source], keep=True)[0] for e in seeds]
        shape = (batch, *target.shape[1:], *source.shape[1:])
        if any(dx is None for dx in rows) or not rows:
            return wrap(np.zeros(shape, source.dtype)) if zero else None
        return np.reshape(np.stack(rows, axis=1), shape)

    def explain(self, target: Any, source: Any) -> str:
        """Say in words whether the target's gradient reaches the source, and if not why.

        >>> x = Tensor(3.0)
        >>> with GradientTape() as tape:
        ...     y = x * x
        >>> print(tape.explain(y, x))
        The source was not watched: call tape.watch(source) before it is used.
        """
        return explain(self, target, source, self._losses)

    def _stop_for_good(self) -> None:
        """A tape that gives its gradients away can't go on recording."""
        if self.persistent:
            return
        if self._walked:
            raise TapeError(
                "a tape that is not persistent gives its gradients once. Ask for all "
                "of them in one call, or open it with GradientTape(persistent=True)."
            )
        self._walked = True
        self.__exit__()

    def _checked_sources(self, sources: Any) -> list[Any]:
        flat = list(_tree.leaves_with_names(sources, "sources"))
        for name, x in flat:
            if not isinstance(x, Traced):
                raise TapeError(
                    f"{name} is a {type(x).__name__}. Gradients are taken with respect "
                    "to the gs.Tensor or gs.Variable that was watched."
                )
        return [x for _, x in flat]

    def _pull(
        self, targets: Sequence[Any], seeds: Sequence[Any], sources: Any, *, keep: bool
    ) -> list[Any]:
        cotangents: dict[Node, Any] = {}
        recording = bool(state.recorders)
        for y, dy in zip(targets, seeds, strict=True):
            node = self.mark_of(y, reading=False) if isinstance(y, Traced) else None
            if node is None:
                continue
            dy = wrap(dy) if recording and not isinstance(dy, Traced) else dy
            cotangents[node] = cotangents[node] + dy if node in cotangents else dy
        nodes = [self.mark_of(x, reading=False) for x in sources]
        wanted = {node for node in nodes if node is not None}
        prune = any(node not in wanted for _, node in self.leaves.values())
        with np.errstate(all="ignore"):
            found = walk_back(cotangents, wanted, keep=keep, prune=prune)
        return [_as_tensor(found.get(node)) for node in nodes]


def _as_tensor(dx: Any) -> Any:
    return dx if dx is None or isinstance(dx, Tensor) else wrap(dx)


def _wants_zero(unconnected_gradients: str) -> bool:
    if unconnected_gradients not in ("none", "zero"):
        raise GradsmithError(
            "unconnected_gradients must be 'none' or 'zero', not "
            f"{unconnected_gradients!r}"
        )
    return unconnected_gradients == "zero"


def _seeds(targets: Sequence[Any], output_gradients: Any) -> list[Any]:
    """The cotangents of the targets: ones, or what was given."""
    given = _tree.leaves(output_gradients)
    if output_gradients is None:
        given = [None] * len(targets)
    if len(given) != len(targets):
        raise GradsmithError(
            f"there are {len(targets)} targets and {len(given)} output_gradients"
        )
    return [seed(y, dy, i) for i, (y, dy) in enumerate(zip(targets, given, strict=True))]


def seed(y: Any, dy: Any, i: int = 0) -> Any:
    """The cotangent of a target, checked against its shape."""
    if dy is None:
        return np.ones(np.shape(y), getattr(y, "dtype", None))
    if not isinstance(dy, Traced):
        dy = np.asarray(dy, getattr(y, "dtype", None))
    if dy.shape != np.shape(y):
        raise GradsmithError(
            f"output_gradients[{i}] has shape {dy.shape}, its target {np.shape(y)}"
        )
    return dy


def basis(y: Any) -> Iterator[Any]:
    """The unit vectors in the space of y."""
    for i in range(y.size):
        e = np.zeros(y.size, y.dtype)
        e[i] = 1
        yield e.reshape(y.shape)
