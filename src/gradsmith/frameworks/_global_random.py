"""NumPy's global generator, of which a thread can have numbers of its own.

Whoever draws from `np.random` holds its lock meanwhile. Ours puts the numbers of the
thread in place as it is taken, and the shared ones back as it is released: what a block
draws again comes from where it was drawn the first time, while others go on drawing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import ref

import numpy as np

State = dict[str, Any]


class Recording:
    """From which states a thread draws: that of each draw before which others drew."""

    def __init__(self) -> None:
        self.starts: dict[int, State] = {}
        self.draws = 0
        self.seen = -1  # the lock's number of draws when this thread had drawn last

    def note(self, draws: int) -> None:
        if self.seen != draws:
            self.starts[self.draws] = _read()
        self.draws += 1
        self.seen = draws + 1


class _Private:
    """A thread's own numbers: from one state on, or as a recording says."""

    def __init__(self, starts: dict[int, State], state: State) -> None:
        self.starts, self.state, self.draws = starts, state, 0

    def next(self) -> State:
        state = self.starts.get(self.draws, self.state)
        self.draws += 1
        return state


class _Runs(threading.local):
    def __init__(self) -> None:
        self.open: list[Any] = []  # recordings, weakly, and private numbers


_runs = _Runs()


class _Lock:
    """The lock of the global generator; a thread that has it may take it again."""

    def __init__(self, lock: Any) -> None:
        self.lock = lock
        self.owner = 0
        self.depth = 0
        self.draws = 0
        self.serving: _Private | None = None
        self.shared: State = {}

    def __enter__(self) -> bool:
        me = threading.get_ident()
        if self.owner == me:
            self.depth += 1
            return True
        self.lock.acquire()
        self.owner = me
        if _runs.open:
            try:
                self._begin()
            except BaseException:
                self.__exit__()
                raise
        self.draws += 1
        return True

    def _begin(self) -> None:
        recordings: list[Recording] = []
        for run in reversed(_runs.open):
            if isinstance(run, _Private):
                self.shared = _read()
                self.serving = run
                np.random.set_state(run.next())
                break
            recording = run()
            if recording is not None:
                recordings.append(recording)
        for recording in recordings:
            recording.note(self.draws)

    def __exit__(self, *_: object) -> None:
        if self.depth:
            self.depth -= 1
            return
        if self.serving is not None:
            self.serving.state = _read()
            np.random.set_state(self.shared)
            self.serving = None
        self.owner = 0
        self.lock.release()

    acquire, release = __enter__, __exit__


def _read() -> State:
    return np.random.get_state(legacy=False)


def _install() -> None:
    """Let the global generator use our lock, and go on with its numbers."""
    public: Any = np.random  # whose types lack the two functions
    old = public.get_bit_generator()
    if not isinstance(old.lock, _Lock):
        state = _read()
        public.set_bit_generator(_with_lock(type(old), _Lock(old.lock))())
        np.random.set_state(state)


def _with_lock(kind: Any, lock: _Lock) -> Any:
    """The class of a bit generator, whose state is read and set by whom has the lock.

    NumPy's do so by themselves from 2.3 on.
    """

    def read(self: Any) -> State:
        with lock:
            return kind.state.__get__(self)

    def write(self: Any, state: State) -> None:
        with lock:
            kind.state.__set__(self, state)

    def seed(self: Any, *args: Any) -> None:
        with lock:
            kind._legacy_seeding(self, *args)

    parts = {
        "lock": lock,
        "state": property(read, write),
        "_legacy_seeding": seed,
        "__reduce__": lambda self: (_rebuilt, (kind, self.state)),  # a copy is plain
    }
    return type(kind.__name__, (kind,), parts)  # states name the class


def _rebuilt(kind: type, state: State) -> Any:
    bits = kind()
    bits.state = state
    return bits


def recording() -> Recording:
    """Of what this thread draws from now on, as long as somebody holds it."""
    _install()
    _runs.open = [r for r in _runs.open if isinstance(r, _Private) or r() is not None]
    made = Recording()
    _runs.open.append(ref(made))
    return made


def stop(recording: Recording) -> None:
    _runs.open = [
        r for r in _runs.open if isinstance(r, _Private) or r() is not recording
    ]


def _innermost() -> _Private | None:
    return next((r for r in reversed(_runs.open) if isinstance(r, _Private)), None)


def read() -> State:
    """The state from which this thread draws next."""
    own = _innermost()
    if own is None:
        return _read()
    return own.starts.get(own.draws, own.state)


def write(state: State) -> None:
    own = _innermost()
    if own is None:
        np.random.set_state(state)
    else:
        own.starts, own.state = {}, state


@contextmanager
def private(starts: dict[int, State] | None = None) -> Iterator[None]:
    """Let this thread draw numbers that others don't see: these, or the next ones."""
    _install()
    before = _runs.open
    _runs.open = [*before, _Private(starts or {}, read())]
    try:
        yield
    finally:
        _runs.open = before
