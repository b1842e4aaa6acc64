"""The embedded engine."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from ....core import transforms as transforms
from ....core.tensor import Tensor

version = np.__version__

numbers = True


def array(x: np.ndarray, dtype: str) -> np.ndarray:
    return np.array(x, dtype)


def dtype_name(x: Any) -> str:
    return str(getattr(x, "dtype", "float64"))


def numpy(x: Any) -> np.ndarray:
    return np.array(x.numpy() if isinstance(x, Tensor) else x)


def precision(dtype: str) -> AbstractContextManager[Any]:
    return nullcontext()


alone = nullcontext


def value(fn: Any, xs: list[Any]) -> list[Any]:
    return fn(xs)


def vjp(fn: Any, xs: list[Any]) -> Any:
    ys, pull = transforms.vjp(lambda *xs: tuple(fn(xs)), *xs)
    return list(ys), lambda dys: _listed(pull(tuple(dys)))


def jvp(fn: Any, xs: list[Any], dxs: list[Any]) -> list[Any]:
    return list(transforms.jvp(lambda *xs: tuple(fn(xs)), tuple(xs), tuple(dxs))[1])


def hvp(fn: Any, xs: list[Any], dys: list[Any], vs: list[Any]) -> list[Any]:
    return twice(fn, xs, dys, vs)[0]


def twice(fn: Any, xs: list[Any], dys: list[Any], vs: list[Any]) -> Any:
    n = len(xs)

    def slope(*both: Any) -> Any:
        gradients = vjp(fn, list(both[:n]))[1](list(both[n:]))
        pairs = zip(gradients, vs, strict=True)
        return sum(np.sum(np.real(np.conj(v) * g)) for g, v in pairs)

    y, pull = transforms.vjp(slope, *xs, *dys)
    found = _listed(pull(np.ones_like(y)))
    return found[:n], found[n:]


def _listed(gradients: Any) -> list[Any]:
    return list(gradients) if isinstance(gradients, tuple) else [gradients]


# --- how arrays lie in memory


def transposed(x: np.ndarray) -> np.ndarray:
    return np.array(x, order="F")


def sliced(x: np.ndarray) -> np.ndarray:
    return np.stack([x, np.zeros_like(x)], -1)[..., 0]


def repeated(x: np.ndarray) -> np.ndarray:
    """The first element everywhere, in no more memory than that one needs."""
    return np.broadcast_to(x.flat[0], x.shape) if x.size else x


LAYOUTS = {"transposed": transposed, "sliced": sliced}
