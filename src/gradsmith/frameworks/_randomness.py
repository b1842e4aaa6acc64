"""Random generators that a function may draw from, and their states.

These are NumPy's and Python's global generators, and the generator objects that the
function is given or captures. A framework adds the kinds that it has to `KINDS`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ..core.reach import reached


class Stream(NamedTuple):
    """A generator: how its state is read, and set again."""

    read: Callable[[], Any]
    write: Callable[[Any], None]


class Streams:
    """The generators that a function may draw from."""

    def __init__(self, *roots: Any) -> None:
        own = reached(*roots, stop=lambda x: _stream_of(x) is not None)
        found = {id(key): stream for key, stream in map(_keyed, own)}
        self.streams = [_NUMPY, _PYTHON, *found.values()]

    def read(self) -> list[Any]:
        return [stream.read() for stream in self.streams]

    def write(self, states: list[Any]) -> None:
        for stream, state in zip(self.streams, states, strict=True):
            stream.write(state)

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Set them back afterwards."""
        before = self.read()
        try:
            yield
        finally:
            self.write(before)

    def drawn_since(self, before: list[Any]) -> Replay | None:
        """How to draw the same again; None if none of them was drawn from."""
        pairs = zip(self.streams, before, strict=True)
        drawn = [
            (stream, state)
            for stream, state in pairs
            if not _same(stream.read(), state)
        ]
        return Replay(drawn) if drawn else None


class Replay(NamedTuple):
    """Generators and the states that they had."""

    states: list[tuple[Stream, Any]]

    @contextmanager
    def __call__(self) -> Iterator[None]:
        now = [stream.read() for stream, _ in self.states]
        try:
            for stream, state in self.states:
                stream.write(state)
            yield
        finally:
            for (stream, _), state in zip(self.states, now, strict=True):
                stream.write(state)


_NUMPY = Stream(lambda: np.random.get_state(legacy=False), np.random.set_state)
_PYTHON = Stream(random.getstate, random.setstate)


def _of_numpy(x: Any) -> Stream | None:
    if isinstance(x, np.random.Generator):
        bits = x.bit_generator
        return Stream(lambda: bits.state, lambda state: setattr(bits, "state", state))
    if isinstance(x, np.random.RandomState):
        return Stream(lambda: x.get_state(legacy=False), x.set_state)
    return None


def _of_python(x: Any) -> Stream | None:
    return Stream(x.getstate, x.setstate) if isinstance(x, random.Random) else None


# Each returns the stream of an object, or None if it is no generator of that kind.
KINDS: list[Callable[[Any], Stream | None]] = [_of_numpy, _of_python]


def _stream_of(x: Any) -> Stream | None:
    for kind in KINDS:
        stream = kind(x)
        if stream is not None:
            return stream
    return None


def _keyed(x: Any) -> tuple[Any, Stream]:
    """Two generators of one bit generator are one stream."""
    stream = _stream_of(x)
    assert stream is not None
    return getattr(x, "bit_generator", x), stream


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return all(_same(a[key], b[key]) for key in a)
    if hasattr(a, "shape"):
        return bool((a == b).all())
    return bool(a == b)
