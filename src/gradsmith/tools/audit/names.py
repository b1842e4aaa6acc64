"""Which true function a framework's function is, found by its name.

Conventions differ: gelu is the approximate one in some framework unless told otherwise,
and leaky_relu has another slope. Options and attributes are heard.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...core.arrays import FRAMEWORKS
from . import references as r

_NUMPY = (
    "abs absolute add arccos arccosh arcsin arcsinh arctan arctan2 arctanh cbrt cos "
    "cosh deg2rad divide exp exp2 expm1 hypot log log10 log1p log2 logaddexp maximum "
    "minimum multiply negative positive power rad2deg reciprocal sin sinc sinh sqrt "
    "square subtract tan tanh"
)
_SPECIAL = (
    "betaln digamma entr erf erfc erfcinv erfcx erfinv expit gamma gammaln "
    "log_expit log_ndtr logit ndtr ndtri xlog1py xlogy"
)
_SAME = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh",
    "atan": "arctan", "atan2": "arctan2", "atanh": "arctanh", "neg": "negative",
    "pow": "power", "mul": "multiply", "sub": "subtract", "div": "divide",
    "true_divide": "divide", "truediv": "divide", "pow_scalar": "power",
    "sigmoid": "expit", "logistic": "expit", "logsigmoid": "log_expit",
    "log_sigmoid": "log_expit", "lgamma": "gammaln", "loggamma": "gammaln",
    "psi": "digamma", "lbeta": "betaln", "polygamma0": "digamma", "swish": "silu",
    "leakyrelu": "leaky_relu", "hardtanh": "hard_tanh",
    "hardsigmoid": "hard_sigmoid", "hardswish": "hard_swish",
    "hard_silu": "hard_swish", "reduce_logsumexp": "logsumexp", "linalg_norm": "norm",
    "linalg_vector_norm": "norm", "vector_norm": "norm", "euclidean_norm": "norm",
    "reduce_euclidean_norm": "norm", "sum": "total", "reduce_sum": "total",
    "reduce_mean": "mean", "erf_inv": "erfinv",
}  # fmt: skip
_OURS = (
    "elu gelu_tanh hard_sigmoid hard_swish hard_tanh leaky_relu log_softmax logsumexp "
    "mean mish norm quick_gelu relu relu6 rsqrt silu softmax softplus softsign "
    "tanhshrink total"
)


def reference_for(
    name: str, framework: str, options: dict[str, Any]
) -> Callable[..., Any] | None:
    """The true function by a name, or None if it is not known."""
    name = name.lower()
    for affix in ("special_", "_scipy_special_", "np_"):
        name = name.removeprefix(affix)
    name = name.removesuffix("_v2")
    name = _SAME.get(name, name)
    if set(options) - {"axis", "dim", *_OPTIONS.get(name, ())}:
        return None  # of an option that we don't know it is another function
    if name in _CONVENTIONS:
        usual = FRAMEWORKS[framework].natives.defaults.get(name, {})
        return _CONVENTIONS[name]({**usual, **options})
    if name in _NUMPY.split():
        return getattr(np, name)
    if name in _SPECIAL.split():
        return r.Special(name)
    return getattr(r, name) if name in _OURS.split() else None


def _gelu(options: dict[str, Any]) -> Any:
    approximate = options.get("approximate")
    return r.gelu_tanh if approximate in (True, "tanh") else r.gelu


def _leaky_relu(options: dict[str, Any]) -> Any:
    slope = options.get("negative_slope", options.get("alpha", 0.01))
    return partial(r.leaky_relu, slope=slope)


def _elu(options: dict[str, Any]) -> Any:
    return partial(r.elu, alpha=options.get("alpha", 1.0))


def _softplus(options: dict[str, Any]) -> Any:
    beta = options.get("beta", 1)
    return r.softplus if beta == 1 else partial(r.softplus_beta, beta=beta)


_CONVENTIONS = {
    "gelu": _gelu, "leaky_relu": _leaky_relu, "elu": _elu, "softplus": _softplus,
}  # fmt: skip
_OPTIONS = {
    "gelu": ("approximate",),
    "leaky_relu": ("negative_slope", "alpha", "inplace"),
    "elu": ("alpha", "inplace"),
    "softplus": ("beta", "threshold"),
}


def described(fn: Any) -> str:
    """What a true function is, for people.

    >>> described(r.gelu), described(np.sinc)
    ('gelu(x) = x ndtr(x)', 'np.sinc')
    """
    if isinstance(fn, r.Special):
        return f"scipy.special.{fn.name}"
    fn = getattr(fn, "func", fn)
    if getattr(fn, "__module__", "") != r.__name__:
        return f"np.{fn.__name__}"
    name = {"gelu_tanh": "gelu", "total": "sum"}.get(fn.__name__, fn.__name__)
    return f"{name}(x) = {fn.__doc__}"
