"""exp, log and their kin, beside certified values."""

import re

import numpy as np
import pytest

from gradsmith.program.graph import Program, Step, Value

flint = pytest.importorskip("flint")
pytest.importorskip("llvmlite")

from gradsmith.program.kernels import functions, kernel, primitives  # noqa: E402
from gradsmith.program.kernels.kernel import Kernel  # noqa: E402
from gradsmith.program.kernels.lanes import Code, Lane  # noqa: E402
from gradsmith.program.kernels.machine import Machine, this_machine  # noqa: E402


def erf(x):
    """A stand-in for SciPy's."""


def erfc(x):
    """A stand-in for SciPy's."""


# By how many ULP each may be off
PROMISED = {
    np.exp: 1.1, np.expm1: 2.5, np.log: 1.0, np.log1p: 1.0, np.tanh: 2.6, erf: 1.2,
    erfc: 4.0,
}  # fmt: skip
_ENDS = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.0, 0.5]


def computed(fn, x):
    v, y = Value(x.shape, x.dtype), Value(x.shape, x.dtype)
    return Kernel(Program("f", (v,), (Step(fn, (v,), {}, (y,)),), y))(x)


def inputs(dtype, n=1500):
    """Numbers of every size and sign, those that functions turn at, and ends."""
    rng = np.random.default_rng(0)
    info = np.finfo(dtype)
    bits = rng.integers(0, 2 ** (8 * np.dtype(dtype).itemsize), n, np.uint64)
    any_bits = bits.astype(f"u{np.dtype(dtype).itemsize}").view(dtype)
    most = np.log(float(info.max))
    ends = [*_ENDS, info.max, -info.max, info.tiny, info.smallest_subnormal]
    ends += [-info.smallest_subnormal, most, -most, -most - 10, np.pi]
    x = [any_bits, rng.uniform(-most, most, n), rng.normal(size=n)]
    x += [rng.uniform(0.5, 2, n), rng.uniform(0, 27, n), ends]
    with np.errstate(over="ignore"):
        return np.concatenate([np.asarray(each, dtype) for each in x])


def error(fn, x, y):
    """How many ULP y is off; 0 where it is the right infinity, zero or NaN."""
    name = fn.__name__
    true = getattr(flint.arb(float(x)), name)()
    if not np.isfinite(x) or not true.is_finite() or x == 0:
        with np.errstate(all="ignore"):
            ends = {"erf": lambda x: x and np.sign(x), "erfc": lambda x: 1 - np.sign(x)}
            right = ends.get(name, fn)(x)
        same = np.array_equal(right, y, equal_nan=True)
        return 0 if same and (y != 0 or np.signbit(right) == np.signbit(y)) else np.inf
    with np.errstate(over="ignore"):
        near = x.dtype.type(float(true))
    if not np.isfinite(near) or near == 0:
        return 0 if near == y and np.signbit(near) == np.signbit(y) else np.inf
    if not np.isfinite(y):
        return np.inf
    off = abs(flint.arb(float(y)) - true) / flint.arb(float(np.spacing(abs(near))))
    return float(off.upper())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fn", PROMISED, ids=lambda fn: fn.__name__)
def test_functions_are_right_to_the_last_digits(fn, dtype):
    x = inputs(dtype)
    flint.ctx.prec = 200
    try:
        errors = [error(fn, *each) for each in zip(x, computed(fn, x), strict=True)]
    finally:
        flint.ctx.prec = 53
    worst = int(np.argmax(errors))
    assert errors[worst] <= PROMISED[fn], x[worst]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("is_old", [False, True])
def test_a_logarithm_knows_what_rounding_took(is_old, dtype, monkeypatch):
    """log(1 - e) by 1 - e as it is rounded, and by what that leaves out."""
    if is_old:
        here = this_machine()
        old = Machine(here.name, here.features, 16, fma=False, scales=False)
        monkeypatch.setattr(kernel, "this_machine", lambda: old)
    e = np.random.default_rng(0).uniform(-1, 0.9, 2000)
    e = np.concatenate([e, 2.0 ** -np.arange(1.0, 140, 0.25)]).astype(dtype)
    x = 1 - e
    lost = (1 - x) - e
    ends = np.array([[0, -1, np.inf, np.nan, 1e-40], np.zeros(5)], dtype)
    values = [Value((e.size + 5,), np.dtype(dtype)) for _ in range(3)]
    step = Step(primitives._log_sum, (*values[:2],), {}, (values[2],))
    y = Kernel(Program("f", (*values[:2],), (step,), values[2]))(
        np.concatenate([x, ends[0]]), np.concatenate([lost, ends[1]])
    )
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(y[e.size :], np.log(ends[0]), rtol=1e-6)
    flint.ctx.prec = 300
    try:
        for a, b in zip(e, y[: e.size], strict=True):
            true = (1 - flint.arb(float(a))).log()
            unit = float(np.spacing(dtype(abs(float(true)))))
            assert abs(flint.arb(float(b)) - true) < unit * (2 if is_old else 1), a
    finally:
        flint.ctx.prec = 53


@pytest.mark.parametrize("fn", PROMISED, ids=lambda fn: fn.__name__)
def test_no_function_calls_the_c_library(fn):
    x = Value((8,), np.dtype(np.float32))
    y = Value((8,), np.dtype(np.float32))
    source = Kernel(Program("f", (x,), (Step(fn, (x,), {}, (y,)),), y)).source
    assert getattr(functions, fn.__name__)
    assert f"@llvm.{fn.__name__}." not in source


@pytest.mark.parametrize("fn", PROMISED, ids=lambda fn: fn.__name__)
def test_functions_are_right_on_older_processors(fn, monkeypatch):
    """Those without FMA, AVX2 and AVX-512."""
    here = this_machine()
    old = Machine(here.name, here.features, 16, fma=False, scales=False)
    monkeypatch.setattr(kernel, "this_machine", lambda: old)
    x = inputs(np.float32, 100)
    flint.ctx.prec = 200
    try:
        errors = [error(fn, *each) for each in zip(x, computed(fn, x), strict=True)]
    finally:
        flint.ctx.prec = 53
    assert max(errors) <= 2 * PROMISED[fn], x[int(np.argmax(errors))]


def test_exp_and_its_product_are_computed_of_the_same_parts():
    """LLVM computes them once, if they hold x by the same bounds."""
    bounds = []
    for fn in (functions.exp, lambda x: functions.exp_times(x, x)):
        code = Code(fma=True)
        fn(Lane(code, "%x", "f32", 8))
        held = [x for x in code.lines if " fcmp " in x]
        bounds.append([re.findall("0x[0-9A-F]+", x)[0] for x in held])
    assert bounds[0] == bounds[1]
    assert len(bounds[0]) == 2
