"""Ready-made operations with their gradients: `import gradsmith.ops as ops`.

Each is written once and runs on the arrays of NumPy, TensorFlow, JAX, PyTorch and MLX,
in both modes, eager and compiled.

>>> import numpy as np
>>> import gradsmith as gs
>>> gs.grad(lambda x: np.sum(gs.ops.softplus(x)))(np.array([-1000.0, 0.0, 1000.0]))
array([0. , 0.5, 1. ])
"""

from . import (
    _rows,
    binary,
    classification,
    corners,
    exponentials,
    logistic,
    normal,
    regression,
    shaping,
    spikes,
    straight_through,
)
from .binary import binary_cross_entropy_with_logits, focal
from .classification import cross_entropy, kl_divergence
from .corners import divide, norm, safe_where, sqrt
from .exponentials import log1mexp, log_softmax, logsumexp, softmax, xlogy
from .implicit import argmin, fixed_point, linear_solve, odeint, root
from .logistic import log_sigmoid, sigmoid, silu, softplus
from .normal import gelu
from .regression import gaussian_nll, huber, poisson_nll
from .shaping import clip_by_norm, clip_by_value, nan_to_zero, noise, reverse, scale
from .spikes import spike_arctan, spike_fast_sigmoid
from .straight_through import (
    clamp,
    floor,
    gumbel_softmax,
    one_hot_argmax,
    quantize,
    round,
    sign,
)

__all__ = [
    "argmin", "binary_cross_entropy_with_logits", "clamp", "clip_by_norm",
    "clip_by_value", "cross_entropy", "divide", "fixed_point", "floor", "focal",
    "gaussian_nll", "gelu", "gumbel_softmax", "huber", "kl_divergence", "linear_solve",
    "log1mexp", "log_sigmoid", "log_softmax", "logsumexp", "nan_to_zero", "noise",
    "norm", "odeint", "one_hot_argmax", "poisson_nll", "quantize", "reverse", "root",
    "round", "safe_where", "scale", "sigmoid", "sign", "silu", "softmax", "softplus",
    "spike_arctan", "spike_fast_sigmoid", "sqrt", "xlogy",
]  # fmt: skip


def _fuse() -> None:
    """Let the operations run as kernels, if LLVM is there."""
    from ..operations.fusing import fuse_if_possible, runs_on_cpu, runs_on_gpu
    from ..operations.operation import Operation
    from ._shown import kernels_of

    if runs_on_cpu() or runs_on_gpu():
        modules = (
            _rows, binary, classification, corners, exponentials, logistic, normal,
            regression, shaping, spikes, straight_through,
        )  # fmt: skip
        rows = {
            exponentials.softmax, exponentials.log_softmax, exponentials.logsumexp,
            _rows.of_classes, _rows.of_shares, classification._divergence, corners.norm,
        }  # fmt: skip
        # Of Inductor's time for h = 1.5 x + b, f(h) h + x, forward and gradient, on
        # 512 x 512: kernels take 0.71, 0.85 and 0.39. A sigmoid alone takes 0.78, but
        # 1.2 there and 1.3 in (1 - f(x)) x + f(x) b, cut off from what is around it.
        long = {normal.gelu, logistic.silu, exponentials.log1mexp, shaping._shortened}
        in_graphs: dict[object, tuple[str, ...]] = {}
        in_graphs |= dict.fromkeys(rows, ("cpu", "cuda"))
        in_graphs |= dict.fromkeys(long, ("cpu",))
        # On a GPU the totals make their gradient as they are computed, 3 arrays where
        # Inductor moves 8; gelu and silu of 16 bits take Inductor 1.6 and 1.3 of a
        # copy's time, and a kernel 1.0.
        totals = (
            regression._huber_total, regression._poisson_total, binary._binary_total,
        )  # fmt: skip
        in_graphs |= dict.fromkeys(totals, ("cuda",))
        in_graphs |= dict.fromkeys((normal.gelu, logistic.silu), ("cpu", "cuda16"))
        for module in modules:
            for each in vars(module).values():
                if isinstance(each, Operation):
                    fuse_if_possible(each, in_graph=in_graphs.get(each, ()))
        for loss in (
            binary_cross_entropy_with_logits, cross_entropy, focal, gaussian_nll, huber,
            kl_divergence, poisson_nll, safe_where,
        ):  # fmt: skip
            vars(loss)["kernels"] = kernels_of(loss)


_fuse()


def __dir__() -> list[str]:
    return __all__
