import numpy as np
import pytest
import scipy.special as sp
from flint import arb, ctx

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith.tools.audit.certified.certify import certify
from gradsmith.tools.audit.certified.truth import DECIDED, KINK, OUTSIDE, UNDECIDED
from gradsmith.tools.audit.formats import FORMATS

F32, F64 = FORMATS["float32"], FORMATS["float64"]
UNARY = [
    np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.sqrt, np.cbrt,
    np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan, np.sinh, np.cosh, np.tanh,
    np.arcsinh, np.arctanh, np.sinc, np.square, np.reciprocal, np.deg2rad, np.rad2deg,
    sp.erf, sp.erfc, sp.erfcx, sp.erfi, sp.dawsn, sp.ndtr, sp.ndtri, sp.log_ndtr,
    sp.erfinv, sp.erfcinv, sp.expit, sp.log_expit, sp.logit, sp.gamma, sp.rgamma,
    sp.gammaln, sp.digamma, sp.entr, sp.exp10, sp.sindg, sp.cosdg, sp.tandg, sp.cotdg,
    sp.cosm1, sp.exprel, sp.j0, sp.j1, sp.y0, sp.y1, sp.i0, sp.i1, sp.k0, sp.k1, np.i0,
    sp.i0e, sp.i1e, sp.k0e, sp.k1e, sp.expi, sp.exp1, sp.loggamma, sp.spence,
    sp.wrightomega,
]  # fmt: skip
BINARY = [
    np.add, np.subtract, np.multiply, np.true_divide, np.power, np.hypot, np.arctan2,
    np.logaddexp, np.maximum, np.minimum, sp.xlogy, sp.xlog1py, sp.betaln,
    np.logaddexp2, sp.rel_entr, sp.kl_div, sp.huber, sp.pseudo_huber, sp.powm1,
    sp.boxcox, sp.boxcox1p, sp.inv_boxcox, sp.inv_boxcox1p, sp.beta,
]  # fmt: skip
OF_LAST = [
    lambda x: sp.jv(1.5, x), lambda x: sp.yv(1.5, x), lambda x: sp.iv(1.5, x),
    lambda x: sp.kv(1.5, x), lambda x: sp.ive(1.5, x), lambda x: sp.kve(1.5, x),
    lambda x: sp.gammainc(1.5, x), lambda x: sp.gammaincc(1.5, x),
    lambda x: sp.betainc(1.5, 2.5, x), lambda x: sp.betaincc(1.5, 2.5, x),
    lambda x: sp.hyp0f1(1.5, x), lambda x: sp.hyp1f1(1.5, 2.5, x),
]  # fmt: skip


def truth_of(fn, x, form=F64, **options):
    y, (dx,) = certify(fn, [np.asarray(x, form.dtype)], form, **options)
    return y, dx


def slope(fn, x, h="1e-30"):
    """The difference quotient of the certified values around x, with many bits."""
    from gradsmith.tools.audit.certified.arb import balls_of, precision
    from gradsmith.tools.audit.certified.balls import Balls

    with precision(400):
        h = arb(h)
        around = [Balls(balls_of(x) + d) for d in (h, -h)]
        up, down = (fn(b).value for b in around)
        return np.array([float(q) for q in (up - down) / (2 * h)])


@pytest.mark.parametrize("fn", [*UNARY, *OF_LAST], ids=lambda fn: fn.__name__)
def test_values_are_numpys_and_slopes_those_of_the_values(fn):
    x = np.array([0.0625, 0.3, 0.8125])
    y, dx = truth_of(fn, x)
    np.testing.assert_allclose(y.hi, fn(x), rtol=1e-13)
    np.testing.assert_allclose(dx.hi, slope(fn, x), rtol=1e-14)
    assert not y.status.any()
    assert not dx.status.any()


@pytest.mark.parametrize("fn", BINARY, ids=lambda fn: fn.__name__)
def test_partial_derivatives_of_two_arguments(fn):
    a, b = np.array([0.3, 1.5]), np.array([0.7, 0.25])
    y, (da, db) = certify(fn, [a, b], F64)
    np.testing.assert_allclose(y.hi, fn(a, b), rtol=1e-13)
    np.testing.assert_allclose(da.hi, slope(lambda t: fn(t, b), a), rtol=1e-14)
    np.testing.assert_allclose(db.hi, slope(lambda t: fn(a, t), b), rtol=1e-14)


def test_values_are_known_beyond_float64():
    y, _ = truth_of(lambda x: np.exp(x), [1.0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ctx, "prec", 200)
        rest = arb(1).exp() - arb(float(y.hi[0])) - arb(float(y.lo[0]))
        assert abs(rest) < arb(2) ** -100


@pytest.mark.parametrize("x", [1e-3, 1e-10, 1e-18])
def test_precision_is_raised_where_digits_cancel(x):
    y, dx = truth_of(lambda x: 1 - np.cos(x), [x], F32)
    x = float(np.float32(x))
    np.testing.assert_allclose(y.hi, x * x / 2, rtol=1e-6)
    np.testing.assert_allclose(dx.hi, np.sin(x), rtol=1e-14)


def test_what_cannot_be_decided_is_not_guessed():
    def jump(x):  # the argument is 0, which no precision shows
        return np.where(np.exp(np.log(x)) - x > 0, 1.0, 2.0)

    y, _ = truth_of(jump, [3.0], limit=256)
    assert y.status == UNDECIDED


KINKED = [
    (np.abs, 0.0, -1, 1),
    (lambda x: np.maximum(x, 0), 0.0, 0, 1),
    (lambda x: np.where(x > 0, x, 0), 0.0, 0, 1),
    (lambda x: np.where(x > 1, 3 * x, x + 2), 1.0, 1, 3),
    (lambda x: np.clip(x, -1, 1), 1.0, 0, 1),
]


@pytest.mark.parametrize(("fn", "at", "low", "high"), KINKED)
def test_at_a_kink_all_between_both_sides_is_true(fn, at, low, high):
    y, dx = truth_of(fn, [at, at + 1])
    assert dx.status.tolist() == [KINK, DECIDED]
    assert y.status.tolist() == [DECIDED, DECIDED]
    assert dx.hi[0] - dx.rad[0] == pytest.approx(low, abs=1e-8)
    assert dx.hi[0] + dx.rad[0] == pytest.approx(high, abs=1e-8)


def test_where_two_formulas_meet_smoothly_there_is_no_kink():
    def sigmoid(x):
        e = np.exp(-np.abs(x))
        return np.where(x >= 0, 1 / (1 + e), e / (1 + e))

    _, dx = truth_of(sigmoid, [0.0])
    assert dx.status == DECIDED
    assert dx.hi == 0.25


def test_domains_and_infinite_slopes():
    y, dx = truth_of(np.sqrt, [-1.0, 0.0, 4.0])
    assert y.status.tolist() == [OUTSIDE, DECIDED, DECIDED]
    assert dx.status.tolist() == [OUTSIDE, KINK, DECIDED]
    y, dx = truth_of(np.log, [-1.0, 4.0])
    assert y.status.tolist() == dx.status.tolist() == [OUTSIDE, DECIDED]


@pytest.mark.parametrize("fn", [sp.gamma, sp.gammaln, sp.digamma])
def test_poles_are_outside(fn):
    y, dx = truth_of(fn, [-3.0, 0.0, -2.5, -1e30])
    assert y.status.tolist() == dx.status.tolist() == [OUTSIDE, OUTSIDE, 0, OUTSIDE]


def test_the_tail_of_the_normal_distribution():
    x = -np.array([19.5, 21.0, 1e3, 1e6, 2.0**30, 1e30])
    y, dx = truth_of(sp.log_ndtr, x)
    assert y.status.tolist() == dx.status.tolist() == [DECIDED] * 6
    np.testing.assert_allclose(y.hi, sp.log_ndtr(x), rtol=1e-14)
    np.testing.assert_allclose(dx.hi, -x - 1 / x + 2 / x**3 - 10 / x**5, rtol=1e-7)


def test_a_branch_that_is_not_taken_has_no_say():
    y, dx = truth_of(lambda x: np.where(x > 0, np.log(x), x), [-2.0, 2.0])
    np.testing.assert_allclose(y.hi, [-2, np.log(2)])
    assert dx.hi.tolist() == [1, 0.5]
    y, dx = truth_of(lambda x: np.where(x > 1, np.sqrt(x - 1), x), [-2.0, 5.0])
    assert y.hi.tolist() == [-2, 2]
    assert dx.hi.tolist() == [1, 0.25]


def test_large_and_small_beyond_float64():
    y, _ = truth_of(np.exp, [-800.0, 800.0, 1e300, -1e300])
    assert y.status.tolist() == [DECIDED] * 4
    assert y.scale[:2] + np.log2(y.hi[:2]) == pytest.approx(
        [-800 / np.log(2), 800 / np.log(2)]
    )
    assert y.hi[2:].tolist() == [np.inf, 0]


@gs.custom_gradient
def stable_softmax(x, axis=-1):
    e = gnp.exp(x - gnp.max(x, axis=axis, keepdims=True))
    y = e / gnp.sum(e, axis=axis, keepdims=True)
    return y, lambda dy: 7 * dy  # which is wrong


ROWS = {
    "softmax": lambda x: sp.softmax(x, axis=-1),
    "log_softmax": lambda x: sp.log_softmax(x, axis=-1),
    "logsumexp": lambda x: sp.logsumexp(x, axis=-1),
    "portable": lambda x: gnp.special.logsumexp(x, axis=-1),
    "norm": lambda x: np.linalg.norm(x, axis=-1),
    "norm1": lambda x: np.linalg.norm(x, 1, axis=-1),
    "max": lambda x: np.max(x, axis=-1),
    "var": lambda x: np.var(x, axis=-1),
    "std": lambda x: np.std(x, axis=-1),
    "mean": lambda x: np.mean(x * x, axis=-1),
    "matmul": lambda x: x @ np.arange(9.0).reshape(3, 3),
    "index": lambda x: x[:, 1] * x[:, 2],
    "stack": lambda x: np.stack([x, x * x], axis=-1).sum(axis=-1),
    "cross_entropy": lambda x: -sp.log_softmax(x, axis=-1)[:, 0],
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_agree_with_the_engine(name):
    fn = ROWS[name]
    x = np.array([[0.5, -1.25, 2.0], [3.0, 0.25, -0.5]])
    y, pull = gs.vjp(fn, x)
    dy = np.random.default_rng(0).normal(size=np.shape(y))
    value, (dx,) = certify(fn, [x], F64, dy=dy)
    np.testing.assert_allclose(value.hi, y, rtol=1e-13)
    np.testing.assert_allclose(dx.hi, pull(dy)[0], rtol=1e-11)


def test_an_operation_is_its_body_not_its_rule():
    x, dy = np.array([[1.0, 2.0, 2.0]]), np.array([[1.0, 0.0, 0.0]])
    y = sp.softmax(x, axis=-1)
    _, (dx,) = certify(stable_softmax, [x], F64, dy=dy)
    np.testing.assert_allclose(dx.hi, y * (dy - np.sum(dy * y)), rtol=1e-12)
    _, (inner,) = certify(lambda x: 2 * stable_softmax(x), [x], F64, dy=dy)
    np.testing.assert_allclose(inner.hi, 2 * dx.hi)


def test_an_unknown_function_is_named():
    with pytest.raises(gs.UnsupportedOperationError, match=r"np\.fft\.fft.*reference="):
        truth_of(lambda x: np.real(np.fft.fft(x)), [1.0, 2.0])


def test_a_plain_array_is_refused():
    with pytest.raises(gs.UnsupportedOperationError, match="rounded"):
        truth_of(lambda x: np.exp(np.asarray(x)), [1.0])


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("where", [True, np.array([[True, False, True]])])
def test_sums_of_parts(keepdims, where):
    def fn(x):
        return np.sum(x * x, axis=-1, keepdims=keepdims, where=where)

    x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    value, (slope,) = certify(fn, [x], FORMATS["float64"])
    np.testing.assert_array_equal(value.hi, fn(x))
    np.testing.assert_array_equal(slope.hi, 2 * x * where)
