"""An operation in its own framework: its value and its gradient, in a format.

NumPy computes nothing in bfloat16: that is done in float32 and rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...core.arrays import FRAMEWORKS, NUMPY, title_of
from ...core.errors import GradsmithError, annotate
from ...core.transforms import vjp
from .certified.truth import Truth
from .formats import Format


@dataclass(frozen=True)
class Runner:
    """How an operation is run; `elementwise`: each result has the inputs' shape."""

    call: Callable[..., Any]
    framework: str = "numpy"
    name: str = ""
    keywords: dict[str, Any] = field(default_factory=dict)
    elementwise: bool = True
    flushes: bool = False  # subnormal numbers become 0

    def __call__(
        self, xs: Sequence[Any], form: Format, dy: Any = None
    ) -> tuple[Any, list[Any]]:
        """The value and the gradients by all xs, as arrays of the format."""
        own = _in_numpy if self.framework == NUMPY else _in_framework
        shapes = " and ".join(str(x.shape) for x in xs)
        with annotate(
            f"raised by {self.name}, given {form.name} arrays of "
            f"{title_of(self.framework)} of shape {shapes}"
        ):
            return own(self, xs, form, dy)

    def applied(self, *xs: Any) -> Any:
        y = self.call(*xs, **self.keywords)
        if self.elementwise:
            _require_elementwise(y, np.broadcast_shapes(*[tuple(x.shape) for x in xs]))
        return y

    def skip(
        self, xs: Sequence[Any], truth: Truth, form: Format, dx: Any = None
    ) -> Any:
        """Where results are not judged, or None: they are 0 on purpose.

        Some frameworks flush subnormal numbers to 0, the engine slopes that are
        infinite, and those of a few special functions that overflow.
        """
        if self.framework == NUMPY:
            too_large = np.abs(truth.number) >= form.overflow
            return None if dx is None else (np.asarray(dx) == 0) & too_large
        if not self.flushes:
            return None
        least = form.smallest_normal
        skip = (truth.hi != 0) & (np.abs(truth.number) < least)
        for x in xs:
            x = np.abs(x.astype(np.float64))
            small = (x > 0) & (x < least)
            if small.shape != skip.shape:  # any element of a row
                small = small.reshape(len(x), -1).any(axis=1)
                small = small.reshape(-1, *[1] * (skip.ndim - 1))
            skip = skip | small
        return skip


def _require_elementwise(y: Any, shape: tuple[int, ...]) -> None:
    if tuple(np.shape(y)) != shape:
        raise GradsmithError(
            "an audit of single numbers needs an elementwise function: inputs of "
            f"shape {shape} gave {tuple(np.shape(y))}\n  what to do: for a function "
            'of vectors, pass an example: inputs=gs.spec("10")'
        )


def _in_numpy(runner: Runner, xs: Sequence[Any], form: Format, dy: Any) -> Any:
    """As in any framework, without copies: 25 us less of 110."""
    wide = [_plain(x) for x in xs]

    def applied(*xs: Any) -> Any:
        return runner.applied(*xs)

    applied.__name__ = runner.name
    with np.errstate(all="ignore"):
        y, pull = vjp(applied, *wide)
        y = np.asarray(y)
        dy = np.ones(y.shape, y.dtype) if dy is None else dy.astype(y.dtype)
        dxs = pull(dy)
        dxs = dxs if isinstance(dxs, tuple) else (dxs,)
        return y.astype(form.dtype), [np.asarray(dx).astype(form.dtype) for dx in dxs]


def _in_framework(runner: Runner, xs: Sequence[Any], form: Format, dy: Any) -> Any:
    framework = FRAMEWORKS[runner.framework]
    arrays, calculus = framework.arrays, framework.calculus
    n = len(xs[0])
    if calculus.compiles:  # each new shape anew: 0.1 s an operation
        xs = [_padded(x, n) for x in xs]
        dy = dy if dy is None else _padded(dy, n)

    def back(x: Any, like: Any) -> Any:
        if x is None:
            return np.zeros(like.shape, form.dtype)
        return arrays.numpy(x).astype(form.dtype)

    single = arrays.single_threaded()
    with arrays.precision(form.name), single, np.errstate(all="ignore"):
        given = [arrays.array(_plain(x), form.name) for x in xs]
        # Compiled as a whole, operations may be fused, and more precise.
        ys, pull = calculus.vjp(lambda xs: [runner.applied(*xs)], given, eager=True)
        y = back(ys[0], ys[0])
        dy = np.ones(y.shape, np.float32) if dy is None else _plain(dy)
        dxs = pull([arrays.array(dy, arrays.dtype_name(ys[0]))])
        return y[:n], [back(dx, x)[:n] for dx, x in zip(dxs, xs, strict=True)]


SIZES = (64, 512, 4096)


def _padded(x: Any, n: int) -> Any:
    """With the last point repeated, to one of a few sizes."""
    size = next((size for size in SIZES if size >= n), n)
    return np.concatenate([x, np.repeat(x[-1:], size - n, axis=0)])


def _plain(x: Any) -> Any:
    """Numbers of a dtype that every framework reads."""
    return x if x.dtype.kind == "f" else x.astype(np.float32)


def flushes(framework: str, dtype: str) -> bool:
    """Whether a framework flushes subnormal numbers to 0."""
    if framework == NUMPY:
        return False
    arrays = FRAMEWORKS[framework].arrays
    tiny = np.float32(2.0**-130) if dtype != "float64" else 2.0**-1040
    with arrays.precision(dtype):
        if dtype == "float16":
            tiny = np.float16(2.0**-20)
        x = arrays.array(np.asarray([tiny]), dtype)
        return bool(arrays.numpy(x * 0.5)[0] == 0)
