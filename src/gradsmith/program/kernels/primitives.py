"""What kernels for a CPU can, and NumPy has no function for: steps of a trace.

They are called where `in_cpu_kernel()` holds. Run as functions of NumPy's arrays they
compute the same, of float32 by float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.cotangent import Spec
from ...core.symbolic import Symbolic
from ...core.tensor import unwrap
from .machine import this_machine
from .mode import in_cpu_kernel


def has_fma() -> bool:
    """Whether what runs now becomes a kernel in which `fma` is rounded once."""
    return in_cpu_kernel() and this_machine().fma


def fma(a: Any, b: Any, c: Any) -> Any:
    """a b + c, rounded once."""
    return _step(_fma, a, b, c)


def exp_times(x: Any, y: Any) -> Any:
    """exp(x) y, to all digits where exp(x) alone is below the normal numbers.

    If y is not 0, |y| is from 2**-64 to 2**64.

    The power of 2 comes last: a choice of two factors takes five instructions more.
    """
    return _step(_exp_times, x, y)


def _step(fn: Any, *args: Any) -> Any:
    args = tuple(map(unwrap, args))
    x = next(a for a in args if isinstance(a, Symbolic))
    shape = np.broadcast_shapes(*map(np.shape, args))
    return x.called(fn, args, [Spec(shape, x.dtype)])[0]


def _fma(a: Any, b: Any, c: Any) -> Any:
    return (np.multiply(a, b, dtype=float) + c).astype(a.dtype)


def _exp_times(x: Any, y: Any) -> Any:
    return (np.exp(x, dtype=float) * y).astype(x.dtype)


PRIMITIVES = {_fma: "fma", _exp_times: "exp_times"}
