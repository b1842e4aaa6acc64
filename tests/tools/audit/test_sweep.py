from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.special as sp

import gradsmith as gs
from gradsmith.tools.audit.certified.certify import certify
from gradsmith.tools.audit.certified.truth import DECIDED, OUTSIDE
from gradsmith.tools.audit.exhaustive import _forewarn, forecast, spans_of, sweep
from gradsmith.tools.audit.formats import FORMATS
from gradsmith.tools.audit.runner import Runner
from gradsmith.tools.audit.sampling import all_of, ends
from gradsmith.tools.audit.sweep import pieces
from gradsmith.tools.audit.sweep.measure import Scratch, truths
from gradsmith.tools.audit.sweep.pieces import pieces_of
from gradsmith.tools.audit.sweep.spans import _numbers, swept
from gradsmith.tools.audit.tally import merged
from gradsmith.tools.audit.task import AuditTask, Points

FLOAT32 = FORMATS["float32"]
BINADE = 1 << 23
TOP = 2.0**128


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.log(1 + np.exp(x))


def stable_softplus(x):
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)


def leaky(x):
    return np.where(x > 0.3, x, 0.1 * x)


def wave(x):
    return np.exp(-x * x) * np.sin(x)


def steps(x):
    return np.floor(x) * np.clip(x, -1, 2) + np.sign(x) * x**3


FUNCTIONS = [
    np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.sqrt, np.cbrt,
    np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan, np.sinc,
    np.sinh, np.cosh, np.tanh, np.arcsinh, np.arccosh, np.arctanh, np.square,
    sp.erf, sp.erfc, sp.erfcx, sp.erfi, sp.erfinv, sp.erfcinv,
    sp.ndtr, sp.ndtri, sp.log_ndtr, sp.expit, sp.log_expit, sp.logit,
    sp.gamma, sp.rgamma, sp.gammaln, sp.digamma, sp.entr,
    sigmoid, softplus, stable_softplus, leaky, wave, steps,
]  # fmt: skip
CURVED = {np.sin, np.cos, np.tan, np.sinc, wave, steps, sp.erfi}
GAMMAS = {sp.gamma, sp.rgamma, sp.gammaln, sp.digamma}


def windows(fn, rng):
    """Adjacent codes from everywhere, but where a function has no pieces."""
    for binade in (0, 1, 100, 122, 125, 126, 127, 128, 130, 131, 132, 134, 136, 200):
        for sign in (1, -1):
            far = binade > 130 and (fn in CURVED or (sign < 0 and fn in GAMMAS))
            if not far:
                first = binade * BINADE + 1 + int(rng.integers(BINADE - 5001))
                yield (first, first + 5000) if sign > 0 else (-first - 5000, -first)


def contradictions(fn, rng, windows):
    """How many true numbers are not where the polynomials say, and how many are."""
    wrong = right = 0
    for first, last in windows:
        for piece in pieces_of(fn, first, last, FLOAT32)[:3]:
            at = piece.first + int(rng.integers(max(piece.last - piece.first - 40, 1)))
            x = _numbers(at, min(at + 39, piece.last), FLOAT32)
            memory = Scratch(40, FLOAT32), Scratch(40, FLOAT32)
            found = truths(x, at, [piece], FLOAT32, memory)
            value, (slope,) = certify(fn, [x.astype(float)], FLOAT32)
            for quantity, truth in zip(found, (value, slope), strict=True):
                bad, known = compared(quantity, truth)
                wrong, right = wrong + bad, right + known - bad
    return wrong, right


def compared(quantity, truth):
    if quantity.outside is not None:
        return int(np.sum(truth.status != OUTSIDE)), 0
    if not quantity.rads:
        return 0, 0
    with np.errstate(over="ignore"):
        scale = np.clip(truth.scale, -3000, 3000)
        true = np.clip(np.ldexp(truth.hi, scale), -TOP, TOP)
        rad = np.ldexp(np.nan_to_num(truth.rad), scale)
    off = np.where(np.abs(true) < TOP, rad, 0) + quantity.rads[0][1]
    known = truth.status == DECIDED
    if quantity.open is not None:
        known &= ~quantity.open
    apart = ~(np.abs(true - quantity.p) <= off + 2.0**-52 * np.abs(true))
    return int(np.sum(known & apart)), int(np.sum(known))


@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: fn.__name__)
def test_the_truth_is_where_the_polynomials_say(fn):
    rng = np.random.default_rng(0)
    wrong, right = contradictions(fn, rng, windows(fn, rng))
    assert wrong == 0
    assert right > 400


def test_a_wrong_coefficient_is_seen(monkeypatch):
    original = pieces.polynomial

    def wrong(c, off, wide, form):
        return original(c * (1 + 2.0**-40), off, wide, form)

    monkeypatch.setattr(pieces, "polynomial", wrong)
    rng = np.random.default_rng(0)
    bad, good = contradictions(np.exp, rng, windows(np.exp, rng))
    assert bad > good / 4


def test_a_remainder_that_is_left_out_is_seen(monkeypatch):
    original = pieces.enclosed

    def wrong(mid, wide):
        found = original(mid, wide)
        return replace(found, wide=found.wide * 2.0**-30)

    monkeypatch.setattr(pieces, "enclosed", wrong)
    rng = np.random.default_rng(0)
    bad, _ = contradictions(np.arctan, rng, windows(np.arctan, rng))
    assert bad > 100


def task_of(fn, form, domain=None):
    return AuditTask(
        Runner(fn, "numpy", fn.__name__), fn, form, ends(domain, FORMATS[form])
    )


def same(swept, plain):
    """Whether two tallies say the same, as far as the sweep's slack allows."""
    for name in ("judged", "undecided", "kinks", "outside", "beyond", "kinds"):
        assert getattr(swept, name) == getattr(plain, name), name
    assert swept.sum_ulp == pytest.approx(plain.sum_ulp, rel=1e-3, abs=1e-3)
    # A tie of two nearest numbers may be broken either way
    few = 2e-3 * plain.judged
    assert swept.sum_bits == pytest.approx(plain.sum_bits, rel=1e-3, abs=few)
    assert swept.worst[0].ulp == pytest.approx(plain.worst[0].ulp, abs=2e-3)
    swept, plain = merged([swept]), merged([plain])  # from the first bin on
    assert swept.bins.points.tolist() == plain.bins.points.tolist()
    np.testing.assert_allclose(swept.bins.max_ulp, plain.bins.max_ulp, atol=2e-3)


@pytest.mark.parametrize(
    "fn",
    [np.tanh, np.log, np.sqrt, leaky, softplus, steps, sp.log_ndtr, sp.dawsn],
    ids=lambda fn: fn.__name__,
)
def test_all_of_float16_is_as_point_by_point(fn):
    task = task_of(fn, "float16")
    value, gradient = sweep(task, jobs=1)
    for found, plain in zip(
        (value, gradient), task(Points([all_of(None, task.form)])), strict=True
    ):
        same(found, plain)


@pytest.mark.parametrize(
    "fn", [np.tanh, np.sinc, sp.expit, wave], ids=lambda fn: fn.__name__
)
@pytest.mark.parametrize("start", [0.3, -8.35, 88.7, 1e-41])
def test_a_part_of_float32_is_as_point_by_point(fn, start):
    first = int(FLOAT32.codes(np.float32(start)))
    task = replace(task_of(fn, "float32"), ends=(first, first + 20_000))
    for found, plain in zip(
        swept(task, *task.ends),
        task(Points([_numbers(*task.ends, FLOAT32)])),
        strict=True,
    ):
        same(found, plain)


def test_subnormal_numbers_are_left_out_where_they_are_flushed():
    jnp = pytest.importorskip("jax.numpy")
    first = int(FLOAT32.codes(np.float32(-87.35)))
    run = Runner(jnp.exp, "jax", "exp", flushes=True)
    task = AuditTask(run, np.exp, "float32", (first, first + 20_000))
    for found, plain in zip(
        swept(task, *task.ends),
        task(Points([_numbers(*task.ends, FLOAT32)])),
        strict=True,
    ):
        assert 1000 < found.outside < 19_000
        same(found, plain)


def test_a_gradient_that_overflows_as_its_truth_does_is_judged():
    first = int(FLOAT32.codes(np.float32(88.72)))
    task = replace(task_of(np.exp, "float32"), ends=(first, first + 2000))
    found = swept(task, *task.ends)
    plain = task(Points([_numbers(*task.ends, FLOAT32)]))
    assert (found[1].judged, found[1].outside) == (2001, 0)
    assert found[1].worst[0].ulp <= 4
    same(found[0], plain[0])
    same(found[1], plain[1])


def test_nan_is_infinitely_far_off():
    task = replace(task_of(np.tanh, "float32"), ends=(0x3F000000, 0x3F000000 + 9999))
    task = replace(task, runner=Runner(_with_nan, "numpy", "with nan"))
    found, plain = (
        swept(task, *task.ends)[0],
        task(Points([_numbers(*task.ends, FLOAT32)]))[0],
    )
    assert found.worst[0].ulp == np.inf
    assert found.kinds == plain.kinds
    assert found.kinds[1] > 100
    assert found.sum_bits == pytest.approx(plain.sum_bits, rel=1e-6)


def _with_nan(x):
    return np.where(x < 0.50001, np.tanh(x), np.nan)


@pytest.mark.parametrize("ends", [(-3, 5000), (0, 10), (-4096, -1024), (1, 31743)])
def test_spans_are_all_numbers(ends):
    spans = spans_of(*ends, FORMATS["float16"])
    assert spans[0][0] == ends[0]
    assert spans[-1][1] == ends[1]
    assert all(a[1] + 1 == b[0] for a, b in pairwise(spans))
    assert all(first // 1024 == last // 1024 for first, last in spans if first >= 0)


def test_all_numbers():
    found = gs.audit(np.tanh, (0.5, 0.501), exhaustive=True, jobs=1)
    assert found.exhaustive
    x = all_of((0.5, 0.501), FLOAT32)
    assert found.points == len(x) == found.gradient.judged
    plain = task_of(np.tanh, "float32", (0.5, 0.501))(Points([x]))[1].accuracy()
    assert found.gradient.max_ulp == pytest.approx(plain.max_ulp, abs=1e-3)
    assert found.gradient.slack <= 2**-10
    assert found.gradient.worst_inputs[0] == plain.worst_inputs[0]
    assert "proven" in found.notes[-1]


def test_all_numbers_of_float64_are_too_many():
    with pytest.raises(gs.GradsmithError, match="too many"):
        gs.audit(np.tanh, dtype="float64", exhaustive=True)


def test_a_forecast_tells_of_functions_that_are_too_fast():
    least = forecast(task_of(np.tanh, "float32"), 1e-5)
    assert least < 300
    assert forecast(task_of(np.sin, "float32"), 1e-5) > 50 * least
    assert forecast(task_of(np.sin, "float32", (-100, 100)), 1e-5) < 300
    with pytest.warns(UserWarning, match=r"will take about \d+ h on 2 cores"):
        _forewarn(200_000, {"jobs": 2})
