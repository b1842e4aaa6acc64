"""Inputs of `gs.check`: specs, examples, and what is said without either."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.operations.examples import examples_of
from gradsmith.tools.check.inputs import from_specs, inputs_for
from gradsmith.tools.check.model import CheckReport, CheckRun, Finding, Verdict, merged


@gs.custom_gradient
def product(a, b):
    return a @ b, lambda dy: (dy @ b.T, a.T @ dy)


def made(*specs, seed=0):
    return from_specs(list(specs), seed)


# --- specs


def test_the_same_letter_is_the_same_length_and_all_are_distinct():
    a, b, c = made(gs.spec("m n"), gs.spec("n k"), gs.spec("_ 4"))
    assert a.shape == (3, 5)
    assert b.shape == (5, 6)
    assert c.shape == (7, 4)  # 4 was taken


def test_shapes_in_tuples_and_open_axes():
    a, b, c = made(gs.spec((3, 4)), gs.spec((None, 2)), gs.spec(""))
    assert (a.shape, b.shape, c.shape) == ((3, 4), (5, 2), ())


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("bounds", [(0, None), (None, -2), (0, 1), (5, 5), (1e6, None)])
def test_values_are_inside_the_bounds(dtype, bounds):
    if dtype == "float16" and bounds[0] == 1e6:
        bounds = (1e3, None)
    low, high = bounds
    (x,) = made(gs.spec((40, 50), dtype, low=low, high=high))
    assert x.dtype == dtype
    assert low is None or np.min(x) >= low
    assert high is None or np.max(x) <= high


def test_values_of_other_kinds():
    i, j, b, z, u = made(
        gs.spec((200,), "int32"),
        gs.spec((200,), "int64", low=-1, high=4),
        gs.spec((200,), "bool"),
        gs.spec((200,), "complex64"),
        gs.spec((200,), "uint8", high=1),
    )
    assert set(i) == {0, 1, 2}
    assert set(j) == {-1, 0, 1, 2, 3, 4}
    assert set(b) == {False, True}
    assert z.dtype == np.complex64
    assert set(u) == {0, 1}


def test_the_seed_decides():
    spec = gs.spec("n")
    assert np.array_equal(made(spec, seed=1)[0], made(spec, seed=1)[0])
    assert not np.array_equal(made(spec, seed=1)[0], made(spec, seed=2)[0])
    assert not np.array_equal(*made(spec, spec))


def test_frameworks_name_dtypes_their_way():
    torch = pytest.importorskip("torch")
    assert gs.spec("n", torch.float32).dtype == np.float32


def test_a_plain_spec_stays_slim():
    assert type(gs.spec((2, 3))).__name__ == "Spec"
    assert gs.spec("b 3").shape == (None, 3)  # what python_op is told
    assert repr(gs.spec("b 3", low=0)) == "spec('b 3', float64, low=0)"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"shape": "b,n"}, "neither a length nor a name"),
        ({"shape": (2,), "dtype": "bool", "low": 0}, "for real numbers, not for bool"),
        ({"shape": (2,), "low": 2, "high": 1}, "low=2 is not below high=1"),
    ],
)
def test_a_wrong_spec_is_refused(arguments, words):
    with pytest.raises(gs.GradsmithError, match=words):
        gs.spec(**arguments)


def test_an_input_has_a_number_of_axes():
    assert gs.spec(None).shape is None  # which a python_op may leave open
    with pytest.raises(gs.GradsmithError, match="needs a number of axes"):
        made(gs.spec(None))
    with pytest.raises(gs.GradsmithError, match="need a shape"):
        gs.spec(None, low=0)


def test_check_takes_specs_anywhere():
    assert gs.check(product, gs.spec("m n"), b=gs.spec("n k", "float32")).ok
    assert gs.check(lambda xs: xs["a"] * xs["b"][0], {"a": gs.spec(3), "b": [2.0]}).ok


def test_bounds_are_told_to_the_check():
    args = np.arange(3), gs.spec("n", low=0), np.ones(2), gs.spec("n", high=1)
    (found,) = inputs_for(product, args, {}, seed=0)
    assert found.bounds == ((0, None), (None, None), (None, 1))


# --- examples


def test_an_example_is_a_tuple_a_dict_or_one_array():
    @gs.custom_gradient
    def scale(x, by=2.0):
        return x * by, lambda dy: dy * by

    @scale.example
    def pair():
        return np.ones(2), 3.0

    @scale.example
    def names():
        return {"by": 3.0, "x": gs.spec("n")}

    @scale.example
    def one():
        return gs.spec("n")

    assert pair()[1] == 3.0  # a decorator returns what it decorates
    a, b, c = inputs_for(scale, (), {}, seed=0)
    assert (len(a.args), a.args[1], a.kwargs, a.name) == (2, 3.0, {}, "pair")
    assert (b.args, b.kwargs["by"], b.name) == ((), 3.0, "names")
    assert (len(c.args), c.name) == (1, "one")
    assert gs.check(scale).ok


def test_examples_stay_when_an_operation_becomes_a_python_op():
    @gs.custom_gradient
    def double(x):
        return 2 * x, lambda dy: 2 * dy

    double.example(lambda: gs.spec("n"))
    assert gs.check(gs.python_op(double)).ok


def test_keywords_go_along_with_examples():
    @gs.custom_gradient
    def total(x, axis=0):
        return np.sum(x, axis), lambda dy: np.expand_dims(dy, axis) + 0 * x

    total.example(lambda: gs.spec("m n"))
    (found,) = inputs_for(total, (), {"axis": 1}, seed=0)
    assert found.kwargs == {"axis": 1}
    assert gs.check(total, axis=1).ok


def test_a_wrong_gradient_on_one_example_is_named_by_it():
    @gs.custom_gradient
    def total(x, axis=0):
        return np.sum(x, axis), lambda dy: dy + 0 * x  # right for axis 0 alone

    total.example(lambda: (gs.spec((3, 3)), 0))

    @total.example
    def along_rows():
        return gs.spec((3, 3)), 1

    report = gs.check(total)
    assert report.verdict is Verdict.WRONG
    assert {f.scenario.partition(",")[0] for f in report.findings} == {"along_rows"}


def test_examples_that_raise_say_so():
    broken = gs.custom_gradient(lambda x: (x, lambda dy: dy))
    broken.example(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError) as caught:
        gs.check(broken)
    assert caught.value.__notes__ == ["raised by an example of '<lambda>'"]


def test_examples_of_functions_keep_nothing_alive():
    def double(x):
        return 2 * x

    @gs.example(double)
    def _():
        return gs.spec("n")

    assert gs.check(double).ok
    alive = weakref.ref(double)
    del double
    gc.collect()
    assert alive() is None


def test_examples_of_ufuncs_of_ours_and_of_methods():
    @gs.example(np.tanh)
    def _():
        return gs.spec("n")

    assert gs.check(np.tanh).ok

    class Scale:
        @gs.custom_gradient
        def scale(self, x):
            return 2 * x, lambda dy: 2 * dy

    make = gs.example(Scale.scale)(lambda: (Scale(), gs.spec("n")))
    assert examples_of(Scale.scale) == [make]
    assert examples_of(Scale().scale) == [make]
    assert gs.check(Scale.scale).ok


def test_examples_of_a_function_of_torch():
    torch = pytest.importorskip("torch")

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, dy):
            return 2 * dy

    gs.example(Double.apply)(lambda: gs.spec("n"))  # each .apply is a new object
    assert len(examples_of(Double)) == 1
    assert gs.check(Double).ok
    assert gs.check(Double.apply).framework == "PyTorch"


# --- neither


def test_no_inputs_at_all():
    with pytest.raises(gs.GradsmithError, match=r"(?s)no examples.*@product.example"):
        gs.check(product)
    with pytest.raises(gs.GradsmithError, match="needs an operation"):
        gs.check(3)


def test_no_floating_input_and_no_floating_output():
    with pytest.raises(gs.GradsmithError, match="needs inputs to differentiate by"):
        gs.check(product, np.eye(2, dtype=int), np.eye(2, dtype=int))
    report = gs.check(np.argmax, np.ones(3))
    assert report.verdict is Verdict.UNKNOWN
    assert "no gradient is needed" in report.notes[0]


def test_an_exception_of_the_operation_passes_with_a_note():
    def broken(x):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine") as caught:
        gs.check(broken, np.ones(2))
    assert "raised by broken itself" in caught.value.__notes__[0]


def test_an_exception_on_one_of_several_examples_names_it():
    @gs.custom_gradient
    def scale(x, by):
        return x * by["scale"], lambda dy: (dy * by["scale"], None)

    @scale.example
    def fine():
        return gs.spec("n"), {"scale": 2}

    @scale.example
    def misspelt():
        return gs.spec("n"), {"scales": 2}

    with pytest.raises(KeyError, match="scale") as caught:
        gs.check(scale)
    assert caught.value.__notes__[-1] == "checked on misspelt"


def test_what_is_tried_beside_the_inputs_stays_within_the_bounds():
    @gs.custom_gradient
    def half(x):  # right only from 0 to 4
        inside = (x >= 0) & (x <= 4)
        return x / 2, lambda dy: np.where(inside, dy / 2, 7 * dy)

    assert gs.check(half, gs.spec("m n")).verdict is Verdict.WRONG
    assert gs.check(half, gs.spec("m n", low=0, high=4)).ok


def test_a_rule_that_cannot_be_differentiated_again_is_checked_all_the_same():
    @gs.custom_gradient
    def first(x):
        def grad(dy):
            dx = np.zeros_like(x)
            np.add.at(dx, 0, dy)
            return dx

        return x[0], grad

    report = gs.check(first, gs.spec("n"))
    assert report.ok
    assert "second order" in [limit.what for limit in report.limits]


# --- one report of several


def report(verdict, *, notes=(), resolution=None, findings=()):
    checks = (CheckRun("first order", "given", verdict, resolution),)
    found = tuple(findings)
    return CheckReport(
        "f", "NumPy", "2", verdict, found, checks, notes, 0, resolution, 1.0
    )


def test_the_worst_verdict_counts():
    right, wrong = report(Verdict.RIGHT, resolution=1e-9), report(Verdict.WRONG)
    unclear = report(Verdict.UNKNOWN, resolution=1e-3)
    assert merged([right, unclear], ["a", "b"]).verdict is Verdict.UNKNOWN
    assert merged([wrong, unclear], ["a", "b"]).verdict is Verdict.WRONG
    assert merged([right, unclear], ["a", "b"]).resolution == 1e-3
    assert merged([right, right], ["a", "b"]).seconds == 2.0
    assert merged([right], [""]) is right


def test_findings_and_notes_are_named():
    finding = Finding("first order", "wrong", scenario="given")
    a = report(Verdict.WRONG, notes=("both", "mine"), findings=[finding])
    b = report(Verdict.RIGHT, notes=("both",))
    whole = merged([b, a], ["small", "large"])
    assert [f.scenario for f in whole.findings] == ["large, given"]
    assert whole.notes == ("both", "large: mine")
    assert [check.scenario for check in whole.checks] == [
        "small, given",
        "large, given",
    ]
