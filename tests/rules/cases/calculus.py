"""Cases of differences, integrals, convolutions, interpolation and polynomials."""

from __future__ import annotations

import numpy as np

from gradsmith.core.rule import name_of
from tests.rules.cases.reductions import T, X, Z, adder, complex_, real
from tests.rules.harness import Case

CASES: list[Case] = []
add = adder(CASES)

# differences
add(np.diff, X)
add(np.diff, X, axis=0)
add(np.diff, T, n=2, axis=1)
add(np.diff, real(5), n=3)
add(np.diff, real(3), n=0)
add(np.diff, real(3), n=3)
add(np.diff, real(3), n=5)
add(np.diff, real(1))
add(np.diff, Z)
add(np.diff, X, prepend=0)
add(np.diff, X, append=real(3, 2), n=2)
add(np.diff, X, 1, 0, real(2, 4), real(1, 4), name="diff-both-edges")
add(np.diff, X, 1, -1, real(), name="diff-number-before")
add(np.ediff1d, X)
add(np.ediff1d, real(4), real(2), real(1), name="ediff1d-edges")
add(np.ediff1d, real(4), to_begin=5.0)

# derivatives on a grid
for _order in (1, 2):
    add(np.gradient, real(5), edge_order=_order)
    add(np.gradient, X, edge_order=_order)
    add(np.gradient, X, 0.3, edge_order=_order, name="gradient-spacing")
    add(np.gradient, X, 0.3, 2.0, edge_order=_order, name="gradient-spacings")
    add(np.gradient, T, axis=1, edge_order=_order)
    add(np.gradient, T, 0.5, axis=(0, 2), edge_order=1, name=f"gradient-axes-{_order}")
    add(np.gradient, complex_(5), edge_order=_order)
    _x = np.array([0.0, 1.0, 1.5, 3.5])
    add(np.gradient, X, _x, axis=-1, edge_order=_order, name="gradient-coordinates")
    add(np.gradient, X, np.asarray(0.7), _x, edge_order=_order, name="gradient-mixed")
    add(np.gradient, X, np.arange(4.0), axis=1, edge_order=_order, name="gradient-even")
    add(np.gradient, X, [0, 1, 3, 4], axis=1, edge_order=_order, name="gradient-whole")
    add(np.gradient, real(5, 3), np.array([0, 1.0, 1.5, 3.5, 4]), axis=0,
        edge_order=_order, name="gradient-coordinates-first")  # fmt: skip
add(np.gradient, real(2))

# integrals
add(np.trapezoid, X)
add(np.trapezoid, X, dx=0.3, axis=0)
add(np.trapezoid, X, np.array([0.0, 1.0, 1.5, 3.5]), name="trapezoid-coordinates")
add(np.trapezoid, T, real(3), 1.0, 1, name="trapezoid-middle")
add(np.trapezoid, X, real(3, 4), name="trapezoid-full")
add(np.trapezoid, X, None, np.asarray(0.3), name="trapezoid-spacing")
add(np.trapezoid, Z)
add(np.trapezoid, real(1))
add(np.trapezoid, real(2, 0))

# convolutions
for _fn in (np.convolve, np.correlate):
    for _mode in ("full", "same", "valid"):
        for _m, _n in ((5, 3), (3, 5), (4, 4), (6, 4), (4, 5), (2, 5), (5, 1), (1, 4)):
            add(_fn, real(_m), real(_n), mode=_mode)
        add(_fn, complex_(5), complex_(3), mode=_mode, name=f"{name_of(_fn)}-complex")
        add(_fn, complex_(2), complex_(4), mode=_mode, name=f"{name_of(_fn)}-complex")
        add(_fn, real(5), complex_(3), mode=_mode, name=f"{name_of(_fn)}-mixed")
    add(_fn, real(5), [1.0, 2.0], name=f"{name_of(_fn)}-list")
    add(_fn, [1.0, 2.0, 3.0], real(2), name=f"{name_of(_fn)}-list-first")
add(np.convolve, real(4), real(), name="convolve-number")

# interpolation
XP = np.array([-1.0, -0.3, 0.4, 1.2])
FP = real(4)
BETWEEN = np.array([[-0.8, 0.1], [1.0, -0.5]])
BEYOND = np.array([-2.0, -0.6, 0.9, 3.0])
add(np.interp, BETWEEN, XP, FP, name="interp")
add(np.interp, BEYOND, XP, FP, name="interp-beyond")
add(np.interp, BEYOND, XP, FP, 5.0, name="interp-left")
add(np.interp, BEYOND, XP, FP, None, -2.0, name="interp-right")
add(np.interp, np.asarray(0.2), XP, FP, name="interp-0d")
add(np.interp, BETWEEN, XP, complex_(4), name="interp-complex")
add(np.interp, BETWEEN, [-1, 0, 2], [3, 1, 2], name="interp-lists")
add(np.interp, [0.1, 0.7], XP, FP, name="interp-of-list")
add(np.interp, 4.7 * BEYOND, np.array([0.3, 2.0, 1.1]), real(3), period=2.5)
add(np.interp, BEYOND, np.array([0.3]), real(1), name="interp-one-knot")
add(np.interp, real(0), XP, FP, name="interp-none")

# polynomials
P = real(4)
add(np.polyval, P, X)
add(np.polyval, complex_(3), Z)
add(np.polyval, real(1), X)
add(np.polyval, P, np.asarray(0.3))
add(np.polyval, [1, 2, 3], X)
add(np.polyval, P, 2.0, name="polyval-number")
add(np.polyval, real(3, 4), X, name="polyval-rows")
add(np.polyder, P)
add(np.polyder, P, 2, name="polyder-twice")
add(np.polyder, P, 0, name="polyder-not")
add(np.polyder, real(1), name="polyder-constant")
add(np.polyint, P)
add(np.polyint, P, 2, [1.0, 2.0], name="polyint-twice")
add(np.polyint, P, 2, real(2), name="polyint-constants")
add(np.polyint, P, 2, real(1), name="polyint-constant")
add(np.polyint, P, 0, name="polyint-not")
for _fn in (np.polyadd, np.polysub, np.polymul):
    add(_fn, P, real(2))
    add(_fn, real(2), P)
    add(_fn, P, real(4))
    add(_fn, complex_(3), P)
    add(_fn, P, 2.0, name=f"{name_of(_fn)}-number")
add(np.polymul, P, np.array([0, 3, 1]), name="polymul-leading-zero")
add(np.polydiv, real(5), real(3))
add(np.polydiv, real(2), real(4))
add(np.polydiv, real(3), real(1))
add(np.polydiv, complex_(4), real(2))
add(np.poly, real(4))
add(np.poly, complex_(3))
add(np.poly, np.array([[2.0, 1.0], [0.5, -1.0]]), name="poly-matrix")
ROOTS = np.array([1.0, -3.2, 1.7, 0.8])  # of x**3 - 3.2 x**2 + ...
add(np.roots, ROOTS, name="roots")
add(np.roots, np.array([1.0, 0.3, 2.0]), name="roots-complex")
add(np.roots, complex_(4), name="roots-of-complex")
add(np.vander, real(3))
add(np.vander, real(3), 5, name="vander-5")
add(np.vander, real(3), 4, True, name="vander-increasing")
add(np.vander, complex_(2), 3, name="vander-complex")
add(np.vander, real(3), 1, name="vander-1")
add(np.vander, real(3), 0, name="vander-0")
GRID = np.linspace(-1, 1, 7) + 0.1 * real(7)
add(np.polyfit, GRID, real(7), 2, name="polyfit")
add(np.polyfit, GRID, real(7, 2), 2, name="polyfit-columns")
add(np.polyfit, GRID, real(7), 1, w=0.5 + np.arange(7) / 7, name="polyfit-weights")
add(np.polyfit, GRID, real(7), 1, cov="unscaled", name="polyfit-unscaled")
add(np.polyfit, GRID, real(7), 1, cov=True, name="polyfit-covariance")
