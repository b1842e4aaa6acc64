"""What phi is made of: directions and weights, chosen once."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ...core.errors import GradsmithError, annotate
from ...operations.info import OperationInfo
from .arithmetic import alike, number
from .scalar import DIRECTION, POINTS, Scalar, floating, outputs


def scalar_of(
    kit: Any, subject: OperationInfo, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Scalar:
    """Choose directions and weights; runs the operation once."""
    random = np.random.default_rng(0)
    with annotate(f"raised by {subject.name} itself, called with the given inputs"):
        returned = subject.call(*args, **kwargs)
    xs, ys = floating((args, kwargs)), outputs(returned)
    if not ys:
        raise GradsmithError(
            f"{subject.name} has no output with a gradient: it returned "
            f"{type(returned).__name__}, without any array of floating numbers"
        )
    values = [kit.numpy(y) for y in ys]
    sizes = [y.size * (1 + np.iscomplexobj(y)) for y in values]
    return Scalar(
        kit,
        subject.call,
        args,
        kwargs,
        directions=[_directions(kit, x, random) for x in xs],
        scales=[_size(y) for y in values],
        weights=[number(random.uniform(0.5, 1.5, n), xs[0]) for n in sizes],
        tolerance=max(_tolerance(x) for x in (*xs, *ys)),
        itself=False,
        t=number(POINTS[0], xs[0]),
        dt=number(DIRECTION, xs[0]),
        points=number(POINTS, xs[0]),
    )


def _directions(kit: Any, x: Any, random: np.random.Generator) -> list[Any]:
    value = kit.numpy(x)
    parts = (1, 1j) if np.iscomplexobj(value) else (1,)

    def direction() -> Any:
        return sum(part * random.uniform(0.5, 1.5, value.shape) for part in parts)

    return [alike(_size(value) * direction(), x) for _ in range(2)]


def _size(x: np.ndarray) -> float:
    """The mean of the absolute values, or 1 if there is none to go by."""
    size = float(np.mean(np.abs(x))) if x.size else 0.0
    return size if 0 < size < np.inf else 1.0


_DIGITS = {"float64": 52, "complex128": 52, "float32": 23, "complex64": 23}
_DIGITS |= {"float16": 10, "bfloat16": 7}


def _tolerance(x: Any) -> float:
    """Half of a dtype's binary digits."""
    name = re.search(r"\w*(float|complex)\w+", str(getattr(x, "dtype", "float64")))
    return max(1e-6, 2.0 ** (-_DIGITS.get(name[0] if name else "", 4) / 2))
