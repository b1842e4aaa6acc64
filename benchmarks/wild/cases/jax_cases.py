"""Custom gradients for JAX. Imports are inside: a case costs what it needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.wild.case import EDGE, RIGHT, SURROGATE, WRONG, Table

table = Table("jax")
CASES = table.cases

Random = np.random.Generator


def normal(random: Random, *shape: int, dtype: str = "float32") -> Any:
    import jax.numpy as jnp

    return jnp.asarray(random.normal(size=shape).astype(dtype))


def uniform(
    random: Random, low: float, high: float, *shape: int, dtype: str = "float32"
) -> Any:
    import jax.numpy as jnp

    return jnp.asarray(random.uniform(low, high, size=shape).astype(dtype))


def definite(random: Random, n: int, dtype: str = "float32") -> Any:
    import jax.numpy as jnp

    a = random.normal(size=(n, n))
    return jnp.asarray((a @ a.T / n + np.eye(n)).astype(dtype))


# JAX's own


@table("jax", "jax/_src/nn/functions.py:73", RIGHT, "the slope at 0 is a choice")
def relu(random):
    import jax

    return jax.nn.relu, normal(random, 6)


@table("jax", "jax/_src/nn/functions.py:615", RIGHT, "y * (dx - sum(y * dx))")
def softmax(random):
    import jax

    return jax.nn.softmax, normal(random, 3, 5)


@table("jax", "jax/_src/nn/functions.py:1494", RIGHT, "1 / expm1(x), for x > 0")
def log1mexp(random):
    import jax

    return jax.nn.log1mexp, uniform(random, 0.1, 3.0, 5)


@table("jax", "jax/_src/scipy/special.py:702", RIGHT, "2 x erfcx(x) - 2 / sqrt(pi)")
def erfcx(random):
    import jax

    return jax.scipy.special.erfcx, normal(random, 6)


@table("jax", "jax/_src/scipy/special.py:835", RIGHT, "1 - 2 x F(x)", x64=True)
def dawsn(random):
    import jax

    return jax.scipy.special.dawsn, 2.0 * normal(random, 6, dtype="float64")


@table("jax", "jax/_src/scipy/special.py:894", RIGHT, "1 / (x (1 - x))")
def logit(random):
    import jax

    return jax.scipy.special.logit, uniform(random, 0.1, 0.9, 5)


@table(
    "jax",
    "jax/_src/scipy/special.py:938",
    EDGE,
    "0 * log(0) is 0; its slope is infinite",
)
def xlogy(random):
    import jax
    import jax.numpy as jnp

    x, y = jnp.array([0.0, 1.0, 2.0]), jnp.array([0.5, 0.5, 3.0])
    return jax.scipy.special.xlogy, x, y


@table("jax", "jax/_src/scipy/special.py:1003", RIGHT, "1 + log(x)")
def entr(random):
    import jax

    return jax.scipy.special.entr, uniform(random, 0.1, 2.0, 5)


@table(
    "jax",
    "jax/_src/scipy/special.py: _expi",
    RIGHT,
    "exp(x) / x; the value loops where x < 0 is tiny",
)
def expi(random):
    import jax

    return jax.scipy.special.expi, uniform(random, -3.0, -0.5, 4)


@table("jax", "jax/_src/lax/special.py: digamma", RIGHT, "trigamma")
def digamma(random):
    import jax

    return jax.scipy.special.digamma, uniform(random, 0.5, 5.0, 6)


@table("jax", "jax/_src/lax/linalg.py: lu_solve", RIGHT, "the adjoint solve")
def linalg_solve(random):
    import jax.numpy as jnp

    a = normal(random, 3, 3) + 3.0 * jnp.eye(3)
    return jnp.linalg.solve, a, normal(random, 3, 2)


@table(
    "jax",
    "jax/_src/lax/special.py: random_gamma_grad",
    SURROGATE,
    "a sample by rejection, with the implicit gradient",
)
def random_gamma(random):
    import jax

    key = jax.random.PRNGKey(0)
    return (lambda a: jax.random.gamma(key, a)), uniform(random, 0.5, 3.0, 4)


@table(
    "jax",
    "jax/_src/lax/control_flow/solves.py: custom_root",
    RIGHT,
    "a Newton iteration in a while loop, by the implicit function theorem",
    x64=True,
)
def custom_root(random):
    import jax
    import jax.numpy as jnp

    def newton(f, x0):
        def step(state):
            x, i = state
            return x - f(x) / jax.jvp(f, (x,), (jnp.ones_like(x),))[1], i + 1

        def going(state):
            return jnp.any(jnp.abs(f(state[0])) > 1e-12)

        return jax.lax.while_loop(going, step, (x0, 0))[0]

    def root(a):
        f = lambda x: x**3 + x - a
        solve = lambda g, y: y / g(jnp.ones_like(y))
        return jax.lax.custom_root(f, jnp.zeros_like(a), newton, solve)

    return root, normal(random, dtype="float64")


@table(
    "jax",
    "jax/experimental/ode.py",
    RIGHT,
    "the adjoint equation, to the solver's tolerance",
    x64=True,
)
def odeint(random):
    import jax.numpy as jnp
    from jax.experimental.ode import odeint

    t = jnp.array([0.0, 0.5, 1.0])

    def solve(y0, a):
        field = lambda y, t, a: -a * jnp.sin(y)
        return odeint(field, y0, t, a, rtol=1e-9, atol=1e-9)

    y0 = normal(random, 3, dtype="float64")
    return solve, y0, uniform(random, 0.5, 1.5, dtype="float64")


# Optimizers, solvers


@table("optax", "optax/_src/utils.py:160", SURROGATE, "the identity, scaled")
def scale_gradient(random):
    import optax

    return (lambda x: optax.scale_gradient(x, 0.3)), normal(random, 5)


@table(
    "optax",
    "optax/projections/_projections.py:94",
    RIGHT,
    "the projection on the simplex",
)
def projection_simplex(random):
    import optax

    return optax.projections.projection_simplex, normal(random, 6)


@table("optax", "optax/losses/_classification.py:157", RIGHT, "in x and in the weights")
def weighted_logsoftmax(random):
    from optax.losses._classification import weighted_logsoftmax

    return weighted_logsoftmax, normal(random, 5), uniform(random, 0.1, 1.0, 5)


@table("jaxopt", "jaxopt/_src/projection.py:96", RIGHT, "the projection on the simplex")
def jaxopt_projection_simplex(random):
    from jaxopt.projection import projection_simplex

    return (lambda x: projection_simplex(x)), normal(random, 6)


@table("jaxopt", "jaxopt/_src/isotonic.py:92", RIGHT, "the means of its blocks")
def isotonic_l2(random):
    from jaxopt.isotonic import isotonic_l2_pav

    return isotonic_l2_pav, normal(random, 6)


@table(
    "jaxopt",
    "jaxopt/_src/implicit_diff.py:205",
    RIGHT,
    "the implicit function theorem at the optimum",
    x64=True,
)
def ridge_by_lbfgs(random):
    import jax.numpy as jnp
    from jaxopt import LBFGS

    x, y = normal(random, 6, 3, dtype="float64"), normal(random, 6, dtype="float64")

    def objective(w, strength):
        return jnp.mean((x @ w - y) ** 2) + strength * jnp.sum(w**2)

    def solve(strength):
        solver = LBFGS(objective, tol=1e-12, maxiter=200)
        return solver.run(jnp.zeros(3), strength).params

    return solve, uniform(random, 0.5, 1.5, dtype="float64")


@table(
    "jaxopt",
    "jaxopt/_src/perturbations.py:93",
    SURROGATE,
    "an argmax smoothed by noise, with a Monte Carlo gradient",
)
def perturbed_argmax(random):
    import jax
    import jax.numpy as jnp
    from jaxopt import perturbations

    def argmax(x):
        return jax.nn.one_hot(jnp.argmax(x, axis=-1), x.shape[-1])

    smooth = perturbations.make_perturbed_argmax(argmax, num_samples=50, sigma=0.5)
    key = jax.random.PRNGKey(0)
    return (lambda x: smooth(x, key)), normal(random, 4)


@table("optimistix", "optimistix/_ad.py:65", RIGHT, "implicit", x64=True)
def root_find(random):
    import jax.numpy as jnp
    import optimistix

    def root(a):
        solver = optimistix.Newton(rtol=1e-10, atol=1e-10)
        f = lambda y, a: y**3 + y - a
        return optimistix.root_find(f, solver, jnp.zeros_like(a), a).value

    return root, normal(random, 3, dtype="float64")


@table("lineax", "lineax/_solve.py:152", RIGHT, "the adjoint solve", x64=True)
def lineax_solve(random):
    import jax.numpy as jnp
    import lineax

    def solve(a, b):
        return lineax.linear_solve(lineax.MatrixLinearOperator(a), b).value

    a = normal(random, 3, 3, dtype="float64") + 3.0 * jnp.eye(3)
    return solve, a, normal(random, 3, dtype="float64")


@table("lineax", "lineax/_norm.py:71", RIGHT, "x / norm(x)")
def two_norm(random):
    import lineax

    return lineax.internal.two_norm, normal(random, 5)


@table("lineax", "lineax/_norm.py:71", EDGE, "a norm, with the slope 0 at 0")
def two_norm_at_zero(random):
    import jax.numpy as jnp
    import lineax

    return lineax.internal.two_norm, jnp.zeros(4)


@table("diffrax", "diffrax/_adjoint.py", RIGHT, "by checkpoints", x64=True)
def diffeqsolve(random):
    import diffrax

    def solve(y0, a):
        term = diffrax.ODETerm(lambda t, y, a: -a * y)
        return diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, 1.0, 0.1, y0, a).ys[0]

    y0 = normal(random, 3, dtype="float64")
    return solve, y0, uniform(random, 0.5, 1.5, dtype="float64")


@table(
    "diffrax",
    "diffrax/_adjoint.py:539",
    RIGHT,
    "the adjoint equation, to its steps' error",
    x64=True,
)
def backsolve_adjoint(random):
    import diffrax

    def solve(y0, a):
        term = diffrax.ODETerm(lambda t, y, a: -a * y)
        return diffrax.diffeqsolve(
            term,
            diffrax.Dopri8(),
            0.0,
            1.0,
            0.05,
            y0,
            a,
            adjoint=diffrax.BacksolveAdjoint(),
        ).ys[0]

    y0 = normal(random, 3, dtype="float64")
    return solve, y0, uniform(random, 0.5, 1.5, dtype="float64")


@table(
    "quadax",
    "quadax/_adjoint.py:763",
    RIGHT,
    "quadrature in its parameters and limits",
    x64=True,
)
def quadgk(random):
    import jax.numpy as jnp
    import quadax

    def integral(a):
        f = lambda x, a: jnp.cos(a * x)
        return quadax.quadgk(f, jnp.array([0.0, 1.0]), args=(a,))[0]

    return integral, uniform(random, 0.5, 3.0, dtype="float64")


@table(
    "flowjax",
    "flowjax/bijections/utils.py:319",
    RIGHT,
    "the inverse by bisection, implicit",
    x64=True,
)
def numerical_inverse(random):
    import jax.numpy as jnp
    import optimistix
    from flowjax.bijections import NumericalInverse, SoftPlus

    def inverse(y):
        bijection = NumericalInverse(SoftPlus(), default_inverter(optimistix))
        return bijection.inverse(y)

    def default_inverter(optimistix):
        def inverter(bijection, y, condition=None):
            solver = optimistix.Newton(rtol=1e-11, atol=1e-11)
            f = lambda x, _: bijection.transform(x, condition) - y
            return optimistix.root_find(f, solver, jnp.ones_like(y)).value

        return inverter

    return inverse, uniform(random, 0.5, 2.0, dtype="float64")


@table("jaxley", "jaxley/solver_voltage.py:94", RIGHT, "a tridiagonal solve", x64=True)
def tridiax_thomas(random):
    import tridiax

    def solve(diagonal, off, right):
        return tridiax.thomas_solve(off, diagonal, off, right)

    diagonal = uniform(random, 3.0, 4.0, 4, dtype="float64")
    off = uniform(random, -1.0, 1.0, 3, dtype="float64")
    return solve, diagonal, off, normal(random, 4, dtype="float64")


# Optimal transport


@table(
    "ott-jax",
    "ott/math/utils.py:51",
    RIGHT,
    "the order, axis and keepdims are left at their defaults",
)
def ott_norm(random):
    from ott.math.utils import norm

    return norm, normal(random, 5)


@table(
    "ott-jax",
    "ott/math/utils.py:133",
    RIGHT,
    "softmax; all else is left at its default",
)
def ott_logsumexp(random):
    from ott.math.utils import logsumexp

    return logsumexp, normal(random, 5)


@table(
    "ott-jax", "ott/math/utils.py:190", EDGE, "in x; gamma gets no gradient", data=(1,)
)
def softmin(random):
    from ott.math.utils import softmin

    return softmin, normal(random, 5), uniform(random, 0.5, 1.5)


@table("ott-jax", "ott/math/utils.py:252", RIGHT, "w / (z (1 + w))")
def ott_lambertw(random):
    from ott.math.utils import lambertw

    return lambertw, uniform(random, 0.1, 3.0, 4)


@table(
    "ott-jax",
    "ott/math/matrix_square_root.py:237",
    RIGHT,
    "a Sylvester equation, for symmetric matrices",
    x64=True,
)
def sqrtm_only(random):
    from ott.math.matrix_square_root import sqrtm_only

    return sqrtm_only, definite(random, 3, "float64")


# Distributions


@table("distrax", "distrax/_src/utils/math.py:29", RIGHT, "x y where y is not 0")
def multiply_no_nan(random):
    from distrax._src.utils.math import multiply_no_nan

    return multiply_no_nan, normal(random, 5), normal(random, 5)


@table("distrax", "distrax/_src/utils/math.py:82", RIGHT, "x^y for positive x")
def power_no_nan(random):
    from distrax._src.utils.math import power_no_nan

    return power_no_nan, uniform(random, 0.5, 2.0, 5), uniform(random, 0.5, 2.0, 5)


@table(
    "distrax",
    "distrax/_src/distributions/von_mises.py:311",
    RIGHT,
    "a density, and a series of 8 digits",
)
def von_mises_cdf(random):
    from distrax._src.distributions.von_mises import _von_mises_cdf

    op = lambda x, concentration: _von_mises_cdf(x, concentration, x.dtype)
    return op, normal(random, 4), uniform(random, 0.5, 4.0, 4)


@table("numpyro", "numpyro/distributions/util.py:477", RIGHT, "for x < 0")
def numpyro_log1mexp(random):
    from numpyro.distributions.util import log1mexp

    return log1mexp, uniform(random, -3.0, -0.1, 5)


def power_law(random):
    """Exponents, lower and upper ends of truncated power laws, and points between."""
    ends = uniform(random, 0.5, 1.0, 4), uniform(random, 3.0, 5.0, 4)
    return uniform(random, 1.5, 2.5, 4), uniform(random, -3.0, -1.5, 4), *ends


@table(
    "numpyro",
    "numpyro/distributions/truncated.py:1235",
    WRONG,
    "by both ends they are derivatives of the density, not of its logarithm",
)
def power_law_log_prob(random):
    from numpyro.distributions import DoublyTruncatedPowerLaw

    def log_prob(x, alpha, low, high):
        return DoublyTruncatedPowerLaw(alpha, low, high).log_prob(x)

    return log_prob, *power_law(random)


@table(
    "numpyro",
    "numpyro/distributions/truncated.py:1235",
    WRONG,
    "the same with the exponent -1, which has formulas of its own",
)
def power_law_log_prob_at_minus_1(random):
    from numpyro.distributions import DoublyTruncatedPowerLaw

    def log_prob(x, low, high):
        return DoublyTruncatedPowerLaw(-1.0, low, high).log_prob(x)

    x, _, low, high = power_law(random)
    return log_prob, x, low, high


@table(
    "numpyro",
    "numpyro/distributions/truncated.py:1359",
    WRONG,
    "with the exponent -1 the derivative by the upper end has the wrong sign",
)
def power_law_cdf_at_minus_1(random):
    from numpyro.distributions import DoublyTruncatedPowerLaw

    def cdf(x, low, high):
        return DoublyTruncatedPowerLaw(-1.0, low, high).cdf(x)

    x, _, low, high = power_law(random)
    return cdf, x, low, high


@table(
    "numpyro",
    "numpyro/distributions/truncated.py:1500",
    RIGHT,
    "derived by hand for each argument",
)
def power_law_icdf(random):
    from numpyro.distributions import DoublyTruncatedPowerLaw

    def icdf(q, alpha, low, high):
        return DoublyTruncatedPowerLaw(alpha, low, high).icdf(q)

    return icdf, uniform(random, 0.1, 0.9, 4), *power_law(random)[1:]


@table(
    "tfp-nightly",
    "tensorflow_probability/python/math/special.py: owens_t",
    RIGHT,
    "closed forms; the value is a series of 8 digits",
)
def owens_t(random):
    import tensorflow_probability.substrates.jax as tfp

    return tfp.math.owens_t, normal(random, 5), normal(random, 5)


@table(
    "tfp-nightly",
    "tensorflow_probability/python/math/special.py: lbeta",
    RIGHT,
    "differences of digamma",
)
def lbeta(random):
    import tensorflow_probability.substrates.jax as tfp

    return tfp.math.lbeta, uniform(random, 0.5, 5.0, 5), uniform(random, 0.5, 5.0, 5)


@table(
    "tfp-nightly",
    "tensorflow_probability/python/math/special.py: betaincinv",
    RIGHT,
    "the inverse, by the implicit function theorem",
    x64=True,
)
def betaincinv(random):
    from tensorflow_probability.substrates.jax.math import special

    a = uniform(random, 0.5, 3.0, 3, dtype="float64")
    b = uniform(random, 0.5, 3.0, 3, dtype="float64")
    y = uniform(random, 0.1, 0.9, 3, dtype="float64")
    return special.betaincinv, a, b, y


@table(
    "tfp-nightly",
    "tensorflow_probability/python/math/bessel.py: log_bessel_ive",
    RIGHT,
    "in z; v is a number",
)
def log_bessel_ive(random):
    import tensorflow_probability.substrates.jax as tfp

    op = tfp.math.log_bessel_ive
    return (lambda z: op(np.float32(1.5), z)), uniform(random, 0.5, 5.0, 4)


@table("rlax", "rlax/_src/clipping.py:58", SURROGATE, "the identity, clipped upstream")
def clip_gradient(random):
    import rlax

    return (lambda x: rlax.clip_gradient(x, -0.5, 0.5)), normal(random, 5)


# Spiking networks and quantization


@table("spyx", "spyx/axn.py:55", SURROGATE, "a step")
def superspike(random):
    from spyx import axn

    return axn.superspike(), normal(random, 6)


@table("spyx", "spyx/axn.py:55", SURROGATE, "a step")
def spyx_tanh(random):
    from spyx import axn

    return axn.tanh(), normal(random, 6)


@table(
    "jaxsnn",
    "jaxsnn/discrete/functional/threshold.py:11",
    SURROGATE,
    "a step; alpha is left at its default",
)
def jaxsnn_superspike(random):
    from jaxsnn.discrete.functional.threshold import superspike

    return superspike, normal(random, 6)


@table(
    "jaxsnn",
    "jaxsnn/event/solver/lif_analytical.py:23",
    RIGHT,
    "1 / (x + exp(w)), of a value that five steps give",
    x64=True,
)
def lambertwk0(random):
    import jax.numpy as jnp
    from jaxsnn.event.solver.lif_analytical import _lambertwk0

    return _lambertwk0, jnp.asarray(random.uniform(0.5, 2.0))


@table(
    "aqtp", "aqt/jax_legacy/jax/primitives.py:57", SURROGATE, "floor, passed through"
)
def floor_with_gradient(random):
    from aqt.jax_legacy.jax.primitives import floor_with_gradient

    return floor_with_gradient, 3.0 * normal(random, 6)


@table(
    "aqtp", "aqt/jax_legacy/jax/primitives.py:66", SURROGATE, "rounds, passed through"
)
def round_with_gradient(random):
    from aqt.jax_legacy.jax.primitives import round_with_gradient

    return round_with_gradient, 3.0 * normal(random, 6)


@table(
    "qwix",
    "qwix/_src/core/dot_general_qt.py:203",
    SURROGATE,
    "a product of quantized matrices, passed through",
)
def dot_general_qt(random):
    from qwix._src.core.dot_general_qt import DotGeneralQtConfig, dot_general_qt

    config = DotGeneralQtConfig(lhs_qtype="int8", rhs_qtype="int8")
    numbers = (((1,), (0,)), ((), ()))
    op = lambda a, b: dot_general_qt(a, b, numbers, config)
    return op, normal(random, 3, 4), normal(random, 4, 2)


@table(
    "flax", "flax/linen/fp8_ops.py:243", SURROGATE, "rounds to 8 bits, passed through"
)
def fp8_in_qdq(random):
    import jax.numpy as jnp
    from flax.linen.fp8_ops import in_qdq

    def qdq(x):
        scale, history = jnp.ones(1), jnp.zeros(4)
        return in_qdq(jnp.float32, jnp.float8_e4m3fn, x, scale, history)

    return qdq, normal(random, 6)


# Geometry, physics


@table(
    "e3nn-jax",
    "e3nn_jax/_src/spherical_harmonics/__init__.py:203",
    RIGHT,
    "polynomials on the sphere",
)
def spherical_harmonics(random):
    import e3nn_jax

    def harmonics(x):
        return e3nn_jax.spherical_harmonics("1o + 2e", x, True).array

    return harmonics, normal(random, 4, 3)


@table(
    "jax-md",
    "jax_md/mm_forcefields/reaxff/reaxff_helper.py:17",
    RIGHT,
    "sqrt, for x > 0",
)
def safe_sqrt(random):
    from jax_md.mm_forcefields.reaxff.reaxff_helper import safe_sqrt

    return safe_sqrt, uniform(random, 0.1, 2.0, 5)


@table(
    "jax-md",
    "jax_md/mm_forcefields/reaxff/reaxff_helper.py:17",
    EDGE,
    "sqrt at 0, with the slope 0 there",
)
def safe_sqrt_at_zero(random):
    import jax.numpy as jnp
    from jax_md.mm_forcefields.reaxff.reaxff_helper import safe_sqrt

    return safe_sqrt, jnp.array([0.0, 0.5, 2.0])


@table(
    "jax-md",
    "jax_md/space.py:139",
    SURROGATE,
    "moves points by a matrix, which the"
    " rule leaves out: forces are to be those of real space",
)
def space_transform(random):
    import jax.numpy as jnp
    from jax_md.space import transform

    box = 2.0 * jnp.eye(3) + 0.3 * normal(random, 3, 3)
    return transform, box, normal(random, 4, 3)


@table("blackjax", "blackjax/util.py", RIGHT, "no rule: a plain function of theirs")
def linear_map(random):
    from blackjax.util import linear_map

    return linear_map, definite(random, 3), normal(random, 3)


@table(
    "interpax",
    "interpax/_spline.py",
    RIGHT,
    "cubic splines, in the query and in the values",
    x64=True,
)
def interp1d(random):
    import interpax
    import jax.numpy as jnp

    knots = jnp.linspace(0.0, 1.0, 6)
    query = uniform(random, 0.1, 0.9, 4, dtype="float64")
    op = lambda q, f: interpax.interp1d(q, knots, f, method="cubic2")
    return op, query, normal(random, 6, dtype="float64")


@table(
    "jaxlie", "jaxlie/_so3.py", RIGHT, "the exponential of a rotation vector", x64=True
)
def so3_exp(random):
    import jaxlie

    return (lambda v: jaxlie.SO3.exp(v).as_matrix()), normal(random, 3, dtype="float64")


# Modules


@table("flax", "flax/linen/linear.py", RIGHT, "a stock module and its parameters")
def flax_dense(random):
    import flax.linen as nn
    import jax

    model = nn.Sequential([nn.Dense(4), nn.gelu, nn.LayerNorm(), nn.Dense(2)])
    x = normal(random, 3, 5)
    params = model.init(jax.random.PRNGKey(0), x)
    return model.apply, params, x


@table("flax", "flax/linen/attention.py", RIGHT, "a stock module and its parameters")
def flax_attention(random):
    import flax.linen as nn
    import jax

    model = nn.MultiHeadDotProductAttention(num_heads=2)
    x = normal(random, 2, 3, 4)
    params = model.init(jax.random.PRNGKey(0), x)
    return model.apply, params, x


@table("flax", "flax/linen/linear.py", RIGHT, "a module that is bound")
def flax_bound(random):
    import flax.linen as nn
    import jax

    model, x = nn.Dense(4), normal(random, 3, 5)
    return model.bind(model.init(jax.random.PRNGKey(0), x)), x


@table("flax", "flax/nnx/nn/normalization.py", RIGHT, "a stock module and its state")
def flax_nnx(random):
    from flax import nnx

    rngs = nnx.Rngs(0)
    return nnx.Sequential(nnx.Linear(5, 4, rngs=rngs), nnx.tanh), normal(random, 3, 5)


@table(
    "jax",
    "jax/_src/scipy/special.py:spence",
    WRONG,
    "NaN where 1 < x <= 2: the branch that is not taken divides by zero",
)
def spence(random):
    import jax.scipy.special as special

    return special.spence, uniform(random, 1.1, 1.9, 5)


@table(
    "jax-md",
    "jax_md/_energy/electrostatics.py:365",
    SURROGATE,
    "returns its argument, and changes the gradient by a matrix, as its name says",
    data=(0,),
)
def transform_gradients(random):
    import jax.numpy as jnp
    from jax_md._energy.electrostatics import transform_gradients

    box = 2.0 * jnp.eye(3) + 0.3 * normal(random, 3, 3)
    return transform_gradients, box, normal(random, 4, 3)


@table("equinox", "equinox/nn/_mlp.py", RIGHT, "a stock module")
def equinox_mlp(random):
    import equinox as eqx
    import jax

    return eqx.nn.MLP(3, 2, 4, 1, key=jax.random.PRNGKey(0)), normal(random, 3)


@table("equinox", "equinox/nn/_rnn.py", RIGHT, "a stock module")
def equinox_gru_cell(random):
    import equinox as eqx
    import jax

    cell = eqx.nn.GRUCell(3, 4, key=jax.random.PRNGKey(0))
    return cell, normal(random, 3), normal(random, 4)


@table(
    "dm-haiku", "haiku/_src/recurrent.py", RIGHT, "a stock module and its parameters"
)
def haiku_mlp(random):
    import haiku as hk
    import jax

    model = hk.without_apply_rng(hk.transform(lambda x: hk.nets.MLP([4, 2])(x)))
    x = normal(random, 3, 5)
    return model.apply, model.init(jax.random.PRNGKey(0), x), x


@table(
    "flax",
    "flax/nnx/nn/attention.py",
    RIGHT,
    "a stock module, in float32 whatever it is given",
    accuracy=1e-4,
)
def flax_nnx_attention(random):
    from flax import nnx

    rngs = nnx.Rngs(0)
    module = nnx.MultiHeadAttention(2, 4, decode=False, rngs=rngs)
    return module, normal(random, 2, 3, 4)


@table(
    "distrax",
    "distrax/_src/distributions/straight_through.py",
    SURROGATE,
    "a draw, with the gradient of its probabilities",
)
def straight_through_wrapper(random):
    import distrax
    import jax

    choice = distrax.straight_through_wrapper(distrax.OneHotCategorical)
    key = jax.random.PRNGKey(0)
    return (lambda logits: choice(logits=logits).sample(seed=key)), normal(random, 4)


# Astronomy, optics


@table(
    "exojax",
    "exojax/special/faddeeva.py:185",
    WRONG,
    "by y a constant is added that is not multiplied by the upstream gradient",
    x64=True,
)
def rewofzx(random):
    import jax.numpy as jnp
    from exojax.special.faddeeva import rewofzx

    return rewofzx, *map(jnp.asarray, random.uniform(0.5, 2.0, 2))


@table("jaxoplanet", "jaxoplanet/core/kepler.py:28", RIGHT, "implicit")
def kepler(random):
    from jaxoplanet.core.kepler import kepler

    return kepler, uniform(random, 0.1, 3.0, 4), uniform(random, 0.1, 0.7, 4)


@table("jaxoplanet", "jaxoplanet/utils.py:11", EDGE, "sqrt, with the slope 0 at 0")
def zero_safe_sqrt(random):
    import jax.numpy as jnp
    from jaxoplanet.utils import zero_safe_sqrt

    return zero_safe_sqrt, jnp.array([0.0, 0.5, 2.0])


@table("jnkepler", "jnkepler/jaxttv/symplectic.py:95", RIGHT, "implicit", x64=True)
def kepler_step(random):
    import jax.numpy as jnp
    from jnkepler.jaxttv.symplectic import solve_dE

    return lambda *xs: solve_dE(*xs), *map(jnp.asarray, random.uniform(0.05, 0.2, 3))


@table("fmmax", "fmmax/eig.py:29", EDGE, "eigenvalues; no second order")
def fmmax_eig(random):
    import jax.numpy as jnp
    from fmmax.eig import eig

    def eigenvalues(a):
        values, _ = eig(a.astype(complex))
        return jnp.real(values), jnp.imag(values)

    return eigenvalues, normal(random, 3, 3)


@table("slax", "slax/models/surrogates.py:12", SURROGATE, "a step")
def slax_fast_sigmoid(random):
    from slax.models.surrogates import fast_sigmoid

    return fast_sigmoid(), normal(random, 6)


# attention, determinants


def heads(random, count):
    return [normal(random, 1, 2, 6, 4) for _ in range(count)]


@table(
    "flash-attention-jax",
    "flash_attention_jax/flash_attention.py:91",
    EDGE,
    "1e-10 is added to what it divides by; the mask gets none",
    data=(3,),
)
def flash_attention(random):
    import jax.numpy as jnp
    from flash_attention_jax import flash_attention

    return flash_attention, *heads(random, 3), jnp.ones((1, 6))


@table(
    "flash-attention-jax",
    "flash_attention_jax/causal_flash_attention.py:103",
    EDGE,
    "the first row has one weight, 1 but for 1e-10",
)
def causal_flash_attention(random):
    from flash_attention_jax import causal_flash_attention

    return causal_flash_attention, *heads(random, 3)


@table("folx", "folx/slogdet.py:27", RIGHT, "the logarithm of a determinant")
def folx_slogdet(random):
    from folx.slogdet import slogdet

    return slogdet, normal(random, 2, 3, 3)


@table("folx", "folx/wrapped_functions.py:320", RIGHT, "the absolute value")
def folx_abs(random):
    from folx.wrapped_functions import complex_abs

    return complex_abs, normal(random, 6)
