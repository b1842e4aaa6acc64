"""ForwardAccumulator: forward mode with TensorFlow 2's interface."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from threading import get_ident
from typing import Any

import numpy as np

from . import trees
from .arrays import require_plain
from .cotangent import cast, spec_of
from .errors import GradsmithError, TapeError, UnsupportedOperationError, type_of
from .foreign import refuse_as_tensor
from .rule import Elementwise, Function, aligned, find_batched, fit, unchanged
from .symbolic import Symbolic, as_plain
from .tape import (
    Key,
    Parts,
    Scope,
    State,
    Tape,
    Traced,
    holds_objects,
    leave_mark,
    only,
    refuse_tensors_in,
    reset_state,
    set_state,
    state,
    walk_back,
)
from .tensor import finished, unwrap, wrap
from .unconnected import wants_zero


class ForwardAccumulator(Scope):
    """Compute tangents along with the values: Jacobian times vector.

    >>> import gradsmith as gs
    >>> x = gs.Tensor([1.0, 2.0])
    >>> with gs.ForwardAccumulator(x, gs.Tensor([1.0, 0.0])) as acc:
    ...     y = x * x
    >>> acc.jvp(y)
    Tensor([2., 0.])

    Raises
    ------
    TapeError
        If a primal is not a tensor.
    GradsmithError
        If a primal has no tangents (integers), is given twice, or its tangent has
        another shape or dtype.
    """

    lifts = False
    records_one = True
    pulls = False
    private = True  # what it follows is known, and it walks nothing
    saves = True
    noun = "accumulator"
    many = 0  # tangents of each value, along a leading axis; 0 for one without it

    def __init__(self, primals: Any, tangents: Any) -> None:
        self.key = Key(self)
        self.leaves: dict[int, tuple[Traced, Any]] = {}
        self._view: _View | None = None
        pairs: list[tuple[Any, Any]] = []
        trees.map(lambda x, dx: pairs.append((x, dx)), primals, tangents)
        for i, (x, dx) in enumerate(pairs):
            if not isinstance(x, Traced):
                require_plain(x, f"primals[{i}]")
                raise TapeError(
                    f"primals[{i}] is {type_of(x)}. Make it a tensor first: "
                    "x = gs.Tensor(x)."
                )
            if x.dtype.kind not in "fcO":
                raise GradsmithError(
                    f"primals[{i}] has dtype {x.dtype}: only floating and complex "
                    "tensors have tangents"
                )
            if id(x) in self.leaves:
                raise GradsmithError(f"primals[{i}] is given twice: add its tangents")
            self.leaves[id(x)] = (x, checked_tangent(x, dx, f"tangents[{i}]"))

    def own(self) -> None:
        """Mark the primals themselves, if they were made for this accumulator.

        They are found without a call there.
        """
        for x, dx in self.leaves.values():
            leave_mark(x, self.key, dx)
        self.leaves = {}

    def jvp(self, primals: Any, unconnected_gradients: str = "none") -> Any:
        """Return the tangents of what was computed, else `None` (or zeros)."""
        zero = wants_zero(unconnected_gradients)

        def tangent(y: Any) -> Any:
            dy = self.mark_of(y) if isinstance(y, Traced) else None
            if dy is None and zero:
                return wrap(spec_of(y).zeros())
            return dy if dy is None else finished(dy)

        return trees.map(tangent, primals)

    def mark_of(self, x: Traced) -> Any:
        marks = x.marks
        if marks is not None:
            dx = marks.get(self.key)
            if dx is not None:
                return dx
        leaf = self.leaves.get(id(x))
        return None if leaf is None else leaf[1]

    def lost(self, xs: Sequence[Traced], where: str, why: str) -> None:
        """Nobody asks an accumulator why."""

    def outside(self) -> tuple[Any, ...]:
        """The recorders that may differentiate what this one computes."""
        return state().recorders[: state().recorders.index(self)]

    def record(
        self, rule: Any, inputs: Sequence[Any], call: Any, kept: Any, y: Any
    ) -> bool | None:
        view = self._current_view()
        if (
            rule.__class__ is Elementwise
            and kept.__class__ in ARRAYS
            and len(inputs) < 3
            and kept.dtype.kind in "fc"
            and view.plain
        ):
            return self._record_array(rule, inputs, call, y)
        tangents, moves = [], False
        for x in inputs:
            dx = self.mark_of(x) if isinstance(x, Traced) else None
            moves = moves or dx is not None
            tangents.append(dx)
        if isinstance(y, Traced) and holds_objects(y.value):
            refuse_tensors_in(inputs, self)
        if not moves:
            return False
        dy = self._pushed(rule, tangents, call, kept, view)
        if isinstance(y, Traced):
            if dy is not None and y.value.dtype.kind in "fcO":
                leave_mark(y, self.key, dy)
            return True
        for output, tangent in zip(y, dy, strict=True):
            if tangent is not None and output.dtype.kind in "fcO":
                leave_mark(output, self.key, tangent)
        return True

    def _current_view(self) -> _View:
        now, view = state(), self._view
        if now.__class__ is not State:
            now = now.now()
        if view is None or view.now is not now:  # mostly the same one: 2 us less
            view = self._view = _View(now, self.outside(), many=self.many > 0)
        return view

    def _record_array(self, rule: Any, inputs: Any, call: Any, y: Any) -> bool:
        """`record` of an elementwise function of at most two arguments: 3 us less."""
        x1, dx1, dx2 = inputs[0], None, None
        if isinstance(x1, Traced):
            dx1 = self.mark_of(x1)
        if len(inputs) == 2 and isinstance(inputs[1], Traced):
            dx2 = self.mark_of(inputs[1])
        if dx1 is None and dx2 is None:
            return False
        self.push_by(rule, dx1, dx2, call, y)
        return True

    def record_one(
        self, rule: Any, i: int, dx: Any, call: Any, y: Traced, same: bool
    ) -> None:
        """`record` for an elementwise rule of which one input moves; y is real."""
        view: Any = self._view
        if view is None or view.now is not state():
            view = self._current_view()
        _record_one(self, view, rule, i, dx, call, y)

    def record_two(self, rule: Any, dxs: tuple[Any, Any], call: Any, y: Traced) -> None:
        """`record` for an elementwise rule of two inputs that both move."""
        view: Any = self._view
        if view is None or view.now is not state():
            view = self._current_view()
        _record_two(self, view, rule, dxs, call, y)

    def push_by(self, rule: Any, dx1: Any, dx2: Any, call: Any, y: Traced) -> None:
        view = self._current_view()
        if not view.plain:
            tangents = (dx1, dx2)[: len(call)]
            dy = self._pushed(rule, tangents, call, y.value, view)
        elif view.now.quiet:
            dy = push_array(rule, dx1, dx2, call, y.value)
        else:
            dy = view.run(push_array, (rule, dx1, dx2, call, y.value))
        if dy is not None:
            leave_mark(y, self.key, dy)

    def __exit__(self, *raised: object) -> None:
        super().__exit__(*raised)
        self._view = None  # it holds this recorder

    def _pushed(
        self, rule: Any, tangents: Any, call: Any, kept: Any, view: _View
    ) -> Any:
        now, outside = view.now, view.outside
        if not outside.recorders and len(now.recorders) > 1:
            # Nobody can differentiate the tangent: plain arrays take 15 us less.
            call, kept = unwrap(call), unwrap(kept)
        token = set_state(outside)
        try:
            if self.many:
                with np.errstate(all="ignore"):
                    return push_many(rule, tangents, call, kept, self.many)
            if now.quiet:  # in a walk back: 1 us less
                return push(rule, tangents, call, kept)
            with np.errstate(all="ignore"):
                return push(rule, tangents, call, kept)
        finally:
            reset_state(token)


ARRAYS = {np.ndarray, np.float64, np.float32}


class _View:
    """What an accumulator looks up once for many operations of a thread."""

    __slots__ = ("_run", "_thread", "now", "outside", "plain")

    def __init__(self, now: State, outside: tuple[Any, ...], *, many: bool) -> None:
        self.now = now
        self.outside = State(outside, quiet=True)
        # Whether tangents are arrays of a value's shape that nobody differentiates
        self.plain = not (outside or many)
        self._thread = get_ident()
        self._run: Callable[..., Any] | None = None  # within that context

    def run(self, push: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Call a function of plain arrays without NumPy's warnings.

        In a context in which they are off: `np.errstate` takes 1.2 us more. A signal's
        handler that comes here meanwhile finds none, as it can't be entered twice.
        """
        if self._thread != get_ident():
            with np.errstate(all="ignore"):
                return push(*args)
        run, self._run = self._run, None
        if run is None:
            with np.errstate(all="ignore"):
                run = copy_context().run
        try:
            return run(push, *args)
        finally:
            self._run = run


def _record_one(
    accumulator: Any, view: _View, rule: Any, i: int, dx: Any, call: Any, y: Traced
) -> None:
    quick: Any = rule.quick[i]
    if quick is None or not view.plain:
        accumulator.push_by(rule, *((None, dx) if i else (dx, None)), call, y)
        return
    value, (partial, j) = y.value, quick
    if partial is unchanged:
        dy = dx
    elif not view.now.quiet:
        dy = view.run(_push_one, (quick, dx, call, value))
    elif j is None:
        dy = partial(dx)
    else:
        dy = dx * partial(value if j < 0 else call[j])
    if dy.dtype is not value.dtype or dy.shape != value.shape:
        dy = fit(dy, value)
    leave_mark(y, accumulator.key, dy)


def _record_two(
    accumulator: Any, view: _View, rule: Any, dxs: tuple[Any, Any], call: Any, y: Traced
) -> None:
    quick1, quick2 = rule.quick
    if not (view.plain and view.now.quiet and quick1 and quick2):
        accumulator.push_by(rule, *dxs, call, y)
        return
    value, (dx1, dx2) = y.value, dxs
    dy = _push_one(quick1, dx1, call, value) + _push_one(quick2, dx2, call, value)
    if dy.dtype is not value.dtype or dy.shape != value.shape:
        dy = fit(dy, value)
    leave_mark(y, accumulator.key, dy)


def _push_one(quick: Any, dx: Any, call: Any, y: Any) -> Any:
    partial, j = quick
    return partial(dx) if j is None else dx * partial(y if j < 0 else call[j])


def push_array(rule: Elementwise, dx1: Any, dx2: Any, call: Any, y: Any) -> Any:
    """`rule.push` of one or two tangents, in half of the time for usual partials."""
    quick1, quick2 = rule.quick[0], rule.quick[-1]
    if (dx1 is not None and not quick1) or (dx2 is not None and not quick2):
        return rule.push((dx1, dx2)[: len(call)], call, y)
    dy: Any = None
    if dx1 is not None:
        dy = _push_one(quick1, dx1, call, y)
    if dx2 is not None:
        dy2 = _push_one(quick2, dx2, call, y)
        dy = dy2 if dx1 is None else dy + dy2
    return dy if dy.dtype is y.dtype and dy.shape == y.shape else fit(dy, y)


MOST = 2**21  # elements of the tangents of one value


class TooManyTangentsError(BaseException):
    """So many tangents of a value are too large; none but its catcher may stop it."""

    def __init__(self, fitting: int) -> None:
        super().__init__()
        self.fitting = fitting


class Directions(ForwardAccumulator):
    """Carry many tangents of one tensor at once, along a leading axis.

    Raises
    ------
    TooManyTangentsError
        In its scope, where all tangents of a result would take too much memory.
    """

    def __init__(self, x: Traced, dxs: Any) -> None:
        super().__init__((), ())
        self.leaves[id(x)] = (x, dxs)
        self.many = dxs.shape[0]


def checked_tangent(x: Any, dx: Any, name: str) -> Any:
    """A tangent in the shape and dtype of its primal."""
    if not isinstance(dx, Traced):
        refuse_as_tensor(dx, name)
        dx = as_plain(dx)
    if dx.shape != x.shape or not np.can_cast(dx.dtype, x.dtype, "same_kind"):
        raise GradsmithError(
            f"{name} has shape {dx.shape} and dtype {dx.dtype}, its primal {x.shape} "
            f"and {x.dtype}"
        )
    return cast(dx, x.dtype)


def push_many(rule: Any, tangents: Sequence[Any], call: Any, y: Any, many: int) -> Any:
    """`push` of tangents along a leading axis: at once where that is known."""
    if many > 1 and many * getattr(y, "size", 0) > MOST:
        raise TooManyTangentsError(max(MOST // y.size, 1))
    if type(rule) is Elementwise:
        ndim = len(y.shape)
        dxs = [dx if dx is None else aligned(dx, ndim) for dx in tangents]
        return rule.push(dxs, call, y, (many,))
    batched = find_batched(rule.fn) if isinstance(rule, Function) else None
    if batched is not None:
        args, kwargs = call
        dy = batched(tangents, y, *args, **kwargs)
        if dy is not NotImplemented:
            if dy is None or isinstance(dy, (tuple, list)):
                return dy
            return fit(dy, y, (many,))
    each = [
        push(rule, [dx if dx is None else dx[i] for dx in tangents], call, y)
        for i in range(many)
    ]
    if isinstance(each[0], (tuple, list)):
        return [_stacked(dys) for dys in zip(*each, strict=True)]
    return _stacked(each)


def _stacked(dys: Sequence[Any]) -> Any:
    return None if dys[0] is None else np.stack(dys)


def push(rule: Any, tangents: Sequence[Any], call: Any, y: Any) -> Any:
    """The tangent of an operation's result: by its jvp, or by transposing its vjp."""
    if not isinstance(rule, Function) or rule.pushes:
        return rule.push(tangents, call, y)
    tracked = [i for i, dx in enumerate(tangents) if dx is not None]
    pull = rule.pullback(tracked, call, y)
    if isinstance(y, (tuple, list)):
        outputs = [spec_of(part).zeros() for part in y]
        return transpose(
            lambda dys: pull(Parts(enumerate(dys)), None),
            outputs,
            [tangents[i] for i in tracked],
        )
    (dy,) = transpose(
        lambda dys: pull(dys[0], None),
        [spec_of(y).zeros()],
        [tangents[i] for i in tracked],
    )
    return dy


def transpose(
    fn: Callable[[list[Any]], Sequence[Any]], point: list[Any], cotangents: list[Any]
) -> list[Any]:
    """Apply the transpose of a linear function, found by walking back through it.

    For y = f(x) and its pullback dx = J'dy this gives J: the pullback is linear in dy,
    so its own pullback, from a tangent of x, is the tangent of y.
    """
    tape = Tape(lifts=False, watch_variables=False)
    xs = [wrap(x) for x in point]
    nodes = [tape.follow(x) for x in xs]
    outer = state().recorders
    with only((*outer, tape)):
        ys = fn(xs)
    seeds: dict[Any, Any] = {}
    for y, dy in zip(ys, cotangents, strict=True):
        node = tape.mark_of(y) if isinstance(y, Traced) else None
        if node is not None:
            seeds[node] = seeds[node] + dy if node in seeds else dy
        elif y is not None and not _is_zero(unwrap(y)):
            raise UnsupportedOperationError(
                "the rule can't be transposed: its result does not depend on its first "
                "argument through functions that the engine records"
            )
    found = walk_back(seeds, nodes, keep=False, prune=False)
    return [found[node] for node in nodes]


def _is_zero(y: Any) -> bool:
    """Whether a result that nobody followed is zero.

    Nothing leaves a trace unseen: what is not followed there depends on nothing.
    """
    return isinstance(y, Symbolic) or not np.any(y)
