"""The contract: what a rule returns is checked, and a message says what is wrong."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

import gradsmith as gs


def returning(gradient, body=lambda *args: args[0] * 1):
    """An operation named `op` whose gradient returns something."""

    @gs.custom_gradient
    def op(x, b=None):
        return body(x) if b is None else x + b, lambda dy: gradient

    return op


def error_of(gradient, *args):
    """The message about a gradient of op(*args), in reverse mode."""
    op = gradient if isinstance(gradient, gs.Operation) else returning(gradient)
    arrays = tuple(i for i, x in enumerate(args) if isinstance(x, np.ndarray))
    with pytest.raises(gs.GradientContractError) as info:
        gs.grad(lambda *args: np.sum(op(*args)), argnums=arrays)(*args)
    return str(info.value)


# --- shapes --------------------------------------------------------------------------

SHAPES = {
    "scalar for an array": ((3,), (), "a scalar was returned for an array"),
    "transposed": ((2, 3), (3, 2), "it is transposed"),
    "transposed stack": ((2, 3, 4), (4, 3, 2), "it is transposed"),
    "broadcast axis": ((3,), (4, 3), "not summed over the broadcast axis 0;"),
    "stretched axis": ((4, 1), (4, 3), "not summed over the broadcast axis 1;"),
    "several axes": ((1, 3), (2, 4, 3), "not summed over the broadcast axes (0, 1);"),
    "of a scalar": ((), (4,), "not summed over the broadcast axis 0;"),
    "axes": ((2, 3, 4), (3, 2, 4), "its axes are in another order"),
    "summed": ((4, 3), (3,), "it was summed over an axis that the argument has"),
    "flat": ((2, 3), (6,), "it has the right number of elements; reshape it to (2, 3)"),
    "other": ((2, 3), (7,), "it belongs to another array"),
    "empty": ((0, 3), (5,), "it belongs to another array"),
}


@pytest.mark.parametrize("case", SHAPES)
def test_wrong_shape(case):
    expected, got, cause = SHAPES[case]
    message = error_of(np.ones(got), np.ones(expected))
    assert message.startswith(
        "the gradient of operation 'op' for 'x' has the wrong shape"
    )
    assert f"expected: shape {expected}, float64" in message
    assert f"got: shape {got}, float64" in message
    assert cause in message.partition("likely cause: ")[2]


def test_the_advice_about_a_missing_sum_is_right():
    op = gs.custom_gradient(lambda x, b: (x + b, lambda dy: (dy, dy)))
    message = error_of(op, np.ones((4, 3)), np.ones(3))
    assert "for 'b'" in message
    assert "return gs.unbroadcast(gradient, b.shape)" in message
    right = gs.custom_gradient(
        lambda x, b: (x + b, lambda dy: (dy, gs.unbroadcast(dy, b.shape)))
    )
    db = gs.grad(lambda b: np.sum(right(np.ones((4, 3)), b)))(np.ones(3))
    assert db.tolist() == [4, 4, 4]


def test_a_number_is_the_gradient_of_a_scalar_only():
    assert gs.grad(returning(2))(1.0) == 2
    assert gs.grad(returning(2.5))(np.float32(1)).dtype == np.float32
    assert "got: the number 2.0" in error_of(2.0, np.ones(3))
    assert "got: the number 0" in error_of(0, np.ones(3))
    assert "return gs.zero" in error_of(0, np.ones(3))


# --- dtypes --------------------------------------------------------------------------

DTYPES = {
    "precision": ("float32", "float64", "np.float64(2) is one, 2.0 is not"),
    "half": ("float16", "float32", "cast the gradient to x.dtype"),
    "complex for real": ("float64", "complex128", "return its real part"),
    "real for complex": ("complex128", "float64", "the imaginary part got lost"),
    "integer": (
        "float64",
        "int64",
        "integers and booleans can't be a gradient",
    ),
    "boolean": (
        "float64",
        "bool",
        "integers and booleans can't be a gradient",
    ),
    "complex precision": ("complex64", "complex128", "cast the gradient to x.dtype"),
}


@pytest.mark.parametrize("case", DTYPES)
def test_wrong_dtype(case):
    expected, got, cause = DTYPES[case]
    op = returning(np.ones(3, got), body=lambda x: np.real(x * 1))
    message = error_of(op, np.ones(3, expected))
    assert message.startswith(
        "the gradient of operation 'op' for 'x' has the wrong dtype"
    )
    assert f"expected: shape (3,), {expected}" in message
    assert f"got: shape (3,), {got}" in message
    assert cause in message.partition("likely cause: ")[2]


def test_a_complex_number_for_a_real_scalar():
    assert "return its real part" in error_of(1j, np.array(2.0))


def test_float64_output_of_a_float32_argument_is_found():
    op = gs.custom_gradient(lambda x: (x * np.float64(2), lambda dy: dy * 2))
    assert "expected: shape (3,), float32" in error_of(op, np.ones(3, np.float32))


def test_nan_and_infinity_are_no_errors():
    for value in (np.nan, np.inf):
        dx = gs.grad(lambda x, value=value: np.sum(returning(np.full(3, value))(x)))
        np.testing.assert_array_equal(dx(np.ones(3)), np.full(3, value))


# --- not an array --------------------------------------------------------------------

NOT_ARRAYS = {
    "string": ("dx", "got: a str", "a gradient is an array, or gs.zero"),
    "function": (lambda dy: dy, "got: a function", "call it"),
    "truth": (True, "got: True", "a gradient is an array, or gs.zero"),
    "object": (object(), "got: an object", "a gradient is an array, or gs.zero"),
    "set": ({1.0}, "got: a set", "a gradient is an array, or gs.zero"),
}


@pytest.mark.parametrize("case", NOT_ARRAYS)
def test_not_an_array(case):
    gradient, got, cause = NOT_ARRAYS[case]
    message = error_of(gradient, np.ones(3))
    assert message.startswith("the gradient of operation 'op' for 'x' is not an array")
    assert got in message
    assert cause in message


def test_a_list_of_numbers_is_no_array():
    message = error_of([1.0, 2.0, 3.0], np.ones(3))
    assert "np.array(gradient)" in message
    assert "a list of 3: [1.0, 2.0, 3.0]" in message


# --- number --------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [tuple, list])
def test_wrong_number_of_gradients(wrap):
    one = np.ones(3)
    for gradients in ([one], [one, one, one], []):
        message = error_of(wrap(gradients), one, one)
        assert "has the wrong number of entries" in message
        assert (
            "expected: 2, one for each array argument in signature order (x, b)"
            in message
        )
        assert f"got: a {wrap.__name__} of {len(gradients)}" in message


def test_one_gradient_for_two_arguments():
    message = error_of(np.ones(3), np.ones(3), np.ones(3))
    assert "got: an ndarray of shape (3,), float64" in message
    assert "return a tuple, with None where there is no gradient" in message


def test_too_many_for_one_argument():
    message = error_of((np.ones(3), np.ones(3)), np.ones(3))
    assert "expected: 1, one for each array argument in signature order (x)" in message


def test_names_that_are_none():
    message = error_of({"x": np.ones(3), "bias": np.ones(3)}, np.ones(3), np.ones(3))
    assert "got: a dict with the keys 'x', 'bias'" in message
    assert "there is no argument 'bias'" in message


def test_a_name_that_is_missing():
    message = error_of({"x": np.ones(3)}, np.ones(3), np.ones(3))
    assert "'b' is missing; give it None if it has no gradient" in message


def test_a_name_that_nobody_needs_may_be_missing():
    op = returning({"x": np.ones(3)})
    dx = gs.grad(lambda x: np.sum(op(x, np.ones(3))))(np.ones(3))
    assert dx.tolist() == [1, 1, 1]


# --- numbers and whole numbers among the arguments -----------------------------------


@gs.custom_gradient
def power(x, n):
    return x**n, lambda dy: (dy * n * x ** (n - 1), np.sum(dy * x**n * np.log(x)))


@pytest.mark.parametrize(
    "n", [2.0, 2, np.float32(2), np.int64(2), np.array(2.0), 2 + 0j]
)
def test_a_number_may_be_passed_where_the_rule_gives_a_gradient(n):
    x = np.array([1.0, 2.0], complex if isinstance(n, complex) else float)
    dx = gs.vjp(lambda x: power(x, n), x)[1](np.ones(2))[0]
    assert dx.tolist() == [2, 4]


@pytest.mark.parametrize("n", [True, "2", None])
def test_what_is_no_number_has_no_gradient(n):
    op = gs.custom_gradient(lambda x, n: (x * 2, lambda dy: (dy, dy)))
    with pytest.raises(gs.GradientContractError, match="has no gradient"):
        gs.grad(lambda x: op(x, n))(1.0)


def test_a_rule_for_floating_arrays_alone():
    k = np.array([0, 1])

    @gs.custom_gradient
    def take(x, k, scale):
        return x[k] * scale, lambda dy: (dy * scale, np.sum(dy * x))

    def f(x, scale):
        return np.sum(take(x, k, scale))

    dx, ds = gs.grad(f, (0, 1))(np.array([3.0, 4.0]), 2.0)
    assert dx.tolist() == [2, 2]
    assert ds == 7


def test_a_gradient_for_a_whole_number_array_is_ignored():
    op = gs.custom_gradient(lambda x, k: (x * k, lambda dy: (dy * k, "whatever")))
    assert gs.grad(lambda x: np.sum(op(x, np.array([2, 3]))))(np.ones(2)).tolist() == [
        2,
        3,
    ]


def test_only_floats_count_beside_an_axis():
    """The gradients are for x and scale; axis is whole, and scale a number here."""

    @gs.custom_gradient
    def op(x, axis, scale):
        return np.sum(x, axis) * scale, lambda dy: (dy * scale + 0 * x, np.ones(()))

    assert gs.grad(lambda x: op(x, 0, 3.0))(np.ones(2)).tolist() == [3, 3]


def test_two_readings_are_refused():
    """Are these for (k, x), or, with k left out, for (x, scale)?"""
    k = np.array([1, 2])

    @gs.custom_gradient
    def op(k, x, scale):
        return k * x * scale, lambda dy: (dy, dy)

    with pytest.raises(gs.GradientContractError, match="return a dict by name"):
        gs.grad(lambda x: np.sum(op(k, x, 2.0)))(np.ones(2))

    @gs.custom_gradient
    def clear(k, x, scale):
        return k * x * scale, lambda dy: (None, dy * k * scale)

    assert gs.grad(lambda x: np.sum(clear(k, x, 2.0)))(np.ones(2)).tolist() == [2, 4]


def test_strings_in_arrays_have_no_gradient():
    names = np.array(["a", "b"])
    op = gs.custom_gradient(lambda x, names: (x * 2, lambda dy: (2 * dy, None)))
    assert gs.grad(lambda x: op(x, names))(1.0) == 2


# --- structure -----------------------------------------------------------------------


class Pair(NamedTuple):
    a: object
    b: object


@dataclass
class Params:
    w: object
    b: object
    name: str = "layer"


TREES = {
    "dict": lambda a, b: {"a": a, "b": b},
    "list": lambda a, b: [a, b],
    "tuple": lambda a, b: (a, b),
    "named tuple": Pair,
    "dataclass": Params,
    "nested": lambda a, b: {"layers": [{"w": a}, (b,)], "scale": 3.0, "name": "net"},
}


@pytest.mark.parametrize("kind", TREES)
@pytest.mark.parametrize("around", ["bare", "tuple", "list", "by name", "with another"])
def test_a_tree_has_a_tree_of_gradients(kind, around):
    tree = TREES[kind]

    @gs.custom_gradient
    def op(p, x=None):
        a, b = [q for q in gs.core.trees.leaves(p) if hasattr(q, "shape")]

        def grad(dy):
            dp = tree(dy * b, np.sum(dy * a))
            packed = {"tuple": (dp,), "list": [dp], "by name": {"p": dp}}
            return (dp, None) if x is not None else packed.get(around, dp)

        return a * b, grad

    x = (np.ones(1),) if around == "with another" else ()
    p = gs.Tensor([1.0, 2.0]), gs.Tensor(3.0)
    with gs.GradientTape() as tape:
        tape.watch(p)
        y = op(tree(*p), *x)
    da, db = tape.gradient(y, p)
    assert da.tolist() == [3, 3]
    assert db.item() == 3


STRUCTURES = {
    "missing key": ({"a": 1.0}, "p['b'] is in one of them only"),
    "unknown key": ({"a": 1.0, "b": 1.0, "c": 1.0}, "p['c'] is in one of them only"),
    "an array": (np.ones(()), "is a tree of the same structure"),
    "a tuple": ((1.0, 1.0), "is one entry, a tree of the same structure"),
    "deeper": ({"a": 1.0, "b": [1.0]}, "the argument is one array"),
}


@pytest.mark.parametrize("case", STRUCTURES)
def test_wrong_structure(case):
    gradient, cause = STRUCTURES[case]

    @gs.custom_gradient
    def op(p):
        return p["a"] * p["b"], lambda dy: gradient

    with pytest.raises(gs.GradientContractError) as info:
        gs.grad(op)({"a": 1.0, "b": 2.0})
    assert cause in str(info.value)
    assert "'op'" in str(info.value)


def test_a_leaf_of_a_tree_is_named():
    @gs.custom_gradient
    def op(params):
        return np.sum(params["w"][0]), lambda dy: {"w": [np.ones(2)]}

    with pytest.raises(
        gs.GradientContractError, match=r"for \"params\['w'\]\[0\]\" has"
    ):
        gs.grad(op)({"w": [np.ones(3)]})


def test_a_word_may_stand_for_a_part_of_a_tree():
    @gs.custom_gradient
    def op(p):
        y = p["w"]["a"] * p["w"]["b"] * p["c"]
        return y, lambda dy: {"w": None, "c": dy}

    p = {"w": {"a": gs.Tensor(2.0), "b": gs.Tensor(3.0)}, "c": gs.Tensor(4.0)}
    with gs.GradientTape() as tape:
        tape.watch(p)
        y = op(p)
    d = tape.gradient(y, p)
    assert d["w"] == {"a": None, "b": None}
    assert d["c"].item() == 1


# --- words ---------------------------------------------------------------------------


@pytest.mark.parametrize("word", [None, gs.zero])
@pytest.mark.parametrize("around", [lambda d: (d,), lambda d: {"x": d}])
def test_none_and_zero(word, around):
    x = gs.Tensor([1.0, 2.0])
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = returning(around(word))(x)
    dx = tape.gradient(y, x)
    assert dx is None if word is None else dx.tolist() == [0, 0]


def test_none_is_explained():
    x = gs.Tensor([1.0, 2.0])
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = returning((None,))(x)
    tape.gradient(y, x)
    assert "operation 'op' declares no gradient for 'x'" in tape.explain(y, x)


def test_not_differentiable_raises_only_if_asked():
    op = returning((np.ones(3), gs.not_differentiable("the labels are data")))
    x, labels = np.ones(3), np.ones(3)
    assert gs.grad(lambda x: np.sum(op(x, labels)))(x).tolist() == [1, 1, 1]
    assert gs.grad(lambda x: np.sum(op(x, gs.Tensor(labels))))(x).tolist() == [1, 1, 1]
    with pytest.raises(gs.NotDifferentiableError) as info:
        gs.grad(lambda x, b: np.sum(op(x, b)), (0, 1))(x, labels)
    assert (
        "operation 'op' has no gradient for argument 'b': the labels are data"
        in str(info.value)
    )
    assert "gs.stop_gradient(b)" in str(info.value)
    with pytest.raises(gs.NotDifferentiableError):
        gs.jvp(op, (x, labels), (x, labels))


def test_not_differentiable_wants_a_reason():
    for reason in ("", " ", None, 3):
        with pytest.raises(gs.GradientContractError, match="in words"):
            gs.not_differentiable(reason)


# --- outputs -------------------------------------------------------------------------

RETURNED = {
    "no gradient": (lambda x: x * 2, "the gradient function is missing"),
    "only gradient": (lambda x: lambda dy: dy, "the outputs are missing"),
    "gradient first": (lambda x: ((lambda dy: dy), x), "is entry 0; it comes last"),
    "in the middle": (lambda x: (x, (lambda dy: dy), x), "is entry 1; it comes last"),
    "two outputs": (lambda x: (x, x), "its last entry is an ndarray of shape (3,)"),
    "none": (lambda x: (x, None), "its last entry is None"),
    "nothing": (lambda x: None, "the gradient function is missing"),
    "a tuple of one": (
        lambda x: ((lambda dy: dy),),
        "the gradient function is missing",
    ),
}


@pytest.mark.parametrize("case", RETURNED)
def test_wrong_thing_returned_by_the_body(case):
    body, cause = RETURNED[case]
    op = gs.custom_gradient(body)
    with pytest.raises(gs.GradientContractError) as info:
        op(np.ones(3))
    assert "operation '<lambda>' returned the wrong thing" in str(info.value)
    assert "`return y, grad`" in str(info.value)
    assert cause in str(info.value).partition("likely cause: ")[2]


def test_the_contract_error_is_one_of_ours():
    assert issubclass(gs.GradientContractError, gs.GradsmithError)


# --- parameters of rules -------------------------------------------------------------


def test_grad_with_the_wrong_number_of_parameters():
    @gs.custom_gradient
    def op(x):
        return x * 2, x * 3, lambda a, b, c: a

    with pytest.raises(gs.GradientContractError) as info:
        gs.grad(lambda x: op(x)[0])(1.0)
    assert "the gradient of operation 'op' can't be called" in str(info.value)
    assert "the operation has 2 outputs" in str(info.value)
    assert "got: a function of (a, b, c)" in str(info.value)


@pytest.mark.parametrize("grad", [lambda: 1.0, lambda dy, x: dy, lambda *, dy: dy])
def test_grad_that_takes_no_upstream_or_too_many(grad):
    op = gs.custom_gradient(lambda x: (x * 2, grad))
    with pytest.raises(gs.GradientContractError, match="the operation has 1 output"):
        gs.grad(op)(1.0)


def test_vjp_with_the_wrong_parameters():
    @gs.operation
    def scale(x, factor, *, shift):
        return x * factor + shift

    scale.vjp(lambda dy, y, x: dy)
    with pytest.raises(gs.GradientContractError) as info:
        gs.grad(lambda x: scale(x, 2.0, shift=1.0))(1.0)
    assert "the vjp of operation 'scale' can't be called" in str(info.value)
    assert "expected: a function of (dy, y, x, factor, shift)" in str(info.value)
    assert "got: a function of (dy, y, x)" in str(info.value)


def test_jvp_with_the_wrong_parameters():
    cube = gs.operation(lambda x: x**3)
    cube.jvp(lambda dx, x: dx)
    with pytest.raises(gs.GradientContractError, match=r"of \(dx, y, x\)"):
        gs.jvp(cube, (1.0,), (1.0,))


def test_a_type_error_inside_a_rule_is_the_users():
    def grad(dy):
        return dy + "1"

    op = gs.custom_gradient(lambda x: (x, grad))
    with pytest.raises(TypeError) as info:
        gs.grad(op)(1.0)
    assert not isinstance(info.value, gs.GradsmithError)
    assert info.value.__notes__ == ["raised by the gradient of operation '<lambda>'"]


# --- tangents ------------------------------------------------------------------------


def tangent(dy, outputs=lambda x: x * 2):
    op = gs.operation(outputs)
    op.jvp(lambda dx, y, x: dy)
    return gs.jvp(op, (np.ones(3),), (np.ones(3),))[1]


def test_tangents_are_checked():
    assert tangent(np.full(3, 5.0)).tolist() == [5, 5, 5]
    with pytest.raises(
        gs.GradientContractError, match="for 'output' has the wrong shape"
    ):
        tangent(np.ones(4))
    with pytest.raises(
        gs.GradientContractError, match="for 'output' has the wrong dtype"
    ):
        tangent(np.ones(3, np.float32))
    with pytest.raises(gs.GradientContractError, match="wrong structure"):
        tangent(np.ones(3), outputs=lambda x: (x * 2, x * 3))
    with pytest.raises(
        gs.GradientContractError, match=r"for 'output\[1\]' has the wrong"
    ):
        tangent((np.ones(3), np.ones(2)), outputs=lambda x: (x * 2, x * 3))


def test_words_as_tangents():
    assert tangent(gs.zero).tolist() == [0, 0, 0]
    with pytest.raises(gs.NotDifferentiableError, match="it jumps"):
        tangent(gs.not_differentiable("it jumps"))


def test_tangents_beside_whole_numbers():
    dy, _ = tangent((np.ones(3), None), outputs=lambda x: (x * 2, np.argmax(x)))
    assert dy.tolist() == [1, 1, 1]


def test_rules_behind_one_decorator_are_told_apart():
    """Wrappers made by one decorator share their code, not their parameters."""

    def traced(rule):
        @functools.wraps(rule)
        def wrapper(*args, **kwargs):
            return rule(*args, **kwargs)

        return wrapper

    one = gs.custom_gradient(lambda x: (x, traced(lambda dy: 2 * dy)))
    two = gs.custom_gradient(lambda x: (x, x, traced(lambda dy, dz: 2 * dy + dz)))
    needs = gs.custom_gradient(lambda x: (x, traced(lambda dy, needs: dy * needs["x"])))
    assert gs.grad(one)(1.0) == 2
    assert gs.grad(lambda x: sum(two(x)))(1.0) == 3
    assert gs.grad(needs)(1.0) == 1
