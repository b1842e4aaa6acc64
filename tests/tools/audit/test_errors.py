from fractions import Fraction

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.tools.audit import sampling
from gradsmith.tools.audit.certified.certify import certify
from gradsmith.tools.audit.errors import errors_of
from gradsmith.tools.audit.formats import FORMATS, format_of, literal

FORMS = [*FORMATS.values()]


def truth_of_numbers(x, form=FORMATS["float64"]):
    return certify(lambda x: x, [np.asarray(x, np.float64)], form)[0]


def exact_ulp(result, true: Fraction, form):
    exponent = form.least
    while 2 ** Fraction(exponent + form.digits) <= abs(true):
        exponent += 1
    return abs(Fraction(float(result)) - true) / Fraction(2) ** exponent


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.name)
def test_codes_are_places_on_the_line_of_numbers(form):
    top = form.largest_code
    codes = np.array([-top, -5, -1, 0, 1, 2, top])
    numbers = form.numbers(codes)
    assert form.codes(numbers).tolist() == codes.tolist()
    assert np.all(np.diff(numbers.astype(np.float64)) > 0)
    assert np.isinf(form.numbers([top + 1]).astype(float)).all()
    assert float(form.numbers([1])[0]) == 2.0**form.least
    assert form.codes(np.array([-0.0], form.dtype)).tolist() == [0]


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_errors_are_those_of_exact_fractions(name):
    form = format_of(name)
    rng = np.random.default_rng(0)
    x = sampling.sampled((1e-3, 100), form, 50)
    true = x.astype(float) * rng.uniform(0.9, 1.1, len(x))
    found = errors_of(x, truth_of_numbers(true, form), form)
    expected = [
        float(exact_ulp(a, Fraction(b), form)) for a, b in zip(x, true, strict=True)
    ]
    np.testing.assert_allclose(found.ulp, expected, rtol=1e-12)


def test_edges_of_the_format():
    form = FORMATS["float32"]
    top = float(np.finfo(np.float32).max)
    results = np.array(
        [0, 5e-324, np.nan, np.inf, np.inf, top, -0.0, 1e-45], np.float32
    )
    true = [2.0**-150, 2.0**-149, 1.0, 1e300, top, 1e300, 0.0, 2.0**-149]
    found = errors_of(results, truth_of_numbers(true, form), form)
    assert found.ulp.tolist() == [0.5, 1, np.inf, 0, 1, 1, 0, 0]
    assert found.bits[[2, 3, 6, 7]].tolist() == [32, 0, 0, 0]


def test_float64_is_judged_finer_than_its_own_rounding():
    third, _ = certify(lambda x: x / 3, [np.array([1.0])], FORMATS["float64"])
    found = errors_of(np.array([1 / 3]), third, FORMATS["float64"])
    exact = exact_ulp(1 / 3, Fraction(1, 3), FORMATS["float64"])
    assert found.ulp == pytest.approx(float(exact), rel=1e-12)
    assert found.slack < 1e-3


def test_float64_subnormals_and_overflow():
    form = FORMATS["float64"]
    x = np.array([-745.0, 709.7, 800.0])
    y, _ = certify(np.exp, [x], form)
    with np.errstate(over="ignore", under="ignore"):
        found = errors_of(np.exp(x), y, form)
    assert np.all(found.ulp < 1)


def test_a_wrong_result_by_n_numbers_is_n_ulp():
    form = FORMATS["float32"]
    x = np.linspace(1.1, 1.9, 50, dtype=np.float32)
    off = form.numbers(form.codes(x) + 9)
    found = errors_of(off, truth_of_numbers(x, form), form)
    np.testing.assert_allclose(found.ulp, 9)
    np.testing.assert_allclose(found.bits, np.log2(10))


def test_all_numbers_of_a_domain():
    x = sampling.all_of((0, 1), FORMATS["float16"])
    assert len(np.unique(x)) == 0x3C01
    assert np.signbit(x).sum() == 1
    assert len(sampling.all_of(None, FORMATS["bfloat16"])) == 2**16 - 2 * 128


def test_samples_are_within_the_domain_and_have_its_edges():
    form = FORMATS["float32"]
    x = sampling.sampled((0.1, 2), form, 1000, seed=3)
    assert x.dtype == np.float32
    assert x.astype(float).min() >= 0.1
    assert {2.0, 1.0, 0.5} <= set(x.tolist())
    assert np.array_equal(x, sampling.sampled((0.1, 2), form, 1000, seed=3))
    # uniform over numbers: half of those below 1 are below the middle of their codes
    middle = float(form.numbers([(form.codes(x.min()) + form.codes(x.max())) // 2])[0])
    assert 0.45 < np.mean(x < middle) < 0.55


@pytest.mark.parametrize("domain", [(2, 1), (1.0000001, 1.00000011)])
def test_an_empty_domain_is_an_error(domain):
    with pytest.raises(gs.GradsmithError, match="domain="):
        sampling.sampled(domain, FORMATS["float16"], 10)


def test_an_unknown_dtype_is_an_error():
    with pytest.raises(gs.GradsmithError, match="one of float16, bfloat16"):
        format_of("int8")


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.name)
def test_literals_are_read_back_exactly(form):
    for x in form.numbers([-12345, 1, 77, form.largest_code]):
        assert np.asarray(float(literal(x, form)), form.dtype)[()] == x
