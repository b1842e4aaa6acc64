"""Tables with a bound: what is known about types, functions and calls."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any, TypeVar

T = TypeVar("T")

MOST = 4096


def remember(cache: dict[Any, Any], key: Any, value: T) -> T:
    """Keep a value in a cache that starts anew when it is full.

    Types, functions and shapes are made in loops, and a cache holds those it knows.
    Reading stays that of a plain dict.

    >>> cache = {}
    >>> remember(cache, int, "whole"), cache
    ('whole', {<class 'int'>: 'whole'})
    """
    if len(cache) >= MOST:
        cache.clear()
    cache[key] = value
    return value


class Latest(MutableMapping[Any, Any]):
    """A dict that holds the entries that were used last, at least `MOST` of them.

    For what somebody names who does not say when they are gone: a compiler's graph.
    Two dicts, of which the older one is dropped, since threads may read meanwhile.
    """

    def __init__(self) -> None:
        self._new: dict[Any, Any] = {}
        self._old: dict[Any, Any] = {}

    def __getitem__(self, key: Any) -> Any:
        try:
            return self._new[key]
        except KeyError:
            self[key] = value = self._old[key]
            return value

    def __setitem__(self, key: Any, value: Any) -> None:
        if len(self._new) >= MOST:
            self._new, self._old = {}, self._new
        self._new[key] = value

    def __delitem__(self, key: Any) -> None:
        self._new.pop(key, None)
        self._old.pop(key, None)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._old | self._new)

    def __len__(self) -> int:
        return len(self._old | self._new)
