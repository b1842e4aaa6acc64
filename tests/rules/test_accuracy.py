"""Gradients in float32 are right to 4 units in the last place, all over the domain."""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flint")
pytest.importorskip("scipy")

import scipy.special as sp

import gradsmith as gs
from benchmarks import __main__ as command
from benchmarks._documents import region
from benchmarks.accuracy import points, report
from benchmarks.accuracy.audit import audited, inputs
from benchmarks.accuracy.judge import LIMIT, figure, truths
from benchmarks.accuracy.points import FLOAT32
from benchmarks.accuracy.rows import OTHERS, PROMISED, Row

BEYOND = {"tan"}  # the table says why
QUICK = [row for row in OTHERS if row.share == 1 and row.name not in BEYOND]


@pytest.mark.parametrize("row", PROMISED, ids=lambda row: row.name)
def test_promised_gradients_are_within_4_ulp(row):
    gradient = audited(row, n=6000).figures["gradsmith"][1]
    assert gradient.judged > 500
    assert gradient.max_ulp <= LIMIT, f"at {gradient.worst}"


@pytest.mark.parametrize("row", QUICK, ids=lambda row: row.name)
def test_other_gradients_are_too(row):
    gradient = audited(row, n=1500).figures["gradsmith"][1]
    assert gradient.judged > 100
    assert gradient.max_ulp <= LIMIT, f"at {gradient.worst}"


@pytest.mark.parametrize("row", PROMISED, ids=lambda row: row.name)
def test_no_gradient_is_nan_and_only_too_large_ones_are_infinite(row):
    xs, dy = inputs(row, 2000, seed=1)
    narrow, wide = (_gradients(row, xs, dy, dtype) for dtype in ("f4", "f8"))
    for dx, true in zip(narrow, wide, strict=True):
        assert not np.isnan(dx).any()
        assert np.all(np.isfinite(dx) | (np.abs(true) > 0.999 * np.finfo("f4").max))


def _gradients(row, xs, dy, dtype):
    with np.errstate(all="ignore"):
        y, pull = gs.vjp(row.ours, *(x.astype(dtype) for x in xs))
        dxs = pull(np.ones_like(y) if dy is None else dy.astype(dtype))
    assert all(dx.dtype == dtype for dx in dxs)
    return dxs


def test_a_formula_that_loses_digits_is_found():
    def lossy(x):
        y = np.tanh(x)
        return y, lambda dy: dy * (1 - y * y)

    row = Row("lossy", gs.custom_gradient(lossy), reference=np.tanh)
    assert audited(row, n=2000).figures["gradsmith"][1].max_ulp > 1000


def test_points_that_overflow_are_left_out():
    x = np.array([1.0, 88.0, 89.0], np.float32)
    truth = truths(np.exp, [x], FLOAT32)
    with np.errstate(over="ignore"):
        found = figure(np.exp(x), truth.value, [x], FLOAT32)
    assert found.judged == 2
    assert found.max_ulp <= 3
    wrong = figure(np.array([np.nan, 0, 0], np.float32), truth.value, [x], FLOAT32)
    assert wrong.max_ulp == np.inf
    assert wrong.worst == "1.0"


def test_points_of_several_arguments_are_unrelated_near_and_usual():
    x1, x2 = points.of_several([(0, np.inf), (-np.inf, np.inf)], 3000)
    assert len(x1) == len(x2) == 3000
    assert (x1 >= 0).all()
    near = np.abs(x2[1000:2000]) <= 256 * x1[1000:2000]
    assert near.mean() > 0.9
    assert np.abs(x2[2000:]).max() <= 20


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("fn", [sp.softmax, sp.log_softmax])
@pytest.mark.parametrize("axis", [0, 1, (0, 2), None])
def test_lines_along_any_axis(fn, axis, dtype):
    rng = np.random.default_rng(0)
    x, dy = (rng.normal(size=(3, 4, 5)).astype(dtype) for _ in range(2))
    wide = x.astype(float)
    with np.errstate(all="ignore"):
        pulls = [gs.vjp(lambda x: fn(x, axis=axis), z)[1] for z in (x, wide)]
        (dx,), (true,) = (pull(dy) for pull in pulls)
    assert dx.dtype == dtype
    np.testing.assert_allclose(dx, true, rtol=4 * np.finfo(dtype).eps, atol=1e-7)


@pytest.mark.parametrize("n", [10, 100_000])
@pytest.mark.parametrize("fn", [np.tanh, np.sinc, sp.erf, np.arctan])
def test_large_arrays_by_blocks_are_as_small_ones(fn, n):
    x = np.linspace(-3, 3, n, dtype=np.float32).reshape(2, -1)
    got = gs.grad(lambda x: np.sum(fn(x)))(x)
    true = gs.grad(lambda x: np.sum(fn(x)))(x.astype(float))
    assert got.shape == x.shape
    np.testing.assert_allclose(got, true, rtol=1e-6, atol=1e-9)
    turned = gs.grad(lambda x: np.sum(fn(x.T)))(np.asfortranarray(x))
    np.testing.assert_array_equal(turned, got)


SECOND = [
    lambda x: sp.softmax(x, axis=-1)[..., 0],
    lambda x: sp.log_softmax(x, axis=-1)[..., 0],
    lambda x: sp.logsumexp(x, axis=-1) ** 2,
    lambda x: np.linalg.norm(x, axis=-1) ** 3,
    lambda x: np.linalg.norm(x, 3, axis=-1) ** 2,
    lambda x: np.logaddexp.reduce(x, axis=-1) ** 2,
    lambda x: np.hypot(x, 0.5) ** 3,
    lambda x: np.abs(x) ** 2.5,
    lambda x: np.power(2.5, x),
    np.sinc, np.cbrt, np.tanh, np.arctan, np.reciprocal, sp.expit, sp.log_ndtr, sp.erf,
]  # fmt: skip


@pytest.mark.parametrize("fn", SECOND)
def test_second_derivatives_agree_with_float64(fn):
    rng = np.random.default_rng(0)
    x, v = (rng.normal(size=(4, 5)).astype(np.float32) for _ in range(2))

    def along(x):
        return np.sum(gs.grad(lambda x: np.sum(fn(x)))(x) * v.astype(x.dtype))

    got, true = gs.grad(along)(x), gs.grad(along)(x.astype(float))
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, true, rtol=2e-5, atol=1e-5)


def test_the_command(monkeypatch, capsys):
    monkeypatch.setattr(report, "PROMISED", PROMISED[:1])
    monkeypatch.setattr(report, "OTHERS", [row for row in OTHERS if row.note])
    arguments = ["accuracy", "--quick", "--peers", "none"]
    assert command.main([*arguments, "--json", "--check"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ok"]
    names = [(row["function"], row["promised"]) for row in found["rows"]]
    assert names == [("sinc", True), ("tan", False)]
    assert found["rows"][0]["figures"]["gradsmith"]["gradient"]["max_ulp"] <= LIMIT
    assert command.main([*arguments, "--markdown"]) == 0
    shown = capsys.readouterr().out
    assert "| `sinc` | all |" in shown
    assert "- `tan`: NumPy's" in shown


def test_a_gradient_beyond_the_limit_fails_the_check(monkeypatch, capsys):
    def lossy(x):
        y = np.tanh(x)
        return y, lambda dy: dy * (1 - y * y)

    row = Row("lossy", gs.custom_gradient(lossy), reference=np.tanh)
    monkeypatch.setattr(report, "PROMISED", [row])
    monkeypatch.setattr(report, "OTHERS", [])
    assert command.main(["accuracy", "--quick", "--peers", "none", "--check"]) == 1


def test_a_function_that_a_peer_does_not_have_is_refused():
    pytest.importorskip("jax")
    row = Row("tanh", np.tanh, peers=("jax.numpy.no_such_function",))
    found = audited(row, ["jax"], n=60)
    assert "no_such_function" in found.refused["jax"]


def test_the_page_has_every_row():
    page = Path(__file__).parents[2] / "docs" / "accuracy.md"
    shown = region(page.read_text(), "accuracy") or ""
    for row in [*PROMISED, *OTHERS]:
        assert f"| `{row.name}` |" in shown, (
            "run python -m benchmarks accuracy --update docs/accuracy.md"
        )
