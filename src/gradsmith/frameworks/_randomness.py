"""Random generators that a function may draw from, and their states.

These are NumPy's and Python's global generators, and the generator objects that the
function is given or captures. A framework adds the kinds that it has to `KINDS`.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import GradsmithError
from ..core.reach import reached
from . import _global_random


class Stream(NamedTuple):
    """A generator: how its state is read, and set again."""

    read: Callable[[], Any]
    write: Callable[[Any], None]


class Moment(NamedTuple):
    """Before a function draws: the states, and what it draws from NumPy's generator."""

    states: list[Any]
    drawn: _global_random.Recording


class Streams:
    """The generators that a function may draw from."""

    def __init__(self, *roots: Any) -> None:
        kinds = tuple(KINDS)
        own = reached(*roots, stop=lambda x: isinstance(x, kinds))
        shared = np.random.get_state.__self__  # NumPy's, which threads draw from apart
        # Two generators of one bit generator are one stream.
        found = {
            id(getattr(x, "bit_generator", x)): _stream_of(x)
            for x in own
            if x is not shared
        }
        self.streams = [_PYTHON, *found.values()]

    def read(self) -> list[Any]:
        states = [stream.read() for stream in self.streams]
        return [_global_random.read(), *states]

    def write(self, states: list[Any]) -> None:
        _global_random.write(states[0])
        for stream, state in zip(self.streams, states[1:], strict=True):
            stream.write(state)

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Set them back afterwards."""
        before = [stream.read() for stream in self.streams]
        try:
            with _global_random.private():
                yield
        finally:
            for stream, state in zip(self.streams, before, strict=True):
                stream.write(state)

    def begin(self) -> Moment:
        states = [stream.read() for stream in self.streams]
        return Moment(states, _global_random.recording())

    def drawn_since(self, before: Moment) -> Replay | None:
        """How to draw the same again; None if none of them was drawn from."""
        _global_random.stop(before.drawn)
        found: list[tuple[Stream, Any, Any]] = []
        for stream, state in zip(self.streams, before.states, strict=True):
            after = stream.read()
            if not _same(after, state):
                found.append((stream, state, after))
        starts = before.drawn.starts
        return Replay(found, starts) if found or starts else None


class Replay(NamedTuple):
    """Generators with the states that they had before and after a function drew."""

    states: list[tuple[Stream, Any, Any]]
    starts: dict[int, Any]  # of NumPy's global generator, which is drawn from apart

    @contextmanager
    def __call__(self) -> Iterator[None]:
        now = [stream.read() for stream, _, _ in self.states]
        try:
            for stream, state, _ in self.states:
                stream.write(state)
            with _global_random.private(self.starts):
                yield
            self._require_alone()
        finally:
            for (stream, _, _), state in zip(self.states, now, strict=True):
                stream.write(state)

    def in_parts(self) -> Replay:
        """For one who draws the same in another order, and may not end as before."""
        return self._replace(states=[(s, before, None) for s, before, _ in self.states])

    def _require_alone(self) -> None:
        """A generator without a lock is one stream: nobody else may draw meanwhile."""
        if threading.active_count() == 1:
            return
        ends = [(s.read(), end) for s, _, end in self.states if end is not None]
        if not all(_same(now, end) for now, end in ends):
            raise GradsmithError(
                "a checkpointed block draws from a random generator that another "
                "thread draws from at the same time (Python's `random`, or one that "
                "the block is given): what it drew can't be drawn again.\n  what to "
                "do: give each thread a generator of its own, or draw from np.random, "
                "whose numbers are kept apart"
            )


_PYTHON = Stream(random.getstate, random.setstate)


def _of_bits(x: np.random.Generator) -> Stream:
    bits = x.bit_generator
    return Stream(lambda: bits.state, lambda state: setattr(bits, "state", state))


# The classes of generators, and how one of them is read
KINDS: dict[type, Callable[[Any], Stream]] = {
    np.random.Generator: _of_bits,
    np.random.RandomState: lambda x: Stream(
        lambda: x.get_state(legacy=False), x.set_state
    ),
    random.Random: lambda x: Stream(x.getstate, x.setstate),
}


def _stream_of(x: Any) -> Stream:
    return next(make(x) for kind, make in KINDS.items() if isinstance(x, kind))


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return all(_same(a[key], b[key]) for key in a)
    if hasattr(a, "shape"):
        return bool((a == b).all())
    return bool(a == b)
