"""Cases of the elementwise rules: made from each rule's declared domain."""

from __future__ import annotations

import numpy as np

from gradsmith.core.rule import RULES, Elementwise, name_of
from tests.rules.harness import Case

_rng = np.random.default_rng(7)

# The shapes of two arguments: alike, and broadcast in every way.
PAIRS = [((3,), (3,)), ((2, 3), (3,)), ((1, 3), (2, 1)), ((), (3,)), ((3,), ())]


def inside(domain, shape):
    """Points well inside the domain, away from whole numbers and from 0."""
    low, high = max(domain[0], -2.5), min(domain[1], 2.5)
    if domain[0] > -2.5 and high == 2.5:
        high = domain[0] + 2.5
    width = high - low
    x = _rng.uniform(low + 0.1 * width, high - 0.1 * width, shape)
    return np.asarray(x + 0.03 * width * (np.abs(x - np.round(x)) < 0.02 * width))


def complex_inside(shape):
    """Points off the axes, on which most branch cuts lie."""
    x, y = _rng.uniform(0.3, 1.2, (2, *shape))
    return np.asarray(x + 1j * y)


def unary_cases(fn, domain, **options):
    for shape in [(2, 3), ()]:
        yield Case(fn, [inside(domain, shape)], **options)


def binary_cases(fn, first, second, **options):
    for shape1, shape2 in PAIRS:
        yield Case(fn, [inside(first, shape1), inside(second, shape2)], **options)
    x, number = inside(first, (3,)), float(inside(second, ()))
    yield Case(lambda x: fn(x, number), [x], name=f"{name_of(fn)}-number2", **options)
    x, number = inside(second, (3,)), float(inside(first, ()))
    yield Case(lambda x: fn(number, x), [x], name=f"{name_of(fn)}-number1", **options)


def numpy_ufuncs():
    """The ufuncs of NumPy that have an elementwise rule."""
    ufuncs = [fn for fn in RULES if isinstance(fn, np.ufunc)]
    return [
        fn
        for fn in ufuncs
        if isinstance(RULES[fn], Elementwise) and getattr(np, fn.__name__, None) is fn
    ]


# Where both arguments may not have the same domain.
_SECOND = {
    np.power: (-2.2, 2.8),
    np.float_power: (-2.2, 2.8),
    np.remainder: (2.6, 4),  # no quotient near a whole number, where it jumps
    np.fmod: (2.6, 4),
    np.true_divide: (0.5, 3),
}
_FIRST = {np.power: (0.2, 3), np.float_power: (0.2, 3)}


def _cases_of(fn):
    rule = RULES[fn]
    if fn.nin == 1:
        yield from unary_cases(fn, rule.domain)
    elif fn is np.copysign:
        signs = np.array([1.0, -2.0])
        yield Case(lambda x: fn(x, signs), [inside((0, 3), (2, 1))], name=name_of(fn))
    else:
        first = _FIRST.get(fn, rule.domain)
        yield from binary_cases(fn, first, _SECOND.get(fn, rule.domain))


def _complex_cases_of(fn):
    if not any(kind in types for types in fn.types for kind in ("D->D", "D->d")):
        return
    if fn.nin == 1:
        yield Case(fn, [complex_inside((2, 3))], name=f"{name_of(fn)}-complex")
        return
    z1, z2, x = complex_inside((2, 1)), complex_inside((3,)), inside((0.3, 2), (3,))
    yield Case(fn, [z1, z2], name=f"{name_of(fn)}-complex-complex")
    yield Case(fn, [z1, x], name=f"{name_of(fn)}-complex-real")
    yield Case(fn, [x, z2], name=f"{name_of(fn)}-real-complex")
    yield Case(lambda z: fn(z, 1 - 2j), [z1], name=f"{name_of(fn)}-number2-complex")
    yield Case(lambda z: fn(0.5j, z), [z1], name=f"{name_of(fn)}-number1-complex")


def _exponent_cases():
    """Powers by a number, which have their own formulas."""
    for p in (-2, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4):
        x = inside((0.2, 2), (3,))
        yield Case(lambda x, p=p: x**p, [x], name=f"x**{p}")
        if p == int(p):
            yield Case(lambda x, p=p: x**p, [-x], name=f"(-x)**{p}")
    z, n = complex_inside((3,)), np.array([2, -1, 3])
    yield Case(lambda z: z**2.5, [z], name="z**2.5")
    yield Case(lambda x: np.power(x, n), [-inside((0.2, 2), (3,))], name="(-x)**whole")
    yield Case(lambda z: (-2.0) ** z, [z], name="(-2)**z")


def _other_cases():
    x = inside((0.2, 2.9), (2, 3))
    yield Case(np.modf, [x])
    yield Case(np.ldexp, [x, np.array([1, -2, 3])])
    yield Case(np.divmod, [inside((-2, 2), (2, 1)), inside((2.6, 4), (3,))])
    yield Case(np.sinc, [np.array([-0.3, 1e-3, 0.62, 0.65, 3.3])], name="np.sinc-all")
    for fn in (np.remainder, np.fmod):
        for sign in (1, -1):
            yield Case(fn, [sign * np.array([7.3, 2.9]), np.array([[2.1], [-0.7]])])


CASES: list[Case] = [
    *(case for fn in numpy_ufuncs() for case in _cases_of(fn)),
    *(case for fn in numpy_ufuncs() for case in _complex_cases_of(fn)),
    *_exponent_cases(),
    *_other_cases(),
]
