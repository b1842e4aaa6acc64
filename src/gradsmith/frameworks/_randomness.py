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
        kinds = tuple(KINDS)
        own = reached(*roots, stop=lambda x: isinstance(x, kinds))
        # Two generators of one bit generator are one stream.
        found = {id(getattr(x, "bit_generator", x)): _stream_of(x) for x in own}
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
