"""Functions whose results carry no gradient, each with its reason."""

from __future__ import annotations

import numpy as np

from .._rule import nondifferentiable

nondifferentiable(
    "its result is true or false",
    np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
    np.logical_and, np.logical_or, np.logical_xor, np.logical_not,
    np.isfinite, np.isinf, np.isnan, np.isnat, np.signbit, np.all, np.any,
)  # fmt: skip
nondifferentiable(
    "it is constant between the points where it jumps",
    np.floor, np.ceil, np.trunc, np.rint, np.round, np.around, np.fix, np.sign,
    np.floor_divide, np.heaviside,
)  # fmt: skip
nondifferentiable(
    "it works on the bits of whole numbers",
    np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert, np.left_shift,
    np.right_shift, np.bitwise_count, np.gcd, np.lcm,
)  # fmt: skip
nondifferentiable(
    "it returns positions",
    np.argmax, np.argmin, np.argsort, np.nonzero, np.searchsorted,
)  # fmt: skip
nondifferentiable(
    "it works on the floating-point representation",
    np.frexp, np.nextafter, np.spacing,
)  # fmt: skip
nondifferentiable(
    "its result depends on the shape and dtype alone",
    np.shape, np.ndim, np.size, np.zeros_like, np.ones_like, np.empty_like,
    np.full_like, np.result_type, np.can_cast, np.iscomplexobj, np.isrealobj,
)  # fmt: skip
