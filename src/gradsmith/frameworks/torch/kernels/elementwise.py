"""PyTorch's elementwise kernels, where its names or conventions are not NumPy's."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def _sign(x: Tensor) -> Tensor:
    """PyTorch's own sign of NaN is 0."""
    if x.is_floating_point():
        return torch.where(torch.isnan(x), x.detach(), torch.sign(x))
    return torch.sgn(x)


def _cbrt(x: Tensor) -> Tensor:
    zero = x == 0  # where the derivative is infinite, 0 stands for it
    size = torch.abs(torch.where(zero, 1, x)) ** (1 / 3)
    return torch.where(zero, x.detach(), torch.copysign(size, x))


def _floor_divide(x1: Any, x2: Any) -> Tensor:
    # torch.floor_divide has no gradient
    return torch.div(x1, x2, rounding_mode="floor")


def _rint(x: Tensor) -> Tensor:
    if x.is_complex():
        return torch.complex(torch.round(x.real), torch.round(x.imag))
    return torch.round(x)


def _reciprocal(x: Tensor) -> Tensor:
    if x.is_floating_point() or x.is_complex():
        return torch.reciprocal(x)
    return torch.div(1, x, rounding_mode="trunc")


# One would be written into an array by a kernel of its own on a GPU.
COMPARES_NUMBERS = True
_SAME = (
    "absolute", "negative", "positive", "square", "sqrt", "exp", "exp2", "expm1",
    "log", "log2", "log10", "log1p", "sin", "cos", "tan", "arcsin", "arccos", "arctan",
    "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "deg2rad", "rad2deg",
    "isnan", "isinf", "isfinite", "signbit", "logical_not",
    "add", "subtract", "multiply", "divide", "remainder", "fmod", "arctan2", "hypot",
    "logaddexp", "logaddexp2", "maximum", "minimum", "fmax", "fmin", "copysign",
    "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and",
    "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor",
    "floor", "ceil", "trunc",
)  # fmt: skip
ELEMENTWISE: dict[str, Any] = {name: getattr(torch, name) for name in _SAME}
ELEMENTWISE |= {
    "sign": _sign,
    "cbrt": _cbrt,
    "reciprocal": _reciprocal,
    "power": torch.pow,
    "floor_divide": _floor_divide,
    "equal": torch.eq,
    "rint": _rint,
    "conjugate": torch.conj_physical,
    "invert": torch.bitwise_not,
    "left_shift": torch.bitwise_left_shift,
    "right_shift": torch.bitwise_right_shift,
}

SPECIAL: dict[str, Any] = {
    "erf": torch.erf,
    "erfc": torch.erfc,
    "erfinv": torch.erfinv,
    "gammaln": torch.lgamma,
    "digamma": torch.digamma,
    "ndtr": torch.special.ndtr,
    "ndtri": torch.special.ndtri,
    "log_ndtr": torch.special.log_ndtr,
    "expit": torch.sigmoid,
    "logit": torch.logit,
    "log_expit": torch.nn.functional.logsigmoid,
}


def clip(x: Tensor, low: Any, high: Any) -> Tensor:
    if low is None and high is None:
        return x
    return torch.clamp(x, low, high)


real, imag, complex, where = torch.real, torch.imag, torch.complex, torch.where
