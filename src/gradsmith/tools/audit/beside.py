"""Arrays in working precision with their true values beside them.

A definition or a rule that runs on them tells, operation by operation, how far off it
is: where the error is born, and in which line.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ...core import trees
from ...core.places import user_frame
from .arb import each
from .balls import Balls, call


@dataclass(frozen=True)
class Step:
    """One operation: what went in and came out, and relative errors of both."""

    name: str
    ins: tuple[Any, ...]
    out: Any
    true: Any
    before: float
    after: float
    source: str
    line: int


class Beside(NDArrayOperatorsMixin):
    """An array as it is computed, and the balls that it ought to be."""

    __slots__ = ("got", "steps", "true")
    __array_priority__ = 3000

    def __init__(self, got: Any, true: Balls, steps: list[Step]) -> None:
        self.got, self.true, self.steps = got, true, steps

    @property
    def shape(self) -> tuple[int, ...]:
        return self.got.shape

    @property
    def ndim(self) -> int:
        return self.got.ndim

    @property
    def size(self) -> int:
        return self.got.size

    @property
    def dtype(self) -> Any:
        return self.got.dtype

    def __len__(self) -> int:
        return len(self.got)

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kw: Any) -> Any:
        if method == "__call__":
            return self._both(ufunc, ufunc, args, kw)
        return self._both(getattr(ufunc, method), (ufunc, method), args, kw)

    def __array_function__(self, fn: Any, types: Any, args: Any, kw: Any) -> Any:
        return self._both(fn, fn, args, kw)

    def _both(self, fn: Callable[..., Any], known: Any, args: Any, kw: Any) -> Any:
        got = fn(*trees.map(_got, args), **trees.map(_got, kw))
        if not isinstance(got, (np.ndarray, np.generic)) or got.dtype.kind != "f":
            return got  # a choice is made by what is computed
        true = call(known, trees.map(_true, args), trees.map(_true, kw))
        y = Beside(np.asarray(got), true, self.steps)
        ins = [x for x in trees.leaves(args) if isinstance(x, Beside)]
        source, line = segment()
        name = getattr(fn, "__name__", "") or str(fn)
        before = max((error(x) for x in ins), default=0.0)
        numbers = tuple(np.asarray(_got(x)) for x in trees.leaves(args))
        self.steps.append(
            Step(name, numbers, y.got, true, before, error(y), source, line)
        )
        return y

    def __getattr__(self, name: str) -> Any:
        """Methods are those of arrays."""
        fn = getattr(np, name, None)
        if name.startswith("_") or not callable(fn):
            raise AttributeError(name)
        return lambda *args, **kwargs: fn(self, *args, **kwargs)

    def astype(self, dtype: Any, **_: Any) -> Any:
        return Beside(self.got.astype(dtype), self.true, self.steps)

    def __getitem__(self, index: Any) -> Any:
        true: Any = self.true
        return Beside(np.asarray(self.got[index]), true[index], self.steps)


def _got(x: Any) -> Any:
    return x.got if isinstance(x, Beside) else x


def _true(x: Any) -> Any:
    return x.true if isinstance(x, Beside) else x


_off = each(lambda got, true: _relative(got, true), 2)


def _relative(got: float, true: Any) -> float:
    if got != got or got in (float("inf"), float("-inf")):
        return float("inf")
    off = abs(true.mid() - got)
    size = abs(true.mid())
    if size == 0:
        return 0.0 if off == 0 else float("inf")
    return float(off / size)


def error(x: Beside) -> float:
    """The largest relative error."""
    got = x.got.astype(np.float64).astype(object)
    value = np.broadcast_to(x.true.value, got.shape)
    return float(np.max(np.asarray(_off(got, value), np.float64), initial=0.0))


ENDS: set[Any] = set()  # the code of what runs a definition: beyond is no part of it


def segment() -> tuple[str, int]:
    """The text of the user's operation that is running, and its line."""
    frame = user_frame(within=ENDS)
    return ("", 0) if frame is None else _text(frame)


def _text(frame: Any) -> tuple[str, int]:
    places: Sequence[Any] = list(frame.f_code.co_positions())
    line, last, start, end = places[frame.f_lasti // 2]
    text = linecache.getline(frame.f_code.co_filename, line or frame.f_lineno)
    if None in (line, last, start, end) or line != last:
        return text.strip(), frame.f_lineno
    return text.encode()[start:end].decode(errors="replace"), line
