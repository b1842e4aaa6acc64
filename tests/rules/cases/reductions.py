"""Cases of the reductions, running reductions and statistics."""

from __future__ import annotations

import numpy as np

from gradsmith.core.rule import name_of
from gradsmith.rules.running import scan, scan_back
from tests.rules.harness import Case

_rng = np.random.default_rng(11)
CASES: list[Case] = []


def real(*shape):
    return _rng.standard_normal(shape)


def complex_(*shape):
    return _rng.standard_normal(shape) + 1j * _rng.standard_normal(shape)


def adder(cases):
    """A function that adds a case named after its function, shapes and options."""

    def add(fn, *args, name="", order=2, step=1e-3, float32=True, **kwargs):
        words = [name or name_of(fn), *map(_shape, args)]
        words += [f"{key}={_shown(value)}" for key, value in kwargs.items()]
        name = "-".join(words).replace(" ", "")
        cases.append(Case(fn, args, kwargs, name, order, step, float32))

    return add


def _shape(x):
    return f"{np.shape(x)}{'complex' if np.iscomplexobj(x) else ''}"


def _shown(value):
    return f"array{value.shape}" if isinstance(value, np.ndarray) else value


add = adder(CASES)
X = real(3, 4)
Z = complex_(3, 4)
MASK = np.array([[1, 0, 1, 1], [1, 1, 1, 0], [0, 1, 1, 1]], bool)
ROW = np.array([True, False, True, True])
WITH_NAN = np.where(MASK, X, np.nan)
T = real(2, 3, 4)
AXES = [{}, {"axis": 0}, {"axis": -1}, {"axis": (0, 1), "keepdims": True}, {"axis": ()}]

# sum, prod, mean
for _fn in (np.sum, np.prod, np.mean):
    for _options in AXES:
        add(_fn, X, **_options)
    add(_fn, T, axis=(0, -1))
    add(_fn, T, axis=(-1, 0), keepdims=True)
    add(_fn, Z, axis=1)
    add(_fn, real())
    add(_fn, real(3, 0), axis=0)
    add(_fn, real(1, 3), axis=0)
    add(_fn, X, axis=1, where=MASK)
    add(_fn, X, where=MASK)
    add(_fn, X, axis=1, where=ROW, keepdims=True)
    add(_fn, real(4).T[::-1])
    add(_fn, X.T, axis=0)
for _fn in (np.sum, np.prod):
    add(_fn, X, axis=1, initial=2.5)
    add(_fn, X, axis=1, initial=2.5, where=MASK)
    add(_fn, real(), axis=0)
    add(_fn, real(3, 0), axis=1)
    add(_fn, real(0, 3))
    add(_fn, X, dtype=np.float64, axis=0)
    add(_fn, X, dtype=np.complex128, axis=0)
    add(_fn, X, initial=None, axis=0)
add(np.sum, X, 1, None, None, True, name="sum-by-position")
add(np.prod, np.array([[1.0, 0.0, 3.0], [0.0, 2.0, 0.0]]), axis=1, name="prod-zeros")
add(np.prod, np.array([[1.0, 0.0], [0.0, 2.0]]), name="prod-two-zeros")
add(np.prod, np.array([2 + 1j, 0, 1j]), name="prod-complex-zero")

# running
for _fn in (np.cumsum, np.cumprod):
    for _x in (X, Z, real(5), real(), real(1), real(0), real(3, 0), T):
        add(_fn, _x)
    add(_fn, X, axis=0)
    add(_fn, T, axis=-2)
    add(_fn, X.T, axis=1)
    add(_fn, X, axis=0, dtype=np.float64)
    add(_fn, X, dtype=np.complex128)
    add(_fn, real(0, 3), axis=0)
    add(_fn, real(0, 3), axis=1)
    add(_fn, real(), axis=0)
for _fn in (scan, scan_back):
    add(_fn, real(5), real(5))
    add(_fn, complex_(2, 4), complex_(2, 4))
for _n in (2, 3, 7, 8, 9):
    add(np.cumprod, 1 + 0.3 * real(2, _n), axis=1)
add(np.cumprod, np.array([2.0, 0.0, 3.0, 0.0, 5.0, 1.0]), name="cumprod-zeros")
for _fn in (np.cumulative_sum, np.cumulative_prod):
    add(_fn, real(5))
    add(_fn, X, axis=0)
    add(_fn, X, axis=-1, include_initial=True)
    add(_fn, real(4), include_initial=True)
    add(_fn, Z, axis=1, include_initial=True)

# without NaN
for _fn in (np.nansum, np.nanprod, np.nanmean):
    for _options in AXES:
        add(_fn, X, **_options)
for _fn in (np.nancumsum, np.nancumprod):
    add(_fn, X)
    add(_fn, X, axis=1)


def ignoring(fn):
    """A function of the numbers among NaN, so that differences don't meet NaN."""

    def with_holes(x, **options):
        return fn(np.where(MASK, x, np.nan), **options)

    return with_holes


for _fn in (np.nansum, np.nanprod, np.nanmean, np.nanvar, np.nanstd):
    add(ignoring(_fn), X, name=f"holes-{name_of(_fn)}")
    add(ignoring(_fn), X, name=f"holes-{name_of(_fn)}", axis=1)
    add(ignoring(_fn), X, name=f"holes-{name_of(_fn)}", axis=0, keepdims=True)
    add(ignoring(_fn), X, name=f"holes-{name_of(_fn)}", where=ROW, axis=1)
add(ignoring(np.nanvar), X, name="holes-nanvar", axis=1, ddof=1)
add(ignoring(np.nanvar), Z, name="holes-nanvar-complex", axis=1)
for _fn in (np.nancumsum, np.nancumprod):
    add(ignoring(_fn), X, name=f"holes-{name_of(_fn)}")
    add(ignoring(_fn), X, name=f"holes-{name_of(_fn)}", axis=0)

# variances
for _fn in (np.var, np.std, np.nanvar, np.nanstd):
    for _options in AXES[:-1]:
        add(_fn, X, **_options)
    add(_fn, T, axis=(0, -1), ddof=1)
    add(_fn, Z, axis=1)
    add(_fn, X, axis=1, ddof=1, keepdims=True)
    add(_fn, X, axis=1, correction=1.5)
    add(_fn, X, axis=1, where=MASK)
    add(_fn, X, where=MASK, ddof=1)
    add(_fn, X, dtype=np.float64)
    about = f"{name_of(_fn)}-about"
    add(lambda x, m, fn=_fn: fn(x, axis=1, mean=m), X, real(3, 1), name=about)
    add(lambda x, fn=_fn: fn(x, mean=np.mean(x)), X, name=f"{about}-own")
    add(
        lambda x, m, fn=_fn: fn(x, axis=1, mean=m, where=MASK, ddof=1),
        X,
        real(3, 1),
        name=f"{about}-where",
    )
add(lambda x, m: np.var(x, axis=1, mean=m), Z, complex_(3, 1), name="var-about-complex")

# averages
add(np.average, X)
add(np.average, X, axis=1, keepdims=True)
add(np.average, X, returned=True, axis=0, float32=True)
POSITIVE = 0.5 + _rng.random((3, 4))
add(np.average, X, None, POSITIVE, name="average-weights")
add(np.average, X, 0, POSITIVE, name="average-weights-axis")
add(np.average, X, 1, POSITIVE[0], name="average-weights-one-axis")
add(np.average, X, -1, POSITIVE[0], True, name="average-weights-returned")
add(np.average, T, (2, 1), POSITIVE.T.copy(), name="average-weights-axes-swapped")
add(np.average, X, 1, [1, 2, 3, 4], name="average-weights-list")
add(np.average, Z, 1, POSITIVE[0], name="average-complex")
add(
    lambda w: np.average(np.arange(12).reshape(3, 4), axis=1, weights=w),
    POSITIVE[0],
    name="average-whole-numbers",
)

# covariances
for _fn in (np.cov, np.corrcoef):
    add(_fn, real(3, 6))
    add(_fn, real(6))
    add(_fn, real(6, 2), rowvar=False)
    add(_fn, real(3, 6), real(2, 6), name=f"{name_of(_fn)}-two")
    add(_fn, real(6), real(6), name=f"{name_of(_fn)}-two-rows")
    add(_fn, real(6, 2), real(6, 1), False, name=f"{name_of(_fn)}-two-columns")
    add(_fn, complex_(2, 5))
    add(_fn, real(2, 5), dtype=np.float64)
add(np.cov, real(3, 6), bias=True)
add(np.cov, real(3, 6), ddof=0)
add(np.cov, real(3, 4), fweights=np.array([1, 2, 1, 3]))
add(np.cov, real(3, 4), aweights=np.array([1.0, 2.0, 0.5, 3.0]))
add(
    np.cov,
    complex_(3, 4),
    fweights=np.array([1, 2, 1, 3]),
    aweights=np.array([1.0, 2.0, 0.5, 3.0]),
)

# methods of ufuncs
for _method in (np.add.reduce, np.multiply.reduce, np.logaddexp.reduce, np.hypot.reduce,
                np.logaddexp2.reduce):  # fmt: skip
    _name = f"{_method.__self__.__name__}.reduce"
    add(_method, X, name=_name)
    add(_method, X, axis=1, name=_name)
    add(_method, X, axis=None, keepdims=True, name=_name)
    add(_method, T, axis=(0, 2), name=_name)
add(np.add.reduce, X, axis=1, initial=2.0, where=MASK, name="add.reduce")
add(np.logaddexp.reduce, X, axis=1, initial=0.3, where=MASK, name="logaddexp.reduce")
add(np.hypot.reduce, X, axis=1, initial=0.3, where=MASK, name="hypot.reduce")
for _method in (np.add.accumulate, np.multiply.accumulate):
    _name = f"{_method.__self__.__name__}.accumulate"
    add(_method, X, name=_name)
    add(_method, X, axis=1, name=_name)
