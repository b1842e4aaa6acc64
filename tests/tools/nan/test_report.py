"""What a report shows."""

from __future__ import annotations

import json

import numpy as np

import gradsmith as gs


def entropy(p):
    return -np.sum(p * np.log(p))


def found():
    return gs.find_nan(entropy, np.array([0.5, 0.0]))


def test_text():
    lines = str(found()).splitlines()
    assert lines[0].startswith("✗ entropy in NumPy")
    assert lines[0].endswith("inf first appears in np.log")
    assert lines[1].startswith(f"  {__file__}:")
    assert lines[1].endswith(", in entropy")
    assert lines[2] == "      return -np.sum(p * np.log(p))"
    assert "  inputs: x[1] = 0.0" in lines
    assert "  outputs: y[1] = -inf" in lines
    assert "  it reaches: the value" in lines
    assert any(line.startswith("  repair: ") for line in lines)


def test_clean_text():
    report = gs.find_nan(entropy, np.array([0.5]))
    assert str(report).endswith("the value and the gradients are finite")
    assert len(str(report).splitlines()) == 1


def test_json():
    report = json.loads(found().to_json())
    assert report["ok"] is False
    assert report["where"]["source"] == "return -np.sum(p * np.log(p))"
    assert report["outputs"][0]["elements"] == ["-inf"]
    assert report["inputs"][0]["indices"] == [[1]]


def test_html_is_escaped():
    report = gs.find_nan(lambda x: np.log(x) if x.size < 2 else x, np.array([0.0]))
    page = report._repr_html_()
    assert "&lt;lambda&gt;" in page
    assert "<lambda>" not in page
    assert "<dt>inputs</dt>" in page


def test_a_few_elements_alone_are_shown():
    report = gs.find_nan(lambda x: np.log(x), np.zeros((100, 100)))
    assert len(report.inputs[0].elements) == 3
    assert report.inputs[0].shape == (100, 100)
    assert report.inputs[0].indices[1] == (0, 1)


def test_broadcast_inputs_are_shown_where_they_matter():
    divisor = np.array([[1.0], [0.0]])
    report = gs.find_nan(lambda x: x / divisor, np.ones((2, 2)))
    assert str(report.inputs[1]) == "x2[1, 0] = 0.0"
    assert report.outputs[0].indices == ((1, 0), (1, 1))
