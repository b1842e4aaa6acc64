"""Inputs: uniform over the representable numbers of a domain, and all of its edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.errors import GradsmithError
from .formats import Format


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


def vectors(
    n: int, size: int, form: Format, *, seed: int = 0, largest: float = 100.0
) -> Any:
    """Vectors of mixed magnitudes: of one scale, of many, with ties and zeros."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, size))
    scale = largest ** rng.uniform(-1, 1, (n, 1))
    mixed = largest ** rng.uniform(-2, 1, (n, size))
    kind = np.arange(n)[:, None] % 3
    x = np.where(kind == 0, x * scale, x * mixed)
    x = np.where((kind == 2) & (rng.random(x.shape) < 0.2), np.round(x), x)
    return form.rounded(np.clip(x, -largest, largest))
