"""The arrays that an object keeps alive, however deep inside."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

_NOT_ENTERED = (type, ModuleType, str, bytes, int, float)


def arrays_in(*roots: Any, beside: Iterable[Any] = ()) -> Iterator[np.ndarray]:
    """Each memory once: of views the array that has it. What is `beside` is left out.

    >>> x = np.zeros(4)
    >>> [held.size for held in arrays_in((x[1:], {"x": x}))]
    [4]
    """
    seen: dict[int, Any] = {id(x): x for x in beside}
    stack = list(roots)
    while stack:
        x = stack.pop()
        if id(x) in seen or isinstance(x, _NOT_ENTERED):
            continue
        seen[id(x)] = x
        if isinstance(x, np.ndarray):
            if isinstance(x.base, np.ndarray):
                stack.append(x.base)
            else:
                yield x
        elif isinstance(x, FunctionType):
            stack += [*(x.__closure__ or ()), *(x.__defaults__ or ())]
            stack += (x.__kwdefaults__ or {}).values()
        else:
            stack += gc.get_referents(x)
