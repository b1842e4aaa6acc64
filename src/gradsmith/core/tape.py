"""The core: values with marks, recorders that leave them, and the walk back.

A recorder (a tape, a forward accumulator) that is active sees every operation on traced
values. A tape leaves a `Node` on the result, which knows its parents and what the rule
saved; an accumulator leaves the result's tangent. Marks live on the values, so a graph
dies with the last value that needs it, and recorders never meet each other's marks:
any nesting of them, hence any order of derivative, is right.

No dispatch and no rules here; a rule is anything with `pullback` and `push`, and for
`record_one` with `quick` and `pull_one`, for `record_two` with `pull_two`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from contextvars import ContextVar, Token, copy_context
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, Protocol, Self
from weakref import ref

from .errors import TapeError, UnsupportedOperationError
from .generators import (
    ENTERING,
    SUSPENDABLE,
    Suspendable,
    frame_of_block,
    opening_generator,
)

_next_index = count().__next__


class Traced:
    """A plain value and the marks that recorders have left on it."""

    __slots__ = ("marks", "value")
    trainable = False  # a variable says True and is watched when it is first read

    def __init__(self, value: Any, marks: dict[Key, Any] | None = None) -> None:
        self.value = value
        self.marks = marks

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def dtype(self) -> Any:
        return self.value.dtype


class Key:
    """Under which a recorder leaves its marks; they mean nothing once it is gone."""

    __slots__ = ("recorder",)

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = ref(recorder)

    def is_alive(self) -> bool:
        recorder = self.recorder()
        return recorder is not None and recorder.key is self


def forget_the_dead(x: Traced) -> None:
    """Drop the marks of recorders that are gone, and the graphs behind them.

    What is saved with its marks would else keep alive, step after step, every tape that
    a carried value has been through.
    """
    marks = x.marks
    if not marks:
        return
    for key in marks:
        recorder = key.recorder()
        if recorder is None or recorder.key is not key:
            break
    else:  # as mostly
        return
    for key in [key for key in marks if not key.is_alive()]:
        marks.pop(key, None)


# What a node has saved whose `pull` holds all that it needs: for good, or in memory
# that the cotangent may take if it is not kept; or for a cotangent that may be deferred
NOTHING: Any = object()
REUSABLE: Any = object()
DEFERS: Any = object()


class Node:
    """One recorded operation: its inputs' nodes and the function that pulls back.

    `pull(dy, needs)` returns a cotangent for each of the `parents`; `needs` is None or
    says which of them are wanted. A single parent stands there without a sequence: its
    cotangent is `dy * pull(saved)`, or `pull(dy)` if NOTHING is saved or DEFERS, or
    `pull(dy, keep)` if that is REUSABLE.
    """

    __slots__ = ("__weakref__", "index", "parents", "pull", "rule", "saved")
    parents: Any  # a node, or a sequence of nodes

    def __init__(self, rule: Any, parents: Sequence[Node], pull: Any) -> None:
        self.index = _next_index()
        self.rule = rule
        self.parents = parents
        self.pull = pull
        self.saved = NOTHING

    def inputs(self) -> Sequence[Node]:
        parents = self.parents
        return (parents,) if isinstance(parents, Node) else parents

    def pulled(self, dy: Any) -> Sequence[Any]:
        """The cotangent of each input, an array or None, from that of the result."""
        if not isinstance(self.parents, Node):
            dxs = self.pull(dy, None) if self.parents else ()
        elif self.saved is NOTHING or self.saved is DEFERS:
            dxs = (self.pull(dy),)
        elif self.saved is REUSABLE:
            dxs = (self.pull(dy, True),)
        else:
            dxs = (dy * self.pull(self.saved),)
        return [dx.dense() if isinstance(dx, Deferred) else dx for dx in dxs]


class Deferred:
    """A cotangent that is no array yet: `dense()` makes one.

    `added_to(total)` is the sum with another one, which the caller gives away.
    """

    __slots__ = ()

    def dense(self) -> Any:
        raise NotImplementedError

    def given_to(self, rule: Any) -> Any:
        """The array, or what a rule takes in its place."""
        return self.dense()

    def added_to(self, total: Any) -> Any:
        raise NotImplementedError


class Recorder(Protocol):
    """Whatever wants to see the operations on traced values.

    `inputs` are the flat array arguments and `y` the result, or several. `call` and
    `kept` are what the rule may save of the call and of its result: plain values,
    unless somebody may differentiate what the rule computes from them. `record` of a
    private recorder says whether it follows one of the inputs.
    """

    key: Key
    lifts: bool  # what rules compute for it later may be recorded by itself
    records_one: bool  # has the shortcuts `record_one` and `record_two`
    pulls: bool  # and `record_pull`
    private: bool  # of one transform, which opens it, follows, closes it, and walks
    saves: bool  # may hold values of what is computed, for a rule

    def record(
        self, rule: Any, inputs: Sequence[Any], call: Any, kept: Any, y: Any
    ) -> bool | None: ...

    def mark_of(self, x: Traced) -> Any: ...

    def lost(self, xs: Sequence[Traced], where: str, why: str) -> None: ...


class State:
    """Who records, in this thread or asyncio task. It is replaced, never changed.

    It is quiet where NumPy's warnings are off already.
    """

    __slots__ = ("each", "nested", "private", "quiet", "recorders", "sole")

    def __init__(self, recorders: tuple[Recorder, ...], *, quiet: bool = False) -> None:
        self.quiet = quiet
        self.recorders = recorders  # outermost first
        private = quick = pulls = True
        for recorder in recorders:
            private = private and recorder.private
            quick = quick and recorder.records_one
            pulls = pulls and recorder.pulls
        # Whether nobody can ask one of them why a gradient stops
        self.private = private
        # All of them, if each is private and has the shortcuts of elementwise rules
        self.each: tuple[Any, ...] = recorders if quick and private else ()
        # The only one, if it has all shortcuts
        quick = quick and pulls
        self.sole: Any = recorders[0] if quick and len(recorders) == 1 else None
        # Several, if each of them has all and is private
        several = quick and private and len(recorders) > 1
        self.nested: tuple[Any, ...] = recorders if several else ()

    def follower(self, xs: Sequence[Any]) -> Any:
        """The tape that alone follows some of these; None if that is not known.

        False if nobody does. Of nested gradients most operations concern one: it is
        recorded as if there were no other, of plain arrays, in half of the time.
        """
        if self.sole is not None or not self.nested:
            return self.sole
        return _follower(self.nested, xs)

    def now(self) -> State:
        """The state as it is until a generator is resumed or suspended."""
        return self

    def turns(self) -> list[Turn]:
        """All that is open, also what waits for its generator; outermost first."""
        turns: list[Turn] = []
        for recorder in self.recorders:
            stopped = getattr(recorder, "stopped", None)
            turns += [Turn(r) for r in (stopped, recorder) if r is not None]
        return turns


def _follower(tapes: tuple[Any, ...], xs: Sequence[Any]) -> Any:
    found: Any = False
    for tape in tapes:
        key = tape.key
        for x in xs:
            # A private tape owns its leaves: all its marks are on the values.
            if isinstance(x, Traced):
                value = x
                marks = value.marks
                if marks and key in marks:
                    if found:
                        return None
                    found = tape
                    break
    return found


class Turn:
    """A recorder that is open, and the generator that has opened it, if one has."""

    __slots__ = ("generator", "recorder")

    def __init__(self, recorder: Any, generator: Suspendable | None = None) -> None:
        self.recorder = recorder  # None once it is closed
        self.generator = generator

    def is_active(self) -> bool:
        return self.generator is None or self.generator.is_running()

    def close(self) -> None:
        """Wherever a state has it: one that is put back later, or another context's."""
        self.recorder = None
        self.generator = None


class SuspendableState(State):
    """A state with recorders of generators, which see nothing while these wait.

    Who is active may differ from one operation to the next. To ask takes 0.4 us.
    """

    __slots__ = ("_last", "_turns")

    def __init__(self, turns: list[Turn], *, quiet: bool) -> None:
        self.quiet = quiet
        self._turns = turns
        self._last = State((), quiet=quiet)

    @property
    def recorders(self) -> tuple[Recorder, ...]:  # pyright: ignore
        return self.now().recorders

    @property
    def sole(self) -> Any:  # pyright: ignore
        return self.now().sole

    @property
    def private(self) -> bool:  # pyright: ignore
        return self.now().private

    def follower(self, xs: Sequence[Any]) -> Any:
        return self.now().follower(xs)

    def now(self) -> State:
        active, last = _active(self._turns), self._last
        if last.recorders != active:
            last = self._last = State(active, quiet=self.quiet)
        return last

    def turns(self) -> list[Turn]:
        return [turn for turn in self._turns if turn.recorder is not None]


def _active(turns: Iterable[Turn]) -> tuple[Recorder, ...]:
    recorders: list[Any] = []
    for turn in turns:
        recorder = turn.recorder if turn.is_active() else None
        stopped = getattr(recorder, "stopped", None)
        if stopped in recorders:
            recorders[recorders.index(stopped)] = recorder
        elif recorder is not None and stopped is None:
            recorders.append(recorder)
    return tuple(recorders)


def _state_of(turns: list[Turn], *, quiet: bool = False) -> State:
    if any(turn.generator is not None for turn in turns):
        return SuspendableState(turns, quiet=quiet)
    return State(_active(turns), quiet=quiet)


# Variables of the context, as a task has one of its own; they are also read in a third
# of the time of a thread's.
_STATE: ContextVar[State] = ContextVar("recorders", default=State(()))  # noqa: B039
state = _STATE.get
# The name of the function that is run by its definition in others
INSIDE: ContextVar[str] = ContextVar("inside", default="")


if sys.version_info >= (3, 12):
    set_state, reset_state = _STATE.set, _STATE.reset

    def held_context() -> None:
        """Needed in older Pythons."""
else:
    # Garbage may be collected within ContextVar.set there: a finalizer that sets a
    # variable frees the table that the outer call still reads, which kills Python. A
    # copy of the context, in 0.06 us, holds the table.

    held_context = copy_context

    def set_state(value: State, /) -> Token[State]:
        _held = copy_context()
        return _STATE.set(value)

    def reset_state(token: Token[State], /) -> None:
        _held = copy_context()
        _STATE.reset(token)


class only:  # noqa: N801 (reads as a statement)
    """Run a block with exactly these recorders active.

    A generator that is resumed within has its own ones too.
    """

    __slots__ = ("_outer", "_token", "state")

    def __init__(self, recorders: tuple[Recorder, ...], *, quiet: bool = False) -> None:
        self.state = State(recorders, quiet=quiet)

    def __enter__(self) -> None:
        outer = self._outer = state()
        if outer.__class__ is not State:
            waiting = [turn for turn in outer.turns() if not turn.is_active()]
            turns = [*self.state.turns(), *waiting]
            self.state = _state_of(turns, quiet=self.state.quiet)
        self._token = set_state(self.state)

    def __exit__(self, *_: object) -> None:
        if state() is self.state:
            reset_state(self._token)
        else:
            put_back(self._outer)


def put_back(outer: State) -> None:
    """Make a state hold again, with what generators have opened and closed since."""
    before = outer.turns()
    new = [t for t in state().turns() if t.generator and t not in before]
    set_state(_state_of([*before, *new], quiet=outer.quiet))


class Scope:
    """A recorder that is active within a `with` block, and closed after it.

    In a generator it is active while that runs, and not while its consumer does.
    """

    noun = "recorder"  # how messages call it
    of_generator = False
    # The states outside and within, and its turn if it has one
    _around: tuple[State | None, State | None, Turn | None] = (None, None, None)

    def __enter__(self) -> Self:
        frame = frame_of_block()
        code = frame.f_code
        try:
            if code.co_flags & SUSPENDABLE or code.co_name in ENTERING:
                return self._enter(opening_generator(frame))
            return self._open()
        except TapeError:
            raise
        except BaseException:  # by the handler of a signal: no block follows
            self.__exit__()
            raise

    def within(self, fn: Callable[..., Any], *args: Any) -> Any:
        """Call a function in a block.

        All is as before, also if the handler of a signal raises while it is left.
        """
        outer = state()
        try:
            self._open()
            result = fn(*args)
            self.__exit__()
        except BaseException:
            self.__exit__()
            put_back(outer)
            raise
        return result

    def _open(self) -> Self:
        """`__enter__` in a function, where no generator is involved."""
        me: Any = self  # its subclasses are recorders
        outer = state()
        if outer.__class__ is not State:
            return self._enter(None)
        if me in outer.recorders:
            raise TapeError(f"this {self.noun} is recording already")
        inner = State((*outer.recorders, me))
        self._around = outer, inner, None
        set_state(inner)
        return self

    def _enter(self, generator: Suspendable | None) -> Self:
        """`__enter__` in general: with others that are suspended, or in a generator."""
        outer = state()
        turns, turn = outer.turns(), Turn(self, generator)
        if any(each.recorder is self for each in turns):
            raise TapeError(f"this {self.noun} is open already")
        # What waits now is, if at all, resumed within this block.
        active = [i for i, each in enumerate(turns, 1) if each.is_active()]
        turns.insert(active[-1] if active else 0, turn)
        inner = _state_of(turns)
        self.of_generator = generator is not None
        self._around = outer, inner, turn
        set_state(inner)
        return self

    def __exit__(self, *_: object) -> None:
        outer, inner, turn = self._around
        try:
            if outer is not None and state() is inner:
                set_state(outer)
            else:  # others, in a generator, have opened or closed meanwhile
                self._leave()
        except BaseException:  # by the handler of a signal
            self._leave()
            raise
        finally:
            self._around = None, None, None  # the inner one holds this recorder
            if turn is not None:
                turn.close()

    def _leave(self) -> None:
        now = state()
        turns = [turn for turn in now.turns() if turn.recorder is not self]
        set_state(_state_of(turns, quiet=now.quiet))


class Parts(dict[int, Any]):
    """The cotangents of an operation's several outputs, as far as they have come."""

    def __add__(self, other: Parts) -> Parts:
        for i, dy in other.items():  # nobody else holds self; copies would cost n**2
            self[i] = self[i] + dy if i in self else dy
        return self


class OnlyParent(tuple[Node]):
    """The operation of one of several outputs."""

    __slots__ = ()


def _output(operation: Node, i: int) -> Node:
    """One of several outputs, which hands its cotangent to the operation."""
    pull = lambda dy, needs: (Parts({i: dy}),)
    return Node(operation.rule, OnlyParent((operation,)), pull)


def is_output(node: Node) -> bool:
    return isinstance(node.parents, OnlyParent)


class Tape:
    """Records operations on watched values for the walk back."""

    private = False
    pulls = True
    saves = True

    def __init__(self, *, lifts: bool, watch_variables: bool) -> None:
        self.lifts = lifts
        self.records_one = not lifts
        self.watch_variables = watch_variables
        # Leaves are marked here: a mark on a variable would outlive the tape.
        self.key = Key(self)  # a new one forgets all that was recorded
        self.leaves: dict[int, tuple[Traced, Node]] = {}

    def follow(self, x: Traced) -> Node:
        assert not self.private, "a private tape owns its leaves"
        if id(x) not in self.leaves:
            self.leaves[id(x)] = (x, Node(None, (), None))
        return self.leaves[id(x)][1]

    def own(self, x: Traced) -> None:
        """`follow` a value that was made for this tape: the mark may be on it.

        There `State.follower` finds it without a call.
        """
        leave_mark(x, self.key, Node(None, (), None))

    def mark_of(self, x: Traced, *, reading: bool = True) -> Node | None:
        """The node of a value, or None if this tape does not follow it.

        A trainable variable is followed from its first reading on.
        """
        marks = x.marks
        if marks is not None:
            node = marks.get(self.key)
            if node is not None:
                return node
        leaf = self.leaves.get(id(x))
        if leaf is not None:
            return leaf[1]
        if reading and x.trainable and self.watch_variables:
            return self.follow(x) if x.dtype.kind in "fcO" else None
        return None

    def record(
        self, rule: Any, inputs: Sequence[Any], call: Any, kept: Any, y: Any
    ) -> bool | None:
        tracked, parents = [], []
        for i, x in enumerate(inputs):
            if isinstance(x, Traced):
                node = self.mark_of(x)
                if node is not None:
                    tracked.append(i)
                    parents.append(node)
        if isinstance(y, Traced) and holds_objects(y.value):
            refuse_tensors_in(inputs, self)
        if not tracked:
            return False
        if isinstance(y, Traced):
            if len(tracked) == 1 and getattr(rule, "quick", None):  # elementwise
                if kept is not None and kept is not y and not isinstance(kept, Traced):
                    self.record_one(rule, tracked[0], parents[0], call, y, False)
                    return True
                pull = rule.pull_one(tracked[0], call, kept)
                node = _node(rule, parents[0], pull, NOTHING)
            elif getattr(rule, "of_one", False):
                pull = rule.pull_first(*call, kept)
                node = _node(rule, parents[0], pull, DEFERS)
            else:
                node = _node(rule, parents, rule.pullback(tracked, call, kept), NOTHING)
            leave_mark(y, self.key, node)
            return True
        node = Node(rule, parents, rule.pullback(tracked, call, kept))
        for i, output in enumerate(y):
            if output.dtype.kind in "fcO":
                leave_mark(output, self.key, _output(node, i))
        return True

    def record_one(
        self, rule: Any, i: int, parent: Node, call: Any, y: Traced, same: bool
    ) -> None:
        record_of_one(self, rule, i, parent, call, y, same)

    def record_two(self, rule: Any, parents: Any, call: Any, y: Traced) -> None:
        record_of_two(self, rule, parents, call, y)

    def lost(self, xs: Sequence[Traced], where: str, why: str) -> None:
        """A tape of which nobody asks why does not take note."""


# The functions below are what most operations are recorded by. They are no
# methods, so that compiled code calls them without a look at the class: 0.1 us less.


def record_of_one(
    tape: Tape, rule: Any, i: int, parent: Node, call: Any, y: Traced, same: bool
) -> None:
    """`Tape.record` for an elementwise rule of which one input is followed.

    `same` promises that x and y have one shape.
    """
    x, value, quick = call[i], y.value, rule.quick[i]
    dtype = value.dtype
    node = Node.__new__(Node)
    node.index = _next_index()
    node.rule = rule
    node.parents = parent
    if (
        quick is not None
        and dtype is x.dtype
        and dtype.kind == "f"
        and (same or x.shape == value.shape)
    ):
        node.pull, j = quick
        node.saved = NOTHING if j is None else value if j < 0 else call[j]
    else:
        if holds_objects(value):
            refuse_tensors_in(call, tape)
        node.pull = rule.pull_one(i, call, value)
        node.saved = NOTHING
    if y.marks is None:
        y.marks = {tape.key: node}
    else:
        y.marks[tape.key] = node


def record_of_two(
    tape: Tape, rule: Any, parents: tuple[Node, Node], call: Any, y: Traced
) -> None:
    """`Tape.record` for an elementwise rule of two small inputs that are followed."""
    value, (x1, x2) = y.value, call
    dtype = value.dtype
    node = Node.__new__(Node)
    node.index = _next_index()
    node.rule = rule
    node.parents = parents
    node.saved = NOTHING
    if (
        x1.dtype is dtype
        and x2.dtype is dtype
        and dtype.kind == "f"
        and x1.shape == x2.shape
    ):
        node.pull = rule.pull_two(call, value)
    else:
        if holds_objects(value):
            refuse_tensors_in(call, tape)
        node.pull = rule.pullback((0, 1), call, value)
    y.marks = {tape.key: node}


def record_lifted(
    tape: Tape, rule: Any, i: int, parent: Node, call: Any, y: Traced
) -> None:
    """`record_of_one` where others follow too: what is saved are tensors."""
    leave_mark(y, tape.key, _node(rule, parent, rule.pull_one(i, call, y), NOTHING))


def record_pull(tape: Tape, rule: Any, parents: Any, pull: Any, y: Traced) -> None:
    """`Tape.record` with what a node is made of; one parent's cotangent may defer."""
    node = _node(rule, parents, pull, DEFERS)
    if y.marks is None:
        y.marks = {tape.key: node}
    else:
        y.marks[tape.key] = node


class StoppedTape(Scope, Tape):
    """Stands in for a tape that is not to record, and follows nothing.

    Others save tensors because of it: their gradients may be asked for when the tape
    records again.
    """

    def __init__(self, tape: Tape) -> None:
        super().__init__(lifts=False, watch_variables=False)
        self.stopped = tape

    def __enter__(self) -> Self:
        return self._enter(opening_generator(frame_of_block()))


def _node(rule: Any, parents: Any, pull: Any, saved: Any) -> Node:
    node = Node.__new__(Node)
    node.index = _next_index()
    node.rule = rule
    node.parents = parents
    node.pull = pull
    node.saved = saved
    return node


def marks_of(x: Traced) -> dict[Key, Any]:
    """The marks with which another value stands for x to the active recorders."""
    own, found = x.marks or {}, {}
    for recorder in state().recorders:
        # A mark may say that the value is not followed; `mark_of` does not tell.
        mark = own.get(recorder.key)
        if mark is None:
            mark = recorder.mark_of(x)
        if mark is not None:
            found[recorder.key] = mark
    return found


def holds_objects(value: Any) -> bool:
    """Whether a result was computed from an array of objects, or is one of these."""
    return value.dtype.kind == "O" or isinstance(value, Traced)


def refuse_tensors_in(arrays: Iterable[Any], recorder: Recorder) -> None:
    """Followed tensors that are elements of an array of objects are nobody's inputs."""
    for x in arrays:
        kind = getattr(getattr(x, "dtype", None), "kind", "")
        elements = () if kind != "O" or isinstance(x, Traced) else x.flat
        traced = (element for element in elements if isinstance(element, Traced))
        if any(recorder.mark_of(element) is not None for element in traced):
            raise UnsupportedOperationError(
                "a tensor was combined with an array of objects that are tensors, "
                "whose gradients would be lost. Make one tensor of them: "
                "np.stack(list(array)); or gs.stop_gradient(x) for a constant."
            )


def leave_mark(y: Traced, key: Key, mark: Any) -> None:
    if y.marks is None:
        y.marks = {key: mark}
    else:
        y.marks[key] = mark


# The walk back. The first form says what is computed, the second is the one that runs:
# a chain of 100 small operations takes it 93 us, the first one 197; and where many
# nodes wait, it does not look through all of them.


def plain_walk_back(
    cotangents: dict[Node, Any], sources: Iterable[Node]
) -> dict[Node, Any]:
    """Carry cotangents back to the sources, latest operation first."""
    found: dict[Node, Any] = dict.fromkeys(sources)
    waiting = dict(cotangents)
    while waiting:
        node = max(waiting, key=lambda node: node.index)
        dy = waiting.pop(node)
        if node in found:
            found[node] = dy
        for parent, dx in zip(node.inputs(), node.pulled(dy), strict=True):
            if dx is not None:
                waiting[parent] = waiting[parent] + dx if parent in waiting else dx
    return found


def walk_back(
    cotangents: dict[Node, Any],
    sources: Iterable[Node],
    *,
    keep: bool,
    prune: bool,
    silent: MutableMapping[Node, set[Node]] | None = None,
) -> dict[Node, Any]:
    """`plain_walk_back` in less time and memory.

    With `prune`, what leads to no source is not computed; without `keep`, each node
    gives up what it saved as soon as it has been used. `silent` takes note of the
    inputs for which a node had no cotangent.
    """
    found: dict[Node, Any] = dict.fromkeys(sources)
    inner = any(node.parents for node in found)  # else all of them are leaves
    relevant = leading_to(found, cotangents) if prune else None
    if relevant is not None:
        cotangents = {n: dy for n, dy in cotangents.items() if n in relevant}
    silent = {} if silent is None else silent
    return _walk(cotangents, found, relevant, silent, keep, inner)


def _walk(
    cotangents: dict[Node, Any],
    found: dict[Node, Any],
    relevant: set[Node] | None,
    silent: MutableMapping[Node, set[Node]],
    keep: bool,
    inner: bool,
) -> dict[Node, Any]:
    # Leaves don't queue: they have all their cotangents when the queue is empty.
    queue: list[Any] = [(-node.index, node) for node in cotangents if node.parents]
    heapify(queue)
    while queue:
        node = heappop(queue)[1]
        dy = cotangents.pop(node)
        if isinstance(dy, Deferred):
            is_result = inner and node in found
            dy = dy.dense() if is_result else dy.given_to(node.rule)
        deferred = isinstance(dy, Deferred)
        while True:
            if inner and node in found:
                found[node] = dy
            parents: Any = node.parents
            pull, saved = node.pull, node.saved
            if pull is None:
                raise TapeError(_USED_UP)
            if not keep:
                node.pull = node.saved = None
            if parents.__class__ is not Node:
                needs = relevant and [parent in relevant for parent in parents]
                for parent, dx in zip(parents, pull(dy, needs), strict=True):
                    if dx is None:
                        if relevant is None or parent in relevant:
                            silent.setdefault(node, set()).add(parent)
                    elif parent in cotangents:
                        _receive(cotangents, queue, parent, dx)
                    else:  # `_receive` without a call: 0.2 us less
                        cotangents[parent] = dx
                        if parent.parents:
                            heappush(queue, (-parent.index, parent))
                if silent and node in silent:
                    silent[node].difference_update(cotangents)
                break
            parent = parents
            if relevant is not None and parent not in relevant:
                break
            if saved is NOTHING:
                dy = pull(dy)
                if deferred and isinstance(dy, Deferred):
                    _receive(cotangents, queue, parent, dy)
                    break
            elif saved is REUSABLE:
                dy = pull(dy, keep)
            elif saved is not DEFERS:
                dy = dy * pull(saved)
            else:
                dy = pull(dy)
                if isinstance(dy, Deferred):
                    _receive(cotangents, queue, parent, dy)
                    break
            if dy is None:
                silent[node] = {parent}
                break
            if (
                not parent.parents
                or (cotangents and parent in cotangents)
                or (queue and queue[0][0] < -parent.index)
            ):
                _receive(cotangents, queue, parent, dy)
                break
            node = parent  # the next one in any case: 0.2 us less per node
    for node in found:
        if node in cotangents:
            dy = cotangents[node]
            found[node] = dy.dense() if isinstance(dy, Deferred) else dy
    return found


def _receive(cotangents: dict[Node, Any], queue: Any, node: Node, dy: Any) -> None:
    if node not in cotangents:
        cotangents[node] = dy
        if node.parents:
            heappush(queue, (-node.index, node))
    elif isinstance(dy, Deferred):
        cotangents[node] = dy.added_to(cotangents.pop(node))
    else:
        # Popped, so that NumPy sees a temporary and adds in place if nobody holds it.
        cotangents[node] = cotangents.pop(node) + dy


def leading_to(sources: Iterable[Node], starts: Iterable[Node]) -> set[Node]:
    """The nodes between `starts` and `sources`, both included."""
    seen, stack = set(starts), list(starts)
    while stack:
        new = [p for p in stack.pop().inputs() if p not in seen]
        seen.update(new)
        stack.extend(new)
    relevant = set(sources) & seen
    for node in sorted(seen, key=lambda node: node.index):
        if not relevant.isdisjoint(node.inputs()):
            relevant.add(node)
    return relevant


_USED_UP = (
    "an earlier gradient has freed what this part of the tape saved. Request all "
    "gradients in one call, or open the tape with persistent=True."
)
