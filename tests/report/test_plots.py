"""Scales, and what plots draw."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from gradsmith.report.plots import deviation_plot, gradient_plot, time_plot, ulp_plot
from gradsmith.report.plots.scales import (
    MINUS,
    LinearScale,
    LogScale,
    SymlogScale,
    log_for,
    symlog_for,
)
from gradsmith.report.plots.svg import HEIGHT, WIDTH
from tests.report.sample import accuracy, curve


@pytest.mark.parametrize("negative", [True, False])
@pytest.mark.parametrize("positive", [True, False])
def test_a_symmetric_logarithm_is_in_order_and_fills_its_axis(negative, positive):
    if not (negative or positive):
        return
    scale = SymlogScale(-10, 10, negative, positive)
    sizes = 10.0 ** np.arange(-10, 11)
    xs = [*(-sizes[::-1] if negative else []), 0.0, *(sizes if positive else [])]
    places = [scale(x) for x in xs]
    assert places == sorted(places)
    assert (places[0] == pytest.approx(0.0)) == negative
    assert (places[-1] == pytest.approx(1.0)) == positive
    steps = np.diff([scale(x) for x in sizes]) if positive else np.ones(2)
    np.testing.assert_allclose(steps, steps[0])


def test_a_symmetric_logarithm_mirrors():
    scale = SymlogScale(-40, 40)
    for x in (1e-30, 1.0, 1e30, math.inf):
        assert scale(x) + scale(-x) == pytest.approx(1.0)
    assert scale(0.0) == 0.5
    assert {"0", "1", f"{MINUS}1"} <= {label for _, label in scale.ticks}
    assert len(scale.ticks) <= 9


def test_infinity_is_above_all_numbers():
    scale = log_for([0.5, 1e4, math.inf], low=-1, high=1)
    assert scale(math.inf) == 1.0
    assert scale(1e4) < 0.95
    assert scale.ticks[-1] == (math.inf, "∞")
    assert LogScale(-1, 4)(0.0) == 0.0


def test_linear_ticks_are_round():
    assert [label for _, label in LinearScale(-1.3, 1.3).ticks] == [
        f"{MINUS}1",
        "0",
        "1",
    ]


def test_one_sided_inputs_have_one_side():
    assert not symlog_for([0.5, 1e-9]).negative
    assert not symlog_for([-0.5, -1e-9]).positive


def numbers_in(svg: str) -> list[float]:
    paths = re.findall(r' d="([^"]*)"', svg)
    return [float(x) for path in paths for x in re.findall(r"-?[\d.]+", path)]


def test_an_error_plot_draws_the_limit_the_regions_and_what_is_beyond():
    region = {"low": 100.0, "high": 1e30}
    found = accuracy(regions=[region])
    inputs = curve()["x"]
    svg = ulp_plot(
        {"what": "value", "accuracy": found, "inputs": inputs, "dtype": "float32"}
    )
    assert svg.count('class="band"') == 1
    assert "4 ULP" in svg
    beyond = re.search(r'<path d="([^"]*)" class="dots bad"', svg)
    assert beyond is not None
    ulp = curve()["max_ulp"]
    assert beyond[1].count("M") == sum(y > 4 for y in ulp)
    assert f"{sum(y > 4 for y in ulp)} of {len(ulp)} groups" in svg
    assert all(-7 <= x <= WIDTH for x in numbers_in(svg))
    assert "nan" not in svg


def samples(**more):
    row = {"analytic": [1.0, 2.0], "low": [1.0, 1.0], "high": [1.0, 1.0]}
    both = {"gap": [0.0, "nan"], "error": [1e-9, 1e-9], "beyond": 1, "note": ""}
    return {**row, **both, **more}


def test_gradient_plots_tell_agreement_from_deviation():
    curve = samples(kind="curve", argument="x", x=[0.0, 1.0], given=[True, False])
    svg = gradient_plot(curve)
    assert svg.count('class="rug"') == 1
    assert "off at 1 of 2 points" in svg
    deviation = deviation_plot(curve)
    assert re.search(r'd="M[^"]*" class="dots good"', deviation)
    assert re.search(r'd="M[^"]*" class="dots bad"', deviation)
    scatter = gradient_plot(samples(kind="elements", argument=["a", "b"]))
    assert "dots m0" in scatter
    assert "dots m1" in scatter
    for each in (svg, deviation, scatter):
        assert all(-7 <= x <= max(WIDTH, HEIGHT) for x in numbers_in(each))


def test_bars_are_as_long_as_their_times():
    rows = [{"inputs": "x", "rule": 1e-4, "autodiff": 2e-4, "runs": 5}]
    svg = time_plot({"rows": rows})
    one, two = map(float, re.findall(r'width="([\d.]+)" height="13"', svg))
    assert two == pytest.approx(2 * one)
    assert "100 µs" in svg
