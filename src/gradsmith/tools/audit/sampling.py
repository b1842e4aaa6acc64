"""Inputs of an audit.

A single number is sampled uniformly over the representable numbers of its domain, with
all of its edges. Several arguments are sampled together, vectors at mixed magnitudes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.errors import GradsmithError
from .arguments import Argument
from .formats import Format

LARGEST = 100.0  # in vectors, unless a domain says otherwise


def ends(domain: tuple[float, float] | None, form: Format) -> tuple[int, int]:
    """The codes of the least and the greatest finite number of a closed domain."""
    low, high = domain or (-np.inf, np.inf)
    if not low <= high:
        raise GradsmithError(
            f"domain={domain!r} is empty: give (low, high) with low <= high"
        )
    first, last = (int(form.codes(form.rounded(end))) for end in (low, high))
    first += bool(form.numbers(first).astype(float) < low)
    last -= bool(form.numbers(last).astype(float) > high)
    most = form.largest_code
    first, last = max(first, -most), min(last, most)
    if first > last:
        raise GradsmithError(f"no {form.name} number lies in domain={domain!r}")
    return first, last


def all_of(domain: tuple[float, float] | None, form: Format) -> Any:
    """Every number of a domain, in order, with both zeros."""
    first, last = ends(domain, form)
    numbers = form.numbers(np.arange(first, last + 1))
    return _with_both_zeros(numbers, form, first, last)


def sampled(
    domain: tuple[float, float] | None, form: Format, n: int, *, seed: int = 0
) -> Any:
    """About n numbers, each as likely as any other, and the edges of the domain."""
    first, last = ends(domain, form)
    rng = np.random.default_rng(seed)
    codes = rng.integers(first, last, n, np.int64, endpoint=True)
    codes = np.sort(np.concatenate([codes, edges(first, last, form)]))
    codes = codes[np.append(True, codes[1:] > codes[:-1])]  # np.unique: 5 times as long
    return _with_both_zeros(form.numbers(codes), form, first, last)


def edges(first: int, last: int, form: Format) -> Any:
    """Codes where formulas break: ends, powers of 2, 1, zero, the subnormal ones."""
    exponents = np.arange(0, form.largest_code, 1 << (form.digits - 1), dtype=np.int64)
    near = np.concatenate([exponents - 1, exponents, exponents + 1])
    near = np.concatenate([near, -near, [first, first + 1, last - 1, last, 0, 1, -1]])
    return near[(near >= first) & (near <= last)]


def _with_both_zeros(x: Any, form: Format, first: int, last: int) -> Any:
    if not first <= 0 <= last:
        return x
    return np.concatenate([x, np.asarray([-0.0], np.float64).astype(form.dtype)])


def samples(
    arguments: Sequence[Argument], domains: Any, form: Format, n: int, *, seed: int
) -> list[Any]:
    """n points of each argument, along the first axis."""
    varied = [a for a in arguments if a.varies]
    rngs = [np.random.default_rng([seed, i]) for i in range(len(varied))]
    found: list[Any] = []
    for argument, rng in zip(varied, rngs, strict=True):
        domain = domains.get(argument.name) or argument.domain
        if argument.shape:
            found.append(_vectors(argument.shape, domain, form, n, rng))
        else:
            before = found[-1] if found and found[-1].ndim == 1 else None
            found.append(_numbers(domain, form, n, rng, before))
    return found


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
