"""GradientTape: reverse mode with TensorFlow 2's interface."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from . import trees
from .arrays import require_plain
from .cotangent import cast
from .errors import GradsmithError, TapeError, type_of
from .explain import Stop, Stops, explain
from .foreign import refuse_as_tensor
from .places import warn_user
from .symbolic import PLAIN, Symbolic, as_plain
from .tape import (
    Key,
    Node,
    Scope,
    StoppedTape,
    Tape,
    Traced,
    held_context,
    only,
    state,
    walk_back,
)
from .tensor import Tensor, Variable, finished, unwrap, wrap
from .unconnected import UnconnectedGradients, wants_zero

_NOTHING = nullcontext()


class GradientTape(Scope, Tape):
    """Record operations, then differentiate them backwards.

    >>> import gradsmith as gs
    >>> x = gs.Tensor(3.0)
    >>> with gs.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x * x
    >>> tape.gradient(y, x)
    Tensor(6.)

    Parameters
    ----------
    persistent : keep what was saved, so that several gradients can be computed
    watch_accessed_variables : follow every trainable `Variable` from its first use on

    Notes
    -----
    A plain array that an operation reads is saved without a copy: change it only after
    the gradient is computed, or pass `gs.Tensor(array)`, which copies it.

    A tape records its own thread or asyncio task, and the tasks started within the
    block. A generator that opens a tape has it for itself: while it is suspended inside
    the block, what its consumer does is not recorded. A generator that is a context
    manager (`contextlib`) or a fixture opens the tape for the block that it is for.

    Raises
    ------
    TapeError
        If something other than a tensor is watched or differentiated, or a tape that is
        not persistent is asked for gradients twice.
    """

    noun = "tape"

    def __init__(
        self, persistent: bool = False, watch_accessed_variables: bool = True
    ) -> None:
        super().__init__(lifts=persistent, watch_variables=watch_accessed_variables)
        self.persistent = persistent
        self.stops = Stops()
        self._silent: WeakKeyDictionary[Node, set[Node]] | None = None
        self._walked = False

    # Recording

    def watch(self, tensor: Any) -> None:
        """Follow a tensor (or each in a tree of them)."""
        for i, x in enumerate(trees.leaves(tensor)):
            if not isinstance(x, Traced):
                require_plain(x, _name_of(tensor, i))
                raise TapeError(
                    f"tape.watch takes tensors, and {_name_of(tensor, i)} is "
                    f"{type_of(x)}. Make it one first: x = gs.Tensor(x)."
                )
            if x.value.dtype.kind in "fcO":
                self.follow(x)
                continue
            warn_user(
                f"{_name_of(tensor, i)} has dtype {x.dtype}: only floating and complex "
                "tensors have gradients, so it is not followed"
            )

    def watched_variables(self) -> tuple[Variable, ...]:
        """The variables followed so far, in the order of their first use."""
        return tuple(x for x, _ in self.leaves.values() if isinstance(x, Variable))

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Leave out what is done within."""
        if self not in state().recorders:
            raise TapeError("stop_recording: this tape is not recording")
        with StoppedTape(self):
            yield

    def reset(self) -> None:
        """Forget all that was recorded and watched; keep recording."""
        self.leaves = {}
        self.stops = Stops()
        self._walked = False
        self._silent = None
        self.key = Key(self)

    def lost(self, xs: Sequence[Traced], where: str, why: str) -> None:
        nodes = [node for x in xs if (node := self.mark_of(x)) is not None]
        if nodes:
            self.stops.add(Stop.here(where, why, nodes[-1]))

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
        zero = wants_zero(unconnected_gradients)
        targets, seeds = _seeds(target, output_gradients)
        sources_flat = self._checked_sources(sources)
        self._stop_for_good()
        found = self._pull(targets, seeds, sources_flat, keep=self.persistent)
        results = [
            wrap(np.zeros(x.shape, x.dtype)) if dx is None and zero else dx
            for x, dx in zip(sources_flat, found, strict=True)
        ]
        return trees.unflatten(sources, results)

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
        zero = wants_zero(unconnected_gradients)
        _require_tensor(target, "jacobian")
        sources_flat = self._checked_sources(sources)
        self._stop_for_good()
        rows = self._rows(target, list(basis(target)), sources_flat)
        results = []
        for k, x in enumerate(sources_flat):
            shape = target.shape + x.shape
            results.append(_stacked([row[k] for row in rows], 0, shape, x, zero))
        return trees.unflatten(sources, results)

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
        zero = wants_zero(unconnected_gradients)
        _require_tensor(target, "batch_jacobian")
        _require_tensor(source, "batch_jacobian")
        if not target.shape or not source.shape or len(target) != len(source):
            raise GradsmithError(
                "batch_jacobian needs a target and a source with the same first axis, "
                f"not shapes {target.shape} and {source.shape}"
            )
        self._stop_for_good()
        example = np.empty(target.shape[1:], target.dtype)
        seeds = [np.broadcast_to(e, target.shape) for e in basis(example)]
        rows = [dx for (dx,) in self._rows(target, seeds, [source])]
        return _stacked(rows, 1, target.shape + source.shape[1:], source, zero)

    def explain(self, target: Any, source: Any) -> str:
        """Say in words whether the gradient reaches the source, and if not, why.

        >>> x = Tensor(3.0)
        >>> with GradientTape() as tape:
        ...     y = x * x
        >>> print(tape.explain(y, x))
        The source was not watched: call tape.watch(source) before it is used.
        """
        return explain(self, target, source, self.stops, self._silenced())

    def draw(self, target: Any = None, *, most: int = 30) -> Any:
        """Return a drawing of the graph that leads to a target, or of all of it.

        >>> x = Tensor([1.0, 2.0])
        >>> with GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = np.sum(x * x)
        >>> print(tape.draw(y))
        The graph of y: 2 operations, 1 input

        A notebook shows it, and `drawing.save("graph.svg")` writes a file. Each box has
        an operation with the dtype and the shape of its result; operations with a
        gradient of their own are violet, and red is where the gradient stops. Of more
        than `most` operations, those that repeat are one box, then the earliest ones.
        The rules are run once, without using anything up; what an earlier gradient has
        freed is drawn without shapes.
        """
        from ..report.drawing import Drawing  # for drawings alone
        from .draw import boxes_of, title_of

        return Drawing(title_of(target), boxes_of(self, target), most=most)

    def probe(self, target: Tensor, source: Tensor) -> Any:
        """The gradient, without recording it or using anything up."""
        with only(()):
            return self._pull([target], [seed(target, None, "")], [source], keep=True)[
                0
            ]

    def _stop_for_good(self) -> None:
        """A tape that gives its gradients away can't go on recording."""
        if self.persistent:
            return
        if self._walked:
            raise TapeError(
                "a tape that is not persistent computes gradients once. Request all "
                "of them in one call, or open it with GradientTape(persistent=True)."
            )
        self._walked = True
        self.__exit__()

    def _checked_sources(self, sources: Any) -> list[Any]:
        flat = trees.leaves(sources)
        for i, x in enumerate(flat):
            if not isinstance(x, Traced):
                name = _name_of(sources, i, "sources")
                raise TapeError(
                    f"{name} is {type_of(x)}. Gradients are taken with respect "
                    "to the gs.Tensor or gs.Variable that was watched."
                )
        return flat

    def _rows(
        self, target: Any, seeds: Sequence[Any], sources: Sequence[Any]
    ) -> list[list[Any]]:
        """A walk back for each seed, of which the last may use up the tape."""
        last = len(seeds) - 1
        return [
            self._pull([target], [dy], sources, keep=self.persistent or i < last)
            for i, dy in enumerate(seeds)
        ]

    def pulled(self, target: Any, sources: list[Tensor]) -> list[Tensor]:
        """`gradient` of a number for all that it owns, zeros where unconnected."""
        node = self.mark_of(target) if isinstance(target, Traced) else None
        found: dict[Node, Any] = {}
        nodes: list[Any] = [(x.marks or {})[self.key] for x in sources]
        if node is not None:
            dtype = target.dtype  # a number of it takes 0.5 us less than an array
            dy: Any = dtype.type(1) if dtype.kind == "f" else np.ones((), dtype)
            # Plain, also where others record the walk: none of them follows it. A step
            # of small k-means (python -m benchmarks gradbench) takes 0.9 of the time.
            found = _walk({node: dy}, nodes, keep=False, prune=False)
        return [
            wrap(np.zeros(x.shape, x.dtype)) if dx is None else _as_tensor(dx)
            for x, dx in zip(sources, map(found.get, nodes), strict=True)
        ]

    def _silenced(self) -> WeakKeyDictionary[Node, set[Node]]:
        """Which nodes had no cotangent for which parents; they are not kept alive."""
        if self._silent is None:
            self._silent = WeakKeyDictionary()
        return self._silent

    def _pull(
        self, targets: Sequence[Any], seeds: Sequence[Any], sources: Any, *, keep: bool
    ) -> list[Any]:
        cotangents: dict[Node, Any] = {}
        for y, dy in zip(targets, seeds, strict=True):
            node = self.mark_of(y, reading=False) if isinstance(y, Traced) else None
            if node is None:
                continue
            cotangents[node] = cotangents[node] + dy if node in cotangents else dy
        nodes = [self.mark_of(x, reading=False) for x in sources]
        wanted = {node for node in nodes if node is not None}
        prune = any(node not in wanted for _, node in self.leaves.values())
        silent: dict[Node, set[Node]] = {}
        found = _walk(cotangents, wanted, keep=keep, prune=prune, silent=silent)
        if silent:
            self._silenced().update(silent)
        return [None if node is None else _as_tensor(found[node]) for node in nodes]


def _walk(cotangents: Any, sources: Any, **options: Any) -> dict[Node, Any]:
    """Walk back without NumPy's warnings."""
    recorders = state().recorders
    quiet = only(recorders, quiet=True) if recorders else _NOTHING
    with quiet:
        _held = held_context()  # NumPy sets a variable of the context
        with np.errstate(all="ignore"):
            try:
                return walk_back(cotangents, sources, **options)
            finally:
                _held = held_context()


def _name_of(tree: Any, i: int, root: str = "the argument") -> str:
    """How messages call the i-th leaf."""
    return [*trees.leaves_with_names(tree, root)][i][0]


def _as_tensor(dx: Any) -> Any:
    return dx if dx is None else finished(dx)


def _stacked(
    rows: list[Any], axis: int, shape: tuple[int, ...], x: Tensor, zero: bool
) -> Any:
    """The rows of a Jacobian in one tensor; None if none of them reached x."""
    if rows and all(dx is None for dx in rows):
        return wrap(np.zeros(shape, x.dtype)) if zero else None
    if not rows:
        return wrap(np.zeros(shape, x.dtype))
    zeros = np.zeros(x.shape, x.dtype)
    rows = [zeros if dx is None else dx for dx in rows]
    return np.reshape(np.stack(rows, axis), shape)


def _require_tensor(x: Any, method: str) -> None:
    if not isinstance(x, Tensor):
        raise TapeError(f"{method} needs a gs.Tensor, not {type_of(x)}")


def _seeds(target: Any, output_gradients: Any) -> tuple[list[Any], list[Any]]:
    """The targets and their cotangents: ones, or what was given."""
    if isinstance(target, Traced) and output_gradients is None:  # most often
        return [target], [seed(target, None, "")]
    targets = trees.leaves(target)
    for i, y in enumerate(targets):
        if not isinstance(y, (Traced, *PLAIN, int, float, complex)):
            name = _name_of(target, i, "target")
            raise TapeError(f"{name} is {type_of(y)}, which has no gradient")
    given = _given(target, output_gradients, len(targets))
    names = (f"output_gradients[{i}]" for i in range(len(given)))
    return targets, list(map(seed, targets, given, names))


def _given(target: Any, output_gradients: Any, n: int) -> list[Any]:
    """One output gradient for each target: structured as these, or in a flat list."""
    if output_gradients is None:
        return [None] * n
    is_list = isinstance(output_gradients, (list, tuple)) and len(output_gradients) == n
    if is_list and all(dy is None or hasattr(dy, "shape") for dy in output_gradients):
        return list(output_gradients)
    given: list[Any] = []
    trees.map(lambda _, dy: given.append(dy), target, output_gradients)
    return given


def seed(y: Any, dy: Any, name: str) -> Any:
    """The cotangent of a target, in its shape and dtype."""
    y = as_plain(unwrap(y))
    if dy is None:
        return np.ones_like(y)
    if not isinstance(dy, (Traced, Symbolic)):
        refuse_as_tensor(dy, name)
        dy = np.array(dy)  # a copy: it may become a result, which nobody changes
    if dy.shape != y.shape or not np.can_cast(dy.dtype, y.dtype, "same_kind"):
        raise GradsmithError(
            f"{name} has shape {dy.shape} and dtype {dy.dtype}, its target "
            f"{y.shape} and {y.dtype}"
        )
    return cast(dy, y.dtype)


def basis(y: Any) -> Iterator[Any]:
    """The unit vectors in the space of y."""
    for i in range(y.size):
        e = np.zeros(y.size, y.dtype)
        e[i] = 1
        yield e.reshape(y.shape)
