"""Values and gradients at the ends of the floating range are the true ones."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

pytest.importorskip("flint")

import gradsmith.numpy as gnp
from gradsmith.core.arrays import FRAMEWORKS as REGISTRY
from gradsmith.tools.audit.formats import FORMATS
from tests.frameworks.portable import ALL
from tests.ops.ends import CASES, WEIGHTS
from tests.ops.truth import Truth, precisely, slope, stand_ins, units_off

FLUSHING = ("jax", "tensorflow", "mlx")  # 0 is what they take denormal numbers for


@pytest.fixture(scope="module", autouse=True)
def in_64_bits():
    import jax

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@cache
def points(case, form):
    found = np.array(case.points(form), np.float64)
    found.flags.writeable = False
    return found


@cache
def flushed(case, form):
    """The points with 0 in place of denormal numbers."""
    xs = points(case, form)
    return np.where(np.abs(xs) < form.smallest_normal, np.copysign(0.0, xs), xs)


@cache
def _truth_at(case, point):
    """Of each value and each slope the results that must agree."""
    with precisely():
        stood = stand_ins(point)
        single = not case.rows
        values = [[y] if single else y for y in (case.true(*xs) for xs in stood)]
        values = [y if isinstance(y, list) else [y] for y in values]
        slopes = [_slopes(case, xs) for xs in stood]
        terms = case.terms(*stood[0]) if case.terms else (0.0, [0.0] * len(point))
        terms = tuple(np.abs(np.array(t, float)) for t in terms)
    values, slopes = ([list(each) for each in zip(*x)] for x in (values, slopes))
    declared = case.declared(*point)
    if declared is not None:
        value, own = declared
        if value is not None:
            value = value if isinstance(value, tuple) else (value,) * len(values)
            values = [[v] for v in value]
        slopes = [s if o is None else [o] for s, o in zip(slopes, own)]
    return values, slopes, terms


def _slopes(case, xs):
    if case.slopes is not None:
        return case.slopes(*xs)

    def loss(*xs):
        y = case.true(*xs)
        if isinstance(y, list):
            return sum(w * each for w, each in zip(WEIGHTS, y, strict=True))
        return y

    return [slope(loss, xs, k) for k in range(len(xs))]


def _truths(case, form, xs):
    n, k = xs.shape
    outs = len(_truth_at(case, tuple(xs[0]))[0])
    values, slopes = Truth((n, outs)), Truth((n, k))
    terms = np.zeros((n, outs)), np.zeros((n, k))
    for i, point in enumerate(xs):
        point = tuple(map(float, point))
        nan = any(x != x for x in point)
        ys, dxs, (terms[0][i], terms[1][i]) = _truth_at(case, point)
        for j, y in enumerate(ys):
            values.put((i, j), y, False, nan)
        for j, dx in enumerate(dxs):
            slopes.put((i, j), dx, nan, False)
        for truth in (values, slopes):
            # Where a row has no limit, none of its elements need be one
            truth.either[i] |= case.rows and np.isnan(truth.hi[i]).any()
        if not nan and np.isnan(values.hi[i]).all():
            slopes.outside[i] = True
    return (values, slopes), terms


@cache
def truths(case, form):
    return _truths(case, form, points(case, form))


@cache
def truths_of_flushed(case, form):
    return _truths(case, form, flushed(case, form))


def results(case, framework, form):
    """Values and gradients, as float64."""
    arrays = REGISTRY[framework.name].arrays
    xs = points(case, form).astype(np.float32 if form.bits == 16 else form.name)
    with np.errstate(all="ignore"):
        if case.rows:
            xs = [arrays.array(xs, form.name)]
        else:
            xs = [arrays.array(x, form.name) for x in xs.T.copy()]

        def both(*xs):
            y = case.fn(*xs)
            return y, framework.gradients(lambda *xs: _loss(case.fn(*xs)), *xs)

        y, dxs = framework.quickly(both)(*xs)
    y, *dxs = (arrays.numpy(x).astype(np.float64) for x in (y, *dxs))
    y = y.reshape(len(y), -1)
    return y, (dxs[0] if case.rows else np.stack(dxs, -1))


def _loss(y):
    if gnp.ndim(y) == 2:
        y = y * gnp.asarray(WEIGHTS, dtype=y.dtype, like=y)
    return gnp.sum(y)


def off(case, framework, form):
    """Results, and how many units they are off."""
    got = results(case, framework, form)
    found = _units(got, form, *truths(case, form))
    if framework.name in FLUSHING and form.name != "float16":
        right, terms = truths_of_flushed(case, form)
        found = map(np.minimum, found, _units(got, form, right, terms))
        least = case.floor * form.smallest_normal
        found = [
            np.where((np.abs(t.hi) < least) & (np.abs(y) <= least), 0, u)
            for u, y, t in zip(found, got, truths(case, form)[0], strict=True)
        ]
    if framework.name == "mlx":  # whose exp is infinite from 88.4 on, on a CPU
        found = [
            np.where((np.abs(t.hi) > 2.0**127) & (np.abs(y) > 2.0**127), 0, u)
            for u, y, t in zip(found, got, truths(case, form)[0], strict=True)
        ]
    if (framework.name, form.name) == ("jax", "bfloat16"):
        # A denormal number is 0 to one instruction, and not to the next
        denormal = (np.abs(points(case, form)) < form.smallest_normal).any(-1, keepdims=True)
        found = [np.where(denormal, 0, u) for u in found]
    return found, got


def _units(got, form, right, terms):
    y, dx = map(units_off, got, right, (form, form), terms)
    # A slope that overflows may be the largest number
    largest = float(form.numbers(form.largest_code))
    over = np.abs(right[1].hi) >= form.overflow
    return [y, np.where(over & (got[1] == np.sign(right[1].hi) * largest), 0, dx)]


def promise(case, framework, form):
    """In ULP. MLX's exp is off by 20 on a CPU, its square by twice that."""
    if framework.name == "mlx" and form.name == "float32":
        return 64
    return case.promise.get(form.name, 4)


def faults(case, framework, form):
    found, got = off(case, framework, form)
    xs = points(case, form)
    y, dx = truths(case, form)[0]
    lines = []
    for what, units, result, true in zip(("value", "gradient"), found, got, (y, dx)):
        for i, j in np.argwhere(units > promise(case, framework, form)):
            at = ", ".join(f"{x:.9g}" for x in xs[i])
            lines.append(
                f"{what}[{j}] at ({at}): {result[i, j]:.9g}, true {true.hi[i, j]:.9g},"
                f" {units[i, j]:.3g} ULP"
            )
    return lines


RUNS = [
    pytest.param(case, framework, dtype, id=f"{case}-{framework.name}-{dtype}")
    for case in CASES
    for framework in ALL
    for dtype in case.dtypes
    if (framework.name, dtype) != ("numpy", "bfloat16")  # which NumPy has not
]


@pytest.mark.parametrize(("case", "framework", "dtype"), RUNS)
def test_values_and_gradients_at_the_ends(case, framework, dtype):
    lines = faults(case, framework, FORMATS[dtype])
    assert not lines, f"{len(lines)} faults\n" + "\n".join(lines[:20])
