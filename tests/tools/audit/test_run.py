import json
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import gradsmith as gs


@gs.custom_gradient
def wrong(x):
    y = np.tanh(x)
    return y, lambda dy: dy * (1 - y)


@gs.custom_gradient
def inaccurate(x):
    y = np.tanh(x)
    return y, lambda dy: dy * (1 - y * y)


@gs.custom_gradient
def ramp(x):
    return np.maximum(x, 0), lambda dy: np.where(x >= 0, dy, 0)


def relu(x):
    return np.maximum(x, 0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_all_inputs_of_16_bits(dtype):
    report = gs.audit(np.tanh, dtype=dtype)
    assert report.exhaustive
    assert report.points == 2**16 - 2 * 2 ** (10 if dtype == "float16" else 7)
    assert report.undecided == 0
    assert report.value.max_ulp <= 0.51
    assert report.gradient.max_ulp < 4
    assert report.gradient.judged == report.points


def test_a_wrong_gradient_is_far_off_everywhere():
    found = gs.audit(wrong, (0.1, 1), points=500)
    assert found.value.max_ulp < 2
    assert found.gradient.beyond == 1
    assert found.gradient.mean_bits > 20


def test_an_inaccurate_gradient_is_found_with_its_worst_inputs():
    found = gs.audit(inaccurate, (0, 20), points=2000).gradient
    assert found.max_ulp > 1e6
    assert found.beyond < 0.2
    assert all(float(x) > 3 for x in found.worst_inputs)
    assert 0 < found.mean_bits < 4


def test_kinks_are_judged_by_both_sides():
    found = gs.audit(relu, (-1, 1), points=500)
    assert found.gradient.kinks == 2
    assert found.gradient.max_ulp == 0
    assert gs.audit(ramp, (-1, 1), points=500).gradient.max_ulp == 0
    steep = gs.audit(ramp, (-1, 1), points=500, reference=lambda x: relu(x) * 3)
    assert steep.gradient.beyond > 0.4


def test_a_reference_is_the_truth():
    found = gs.audit(np.sin, (0.1, 1), points=200, reference=np.cos)
    assert found.value.beyond > 0.9


def test_points_outside_of_the_domain_are_counted():
    found = gs.audit(np.log, (-1, 1), points=400)
    assert found.value.outside > 100
    assert found.value.undecided == 0
    assert found.value.judged + found.value.outside == found.points


def test_processes_find_the_same():
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        many = gs.audit(np.tanh, points=9000, executor=pool)
    one = gs.audit(np.tanh, points=9000)
    assert many.value == one.value
    assert many.gradient == one.gradient


def test_the_result_is_json():
    found = json.loads(gs.audit(np.exp, (0, 1), points=50).to_json())
    assert found["operation"] == "exp"
    assert found["value"]["undecided"] == 0
