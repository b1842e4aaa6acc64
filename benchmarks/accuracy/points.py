"""Inputs: numbers of all magnitudes, and for several arguments related ones as well."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradsmith.tools.audit import sampling
from gradsmith.tools.audit.formats import FORMATS, Format

Domain = tuple[float, float]
EVERYWHERE: Domain = (-np.inf, np.inf)
FLOAT32 = FORMATS["float32"]


def of_one(domain: Domain, n: int, form: Format = FLOAT32, *, seed: int = 0) -> Any:
    """Numbers of a domain: half of them of all magnitudes, half of the usual ones.

    Of all float32 numbers only one in fifteen lies between 0.01 and 100.
    """
    low, high = (max(min(end, 100), -100) for end in domain)
    many = sampling.sampled(domain, form, n // 2, seed=seed)
    if low >= high:
        return many
    flat = np.random.default_rng(seed).uniform(low, high, n - n // 2)
    return np.unique(np.concatenate([many, form.rounded(flat)]))


def of_several(
    domains: list[Domain], n: int, form: Format = FLOAT32, *, seed: int = 0
) -> list[Any]:
    """Points of several arguments: a third unrelated, a third near one another.

    The last third is of the usual magnitudes, where nothing overflows.
    """
    rng = np.random.default_rng(seed)
    columns = [
        _shuffled(of_one(d, n // 3, form, seed=seed + i), n // 3, rng)
        for i, d in enumerate(domains)
    ]
    near = [rng.permutation(columns[0])]
    for domain in domains[1:]:
        scaled = near[0] * np.exp2(rng.uniform(-8, 8, n // 3))
        scaled = scaled if domain[0] >= 0 else scaled * _signs(n // 3, rng)
        near.append(form.rounded(np.clip(scaled, *domain)))
    usual = [rng.uniform(max(low, -20), min(high, 20), n // 3) for low, high in domains]
    parts = zip(columns, near, map(form.rounded, usual), strict=True)
    return [np.concatenate(part) for part in parts]


def _shuffled(x: Any, n: int, rng: Any) -> Any:
    return rng.permutation(np.resize(x + 0.0, n))  # no -0.0: cuts lie there


def _signs(n: int, rng: Any) -> Any:
    return np.where(rng.random(n) < 0.5, -1, 1)


def of_vectors(n: int, size: int, form: Format = FLOAT32, *, seed: int = 0) -> Any:
    """Vectors of mixed magnitudes, and upstream gradients for them."""
    x = vectors(n, size, form, seed=seed)
    return x, vectors(n, size, form, seed=seed + 1, largest=10.0)


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
