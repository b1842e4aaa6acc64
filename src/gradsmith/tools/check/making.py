"""The problem of an operation, as it is called."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ...core import trees
from ...core.arrays import is_array
from ...frameworks._protocol import Framework
from ...operations.info import OperationInfo, is_floating, positional
from .bounds import Bounds
from .problem import Problem


def problem_of(
    info: OperationInfo,
    framework: Framework,
    args: Any,
    kwargs: Any,
    bounds: tuple[Bounds, ...] = (),
) -> Problem:
    """The problem of an operation, called with these arrays of its framework."""
    named = [(name, x) for name, x in _named(info, args, kwargs) if is_moved(x)]

    def leaf(x: Any) -> Any:
        if not _holds_numbers(x):
            return x
        return np.array(x) if isinstance(x, np.ndarray) else framework.arrays.numpy(x)

    return Problem(
        info,
        framework,
        info.call,
        trees.map(leaf, (tuple(args), dict(kwargs))),
        tuple(name for name, _ in named),
        tuple(_dtype_name(x, framework) for _, x in named),
        bounds=bounds,
    )


def _named(info: OperationInfo, args: Any, kwargs: Any) -> list[tuple[str, Any]]:
    names = positional(info, args)
    pairs = [*zip(names, args, strict=False), *kwargs.items()]
    return [leaf for name, x in pairs for leaf in trees.leaves_with_names(x, name)]


def _dtype_name(x: Any, framework: Framework) -> str:
    if isinstance(x, np.ndarray):
        return str(x.dtype)
    return framework.arrays.dtype_name(x)


def _holds_numbers(x: Any) -> bool:
    """Not so an array of strings, or of random keys."""
    return is_array(x) and bool(re.search("bool|int|float|complex", str(x.dtype)))


def as_array(x: Any) -> Any:
    """Numbers as NumPy's arrays, which every framework is given its own from."""
    return x if is_array(x) else np.asarray(x)


def is_moved(x: Any) -> bool:
    """Whether it is an array of floating numbers."""
    return is_array(x) and is_floating(x)
