"""Plots by Matplotlib: what they show, and what is said where there is none."""

from __future__ import annotations

import pickle
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest

import gradsmith as gs
from tests.report import sample

mpl.use("agg")
from matplotlib import pyplot as plt

X = np.array([-1.5, -0.25, 0.5, 2.0])


@pytest.fixture
def ax():
    figure, ax = plt.subplots()
    yield ax
    figure.canvas.draw()  # letters that a font lacks would be an error
    plt.close(figure)


def line(ax, label):
    return next(each for each in ax.lines if each.get_label() == label)


def test_an_audit_draws_value_gradient_and_bound(ax):
    assert sample.audit().plot(ax=ax) is ax
    curve = sample.curve()
    for what in ("value", "gradient"):
        drawn = line(ax, what)
        assert {x for x in curve["x"] if abs(x) > 1e-3} <= set(drawn.get_xdata())
        # Nothing is lost near zero, where half of all numbers are
        assert min(abs(x) for x in drawn.get_xdata() if x) > 1e-5
        top = ax.get_ylim()[1]
        assert np.nanmax(drawn.get_ydata()) == top  # infinity is above all numbers
    assert set(line(ax, "4 ULP").get_ydata()) == {4.0}
    labels = [each.get_text() for each in ax.get_yticklabels()]
    assert labels[-1] == "∞"
    assert "overflows to inf for x > 100" in ax.get_title()
    assert "cube in NumPy 2.4, float32" in ax.get_title()


def test_another_bound_shades_what_is_beyond_it(ax):
    sample.audit().plot(ax=ax, max_ulp=1e6)
    assert set(line(ax, "1e+06 ULP").get_ydata()) == {1e6}
    shaded = [each.get_paths() for each in ax.collections]
    assert [len(paths) for paths in shaded] == [1, 1]  # not the 50,000 ULP near -1


def test_an_accurate_function_has_nothing_shaded(ax):
    gs.audit(np.tanh, (-5, 5), points=500).plot(ax=ax)
    assert not any(each.get_paths() for each in ax.collections)
    assert ax.get_xlim()[0] >= -5


def test_an_audit_of_several_numbers_has_no_curve():
    report = gs.audit(np.arctan2, {"x1": (1, 2), "x2": (1, 2)}, points=100)
    with pytest.raises(gs.GradsmithError, match="what to do: print the report"):
        report.plot()


def test_a_wrong_rule_is_marked_where_it_is_wrong(ax):
    @gs.custom_gradient
    def kinked(x):
        return x**2, lambda dy: np.where(x > 0, 3 * x, 2 * x) * dy

    gs.check(kinked, X).plot(ax=ax)
    off, rule = line(ax, "off"), line(ax, "by the rule")
    assert set(X) <= set(rule.get_xdata())
    assert min(off.get_xdata()) > 0
    np.testing.assert_allclose(off.get_ydata(), 3 * off.get_xdata(), rtol=1e-5)
    by = line(ax, "by differences")
    np.testing.assert_allclose(by.get_ydata(), 2 * by.get_xdata(), atol=1e-4)
    assert "the gradient is wrong" in ax.get_title()


def test_elements_that_are_wrong_are_named(ax):
    @gs.custom_gradient
    def product(a, b):
        def grad(dy):
            db = a.T @ dy
            db[1] *= -1
            return dy @ b.T, db

        return a @ b, grad

    square = np.arange(1.0, 7.0).reshape(2, 3)
    gs.check(product, square, square.T).plot(ax=ax)
    labels = [each.get_text() for each in ax.get_xticklabels()]
    assert labels == ["b[1, 0]", "b[1, 1]"]


def test_a_right_rule_has_no_mark(ax):
    gs.check(sample.product, np.ones((2, 3)), np.ones((3, 2))).plot(ax=ax)
    assert [each.get_label() for each in ax.lines] == ["by differences", "by the rule"]


def test_a_declared_surrogate_is_not_called_wrong(ax):
    @gs.custom_gradient(surrogate="straight-through")
    def rounded(x):
        return np.round(x), lambda dy: dy

    gs.check(rounded, X).plot(ax=ax)
    assert [each.get_label() for each in ax.lines] == ["by differences", "by the rule"]
    words = ax.get_legend().get_title().get_text()
    assert "not meant to agree" in words
    assert "off" not in words


def test_inputs_that_the_check_has_made_are_shown_where_they_are_wrong(ax):
    @gs.custom_gradient
    def wrong_below_zero(x):
        return x**2, lambda dy: np.where(x < 0, 5.0, 2 * x) * dy

    report = gs.check(wrong_below_zero, np.array([0.5, 1.0, 2.0]))
    assert report.findings[0].scenario != "the given inputs"
    report.plot(ax=ax)
    assert len(line(ax, "off").get_xdata()) > 0


def test_the_worst_of_several_examples_is_shown(ax):
    @gs.custom_gradient
    def wrong_beyond_ten(x):
        return x**2, lambda dy: np.where(x > 10, 5 * x, 2 * x) * dy

    wrong_beyond_ten.example(lambda: np.array([1.0, 2.0]))
    wrong_beyond_ten.example(lambda: np.array([20.0, 30.0]))
    gs.check(wrong_beyond_ten).plot(ax=ax)
    assert min(line(ax, "off").get_xdata()) > 10


def test_a_rule_that_gives_no_gradient_says_so_in_place_of_a_plot():
    @gs.custom_gradient
    def misshapen(x):
        return x**2, lambda dy: np.ones(7)

    with pytest.raises(gs.GradsmithError):
        gs.check(misshapen, X).plot()


def test_a_report_from_elsewhere_has_no_operation():
    report = gs.check(sample.cube, X)
    there = pickle.loads(pickle.dumps(report))
    assert there == report
    with pytest.raises(gs.GradsmithError, match=r"call gs\.check here"):
        there.plot()
    assert "_samples" not in report.to_json()


def test_memory_has_a_bar_for_each_line(ax):
    report = gs.memory(lambda x: np.sum(np.tanh(x) * np.exp(x)), X)
    report.plot(ax=ax)
    assert [bar.get_width() for bar in ax.patches] == [
        row.nbytes for row in report.rows
    ]


def test_axes_are_made_where_none_are_given():
    ax = sample.audit().plot()
    assert ax.figure.axes == [ax]
    plt.close(ax.figure)


def test_without_matplotlib_the_way_out_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(gs.GradsmithError, match=r'pip install "gradsmith\[plot\]"'):
        sample.audit().plot()


def test_nothing_imports_matplotlib_before_a_plot():
    code = (
        "import sys, numpy as np, gradsmith as gs\n"
        "gs.check(gs.custom_gradient(lambda x: (x**2, lambda dy: 2 * x * dy)), "
        "np.ones(3))._repr_html_()\n"
        "sys.exit('matplotlib' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_gradient_of_another_shape_is_not_plotted_and_said_so():
    op = gs.custom_gradient(lambda x: (2 * x, lambda dy: dy[:1]))
    with pytest.raises(gs.GradsmithError, match="to plot: contract") as raised:
        gs.check(op, X).plot()
    assert "has the wrong shape" in str(raised.value)
