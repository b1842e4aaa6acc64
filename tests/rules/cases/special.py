"""Cases of `scipy.special`; none if SciPy is not there."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np

from gradsmith import rules
from gradsmith.core.rule import RULES, Elementwise, name_of
from tests.rules.cases.elementwise import (
    binary_cases,
    complex_inside,
    inside,
    unary_cases,
)
from tests.rules.harness import Case

# Domains of the arguments where they are not the same; None is a fixed order.
_DOMAINS = {
    "xlogy": ((-2, 2), (0.2, 3)),
    "xlog1py": ((-2, 2), (-0.8, 3)),
    "powm1": ((0.2, 3), (-2, 2)),
    "huber": ((0.9, 1.1), (-0.7, 0.7)),
    "pseudo_huber": ((0.5, 2), (-2, 2)),
    "boxcox": ((0.2, 3), (-2, 2)),
    "boxcox1p": ((-0.7, 3), (-2, 2)),
    "inv_boxcox": ((0.2, 1), (0.1, 1)),
    "inv_boxcox1p": ((0.2, 1), (0.1, 1)),
    "gammaincinv": (None, (0.1, 0.9)),
    "gammainccinv": (None, (0.1, 0.9)),
    "hyp0f1": (None, (-2, 2)),
    "hyp1f1": (None, None, (-2, 2)),
    "hyp2f1": (None, None, None, (-0.8, 0.8)),
    "i0e": ((0.2, 3),),  # has a kink at 0
    "expi": ((0.2, 3),),
    "psi": ((0.2, 3),),
    "gamma": ((0.2, 3),),
    "tandg": ((3, 80),),
    "cotdg": ((3, 80),),
}
_COMPLEX = (
    "erf erfc erfcx erfi dawsn wofz ndtr log_ndtr expm1 log1p loggamma gamma rgamma "
    "spence expi exp1 wrightomega"
)


def _ufuncs():
    import scipy.special as sp

    rules.load("special")
    names = [name for name in dir(sp) if isinstance(getattr(sp, name), np.ufunc)]
    found = {getattr(sp, name): name for name in names}
    return {
        name: fn for fn, name in found.items() if isinstance(RULES.get(fn), Elementwise)
    }


def _cases_of(name, fn):
    rule = RULES[fn]
    domains = _DOMAINS.get(name)
    refused = [getattr(partial, "refused", False) for partial in rule.partials]
    if any(refused):
        domains = domains or [None if no else rule.domain for no in refused]
        yield from _fixed_order_cases(fn, domains[-1], len(refused) - 1)
    elif fn.nin == 1:
        yield from unary_cases(fn, domains[0] if domains else rule.domain)
    else:
        yield from binary_cases(fn, *(domains or [rule.domain] * 2))


def _fixed_order_cases(fn, domain, n):
    x = inside(domain, (2, 3))
    numbers = [2, 1.5, 3][:n] if name_of(fn)[-2:] not in ("yn", "kn") else [2]
    yield Case(lambda x: fn(*numbers, x), [x], name=f"{name_of(fn)}-numbers")
    orders = [np.array([1, 2, 3])] * n
    yield Case(lambda x: fn(*orders, x), [x], name=f"{name_of(fn)}-arrays")


def _left_cases(sp):
    """To the left of the origin, between the poles, and far out."""
    x = np.array([-0.3, -1.6, -2.45])
    for fn in (sp.gammaln, sp.gamma, sp.psi, sp.rgamma, sp.i0e):
        yield Case(fn, [x], name=f"{name_of(fn)}-left", step=1e-4)
    yield Case(sp.rgamma, [np.array([0.0, -1.0, -3.0])], name="rgamma-poles")
    yield Case(
        sp.exprel, [np.array([-30.0, -0.99, 0.0, 1e-4, 1.01, 20])], name="exprel"
    )
    far = np.array([-30.0, -5.0, 0.0, 9.5, 11.0, 100.0])
    yield Case(sp.log_ndtr, [far], name="log_ndtr-far")
    yield Case(sp.dawsn, [far], name="dawsn-far")
    yield Case(sp.erfcx, [far[1:]], name="erfcx-far")
    yield Case(
        sp.huber, [np.array([[0.3], [1.0]]), np.array([-2.0, 0.5])], name="huber"
    )
    yield Case(sp.kl_div, [np.array([40.0, 0.5]), np.array([35.0, 200.0])])
    yield Case(sp.betaln, [np.array([31.0, 100.0]), np.array([[2.0], [60.0]])])


def _function_cases(sp):
    x = inside((0.3, 3), (2, 3))
    for n in (0, 1, 3):
        yield Case(sp.polygamma, [n, x], float32=False)
    yield Case(sp.zeta, [2.5, x])
    yield Case(sp.zeta, [np.array([2, 3, 4]), x])
    yield Case(lambda a: sp.multigammaln(a, 3), [x + 1], name="multigammaln")
    yield Case(sp.softplus, [x]) if hasattr(sp, "softplus") else None
    yield Case(sp.lambertw, [x])
    yield Case(sp.lambertw, [complex_inside((3,))], name="lambertw-complex")
    for fn in (sp.sici, sp.shichi, sp.fresnel, sp.airy):
        yield Case(fn, [x])
        yield Case(fn, [complex_inside((3,))], name=f"{name_of(fn)}-complex")
    z = complex_inside((3,))
    for fn in (sp.jv, sp.iv, sp.yv, sp.kv, sp.kve, sp.hyp0f1):
        yield Case(lambda z, fn=fn: fn(1.5, z), [z], name=f"{name_of(fn)}-complex")
    for fn in (sp.xlogy, sp.xlog1py):
        yield Case(fn, [z, complex_inside((2, 1))], name=f"{name_of(fn)}-complex")
    for name in _COMPLEX.split():
        second = 1 if name in ("loggamma", "gamma", "rgamma") else 2
        yield Case(getattr(sp, name), [z], name=f"{name}-complex", order=second)


def _weighted(sp, options, sign):
    return lambda a, b: sp.logsumexp(a, b=sign * b, **options)


def _softmax_cases(sp):
    x, b = inside((-2, 2), (2, 3)), inside((0.3, 1), (3,))
    for axis in (None, 0, -1, (0, 1)):
        for fn in (sp.softmax, sp.log_softmax):
            yield Case(fn, [x], {"axis": axis}, name=f"{fn.__name__}-{axis}")
        for keepdims in (False, True):
            options = {"axis": axis, "keepdims": keepdims}
            name = f"logsumexp-{axis}-{keepdims}"
            yield Case(sp.logsumexp, [x], options, name=name)
            signed = {**options, "return_sign": True}
            yield Case(sp.logsumexp, [x], signed, name=f"{name}-sign")
            yield Case(_weighted(sp, options, 1), [x, b], name=f"{name}-b")
            yield Case(_weighted(sp, signed, -1), [x, b], name=f"{name}-b-sign")
    for fn in (sp.softmax, sp.log_softmax, sp.logsumexp):
        yield Case(fn, [np.asarray(0.7)], name=f"{fn.__name__}-scalar")
        yield Case(
            lambda a, c, fn=fn: fn([a, c]), [x[0], x[1]], name=f"{fn.__name__}-list"
        )
    yield Case(
        sp.logsumexp, [complex_inside((2, 3))], {"axis": 1}, name="logsumexp-complex"
    )


def _all_cases():
    if find_spec("scipy") is None:
        return
    import scipy.special as sp

    for name, fn in _ufuncs().items():
        yield from _cases_of(name, fn)
    yield from _left_cases(sp)
    yield from filter(None, _function_cases(sp))
    yield from _softmax_cases(sp)


CASES: list[Case] = list(_all_cases())
