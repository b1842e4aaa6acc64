"""Values and gradients at the ends of the floating range are the true ones."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

pytest.importorskip("flint")

import gradsmith.numpy as gnp
from gradsmith import ops
from gradsmith.core.arrays import FRAMEWORKS as REGISTRY
from gradsmith.tools.audit.formats import FORMATS
from tests.frameworks.portable import ALL
from tests.ops.ends import CASES, WEIGHTS, numbers
from tests.ops.truth import INF, NAN, Precisely, Truth, slope, stand_ins, units_off

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
    with Precisely():
        stood = stand_ins(point)
        single = not case.rows
        values = [[y] if single else y for y in (case.true(*xs) for xs in stood)]
        values = [y if isinstance(y, list) else [y] for y in values]
        slopes = [_slopes(case, xs) for xs in stood]
        terms = case.terms(*stood[0]) if case.terms else (0.0, [0.0] * len(point))
        terms = tuple(np.abs(np.array(t, float)) for t in terms)
    values, slopes = (
        [list(each) for each in zip(*x, strict=True)] for x in (values, slopes)
    )
    declared = case.declared(*point)
    if declared is not None:
        value, own = declared
        if value is not None:
            value = value if isinstance(value, tuple) else (value,) * len(values)
            values = [[v] for v in value]
        slopes = [s if o is None else [o] for s, o in zip(slopes, own, strict=True)]
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
    right, terms = truths(case, form)
    found = _units(got, form, right, terms)
    if framework.name in FLUSHING and form.name != "float16":
        read, terms = truths_of_flushed(case, form)
        found = map(np.minimum, found, _units(got, form, read, terms))
    else:
        read = right
    if read is not right or case.flushes:
        least = case.floor * form.smallest_normal
        found = [
            np.where((np.abs(y) <= least) & (_least(t, r) < least), 0, u)
            for u, y, t, r in zip(found, got, right, read, strict=True)
        ]
    if framework.name == "mlx":  # whose exp is infinite from 88.4 on, on a CPU
        found = [
            np.where((np.abs(t.hi) > 2.0**127) & (np.abs(y) > 2.0**127), 0, u)
            for u, y, t in zip(found, got, truths(case, form)[0], strict=True)
        ]
    if (framework.name, form.name) == ("jax", "bfloat16"):
        # A denormal number is 0 to one instruction, and not to the next
        denormal = (np.abs(points(case, form)) < form.smallest_normal).any(
            -1, keepdims=True
        )
        found = [np.where(denormal, 0, u) for u in found]
    return found, got


def _least(*right):
    return np.fmin(*[np.abs(truth.hi) for truth in right])


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
    for what, units, result, true in zip(
        ("value", "gradient"), found, got, (y, dx), strict=True
    ):
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


SHAPED = {
    "reverse": (lambda x: ops.reverse(x, 2.0), lambda dy: -2 * dy),
    "scale": (lambda x: ops.scale(x, 0.5), lambda dy: dy / 2),
    "clip_by_value": (
        lambda x: ops.clip_by_value(x, -1.0, 2.0),
        lambda dy: np.clip(dy, -1, 2),
    ),
    "nan_to_zero": (ops.nan_to_zero, lambda dy: np.where(np.isnan(dy), 0, dy)),
}


@pytest.mark.parametrize("framework", ALL, ids=lambda f: f.name)
@pytest.mark.parametrize("name", SHAPED)
def test_shaped_gradients_at_the_ends(name, framework):
    fn, expected = SHAPED[name]
    dy = np.array(numbers(FORMATS["float32"]), np.float32)
    if framework.name in FLUSHING:
        dy = np.where(np.abs(dy) < 1e-37, 0, dy)
    x, given = framework.array(np.zeros_like(dy)), framework.array(dy)
    with np.errstate(all="ignore"):
        (dx,) = framework.gradients(lambda x: gnp.sum(fn(x) * given), x)
        np.testing.assert_array_equal(framework.plain(dx), expected(dy))


@pytest.mark.parametrize("framework", ALL, ids=lambda f: f.name)
def test_a_norm_is_clipped_at_the_ends(framework):
    rows = [[INF, 1, 0], [-INF, 3e38, 1e-45], [3e38, 3e38, 0], [0, 0, 0], [INF, INF, 0]]
    half = 0.5**0.5
    expected = [[1, 0, 0], [-1, 0, 0], [half, half, 0], [0, 0, 0], [NAN, NAN, NAN]]
    dy = framework.array(np.array(rows, np.float32))
    x = framework.array(np.zeros((5, 3), np.float32))
    clipped = lambda x: ops.clip_by_norm(x, 1.0, axis=-1)
    with np.errstate(all="ignore"):
        (dx,) = framework.gradients(lambda x: gnp.sum(clipped(x) * dy), x)
    np.testing.assert_allclose(framework.plain(dx)[:4], expected[:4], rtol=3e-7)
    assert np.isnan(framework.plain(dx)[4, :2]).all()


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("framework", ALL, ids=lambda f: f.name)
def test_a_random_choice_at_the_ends(framework, hard):
    most = float(np.finfo(np.float32).max)
    rows = [[-INF, -INF, 0], [INF, most, -INF], [most, -most, 0]]
    x = framework.array(np.array(rows, np.float32))
    choose = lambda x: ops.gumbel_softmax(x, 3, hard=hard)
    expected = [[0, 0, 1], [1, 0, 0], [1, 0, 0]]
    weights = framework.array(np.array([1, 2, 4], np.float32))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(framework.plain(choose(x)), expected)
        (dx,) = framework.gradients(lambda x: gnp.sum(choose(x) * weights), x)
    np.testing.assert_array_equal(framework.plain(dx), np.zeros((3, 3)))


@pytest.mark.parametrize("name", ["silu", "softplus", "cross_entropy"])
def test_a_wrong_result_is_found(name):
    """The judge finds a NaN, a lost digit and a flushed number where there is none."""
    (case,) = [each for each in CASES if each.name == name]
    form = FORMATS["float32"]
    right, terms = truths(case, form)
    with np.errstate(over="ignore"):
        got = [t.hi.astype(np.float32).astype(float) for t in right]
    assert max(np.max(u) for u in _units(got, form, right, terms)) <= 1
    at = np.argmax(np.isfinite(right[0].hi) & (np.abs(right[0].hi) > 1e-30))
    for wrong in (NAN, INF, 0.0, right[0].hi.flat[at] * (1 + 1e-6)):
        bad = [got[0].copy(), got[1]]
        bad[0].flat[at] = wrong
        assert _units(bad, form, right, terms)[0].flat[at] > 4


def test_every_operation_is_judged():
    named = {case.name.partition("-")[0] for case in CASES} | set(SHAPED)
    named |= {"binary_cross_entropy_with_logits", "clip_by_norm", "gumbel_softmax"}
    named |= {"noise"}  # whose value is its argument, and whose noise is of no upstream
    implicit = {"argmin", "fixed_point", "linear_solve", "odeint", "root"}
    assert named - {"binary"} == set(ops.__all__) - implicit
