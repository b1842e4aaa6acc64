"""Functions whose results carry no gradient, or have no rule yet: each its reason."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.errors import UnsupportedOperationError
from ..core.rule import (
    composite,
    differentiable,
    elementwise,
    name_of,
    nondifferentiable,
    not_yet,
    primitive,
)
from .arithmetic import over

nondifferentiable(
    "its result is true or false",
    np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
    np.logical_and, np.logical_or, np.logical_xor, np.logical_not,
    np.isfinite, np.isinf, np.isnan, np.isnat, np.isneginf, np.isposinf, np.signbit,
    np.isreal, np.iscomplex, np.all, np.any, np.isin,
    np.isclose, np.allclose, np.array_equal, np.array_equiv,
    np.may_share_memory, np.shares_memory,
    *filter(None, [getattr(np, "in1d", None)]),  # before NumPy 2.4
)  # fmt: skip
_JUMPS = "it is constant between the points where it jumps"
nondifferentiable(
    _JUMPS,
    np.floor, np.ceil, np.trunc, np.rint, np.round, np.around, np.fix,
    np.floor_divide, np.spacing,
)  # fmt: skip
nondifferentiable(
    "it works on the bits of whole numbers",
    np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert, np.left_shift,
    np.right_shift, np.bitwise_count, np.gcd, np.lcm, np.packbits, np.unpackbits,
)  # fmt: skip
nondifferentiable(
    "it returns positions",
    np.argmax, np.argmin, np.nanargmax, np.nanargmin, np.argsort, np.argpartition,
    np.lexsort, np.nonzero, np.flatnonzero, np.argwhere, np.searchsorted, np.digitize,
    np.diag_indices_from, np.tril_indices_from, np.triu_indices_from,
    np.ravel_multi_index, np.unravel_index,
)  # fmt: skip
nondifferentiable(
    "it counts elements",
    np.count_nonzero,
)  # fmt: skip
nondifferentiable(
    "its result depends on the shape and dtype alone",
    np.shape, np.ndim, np.size, np.zeros_like, np.ones_like, np.empty_like,
    np.result_type, np.can_cast, np.common_type, np.min_scalar_type,
    np.iscomplexobj, np.isrealobj, np.einsum_path,
)  # fmt: skip
nondifferentiable(
    "its result is text, or it writes a file",
    np.array2string, np.array_repr, np.array_str,
    np.save, np.savez, np.savez_compressed, np.savetxt,
)  # fmt: skip
nondifferentiable(
    "it works on dates",
    np.busday_count, np.busday_offset, np.is_busday, np.datetime_as_string,
)  # fmt: skip

# Three that are constant in part. A real number's sign jumps; a complex number's is
# y = x/|x|, and dy is what of dx/|x| is orthogonal to y.


@primitive
def real_sign(x: Any) -> Any:
    return np.sign(x)


@primitive
def complex_sign(x: Any) -> Any:
    return np.sign(x)


def across(dx: Any, y: Any, x: Any) -> Any:
    return over(dx - y * np.real(np.conj(y) * dx), np.abs(x))


nondifferentiable(_JUMPS, real_sign)
differentiable(complex_sign, across, across, saves="y x", note="0 at 0")
composite(np.sign, lambda x: complex_sign(x) if np.iscomplexobj(x) else real_sign(x))


# The neighbour of x1 in the direction of x2 moves along with x1.
elementwise(np.nextafter, 1, None)

# y = 0 for x1 < 0, x2 for x1 = 0, 1 for x1 > 0
elementwise(np.heaviside, None, lambda x1: np.equal(x1, 0), kinks=(0.0,))


# x = y * 2**exponent
@primitive
def exponent(x: Any) -> Any:
    return np.frexp(x)[1]


def frexp(x: Any) -> tuple[Any, Any]:
    power = exponent(x)
    return np.ldexp(x, -power), power


nondifferentiable(_JUMPS, exponent)
composite(np.frexp, frexp)

# What writes into its argument raises: the tape can't follow it, and a tensor's value
# may have been saved.

IN_PLACE = (
    np.copyto, np.fill_diagonal, np.place, np.put, np.put_along_axis, np.putmask,
)  # fmt: skip


def refusal(fn: Any) -> Any:
    def refuse(*_: Any, **__: Any) -> Any:
        raise UnsupportedOperationError(
            f"{name_of(fn)} writes into its argument, which a tape can't follow. Build "
            "the new value instead, e.g. np.where(mask, new, x), or work on plain "
            "arrays: x.numpy().copy()."
        )

    return refuse


for _fn in IN_PLACE:
    composite(_fn, refusal(_fn))

not_yet(
    "its result is real or complex depending on the values; call the function of that "
    "name in np on x + 0j",
    np.emath.arccos, np.emath.arcsin, np.emath.arctanh, np.emath.log, np.emath.log10,
    np.emath.log2, np.emath.logn, np.emath.power, np.emath.sqrt,
)  # fmt: skip
