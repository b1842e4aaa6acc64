"""What kernels can, and NumPy has no function for: steps of a trace.

They are called where `in_kernel()` holds. Run as functions of NumPy's arrays they
compute the same, of float32 by float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import numpy as gnp
from ...core.cotangent import Spec
from ...core.symbolic import Symbolic
from ...core.tensor import unwrap
from .machine import this_machine
from .mode import in_cpu_kernel, in_gpu_kernel


def has_fma() -> bool:
    """Whether what runs now becomes a kernel in which `fma` is rounded once."""
    return in_gpu_kernel() or (in_cpu_kernel() and this_machine().fma)


def fma(a: Any, b: Any, c: Any) -> Any:
    """a b + c, rounded once."""
    return _step(_fma, a, b, c)


def exp_times(x: Any, y: Any) -> Any:
    """exp(x) y, to all digits where exp(x) alone is below the normal numbers.

    If y is not 0, |y| is from 2**-64 to 2**64.

    The power of 2 comes last: a choice of two factors takes five instructions more.
    """
    return _step(_exp_times, x, y)


def log_sum(x: Any, lost: Any) -> Any:
    """log(x + lost), where rounding took `lost` from x: half an ULP at most.

    In kernels for a CPU alone.
    """
    return _step(_log_sum, x, lost)


def exp_total(x: Any, axes: Any) -> Any:
    """The sum of exp(x - top) along axes that stay, with `top` the greatest there.

    A top of minus infinity counts as 0; one of plus infinity takes all. A kernel needs
    no pass for the top alone: it is changed as a greater x comes.
    """
    return _row_step(_exp_total, x, axes)


def exp_rest(x: Any, axes: Any) -> Any:
    """The same sum without what is 1, the greatest."""
    return _row_step(_exp_rest, x, axes)


def _step(fn: Any, *args: Any) -> Any:
    args = tuple(map(unwrap, args))
    x = next(a for a in args if isinstance(a, Symbolic))
    shape = np.broadcast_shapes(*map(np.shape, args))
    return x.called(fn, args, [Spec(shape, x.dtype)])[0]


def _row_step(fn: Any, x: Any, axes: Any) -> Any:
    x = unwrap(x)
    places = range(x.ndim) if axes is None else np.atleast_1d(axes) % x.ndim
    shape = tuple(1 if i in places else n for i, n in enumerate(x.shape))
    return x.called(fn, (x, axes), [Spec(shape, x.dtype)])[0]


def _fma(a: Any, b: Any, c: Any) -> Any:
    return (np.multiply(a, b, dtype=float) + c).astype(a.dtype)


def _exp_times(x: Any, y: Any) -> Any:
    return (np.exp(x, dtype=float) * y).astype(x.dtype)


def _log_sum(x: Any, lost: Any) -> Any:
    return np.log(np.add(x, lost, dtype=float)).astype(x.dtype)


def _over_top(x: Any, axes: Any) -> Any:
    top = gnp.max(x, axis=axes, keepdims=True)
    top = gnp.where(top == -gnp.inf, gnp.zeros_like(top), top)
    return gnp.exp(gnp.where(x == top, gnp.zeros_like(x), x - top))


def _exp_total(x: Any, axes: Any) -> Any:
    return gnp.sum(_over_top(x, axes), axis=axes, keepdims=True)


def _exp_rest(x: Any, axes: Any) -> Any:
    e = _over_top(x, axes)
    e = gnp.where(e < 1, e, gnp.zeros_like(e))
    return gnp.sum(e, axis=axes, keepdims=True)


PRIMITIVES = {_fma: "fma", _exp_times: "exp_times", _log_sum: "log_sum"}
SUMS = {_exp_total: "exp_total", _exp_rest: "exp_rest"}
# What they are on arrays of any framework
PORTABLE = {
    _fma: lambda a, b, c: a * b + c, _exp_times: lambda x, y: gnp.exp(x) * y,
    _log_sum: lambda x, lost: gnp.log(x) + lost / gnp.where(x == 0, 1.0, x),
    **{fn: fn for fn in SUMS},
}  # fmt: skip
