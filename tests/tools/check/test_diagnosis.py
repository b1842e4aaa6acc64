"""Each mistake by its name, and nothing that only looks like one."""

import numpy as np
import pytest

import gradsmith as gs
import gradsmith.numpy as gnp

from .wrong_gradients import (
    add,
    explained,
    layer_norm,
    layer_norm_rule,
    matmul,
    matmul_rule,
    normal,
    operation,
    scaled_sine,
    scaled_sine_rule,
    softmax,
    softmax_rule,
    sum_of_squares,
    sum_of_squares_rule,
)

T = gnp.matrix_transpose
RIGHT = {
    "elementwise": (scaled_sine, scaled_sine_rule),
    "softmax": (softmax, softmax_rule),
    "layer norm": (layer_norm, layer_norm_rule),
    "reduction": (sum_of_squares, sum_of_squares_rule),
}
CHANGES = {
    "sign": lambda rule: lambda dy, y, x: -rule(dy, y, x),
    "factor": lambda rule: lambda dy, y, x: 1.001 * rule(dy, y, x),
    "zero gradient": lambda rule: lambda dy, y, x: 0 * rule(dy, y, x),
    "transposed": lambda rule: lambda dy, y, x: T(rule(dy, y, x)),
    "shifted": lambda rule: lambda dy, y, x: gnp.roll(rule(dy, y, x), 1, axis=-1),
    "precision lost": lambda rule: (
        lambda dy, y, x: gnp.astype(gnp.astype(rule(dy, y, x), "float32"), "float64")
    ),
}
UPSTREAM = {
    "upstream ignored": gnp.ones_like,
    "clipped upstream": lambda dy: gnp.clip(dy, -0.5, 0.5),
    "rectified upstream": lambda dy: gnp.maximum(dy, 0),
    "absolute upstream": gnp.abs,
}
DIAGNOSES = {*CHANGES, *UPSTREAM}


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("mistake", CHANGES)
@pytest.mark.parametrize("seed", [0, 1])
def test_each_mistake_has_its_name(name, mistake, seed):
    forward, rule = RIGHT[name]
    op = operation(forward, CHANGES[mistake](rule))
    found = explained(op, normal(4, 4, seed=seed + 3), seed=seed)
    assert found.diagnosis == mistake, found
    assert found.repair


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("mistake", UPSTREAM)
def test_what_is_done_to_the_upstream_has_its_name(name, mistake):
    forward, rule = RIGHT[name]
    op = operation(forward, lambda dy, y, x: rule(UPSTREAM[mistake](dy), y, x))
    (found,) = gs.check(op, normal(4, 4, seed=3)).findings
    assert found.diagnosis == mistake, found


@pytest.mark.parametrize("framework", ["torch", "jax", "tensorflow"])
@pytest.mark.parametrize("mistake", ["sign", "factor", "transposed"])
def test_in_the_frameworks(framework, mistake):
    op = operation(softmax, CHANGES[mistake](softmax_rule))
    found = explained(op, normal(4, 4), framework=framework)
    assert found.diagnosis == mistake, found


@pytest.mark.parametrize(
    ("c", "words"), [(2.0, "2 times"), (0.5, "1/2 times"), (-0.25, "-1/4 times")]
)
def test_factors_in_words(c, words):
    op = operation(scaled_sine, lambda dy, y, x: c * scaled_sine_rule(dy, y, x))
    found = explained(op, normal(3, 4))
    assert found.diagnosis == "factor"
    assert words in found.message


# --- broadcasts


def test_mean_for_sum():
    op = operation(add, lambda dy, y, x, b: (1 * dy, gnp.mean(dy, axis=0)))
    found = explained(op, normal(3, 4), normal(4))
    assert found.diagnosis == "mean for sum"
    assert "gs.unbroadcast" in str(found.repair)


def test_one_factor_for_all_arguments_is_no_mean():
    op = operation(add, lambda dy, y, x, b: (dy / 3, gnp.sum(dy, axis=0) / 3))
    found = explained(op, normal(3, 4), normal(4), argument="b")
    assert found.diagnosis == "factor"


def test_only_one_row_of_a_broadcast():
    op = operation(add, lambda dy, y, x, b: (1 * dy, 1 * dy[0]))
    found = explained(op, normal(3, 4), normal(4))
    assert found.diagnosis == "missing broadcast sum"


def test_sum_over_the_wrong_axis_of_a_broadcast():
    op = operation(add, lambda dy, y, x, b: (1 * dy, gnp.sum(dy, axis=1)))
    assert explained(op, normal(4, 4), normal(4)).diagnosis == "wrong axis"


# --- axes and arguments


def test_reduction_inside_of_softmax_along_the_wrong_axis():
    op = operation(
        softmax, lambda dy, y, x: y * (dy - gnp.sum(y * dy, axis=0, keepdims=True))
    )
    found = explained(op, normal(4, 4))
    assert found.diagnosis == "wrong axis"
    assert "axis 1" in str(found.repair)


def test_reduction_over_all_axes_instead_of_one():
    op = operation(softmax, lambda dy, y, x: y * (dy - gnp.sum(y * dy)))
    assert explained(op, normal(3, 4)).diagnosis == "wrong axis"


def test_factor_reduced_along_the_wrong_axis():
    def forward(x):
        return gnp.log(gnp.sum(gnp.exp(x), axis=1))

    def rule(dy, y, x):
        e = gnp.exp(x)
        return gnp.expand_dims(dy, 1) * e / gnp.sum(e, axis=0, keepdims=True)

    assert explained(operation(forward, rule), normal(3, 4)).diagnosis == "wrong axis"


def test_a_plain_sum_spread_along_the_wrong_axis_is_also_transposed():
    op = operation(
        lambda x: gnp.sum(x, axis=0),
        lambda dy, y, x: gnp.broadcast_to(gnp.expand_dims(dy, 1), gnp.shape(x)),
    )
    assert explained(op, normal(4, 4)).diagnosis == "wrong axis or transposed"


def test_transposed_factor_of_a_product():
    op = operation(matmul, lambda dy, y, a, b: (dy @ b, T(a) @ dy))
    found = explained(op, normal(4, 4), normal(4, 4, seed=2))
    assert found.diagnosis == "transposed"
    assert "factor" in found.message


def test_swapped_arguments():
    op = operation(matmul, lambda dy, y, a, b: matmul_rule(dy, y, a, b)[::-1])
    found = explained(op, normal(4, 4), normal(4, 4, seed=2))
    assert found.diagnosis == "swapped arguments"
    assert "gradient of a is the one of b" in found.message


def test_swapped_arguments_of_a_difference_have_the_wrong_sign():
    op = operation(lambda a, b: a - b, lambda dy, y, a, b: (-dy, dy))
    assert explained(op, normal(3), normal(3)).diagnosis == "sign or swapped arguments"


def test_conjugated():
    op = operation(lambda z: z * z, lambda dy, y, z: 2 * z * dy)
    z = normal(3, 2) + 1j * normal(3, 2, seed=2)
    assert explained(op, z).diagnosis == "conjugated"


# --- terms


@pytest.mark.parametrize("terms", ["a", "b"])
def test_dropped_term_of_layer_norm(terms):
    op = operation(layer_norm, lambda *args: layer_norm_rule(*args, terms=terms))
    assert explained(op, normal(3, 5)).diagnosis == "dropped term"


def test_dropped_sum_of_softmax():
    found = explained(operation(softmax, lambda dy, y, x: y * dy), normal(3, 4))
    assert found.diagnosis == "dropped term"
    assert "sum(dy y, axis=1)" in found.message


def test_dropped_term_of_a_product_rule():
    op = operation(scaled_sine, lambda dy, y, x: dy * gnp.sin(x))
    found = explained(op, normal(3, 4))
    assert found.diagnosis == "dropped term"
    assert "x cos(x) dy" in found.message


def mish(x):
    return x * gnp.tanh(gnp.log(1 + gnp.exp(x)))


def affine_norm(x, gain, bias):
    return layer_norm(x) * gain + bias


def affine_norm_rule(dy, y, x, gain, bias):
    h = layer_norm(x)
    r = 1 / gnp.sqrt(gnp.var(x, axis=-1, keepdims=True) + 1e-5)
    dh = dy * gain
    dx = r * (dh - gnp.mean(dh, axis=-1, keepdims=True))  # not along h
    return dx, gnp.sum(dy * h, axis=0), gnp.sum(dy, axis=0)


@pytest.mark.parametrize(
    ("forward", "rule", "shapes"),
    [
        (mish, lambda dy, y, x: dy * gnp.tanh(gnp.log(1 + gnp.exp(x))), [(3, 4)]),
        (affine_norm, affine_norm_rule, [(3, 5), (5,), (5,)]),
        (lambda x: gnp.var(x, axis=1), lambda dy, y, x: dy[:, None] * x / 2, [(3, 4)]),
        (lambda x: gnp.tanh(x), lambda dy, y, x: -dy * y * y, [(3, 4)]),
        (
            lambda a, b: gnp.sqrt(gnp.sum((a - b) ** 2, axis=1)),
            lambda dy, y, a, b: (a * (dy / y)[:, None], (b - a) * (dy / y)[:, None]),
            [(3, 4), (3, 4)],
        ),
    ],
    ids=["mish", "layer norm", "variance", "tanh", "distance"],
)
def test_dropped_terms_of_many_forms(forward, rule, shapes):
    xs = [normal(*shape, seed=k + 5) for k, shape in enumerate(shapes)]
    found = explained(operation(forward, rule), *xs)
    assert found.diagnosis == "dropped term", found


def test_an_operation_that_raises_elsewhere_is_explained_as_far_as_it_goes():
    def forward(x):
        if np.any(np.asarray(x) < 0.25):
            raise ValueError("below 1/4")
        return x * x

    op = operation(forward, lambda dy, y, x: -2 * x * dy)
    assert explained(op, np.array([1.0, 2.0, 3.0])).diagnosis == "sign"


def test_a_rule_that_raises_leaves_the_facts():
    calls = []

    def rule(dy, y, x):
        calls.append(1)
        if len(calls) > 6:
            raise ValueError("enough")
        return 0.5 * x * dy

    found = explained(operation(lambda x: x * x, rule), normal(3))
    assert found.diagnosis is None
    assert "enough" in found.message


def test_unused_output():
    op = operation(
        lambda x: (gnp.sin(x), gnp.cos(x)), lambda dy, y, x: dy[0] * gnp.cos(x)
    )
    found = explained(op, normal(3, 4))
    assert (found.diagnosis, found.output) == ("dropped term", "output 1")


def test_sign_of_one_term_is_not_the_sign():
    op = operation(
        softmax, lambda dy, y, x: y * (dy + gnp.sum(y * dy, axis=-1, keepdims=True))
    )
    found = explained(op, normal(3, 4))
    assert found.diagnosis == "sign of one term"


def test_mean_for_sum_inside():
    op = operation(
        softmax, lambda dy, y, x: y * (dy - gnp.mean(y * dy, axis=-1, keepdims=True))
    )
    assert explained(op, normal(3, 4)).diagnosis == "mean for sum"


# --- not named


def test_sign_of_one_addend_is_not_the_sign():
    op = operation(scaled_sine, lambda dy, y, x: dy * (gnp.sin(x) - x * gnp.cos(x)))
    assert explained(op, normal(3, 4)).diagnosis not in DIAGNOSES


@pytest.mark.parametrize("seed", range(3))
def test_what_is_none_of_them_has_no_name(seed):
    op = operation(
        lambda x: gnp.tanh(x) ** 3 + gnp.sin(x),
        lambda dy, y, x: dy * (gnp.cosh(0.3 * x) + gnp.sin(2 * x)),
    )
    found = explained(op, normal(3, 4, seed=seed), seed=seed)
    assert found.diagnosis is None
    assert "relative error" in found.message


def test_a_sum_of_two_mistakes_is_neither():
    op = operation(softmax, lambda dy, y, x: -T(softmax_rule(dy, y, x)))
    assert explained(op, normal(4, 4)).diagnosis not in {"sign", "transposed"}


def test_not_finite():
    op = operation(
        lambda x: gnp.sqrt(x * x + 1) + x * x,
        lambda dy, y, x: dy * (x / gnp.sqrt(x * x + 1) + 2 * x) * (x / x),
    )
    (found, *_) = gs.check(op, np.array([1.0, 0.0, 2.0])).limits
    assert (found.what, found.diagnosis) == ("not finite", "not finite")
    assert "nan at x[1] = 0" in found.message


def test_no_multiple_of_nothing_is_a_missing_term():
    """Without its mean along an axis of length 1 an argument is zero."""
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, 4, 4))
    op = operation(lambda x: x @ a, lambda dy, y, x: dy @ b)
    for finding in gs.check(op, random.normal(size=(1, 4))).findings:
        assert "mean(" not in finding.message
