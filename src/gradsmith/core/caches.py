"""Caches with a bound: what is known about types, functions and calls."""

from __future__ import annotations

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
