"""Every elementwise rule at its edges: 0, poles, kinks, the ends of the number range.

The gradient is never NaN; it is finite where the value and its true derivative are; it
has the shape and dtype of the input. To first and second order, in both modes.
"""

from __future__ import annotations

from importlib.util import find_spec
from itertools import product

import numpy as np
import pytest

import gradsmith as gs
from gradsmith import rules
from gradsmith.core.rule import RULES, Elementwise, name_of

if find_spec("scipy"):
    import scipy.special  # noqa: F401

    rules.load("special")

RULED = [
    rule
    for rule in RULES.values()
    if isinstance(rule, Elementwise) and rule.name.startswith(("np.", "scipy."))
]
DTYPES = [np.float16, np.float32, np.float64]
ORDERS = [0.5, 1.0, 2.0]  # for arguments that are never differentiated


def points(rule, dtype):
    """Where things go wrong, on both sides of 0."""
    info = np.finfo(dtype)
    ends = [end for end in (*rule.domain, *rule.kinks, 1.0) if np.isfinite(end)]
    near = [np.nextafter(dtype(end), dtype(to)) for end in ends for to in (-9, 9)]
    extreme = [
        info.smallest_subnormal,
        info.tiny,
        info.eps,
        info.max**0.5,
        info.max / 4,
    ]
    usual = [0.0, 0.3, 0.5, 2.0, 2.5, 3.0, 10.0, 20.0, *ends, *near, *extreme]
    if "hyp" in rule.name:  # SciPy's series don't end for large arguments
        usual = [x for x in usual if abs(x) <= 20]
    x = np.array(usual, dtype)
    return [*np.unique(np.concatenate([x, -x])).tolist(), -0.0]


def arguments(rule, dtype):
    """All combinations of points; a second list says which are differentiated."""
    tracked = [
        partial is not None and not getattr(partial, "refused", False)
        for partial in rule.partials
    ]
    whole = rule.name.endswith((".yn", ".kn"))
    orders = [1.0, 2.0] if whole else ORDERS
    lists = [points(rule, dtype) if yes else orders for yes in tracked]
    if sum(tracked) > 2:
        lists = [xs[::4] for xs in lists]
    if name_of(rule.fn).endswith("_lambertw"):
        lists = [lists[0], [0], [1e-8]]
    grid = np.array(list(product(*lists)), dtype).T
    return list(grid), tracked


def _order(x):
    """Orders of integer type where they are whole: some functions want it so."""
    return x.astype(int) if np.all(x == np.round(x)) else x


def partial_of(fn, args, i):
    """The function of the i-th argument alone."""
    return lambda x: fn(*args[:i], x, *args[i + 1 :])


def slope_of(fn, i):
    """The derivative with respect to the i-th argument, as a function of all."""

    def slope(*args):
        alone = partial_of(fn, args, i)
        return gs.grad(lambda x: np.sum(np.real(alone(x))))(args[i])

    return slope


def check(value, x, args, what):
    assert value.shape == x.shape, what
    assert value.dtype == x.dtype, f"{what} of {x.dtype} is {value.dtype}"
    bad = np.flatnonzero(np.isnan(value))
    at = [tuple(float(x[k]) for x in args) for k in bad[:5]]
    assert not bad.size, f"{what} is NaN at {at}"


def prepared(rule, dtype):
    args, tracked = arguments(rule, dtype)
    args = [x if yes else _order(x) for x, yes in zip(args, tracked, strict=True)]
    return args, [i for i, yes in enumerate(tracked) if yes]


every_rule = pytest.mark.parametrize("rule", RULED, ids=lambda rule: rule.name)
# The values of these two are rounded to the ends of their interval in low precision.
ROUNDED = ("scipy.special.betaincinv", "scipy.special.betainccinv")
PRECISE = [rule for rule in RULED if rule.name not in ROUNDED]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.__name__)
@every_rule
def test_gradient_is_never_nan(rule, dtype):
    args, which = prepared(rule, dtype)
    with np.errstate(all="ignore"):
        for i in which:
            check(slope_of(rule.fn, i)(*args), args[i], args, f"slope {i}")
            one = np.ones_like(args[i])
            y, dy = gs.jvp(partial_of(rule.fn, args, i), args[i : i + 1], [one])
            check(dy, y, args, f"tangent {i}")


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.__name__)
@every_rule
def test_masked_branch_gets_zero(rule, dtype):
    """0 comes back where 0 comes in, also where the function itself overflows."""
    args, which = prepared(rule, dtype)
    with np.errstate(all="ignore"):
        for i in which:
            y, pull = gs.vjp(partial_of(rule.fn, args, i), args[i])
            (dx,) = pull(np.zeros_like(y))
            check(dx, args[i], args, f"pullback {i} of 0")
            assert not dx.any()


def _is_usual(x):
    large = float(np.finfo(x.dtype).max) ** 0.25
    return (x == 0) | ((np.abs(x) < large) & (np.abs(x) > 1 / large))


def derivatives(fn, args, i, j):
    """The derivative by j of the slope by i, in forward and in reverse mode."""
    slope = partial_of(slope_of(fn, i), args, j)
    _, forward = gs.jvp(slope, args[j : j + 1], [np.ones_like(args[j])])
    return forward, gs.grad(lambda x: np.sum(slope(x)))(args[j])


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.__name__)
@every_rule
def test_second_derivative_is_never_nan(rule, dtype):
    """Unless it overflows: where those of a wider type do not fit into this one."""
    args, which = prepared(rule, dtype if dtype is not np.float64 else np.float32)
    if len(which) > 1 and "scipy" in rule.name:  # products of factors overflow earlier
        kept = np.all([_is_usual(x) for x in args], axis=0)
        args = [x[kept] for x in args]
    wide = [x.astype(np.float64) if x.dtype.kind == "f" else x for x in args]
    with np.errstate(all="ignore"):
        pairs = list(product(which, repeat=2))
        both = [derivatives(rule.fn, wide, i, j) for i, j in pairs]
        slopes = [slope_of(rule.fn, i)(*wide) for i in which]
        limit = np.finfo(dtype).max / 16
        large = [np.abs(v) > limit for v in [*slopes, *sum(both, ())]]
        fits = ~np.any(large, axis=0)
        args = [x[fits] for x in (wide if dtype is np.float64 else args)]
        for i, j in pairs:
            for value, mode in zip(
                derivatives(rule.fn, args, i, j), ("jvp", "vjp"), strict=True
            ):
                check(value, args[j], args, f"{mode} by {j} of slope {i}")


@pytest.mark.parametrize(("dtype", "digits"), [(np.float16, 1.5), (np.float32, 4)])
@pytest.mark.parametrize("rule", PRECISE, ids=lambda rule: rule.name)
def test_low_precision_agrees_with_double(rule, dtype, digits):
    """Inside the domain, where value and slope are numbers of this type."""
    args, which = prepared(rule, dtype)
    low, high = rule.domain
    kept = [(low <= args[i]) & (args[i] <= high) & _is_usual(args[i]) for i in which]
    args = [x[np.all(kept, axis=0)] for x in args]
    wide = [x.astype(np.float64) if x.dtype.kind == "f" else x for x in args]
    info = np.finfo(dtype)
    with np.errstate(all="ignore"):
        y = rule.fn(*args)
        for i in which:
            truth = slope_of(rule.fn, i)(*wide)
            size = np.abs(truth)
            fits = np.isfinite(y) & ((4 * info.tiny < size) & (size < info.max / 4))
            got = slope_of(rule.fn, i)(*args)[fits]
            np.testing.assert_allclose(got, truth[fits], rtol=10**-digits)


def usual_arguments(rule, shape, dtype):
    """A point inside the domain for each argument, in some shape."""
    low, high = rule.domain
    x = 0.5 if low < 0.5 < high else low + 0.5
    tracked = [
        partial is not None and not getattr(partial, "refused", False)
        for partial in rule.partials
    ]
    args = [np.full(shape, x, dtype) if yes else 1 for yes in tracked]
    return args, [i for i, yes in enumerate(tracked) if yes]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 2)], ids=str)
@every_rule
def test_shapes_and_dtypes(rule, shape, dtype):
    args, which = usual_arguments(rule, shape, dtype)
    for x in args:
        if isinstance(x, np.ndarray):
            x.flags.writeable = False
    with np.errstate(all="ignore"):
        for i in which:
            alone = partial_of(rule.fn, args, i)
            dx = gs.grad(lambda x, alone=alone: np.sum(np.real(alone(x))))(args[i])
            assert dx.shape == shape
            assert dx.dtype == dtype
            y, dy = gs.jvp(alone, [args[i]], [args[i]])
            assert dy.shape == y.shape
            assert dy.dtype == y.dtype


@every_rule
def test_scalars(rule):
    """NumPy's scalars and Python's numbers have gradients too."""
    args, which = usual_arguments(rule, (), np.float64)
    numbers = [float(x) if isinstance(x, np.ndarray) else x for x in args]
    with np.errstate(all="ignore"):
        for i in which:
            expected = slope_of(rule.fn, i)(*args)
            for x in (numbers[i], np.float64(numbers[i])):
                got = slope_of(rule.fn, i)(*numbers[:i], x, *numbers[i + 1 :])
                np.testing.assert_allclose(got, expected, rtol=1e-12)
            single = [np.float32(x) if i == k else x for k, x in enumerate(numbers)]
            assert slope_of(rule.fn, i)(*single).dtype == np.float32
