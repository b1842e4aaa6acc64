"""Inputs of functions of several arguments, or of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .formats import Format
from .model import Domain
from .sampling import edges, ends
from .shapes import Argument

LARGEST = 100.0  # in vectors, unless a domain says otherwise


def samples(
    arguments: Sequence[Argument], domains: Any, form: Format, n: int, *, seed: int
) -> list[Any]:
    """n points of each argument, along the first axis."""
    varied = [a for a in arguments if a.varies]
    rngs = [np.random.default_rng([seed, i]) for i in range(len(varied))]
    found: list[Any] = []
    for argument, rng in zip(varied, rngs, strict=True):
        domain = domains.get(argument.name) or _bounds(argument)
        if argument.shape:
            found.append(_vectors(argument.shape, domain, form, n, rng))
        else:
            before = found[-1] if found and found[-1].ndim == 1 else None
            found.append(_numbers(domain, form, n, rng, before))
    return found


def _bounds(argument: Argument) -> Domain | None:
    low, high = argument.low, argument.high
    if low is None and high is None:
        return None
    return (-np.inf if low is None else low, np.inf if high is None else high)


def _numbers(domain: Any, form: Format, n: int, rng: Any, before: Any) -> Any:
    """Numbers of all sizes and edges; a part of them close to those of another."""
    first, last = ends(domain, form)
    codes = rng.integers(first, last, n, np.int64, endpoint=True)
    special = edges(first, last, form)
    at = rng.permutation(n)
    some = at[: n // 8]
    codes[some] = rng.choice(special, len(some))
    if before is not None:
        theirs, near = form.codes(before), at[n // 8 : n // 2]
        reach = 1 << rng.integers(0, form.digits + 3, len(near))
        codes[near] = theirs[near] + rng.integers(-reach, reach, endpoint=True)
        codes = np.clip(codes, first, last)
    return form.numbers(codes)


def _vectors(shape: Any, domain: Any, form: Format, n: int, rng: Any) -> Any:
    """Arrays of mixed magnitudes: of one scale, of many, with ties and zeros."""
    low, high = domain or (-LARGEST, LARGEST)
    largest = float(min(max(abs(low), abs(high)), 2.0 ** (form.most // 2)))
    full, ones = (n, *shape), (n, *[1] * len(shape))
    x = rng.normal(size=full)
    scale = largest ** rng.uniform(-1, 1, ones) if largest > 1 else largest
    mixed = largest * 10.0 ** rng.uniform(-4, 0, full)
    kind = np.arange(n).reshape(ones) % 3
    x = np.where(kind == 0, x * scale, x * mixed)
    x = np.where((kind == 2) & (rng.random(full) < 0.2), np.round(x), x)
    low, high = max(low, -largest), min(high, largest)
    inside = (x >= low) & (x <= high)
    return form.rounded(np.where(inside, x, rng.uniform(low, high, full)))


def upstreams(shape: tuple[int, ...], form: Format, *, seed: int) -> Any:
    """Upstream gradients: one element of each, numbers of both signs, and ones."""
    rng = np.random.default_rng([seed, 99])
    n, size = shape[0], int(np.prod(shape[1:]))
    signed = rng.choice([-1.0, 1.0], (n, size)) * rng.integers(3, 8, (n, size)) / 4
    one = np.zeros((n, size))
    one[np.arange(n), rng.integers(0, max(size, 1), n)] = 1
    kind = np.arange(n)[:, None] % 6
    dy = np.where(kind < 3, one, np.where(kind < 5, signed, 1.0))
    return form.rounded(dy.reshape(shape))
