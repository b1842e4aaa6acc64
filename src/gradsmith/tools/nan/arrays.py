"""NumPy's arrays that tell of each operation on them.

The body and the rules of an operation run on plain arrays; on these they run the same,
and each line that makes NaN or inf is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core import trees

# Told with the function's name, what went in and what came out
Told = Callable[[str, Sequence[Any], Sequence[Any], bool], None]


class Telling(np.ndarray):
    """An array that tells; a class derived from it knows whom."""

    told: Told

    def __array_ufunc__(  # type: ignore[override]
        self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        xs = [plain(x) for x in inputs]
        ys = getattr(ufunc, method)(*xs, **{k: plain(v) for k, v in kwargs.items()})
        name = f"np.{ufunc.__name__}" + f".{method}" * (method != "__call__")
        self.told(name, xs, trees.leaves(ys), method == "__call__")
        return telling(ys, type(self))

    def __array_function__(self, fn: Any, types: Any, args: Any, kwargs: Any) -> Any:
        args, kwargs = plain(args), plain(kwargs)
        ys = fn(*args, **kwargs)
        self.told(f"np.{fn.__name__}", trees.leaves(args), trees.leaves(ys), False)
        return telling(ys, type(self))


def telling_class(told: Told) -> type[Telling]:
    """The class of arrays that tell this function."""
    return type("Telling", (Telling,), {"told": staticmethod(told)})


def telling(tree: Any, cls: type[Telling]) -> Any:
    """The same, with arrays that tell in place of floating ones."""

    def leaf(x: Any) -> Any:
        floating = isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "fc"
        return np.asarray(x).view(cls) if floating else x

    return trees.map(leaf, tree)


def plain(tree: Any) -> Any:
    """The same, with plain arrays in place of those that tell."""

    def leaf(x: Any) -> Any:
        return x.view(np.ndarray) if isinstance(x, Telling) else x

    return trees.map(leaf, tree)
