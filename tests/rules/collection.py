"""A list of cases that is written one call per line."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.rules.harness import NUMPY, Case

_rng = np.random.default_rng(3)


def array(*shape: int, kind: str = "f") -> np.ndarray:
    """Random numbers; kind "c" for complex ones."""
    x = np.asarray(_rng.standard_normal(shape))
    return x + 1j * _rng.standard_normal(shape) if kind == "c" else x


class Collection(list[Case]):
    def add(self, fn: Any, *args: Any, **kwargs: Any) -> None:
        """Append the call `fn(*args, **kwargs)`, named after its arguments."""
        words = [*map(_word, args), *(f"{k}={_word(v)}" for k, v in kwargs.items())]
        text = ",".join(words).replace(" ", "")
        self.append(Case(fn, args, kwargs, name=f"{fn.__name__}-{text[:70]}"))

    def add_since(self, numpy: tuple[int, int], fn: Any, *args: Any, **kw: Any) -> None:
        """Append a call that NumPy takes from this version on; none on an older one."""
        if numpy <= NUMPY:
            self.add(fn, *args, **kw)


def _word(x: Any) -> str:
    if isinstance(x, np.ndarray):
        return f"{x.dtype.kind}{x.shape}"
    if isinstance(x, (list, tuple)):
        return "[" + ",".join(map(_word, x)) + "]"
    return getattr(x, "__name__", str(x))
