"""Custom gradients for PyTorch. Imports are inside: a case costs what it needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.wild.case import EDGE, RIGHT, SURROGATE, WRONG, Table

table = Table("torch")
CASES = table.cases

Random = np.random.Generator


def normal(random: Random, *shape: int, dtype: str = "float32") -> Any:
    import torch

    return torch.tensor(random.normal(size=shape).astype(dtype))


def uniform(
    random: Random, low: float, high: float, *shape: int, dtype: str = "float32"
) -> Any:
    import torch

    return torch.tensor(random.uniform(low, high, size=shape).astype(dtype))


def definite(random: Random, n: int, dtype: str = "float64") -> Any:
    import torch

    a = random.normal(size=(n, n))
    return torch.tensor((a @ a.T / n + np.eye(n)).astype(dtype))


def module(make: Any) -> Any:
    """A module with weights that are the same each time."""
    import torch

    torch.manual_seed(0)
    return make()


# entmax: sparse alternatives to softmax


@table("entmax", "entmax/activations.py:145", RIGHT, "the projection on the simplex")
def sparsemax(random):
    from entmax import sparsemax

    return lambda x: sparsemax(x, dim=-1), normal(random, 3, 6)


@table(
    "entmax",
    "entmax/activations.py:169",
    EDGE,
    "exact on its support; second order is NaN off it",
)
def entmax15(random):
    from entmax import entmax15

    return lambda x: entmax15(x, dim=-1), normal(random, 3, 6, dtype="float64")


@table(
    "entmax",
    "entmax/root_finding.py:16",
    EDGE,
    "implicit, in x and in alpha; second order is NaN",
)
def entmax_bisect(random):
    from entmax import entmax_bisect

    alpha = uniform(random, 1.3, 1.7, 3, 1, dtype="float64")
    return entmax_bisect, normal(random, 3, 6, dtype="float64"), alpha


@table("entmax", "entmax/root_finding.py:107", RIGHT, "bisection of the projection")
def sparsemax_bisect(random):
    from entmax import sparsemax_bisect

    return sparsemax_bisect, normal(random, 3, 6)


@table("entmax", "entmax/root_finding.py:137", RIGHT, "implicit in x")
def normmax_bisect(random):
    from entmax import normmax_bisect

    return normmax_bisect, normal(random, 3, 6, dtype="float64")


@table("entmax", "entmax/root_finding.py:204", RIGHT, "implicit in x")
def budget_bisect(random):
    from entmax import budget_bisect

    return budget_bisect, normal(random, 3, 6, dtype="float64")


@table(
    "entmax",
    "entmax/losses.py:59",
    EDGE,
    "p - y, the residual, saved as a constant: no second order",
)
def sparsemax_loss(random):
    import torch
    from entmax import sparsemax_loss

    target = torch.tensor([1, 0, 3])
    return lambda x: sparsemax_loss(x, target), normal(random, 3, 6)


@table(
    "entmax",
    "entmax/losses.py:112",
    EDGE,
    "p - y, the residual, saved as a constant: no second order",
)
def entmax_bisect_loss(random):
    import torch
    from entmax import entmax_bisect_loss

    target = torch.tensor([1, 0, 3])
    return (lambda x: entmax_bisect_loss(x, target)), normal(
        random, 3, 6, dtype="float64"
    )


@table("sparsemax", "sparsemax/sparsemax.py:31", RIGHT, "the projection on the simplex")
def sparsemax_module(random):
    from sparsemax import Sparsemax

    return Sparsemax(dim=-1), normal(random, 3, 6)


# Solvers


@table(
    "torchdiffeq",
    "torchdiffeq/_impl/adjoint.py:8",
    EDGE,
    "the adjoint equation, to the solver's tolerance of 1e-7; no second order",
)
def odeint_adjoint(random):
    import torch
    from torchdiffeq import odeint_adjoint

    t = torch.linspace(0.0, 1.0, 3, dtype=torch.float64)

    def solve(y0, a):
        class Field(torch.nn.Module):
            def forward(self, t, y):
                return torch.tanh(y @ a)

        return odeint_adjoint(Field(), y0, t, adjoint_params=(a,))

    a = 0.5 * normal(random, 3, 3, dtype="float64")
    return solve, normal(random, 2, 3, dtype="float64"), a


@table(
    "torchdiffeq",
    "torchdiffeq/_impl/odeint.py:182",
    RIGHT,
    "the time of an event, by the implicit function theorem",
    accuracy=1e-5,
)
def odeint_event(random):
    import torch
    from torchdiffeq import odeint_event

    def fall(y0, g):
        field = lambda t, y: torch.stack([y[1], -g])
        t, _ = odeint_event(
            field,
            y0,
            torch.zeros((), dtype=y0.dtype),
            event_fn=lambda t, y: y[0],
            atol=1e-9,
            rtol=1e-9,
        )
        return t

    y0 = uniform(random, 1.0, 2.0, 2, dtype="float64")
    return fall, y0, uniform(random, 8.0, 11.0, dtype="float64")


@table(
    "zuko",
    "zuko/utils.py:159",
    EDGE,
    "implicit in y and in the parameters; once differentiable",
)
def bisection(random):
    from zuko.utils import bisection

    def solve(y, phi):
        return bisection(lambda x: x**3 + phi * x, y, -10.0, 10.0, n=60, phi=(phi,))

    y = normal(random, 4, dtype="float64")
    return solve, y, uniform(random, 1.0, 2.0, 4, dtype="float64")


@table(
    "zuko",
    "zuko/utils.py:282",
    EDGE,
    "quadrature; in its limits the integrand; once differentiable",
)
def gauss_legendre(random):
    from zuko.utils import gauss_legendre

    def integral(a, b, phi):
        return gauss_legendre(lambda x: (phi * x).sin(), a, b, n=8, phi=(phi,))

    a, b = normal(random, 4, dtype="float64"), normal(random, 4, dtype="float64")
    return integral, a, b, uniform(random, 0.5, 1.5, 4, dtype="float64")


@table(
    "zuko",
    "zuko/utils.py:515",
    EDGE,
    "the adjoint of each accepted step; once differentiable",
)
def odeint(random):
    from zuko.utils import odeint

    def solve(x, phi):
        f = lambda t, x: (phi * x).cos()
        return odeint(f, x, 0.0, 1.0, phi=(phi,), atol=1e-9, rtol=1e-9)

    x = normal(random, 4, dtype="float64")
    return solve, x, uniform(random, 0.5, 1.5, 4, dtype="float64")


@table("xitorch", "xitorch/optimize/rootfinder.py:289", RIGHT, "implicit")
def rootfinder(random):
    import torch
    from xitorch.optimize import rootfinder

    def solve(a):
        f = lambda y, a: y**3 + y - a
        return rootfinder(f, torch.zeros_like(a), params=(a,), f_tol=1e-13)

    return solve, normal(random, 3, dtype="float64")


@table("xitorch", "xitorch/integrate/quad.py:92", RIGHT, "quadrature in its parameters")
def quad(random):
    import torch
    from xitorch.integrate import quad

    def integral(a):
        f = lambda x, a: torch.cos(a * x)
        low = torch.zeros((), dtype=a.dtype)
        return quad(f, low, low + 1.0, params=(a,))

    return integral, normal(random, 3, dtype="float64")


@table("xitorch", "xitorch/linalg/solve.py:118", RIGHT, "the adjoint solve")
def solve(random):
    import xitorch
    from xitorch.linalg import solve

    def of(a, b):
        return solve(xitorch.LinearOperator.m(a), b, method="exactsolve")

    a = definite(random, 3) + 0.1 * normal(random, 3, 3, dtype="float64")
    return of, a, normal(random, 3, 2, dtype="float64")


@table("xitorch", "xitorch/integrate/solve_ivp.py:97", RIGHT, "the adjoint equation")
def solve_ivp(random):
    import torch
    from xitorch.integrate import solve_ivp

    t = torch.linspace(0.0, 1.0, 3, dtype=torch.float64)

    def of(y0, a):
        f = lambda t, y, a: -a * y
        return solve_ivp(f, t, y0, params=(a,), atol=1e-10, rtol=1e-10)

    y0 = normal(random, 3, dtype="float64")
    return of, y0, uniform(random, 0.5, 1.5, 3, dtype="float64")


@table(
    "qpth",
    "qpth/qp.py:21",
    EDGE,
    "the KKT system, where no constraint is weak; no second order",
)
def qp(random):
    import torch
    from qpth.qp import QPFunction

    g = torch.tensor(np.vstack([np.eye(3), -np.eye(3)]))
    h = torch.full((6,), 1.0, dtype=torch.float64)
    empty = torch.empty(0, dtype=torch.float64)
    big = 2.0 * torch.eye(3, dtype=torch.float64)

    def argmin(p):
        return QPFunction(verbose=-1)(big, p, g, h, empty, empty)

    return argmin, 3.0 * normal(random, 2, 3, dtype="float64")


@table("cvxpylayers", "cvxpylayers/torch/cvxpylayer.py", RIGHT, "the conic KKT system")
def cvxpylayer(random):
    import cvxpy as cp
    from cvxpylayers.torch import CvxpyLayer

    x, b = cp.Variable(3), cp.Parameter(3)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x - b)), [x >= 0, cp.sum(x) == 1])
    layer = CvxpyLayer(problem, parameters=[b], variables=[x])
    exact = {"eps": 1e-12, "max_iters": 100000}
    return (lambda b: layer(b, solver_args=exact)[0]), normal(
        random, 3, dtype="float64"
    )


# Gaussian processes


@table(
    "gpytorch",
    "gpytorch/functions/rbf_covariance.py:6",
    EDGE,
    "saves its derivative as a constant, so that second order is zero",
)
def rbf_covariance(random):
    import torch
    from gpytorch.functions import RBFCovariance

    x = normal(random, 4, 2, dtype="float64")
    square = lambda a, b: torch.cdist(a, b) ** 2
    of = lambda scale: RBFCovariance.apply(x, x + 0.5, scale, square)
    return of, uniform(random, 0.5, 1.5, 1, 1, dtype="float64")


@table(
    "gpytorch",
    "gpytorch/functions/matern_covariance.py:8",
    EDGE,
    "saves its derivative as a constant, so that second order is zero",
)
def matern_covariance(random):
    import torch
    from gpytorch.functions import MaternCovariance

    x = normal(random, 4, 2, dtype="float64")
    of = lambda scale: MaternCovariance.apply(x, x + 0.5, scale, 2.5, torch.cdist)
    return of, uniform(random, 0.5, 1.5, 1, 1, dtype="float64")


@table(
    "gpytorch",
    "gpytorch/functions/_log_normal_cdf.py:12",
    WRONG,
    "below -1 the value is a fraction made for z < -11, 2e-3 off at -1.01, and its"
    " slope is another",
)
def log_normal_cdf(random):
    from gpytorch.functions import log_normal_cdf

    return log_normal_cdf, 2.0 * normal(random, 6)


@table(
    "gpytorch",
    "gpytorch/variational/natural_variational_distribution.py:96",
    SURROGATE,
    "the gradient in the expectation parameters, returned for the natural ones",
)
def natural_to_mu_varsqrt(random):
    from gpytorch.variational.natural_variational_distribution import (
        _NaturalToMuVarSqrt,
    )

    return (
        _NaturalToMuVarSqrt.apply,
        normal(random, 3, dtype="float64"),
        -definite(random, 3),
    )


@table(
    "linear_operator",
    "linear_operator/functions/_solve.py:25",
    RIGHT,
    "the adjoint solve",
)
def linear_solve(random):
    from linear_operator import to_linear_operator

    def of(a, b):
        return to_linear_operator(a @ a.mT + a.new_ones(3).diag()).solve(b)

    return (
        of,
        normal(random, 3, 3, dtype="float64"),
        normal(random, 3, 2, dtype="float64"),
    )


@table(
    "linear_operator",
    "linear_operator/functions/_sqrt_inv_matmul.py:10",
    EDGE,
    "contour quadrature; second order is another quadrature",
)
def sqrt_inv_matmul(random):
    from linear_operator import to_linear_operator

    def of(a, b):
        return to_linear_operator(a @ a.mT + a.new_ones(3).diag()).sqrt_inv_matmul(b)

    return (
        of,
        normal(random, 3, 3, dtype="float64"),
        normal(random, 3, 2, dtype="float64"),
    )


@table(
    "linear_operator",
    "linear_operator/functions/_pivoted_cholesky.py:12",
    EDGE,
    "of full rank; second order misses terms",
)
def pivoted_cholesky(random):
    from linear_operator import pivoted_cholesky

    def of(a):
        return pivoted_cholesky(a @ a.mT + a.new_ones(4).diag(), 4)

    return of, normal(random, 4, 4, dtype="float64")


@table("botorch", "botorch/utils/rounding.py:67", SURROGATE, "rounds, passed through")
def round_ste(random):
    from botorch.utils.rounding import RoundSTE

    return RoundSTE.apply, 3.0 * normal(random, 5, dtype="float64")


@table("botorch", "botorch/utils/rounding.py:86", SURROGATE, "one-hot, passed through")
def one_hot_argmax_ste(random):
    from botorch.utils.rounding import OneHotArgmaxSTE

    return OneHotArgmaxSTE.apply, normal(random, 3, 4, dtype="float64")


# Spiking networks: a step, with the slope of something smooth


@table("norse", "norse/torch/functional/superspike.py:5", SURROGATE, "a step")
def super_spike(random):
    import torch
    from norse.torch.functional.superspike import super_fn

    return (lambda x: super_fn(x, torch.tensor(100.0))), normal(random, 6)


@table("norse", "norse/torch/functional/threshold.py:11", SURROGATE, "a step")
def heavi_erfc(random):
    from norse.torch.functional.threshold import HeaviErfc

    return (lambda x: HeaviErfc.apply(x, 1.0)), normal(random, 6)


@table("norse", "norse/torch/functional/threshold.py:162", SURROGATE, "a step")
def triangle(random):
    from norse.torch.functional.threshold import Triangle

    return (lambda x: Triangle.apply(x, 0.3)), normal(random, 6)


@table("snntorch", "snntorch/surrogate.py:104", SURROGATE, "a step")
def fast_sigmoid(random):
    from snntorch import surrogate

    return surrogate.fast_sigmoid(slope=25), normal(random, 6)


@table("snntorch", "snntorch/surrogate.py:156", SURROGATE, "a step")
def atan(random):
    from snntorch import surrogate

    return surrogate.atan(alpha=2.0), normal(random, 6)


@table("snntorch", "snntorch/surrogate.py:11", SURROGATE, "a step, passed through")
def straight_through_estimator(random):
    from snntorch import surrogate

    return surrogate.straight_through_estimator(), normal(random, 6)


@table(
    "spikingjelly",
    "spikingjelly/activation_based/surrogate.py:676",
    SURROGATE,
    "a step",
)
def sigmoid(random):
    from spikingjelly.activation_based import surrogate

    return surrogate.Sigmoid(alpha=4.0), normal(random, 6)


@table(
    "spikingjelly",
    "spikingjelly/activation_based/surrogate.py:312",
    SURROGATE,
    "a step",
)
def piecewise_quadratic(random):
    from spikingjelly.activation_based import surrogate

    return surrogate.PiecewiseQuadratic(), normal(random, 6)


# Quantization, bounds, reversal


@table(
    "brevitas",
    "brevitas/ops/autograd_ste_ops.py:331",
    SURROGATE,
    "rounds, passed through",
)
def brevitas_round(random):
    from brevitas.ops.autograd_ste_ops import RoundSteFn

    return RoundSteFn.apply, 3.0 * normal(random, 6)


@table(
    "brevitas",
    "brevitas/ops/autograd_ste_ops.py:46",
    SURROGATE,
    "clamps, passed through where it clamps",
)
def scalar_clamp(random):
    from brevitas.ops.autograd_ste_ops import ScalarClampSteFn

    return (lambda x: ScalarClampSteFn.apply(x, -1.0, 1.0)), 2.0 * normal(random, 8)


@table(
    "brevitas",
    "brevitas/ops/autograd_ste_ops.py:358",
    RIGHT,
    "abs, with the slope 1 at 0",
)
def abs_binary_sign(random):
    from brevitas.ops.autograd_ste_ops import AbsBinarySignGradFn

    return AbsBinarySignGradFn.apply, normal(random, 6)


@table(
    "pytorch_revgrad",
    "pytorch_revgrad/functional.py:4",
    SURROGATE,
    "the identity, reversed",
)
def revgrad(random):
    import torch
    from pytorch_revgrad.functional import revgrad

    return (lambda x: revgrad(x, torch.tensor(1.0))), normal(random, 6)


@table(
    "vector-quantize-pytorch",
    "vector_quantize_pytorch/finite_scalar_quantization.py",
    SURROGATE,
    "rounds a bounded value, passed through",
)
def fsq(random):
    from vector_quantize_pytorch import FSQ

    quantizer = module(lambda: FSQ(levels=[8, 5, 5]))
    return (lambda x: quantizer(x)[0]), normal(random, 1, 4, 3)


@table(
    "geomloss",
    "geomloss/_legacy/kernel_samples.py:43",
    SURROGATE,
    "the identity, times 2",
)
def double_grad(random):
    from geomloss._legacy.kernel_samples import double_grad

    return double_grad, normal(random, 5)


@table(
    "geomloss",
    "geomloss/_legacy/kernel_samples.py:43",
    EDGE,
    "half of a symmetric sum, doubled in the rule: second order is doubled too",
)
def gaussian_mmd(random):
    from geomloss import SamplesLoss

    loss = SamplesLoss("gaussian", blur=0.5)
    return loss, normal(random, 5, 2), normal(random, 4, 2)


@table("pyro-ppl", "pyro/ops/special.py:15", RIGHT, "1 / x, clamped below 1e-7")
def safe_log(random):
    from pyro.ops.special import safe_log

    return safe_log, uniform(random, 0.1, 2.0, 5)


@table(
    "pyro-ppl", "pyro/ops/special.py:15", EDGE, "log at 0, with a finite slope there"
)
def safe_log_at_zero(random):
    import torch
    from pyro.ops.special import safe_log

    return safe_log, torch.tensor([0.0, 0.5, 1.0])


@table(
    "pyro-ppl",
    "pyro/distributions/relaxed_straight_through.py:45",
    SURROGATE,
    "one-hot, passed through",
)
def quantize_categorical(random):
    import torch
    from pyro.distributions.relaxed_straight_through import QuantizeCategorical

    return QuantizeCategorical.apply, torch.softmax(normal(random, 3, 4), -1)


@table(
    "pyro-ppl",
    "pyro/contrib/oed/eig.py:1149",
    SURROGATE,
    "log, with the slope at a moving average",
    data=(1,),
)
def ewma_log(random):
    from pyro.contrib.oed.eig import _ewma_log_fn

    return _ewma_log_fn, uniform(random, 0.5, 2.0, 4), uniform(random, 0.5, 2.0, 4)


@table(
    "torch",
    "aten/src/ATen/native/LossCTC.cpp",
    WRONG,
    "the derivative by the argument of log_softmax, not by its result",
)
def ctc_loss(random):
    import torch

    lengths = torch.tensor([6, 5]), torch.tensor([3, 2])
    labels = torch.tensor([[1, 2, 2], [3, 1, 1]])
    log_probs = normal(random, 6, 2, 4).log_softmax(-1)
    return torch.nn.CTCLoss(), log_probs, labels, *lengths


@table(
    "torch",
    "aten/src/ATen/native/LossCTC.cpp",
    RIGHT,
    "with log_softmax in front of it",
)
def ctc_loss_of_logits(random):
    import torch

    lengths = torch.tensor([6, 5]), torch.tensor([3, 2])
    labels = torch.tensor([[1, 2, 2], [3, 1, 1]])
    loss = torch.nn.CTCLoss()

    def of_logits(x):
        return loss(x.log_softmax(-1), labels, *lengths)

    return of_logits, normal(random, 6, 2, 4)


# Activations and transforms


@table("e3nn", "e3nn/math/_soft_unit_step.py:4", RIGHT, "exp(-1 / x) where x > 0")
def soft_unit_step(random):
    from e3nn.math import soft_unit_step

    return soft_unit_step, 2.0 * normal(random, 8)


@table("kornia", "kornia/losses/focal.py:92", RIGHT, "log-softmax of the target")
def target_log_softmax(random):
    import torch
    from kornia.losses import FocalLoss

    target = torch.tensor([0, 2, 1])
    loss = FocalLoss(alpha=0.5, gamma=2.0, reduction="mean")
    return (lambda x: loss(x, target)), normal(random, 3, 4)


@table(
    "pytorch_wavelets",
    "pytorch_wavelets/dwt/lowlevel.py:312",
    RIGHT,
    "linear, and its transpose",
)
def dwt_forward(random):
    from pytorch_wavelets import DWTForward

    transform = DWTForward(J=1, wave="db2", mode="zero")
    return transform, normal(random, 1, 1, 8, 8)


@table(
    "pytorch_wavelets",
    "pytorch_wavelets/dwt/lowlevel.py:312",
    WRONG,
    "with mode 'reflect' the transpose leaves out what was reflected at the border",
)
def dwt_forward_reflect(random):
    from pytorch_wavelets import DWTForward

    transform = DWTForward(J=1, wave="db3", mode="reflect")
    return transform, normal(random, 1, 1, 8, 8)


@table(
    "pytorch_wavelets",
    "pytorch_wavelets/dwt/lowlevel.py:312",
    WRONG,
    "with mode 'symmetric' the transpose leaves out what was mirrored at the border",
)
def dwt_forward_symmetric(random):
    from pytorch_wavelets import DWTForward

    transform = DWTForward(J=1, wave="db3", mode="symmetric")
    return transform, normal(random, 1, 1, 8, 8)


@table(
    "pytorch_wavelets",
    "pytorch_wavelets/scatternet/lowlevel.py:49",
    EDGE,
    "saves its slopes as constants, so that second order is zero",
)
def smooth_magnitude(random):
    from pytorch_wavelets.scatternet.lowlevel import SmoothMagFn

    def magnitude(x, y):
        return SmoothMagFn.apply(x, y, 0.1)

    return (
        magnitude,
        normal(random, 5, dtype="float64"),
        normal(random, 5, dtype="float64"),
    )


@table(
    "pytorch_wavelets",
    "pytorch_wavelets/scatternet/lowlevel.py:71",
    RIGHT,
    "symmetric filters, whose transpose mirrors as they do",
)
def scatter_layer(random):
    from pytorch_wavelets import ScatLayer

    return ScatLayer(), normal(random, 1, 1, 8, 8)


@table("e3nn", "e3nn/o3/_spherical_harmonics.py", RIGHT, "polynomials on the sphere")
def spherical_harmonics(random):
    from e3nn.o3 import spherical_harmonics

    return (lambda x: spherical_harmonics([0, 1, 2], x, True)), normal(random, 4, 3)


# PyTorch's own: samples, special functions, modules


@table(
    "torch",
    "torch/distributions/gamma.py",
    SURROGATE,
    "a sample by rejection, with the implicit gradient",
)
def gamma_rsample(random):
    import torch

    def sample(a):
        torch.manual_seed(3)
        return torch.distributions.Gamma(a, torch.ones_like(a)).rsample()

    return sample, uniform(random, 0.5, 3.0, 5)


@table(
    "torch",
    "torch/distributions/dirichlet.py:14",
    SURROGATE,
    "a sample by rejection, with the implicit gradient",
)
def dirichlet_rsample(random):
    import torch

    def sample(a):
        torch.manual_seed(3)
        return torch.distributions.Dirichlet(a).rsample()

    return sample, uniform(random, 0.5, 3.0, 4)


@table("torch", "derivatives.yaml: linalg_solve_ex", RIGHT, "the adjoint solve")
def linalg_solve(random):
    import torch

    a = normal(random, 3, 3) + 3.0 * torch.eye(3)
    return torch.linalg.solve, a, normal(random, 3, 2)


@table(
    "torch",
    "derivatives.yaml: linalg_eigh",
    RIGHT,
    "of the lower triangle alone, so for symmetric matrices",
)
def eigvalsh(random):
    import torch

    return torch.linalg.eigvalsh, definite(random, 4, "float32")


@table("torch", "derivatives.yaml: digamma", RIGHT, "trigamma, to rounding")
def digamma(random):
    import torch

    return torch.digamma, uniform(random, 0.5, 5.0, 6)


@table("torch", "derivatives.yaml: xlogy", EDGE, "0 * log(0) is 0, its slope is -inf")
def xlogy(random):
    import torch

    return torch.xlogy, torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0.5, 0.0, 3.0])


@table(
    "torch",
    "torch/nn/functional.py: binary_cross_entropy_with_logits",
    RIGHT,
    "labels get a gradient as well",
)
def bce_with_logits(random):
    import torch

    x, y = normal(random, 6), uniform(random, 0.0, 1.0, 6).round()
    return torch.nn.functional.binary_cross_entropy_with_logits, x, y


@table("torch", "torch/nn/modules/rnn.py", RIGHT, "a stock module")
def lstm(random):
    import torch

    return module(lambda: torch.nn.LSTM(3, 4)), normal(random, 5, 2, 3)


@table("torch", "torch/nn/modules/rnn.py", RIGHT, "a stock module")
def gru(random):
    import torch

    return module(lambda: torch.nn.GRU(3, 4)), normal(random, 5, 2, 3)


@table("torch", "torch/nn/modules/activation.py", RIGHT, "a stock module")
def multihead_attention(random):
    import torch

    make = lambda: torch.nn.MultiheadAttention(4, 2, batch_first=True)
    x = normal(random, 2, 3, 4)
    return module(make), x, normal(random, 2, 5, 4), normal(random, 2, 5, 4)


@table("torch", "torch/nn/modules/sparse.py", RIGHT, "a stock module of indices")
def embedding(random):
    import torch

    return module(lambda: torch.nn.Embedding(10, 3)), torch.tensor([[1, 2], [4, 3]])


@table("torch", "torch/nn/modules/batchnorm.py", RIGHT, "a stock module, training")
def batch_norm(random):
    import torch

    return module(lambda: torch.nn.BatchNorm1d(3)), normal(random, 6, 3)


@table("torch", "torch/nn/modules/dropout.py", RIGHT, "random, and right for each draw")
def dropout(random):
    import torch

    return torch.nn.Dropout(0.3), normal(random, 4, 5)


@table("torch", "torch/nn/modules/transformer.py", RIGHT, "a stock module")
def transformer_encoder_layer(random):
    import torch

    make = lambda: torch.nn.TransformerEncoderLayer(
        8, 2, dim_feedforward=16, dropout=0.0, batch_first=True
    )
    return module(make), normal(random, 2, 4, 8)


@table("torch", "derivatives.yaml: linalg_lstsq", RIGHT, "of full rank")
def lstsq(random):
    import torch

    def solution(a, b):
        return torch.linalg.lstsq(a, b).solution

    return solution, normal(random, 5, 3), normal(random, 5, 2)


@table("torch", "torch/nn/functional.py", RIGHT, "softmax(q k) v")
def scaled_dot_product_attention(random):
    import torch

    keys = normal(random, 1, 2, 5, 4), normal(random, 1, 2, 5, 4)
    of = torch.nn.functional.scaled_dot_product_attention
    return of, normal(random, 1, 2, 3, 4), *keys


# In place, reversible, scans


@table(
    "memcnn",
    "memcnn/models/revop.py:74",
    WRONG,
    "sets the gradient of its input and returns it too, so that a leaf has it twice",
)
def invertible_module_wrapper(random):
    import torch
    from memcnn import AdditiveCoupling, InvertibleModuleWrapper

    linear = torch.nn.Linear
    coupling = module(lambda: AdditiveCoupling(linear(3, 3), linear(3, 3), split_dim=1))
    block = InvertibleModuleWrapper(coupling.double(), keep_input=True)
    return (lambda x: block(x)), normal(random, 2, 6, dtype="float64")


@table(
    "torch-struct",
    "torch_struct/semirings/sparse_max.py:21",
    WRONG,
    "the value subtracts the norm of the projection, the rule is for half its square",
)
def simplex_project(random):
    from torch_struct.semirings.sparse_max import _SimplexProject

    return (lambda x: _SimplexProject.apply(x, -1)), normal(random, 3, 5)


@table(
    "pytorch-tabnet",
    "pytorch_tabnet/sparsemax.py:24",
    EDGE,
    "the projection on the simplex; subtracts the maximum from its argument in place",
)
def tabnet_sparsemax(random):
    from pytorch_tabnet.sparsemax import SparsemaxFunction

    return (lambda x: SparsemaxFunction.apply(x, -1)), normal(random, 3, 6)


@table("pytorch-tabnet", "pytorch_tabnet/sparsemax.py:163", EDGE, "no second order")
def entmoid15(random):
    from pytorch_tabnet.sparsemax import Entmoid15

    return Entmoid15.apply, normal(random, 8)


@table("mambapy", "mambapy/pscan.py:35", EDGE, "a parallel scan; no second order")
def pscan(random):
    from mambapy.pscan import pscan

    return pscan, uniform(random, 0.1, 0.9, 1, 8, 2, 3), normal(random, 1, 8, 2, 3)


@table("roma", "roma/mappings.py:14", RIGHT, "the nearest rotation")
def special_procrustes(random):
    import roma

    return roma.special_procrustes, normal(random, 2, 3, 3, dtype="float64")


@table(
    "torch-interpol",
    "interpol/autograd.py:163",
    EDGE,
    "cubic splines, in image and grid; no second order",
)
def grid_pull(random):
    import interpol

    def pull(image, grid):
        return interpol.grid_pull(image, grid, 3, "dct2", extrapolate=True)

    grid = uniform(random, 0.2, 3.8, 1, 3, 3, 2, dtype="float64")
    return pull, normal(random, 1, 1, 5, 5, dtype="float64"), grid


# sorting, transport, rotations, stochastic equations, relevance


@table("diffsort", "diffsort/functional.py:13", RIGHT, "the normal distribution")
def normal_cdf(random):
    from diffsort.functional import NormalCDF

    return lambda x: NormalCDF.apply(x, 0.5), normal(random, 8)


@table("diffsort", "diffsort/functional.py:23", RIGHT, "a network of soft swaps")
def sorting_network(random):
    from diffsort import DiffSortNet

    net = DiffSortNet("odd_even", 4, steepness=3.0, distribution="gaussian")
    return lambda x: net(x), normal(random, 2, 4)


@table("pot", "ot/backend.py:2083", RIGHT, "the transport plan, by the cost")
def emd2(random):
    import ot

    a, b = (normal(random, n, dtype="float64").softmax(0) for n in (4, 5))
    cost = uniform(random, 0.1, 2, 4, 5, dtype="float64")
    return lambda cost: ot.emd2(a, b, cost), cost


@table("pot", "ot/backend.py:2083", RIGHT, "dual potentials, by the weights")
def emd2_weights(random):
    import ot

    b = normal(random, 5, dtype="float64").softmax(0)
    cost = uniform(random, 0.1, 2, 4, 5, dtype="float64")
    op = lambda z: ot.emd2(z.softmax(0), b, cost)
    return op, normal(random, 4, dtype="float64")


@table("pot", "ot/backend.py:2096", EDGE, "a matrix root; no second order")
def matrix_sqrt(random):
    from ot.backend import TorchBackend

    return TorchBackend().MatrixSqrtFunction.apply, definite(random, 4)


@table("pypose", "pypose/lietensor/operation.py:340", EDGE, "by the group; first order")
def so3_exp_act(random):
    from pypose.lietensor.operation import SO3_Act, so3_Exp

    op = lambda x, p: SO3_Act.apply(so3_Exp.apply(x), p)
    x, p = (normal(random, 3, 3, dtype="float64") for _ in range(2))
    return op, x, p


@table("pypose", "pypose/lietensor/operation.py:398", EDGE, "by the group; first order")
def se3_exp_act(random):
    from pypose.lietensor.operation import SE3_Act, se3_Exp

    op = lambda x, p: SE3_Act.apply(se3_Exp.apply(x), p)
    return (
        op,
        normal(random, 3, 6, dtype="float64"),
        normal(random, 3, 3, dtype="float64"),
    )


@table("pypose", "pypose/lietensor/operation.py:304", EDGE, "by the group; first order")
def so3_log_of_product(random):
    from pypose.lietensor.operation import SO3_Log, SO3_Mul, so3_Exp

    op = lambda x, y: SO3_Log.apply(SO3_Mul.apply(so3_Exp.apply(x), so3_Exp.apply(y)))
    x, y = (0.5 * normal(random, 2, 3, dtype="float64") for _ in range(2))
    return op, x, y


@table("torchkbnufft", "torchkbnufft/_autograd/interp.py:78", RIGHT, "linear")
def kb_nufft(random):
    import torch
    from torchkbnufft import KbNufft

    nufft = KbNufft(im_size=(6, 6)).to(torch.float64)
    omega = uniform(random, -3, 3, 2, 5, dtype="float64")

    def transform(re, im):
        y = nufft(torch.complex(re, im)[None, None], omega)
        return y.real, y.imag

    re, im = (normal(random, 6, 6, dtype="float64") for _ in range(2))
    return transform, re, im


@table("torchsde", "torchsde/_core/adjoint.py:29", EDGE, "adjoint; second order raises")
def sdeint_adjoint(random):
    import torch
    from torchsde import BrownianInterval, sdeint_adjoint

    class Process(torch.nn.Module):
        noise_type, sde_type = "diagonal", "ito"

        def f(self, t, y):
            return -0.5 * y

        def g(self, t, y):
            return 0.2 * torch.ones_like(y)

    def solve(y):
        noise = BrownianInterval(0.0, 1.0, size=(4, 2), dtype=y.dtype, entropy=3)
        times = torch.linspace(0, 1, 3)
        options = {"bm": noise, "dt": 0.1, "method": "euler", "adjoint_params": ()}
        return sdeint_adjoint(Process(), y, times, **options)

    return solve, normal(random, 4, 2)


@table("lxt", "lxt/functional.py:276", SURROGATE, "relevance in place of gradients")
def lrp_softmax(random):
    from lxt.functional import softmax_fn

    return softmax_fn.apply, normal(random, 3, 4), -1


@table("lxt", "lxt/functional.py:498", SURROGATE, "relevance is shared by two factors")
def lrp_product(random):
    from lxt.functional import mul2_fn

    return mul2_fn.apply, normal(random, 3, 4), normal(random, 3, 4)


@table("lxt", "lxt/functional.py:463", SURROGATE, "relevance is passed through")
def lrp_rms_norm(random):
    from lxt.functional import rms_norm_identity_fn

    x, weight = normal(random, 3, 4), uniform(random, 0.5, 1.5, 4)
    return rms_norm_identity_fn.apply, x, weight, 1e-6


@table("lampe", "lampe/inference/dcp.py:81", SURROGATE, "a step, and dy is clipped")
def ste_hardtanh(random):
    from lampe.inference.dcp import STEhardtanh

    return STEhardtanh.apply, normal(random, 9)
