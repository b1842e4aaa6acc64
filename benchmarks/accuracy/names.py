"""The same functions of PyTorch, JAX and TensorFlow, by their dotted names."""

from __future__ import annotations

# A - stands where there is none, or none that ends (JAX' expi and exp1, on some of the
# points), or another by default (JAX' gelu is the approximate one). tnp is TensorFlow's
# experimental.numpy.
_TABLE = """
name         torch                     jax                     tensorflow
sinc         sinc                      numpy.sinc              tnp.sinc
arctanh      atanh                     numpy.arctanh           math.atanh
arcsin       asin                      numpy.arcsin            math.asin
arccos       acos                      numpy.arccos            math.acos
arctan       atan                      numpy.arctan            math.atan
arccosh      acosh                     numpy.arccosh           math.acosh
arcsinh      asinh                     numpy.arcsinh           math.asinh
tanh         tanh                      numpy.tanh              math.tanh
expit        sigmoid                   nn.sigmoid              math.sigmoid
log_expit    nn.functional.logsigmoid  nn.log_sigmoid          math.log_sigmoid
softplus     nn.functional.softplus    nn.softplus             math.softplus
silu         nn.functional.silu        nn.silu                 nn.silu
gelu         nn.functional.gelu        -                       nn.gelu
expm1        expm1                     numpy.expm1             math.expm1
log1p        log1p                     numpy.log1p             math.log1p
erf          special.erf               scipy.special.erf       math.erf
erfc         special.erfc              scipy.special.erfc      math.erfc
ndtr         special.ndtr              scipy.special.ndtr      -
log_ndtr     special.log_ndtr          scipy.special.log_ndtr  -
gammaln      special.gammaln           scipy.special.gammaln   math.lgamma
power        pow                       numpy.power             math.pow
hypot        hypot                     numpy.hypot             tnp.hypot
logaddexp    logaddexp                 numpy.logaddexp         tnp.logaddexp
logaddexp2   logaddexp2                numpy.logaddexp2        tnp.logaddexp2
sqrt         sqrt                      numpy.sqrt              math.sqrt
cbrt         -                         numpy.cbrt              tnp.cbrt
reciprocal   reciprocal                numpy.reciprocal        math.reciprocal
softmax      softmax                   nn.softmax              nn.softmax
log_softmax  log_softmax               nn.log_softmax          nn.log_softmax
logsumexp    logsumexp                 nn.logsumexp            math.reduce_logsumexp
linalg.norm  linalg.vector_norm        numpy.linalg.norm       norm
exp          exp                       numpy.exp               math.exp
exp2         exp2                      numpy.exp2              tnp.exp2
log          log                       numpy.log               math.log
log2         log2                      numpy.log2              tnp.log2
log10        log10                     numpy.log10             tnp.log10
sin          sin                       numpy.sin               math.sin
cos          cos                       numpy.cos               math.cos
tan          tan                       numpy.tan               math.tan
sinh         sinh                      numpy.sinh              math.sinh
cosh         cosh                      numpy.cosh              math.cosh
square       square                    numpy.square            math.square
absolute     abs                       numpy.abs               math.abs
deg2rad      deg2rad                   numpy.deg2rad           tnp.deg2rad
rad2deg      rad2deg                   numpy.rad2deg           tnp.rad2deg
multiply     multiply                  numpy.multiply          math.multiply
divide       divide                    numpy.divide            math.truediv
arctan2      atan2                     numpy.arctan2           math.atan2
i0           special.i0                scipy.special.i0        math.special.bessel_i0
i1           special.i1                scipy.special.i1        math.special.bessel_i1
i0e          special.i0e               scipy.special.i0e       math.special.bessel_i0e
i1e          special.i1e               scipy.special.i1e       math.special.bessel_i1e
j0           -                         -                       math.special.bessel_j0
j1           -                         -                       math.special.bessel_j1
y0           -                         -                       math.special.bessel_y0
y1           -                         -                       math.special.bessel_y1
k0           -                         -                       math.special.bessel_k0
k1           -                         -                       math.special.bessel_k1
k0e          -                         -                       math.special.bessel_k0e
k1e          -                         -                       math.special.bessel_k1e
erfcx        special.erfcx             -                       -
erfinv       special.erfinv            scipy.special.erfinv    math.erfinv
erfcinv      -                         -                       math.erfcinv
ndtri        special.ndtri             scipy.special.ndtri     math.ndtri
dawsn        -                         -                       math.special.dawsn
logit        logit                     scipy.special.logit     -
gamma        -                         scipy.special.gamma     -
digamma      special.digamma           scipy.special.digamma   math.digamma
beta         -                         scipy.special.beta      -
betaln       -                         scipy.special.betaln    -
expi         -                         -                       math.special.expint
spence       -                         scipy.special.spence    math.special.spence
entr         special.entr              scipy.special.entr      -
xlogy        special.xlogy             scipy.special.xlogy     math.xlogy
xlog1py      special.xlog1py           scipy.special.xlog1py   math.xlog1py
rel_entr     -                         scipy.special.rel_entr  -
kl_div       -                         scipy.special.kl_div    -
"""


def _read(table: str) -> dict[str, tuple[str, ...]]:
    table = table.replace("tnp.", "experimental.numpy.")
    (_, *peers), *rows = [line.split() for line in table.strip().splitlines()]
    return {
        name: tuple(
            f"{peer}.{path}"
            for peer, path in zip(peers, paths, strict=True)
            if path != "-"
        )
        for name, *paths in rows
    }


PATHS = _read(_TABLE)
