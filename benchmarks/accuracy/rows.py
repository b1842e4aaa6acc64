"""What is audited: a row each.

A new row is a line: the name, our function, its domains (one for each argument), and
the same function of the peers by their dotted names, if `names` does not have them.
`reference` is the true function, if ours is no definition in functions of NumPy and
SciPy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import scipy.special as sp

from benchmarks.accuracy.names import PATHS
from benchmarks.accuracy.points import EVERYWHERE, Domain
from gradsmith import ops

POSITIVE: Domain = (0, inf)
LONG: Domain = (-1e4, 1e4)  # where the certified value takes its time beyond


@dataclass(frozen=True)
class Row:
    """A function, and where it is looked at."""

    name: str
    ours: Callable[..., Any]
    domains: tuple[Domain, ...] = (EVERYWHERE,)
    peers: tuple[str, ...] = ()  # dotted names; else those of the name, from `names`
    reference: Callable[..., Any] | None = None
    lines: int = 0  # the length of vectors, if it works on those
    share: float = 1.0  # of the points
    note: str = ""

    @property
    def paths(self) -> tuple[str, ...]:
        """The functions of the peers."""
        return self.peers or PATHS.get(self.name, ())


def _along(fn: Any) -> Any:
    return lambda x: fn(x, axis=-1)


ONE, TWO = (-1.0, 1.0), (EVERYWHERE, EVERYWHERE)
# Gradients that are at most 4 ULP off over their domain; a test keeps them so.
PROMISED = [
    Row("sinc", np.sinc),
    Row("arctanh", np.arctanh, (ONE,)),
    Row("arcsin", np.arcsin, (ONE,)),
    Row("arccos", np.arccos, (ONE,)),
    Row("arctan", np.arctan),
    Row("arccosh", np.arccosh, ((1, inf),)),
    Row("arcsinh", np.arcsinh),
    Row("tanh", np.tanh),
    Row("expit", sp.expit),
    Row("log_expit", sp.log_expit),
    Row("softplus", ops.softplus, reference=lambda x: np.logaddexp(x, 0)),
    Row("silu", ops.silu, reference=lambda x: x * sp.expit(x)),
    Row("gelu", ops.gelu, reference=lambda x: x * sp.ndtr(x)),
    Row("expm1", np.expm1),
    Row("log1p", np.log1p, ((-1, inf),)),
    Row("erf", sp.erf),
    Row("erfc", sp.erfc),
    Row("ndtr", sp.ndtr),
    Row("log_ndtr", sp.log_ndtr),
    Row("gammaln", sp.gammaln),
    Row("power", np.power, (POSITIVE, EVERYWHERE)),
    Row("hypot", np.hypot, TWO),
    Row("logaddexp", np.logaddexp, TWO),
    Row("logaddexp2", np.logaddexp2, TWO),
    Row("sqrt", np.sqrt, (POSITIVE,)),
    Row("cbrt", np.cbrt),
    Row("reciprocal", np.reciprocal),
    Row("softmax", _along(sp.softmax), (), lines=10),
    Row("log_softmax", _along(sp.log_softmax), (), lines=10),
    Row("logsumexp", _along(sp.logsumexp), (), lines=10),
    Row("linalg.norm", _along(np.linalg.norm), (), lines=10),
]

_TAN = (
    "NumPy's tan is 3 ULP off, and its square 6; in float64 it takes 10 times as long"
)
OTHERS = [
    Row("exp", np.exp),
    Row("exp2", np.exp2),
    Row("log", np.log, (POSITIVE,)),
    Row("log2", np.log2, (POSITIVE,)),
    Row("log10", np.log10, (POSITIVE,)),
    Row("sin", np.sin),
    Row("cos", np.cos),
    Row("tan", np.tan, note=_TAN),
    Row("sinh", np.sinh),
    Row("cosh", np.cosh),
    Row("square", np.square),
    Row("absolute", np.absolute),
    Row("deg2rad", np.deg2rad),
    Row("rad2deg", np.rad2deg),
    Row("multiply", np.multiply, TWO),
    Row("divide", np.divide, TWO),
    Row("arctan2", np.arctan2, TWO),
    Row("i0", sp.i0, (LONG,)),
    Row("i1", sp.i1, (LONG,)),
    Row("i0e", sp.i0e, (LONG,)),
    Row("i1e", sp.i1e, (LONG,)),
    Row("j0", sp.j0, (LONG,)),
    Row("j1", sp.j1, (LONG,)),
    Row("y0", sp.y0, ((0, 1e4),), share=0.2),
    Row("y1", sp.y1, ((0, 1e4),), share=0.2),
    Row("k0", sp.k0, ((0, 1e4),), share=0.05),
    Row("k1", sp.k1, ((0, 1e4),), share=0.05),
    Row("k0e", sp.k0e, ((0, 1e4),), share=0.05),
    Row("k1e", sp.k1e, ((0, 1e4),), share=0.05),
    Row("jv(2.5, x)", lambda x: sp.jv(2.5, x), ((0, 1e4),), share=0.2),
    Row("yv(2.5, x)", lambda x: sp.yv(2.5, x), ((0, 1e4),), share=0.2),
    Row("iv(2.5, x)", lambda x: sp.iv(2.5, x), ((0, 1e4),), share=0.2),
    Row("kv(2.5, x)", lambda x: sp.kv(2.5, x), ((0, 1e4),), share=0.05),
    Row("ive(2.5, x)", lambda x: sp.ive(2.5, x), ((0, 1e4),), share=0.2),
    Row("kve(2.5, x)", lambda x: sp.kve(2.5, x), ((0, 1e4),), share=0.05),
    Row("np.i0", np.i0, (LONG,)),
    Row("erfcx", sp.erfcx),
    Row("erfi", sp.erfi),
    Row("erfinv", sp.erfinv, (ONE,)),
    Row("erfcinv", sp.erfcinv, ((0, 2),)),
    Row("ndtri", sp.ndtri, ((0, 1),)),
    Row("ndtri_exp", sp.ndtri_exp, ((-1e4, 0),)),
    Row("dawsn", sp.dawsn),
    Row("logit", sp.logit, ((0, 1),)),
    Row("exp10", sp.exp10),
    Row("exprel", sp.exprel),
    Row("cosm1", sp.cosm1, (LONG,)),
    Row("sindg", sp.sindg, ((-1e6, 1e6),)),
    Row("cosdg", sp.cosdg, ((-1e6, 1e6),)),
    Row("tandg", sp.tandg, ((-1e6, 1e6),)),
    Row("cotdg", sp.cotdg, ((-1e6, 1e6),)),
    Row("gamma", sp.gamma),
    Row("loggamma", sp.loggamma, (POSITIVE,)),
    Row("rgamma", sp.rgamma, ((-200, 1e4),)),
    Row("digamma", sp.digamma),
    Row("beta", sp.beta, ((0, 1e4), (0, 1e4))),
    Row("betaln", sp.betaln, (POSITIVE, POSITIVE), share=0.05),
    Row("gammainc(2.5, x)", lambda x: sp.gammainc(2.5, x), ((0, 1e4),), share=0.015),
    Row("gammaincc(2.5, x)", lambda x: sp.gammaincc(2.5, x), ((0, 1e4),), share=0.015),
    Row(
        "betainc(2.5, 1.5, x)",
        lambda x: sp.betainc(2.5, 1.5, x),
        ((0.01, 0.99),),
        share=0.015,
    ),
    Row(
        "betaincc(2.5, 1.5, x)",
        lambda x: sp.betaincc(2.5, 1.5, x),
        ((0.01, 0.99),),
        share=0.015,
    ),
    Row("expi", sp.expi, (LONG,), share=0.5),
    Row("exp1", sp.exp1, ((0, 1e4),), share=0.2),
    Row("spence", sp.spence, ((0, 1e6),), share=0.2),
    Row("wrightomega", sp.wrightomega, ((-200, 1e4),)),
    Row("hyp0f1(2.5, x)", lambda x: sp.hyp0f1(2.5, x), ((-100, 100),), share=0.2),
    Row(
        "hyp1f1(1.5, 2.5, x)", lambda x: sp.hyp1f1(1.5, 2.5, x), ((-50, 50),), share=0.2
    ),
    Row("entr", sp.entr, (POSITIVE,)),
    Row("xlogy", sp.xlogy, (POSITIVE, POSITIVE)),
    Row("xlog1py", sp.xlog1py, (POSITIVE, (-1, inf))),
    Row("rel_entr", sp.rel_entr, (POSITIVE, POSITIVE)),
    Row("kl_div", sp.kl_div, (POSITIVE, POSITIVE)),
    Row("huber", sp.huber, (POSITIVE, EVERYWHERE)),
    Row("pseudo_huber", sp.pseudo_huber, (POSITIVE, EVERYWHERE)),
    Row("powm1", sp.powm1, (POSITIVE, EVERYWHERE)),
    Row("boxcox", sp.boxcox, (POSITIVE, (-100, 100))),
    Row("boxcox1p", sp.boxcox1p, ((-1, inf), (-100, 100))),
    Row("inv_boxcox", sp.inv_boxcox, ((0, 100), (0, 100))),
    Row("inv_boxcox1p", sp.inv_boxcox1p, ((0, 100), (0, 100))),
    Row("linalg.norm, ord=3", lambda x: np.linalg.norm(x, 3, axis=-1), (), lines=10),
    Row("logaddexp.reduce", lambda x: np.logaddexp.reduce(x, axis=-1), (), lines=10),
]
