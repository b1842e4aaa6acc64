"""How much a finding weighs: wrong, a limit, a surrogate; and what is never wrong."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch

import gradsmith as gs
from gradsmith.tools.check import budget
from gradsmith.tools.check.inputs import CheckInputs
from gradsmith.tools.check.problem import problem_for
from gradsmith.tools.check.scenarios import scenarios
from gradsmith.tools.check.structure import structure_of

from .helpers import native

X = np.random.default_rng(0).normal(size=(3, 4))
TORCH = torch.tensor(X)


def whats(findings):
    return [finding.what for finding in findings]


def strictly(op, *inputs):
    return gs.check.options(strict=True)(op, *inputs).ok


# --- surrogates


@pytest.mark.parametrize(
    ("body", "rule", "said"),
    [
        (torch.round, lambda dy, y, x: (dy,), "in jumps only"),
        (torch.sign, lambda dy, y, x: (dy * (abs(x) < 1),), "in jumps only"),
        (lambda x: torch.clamp(x, -0.5, 0.6), lambda dy, y, x: (dy,), "clamped"),
        (torch.clone, lambda dy, y, x: (-dy,), "reversed"),
        (torch.clone, lambda dy, y, x: (0.1 * dy,), "multiplied by 1/10"),
        (torch.clone, lambda dy, y, x: (0 * dy,), "stopped"),
        (torch.clone, lambda dy, y, x: (dy.clamp(-1, 1),), "clipped to -1 ... 1"),
    ],
)
def test_by_its_looks_on_purpose(body, rule, said):
    op = native("torch", body, rule)
    report = gs.check(op, TORCH)
    assert report.verdict == "surrogate", report
    assert said in str(report)
    assert report.ok
    assert not strictly(op, TORCH)
    declared = gs.check.options(surrogate="on purpose", strict=True)(op, TORCH)
    if said != "clipped to -1 ... 1":  # that is not linear, which is declared elsewhere
        assert declared.verdict == "as declared"


def test_a_clip_whose_bounds_have_no_gradient():
    @tf.custom_gradient
    def leaky(x, low, high):
        def grad(dy):
            leaves = ((x < low) & (dy > 0)) | ((x > high) & (dy < 0))
            return tf.where(leaves, tf.zeros_like(dy), dy), None, None

        return tf.clip_by_value(x, low, high), grad

    report = gs.check(leaky, *map(tf.constant, ([-1.0, 0.2, 0.9, 0.3], -0.5, 0.5)))
    assert report.verdict == "surrogate", report
    assert [f.argument for f in report.limits] == ["low", "high"]


def test_a_wrong_sign_is_no_surrogate():
    op = native("torch", torch.sin, lambda dy, y, x: (-dy * torch.cos(x),))
    assert gs.check(op, TORCH).verdict == "wrong"


def test_an_argument_that_is_not_used_is_no_surrogate():
    op = native("torch", lambda x, w: 2 * x + 0 * w, lambda dy, y, x, w: (2 * dy, dy))
    assert gs.check(op, TORCH, TORCH + 1).verdict == "wrong"


# --- the size of an error


def test_an_error_that_float32_does_not_hold_is_a_limit():
    op = native("torch", torch.sin, lambda dy, y, x: (dy * torch.cos(x) * (1 + 1e-8),))
    report = gs.check(op, TORCH.float())
    assert report.verdict == "right, with limits", report
    assert re.search("agrees to [78] digits", report.limits[0].message)
    assert gs.check(op, TORCH).verdict == "wrong"  # float64 holds it


def test_a_single_wrong_element_is_no_small_error():
    def rule(dy, y, x):
        g = dy * torch.cos(x)
        return (torch.where(torch.arange(x.numel()) == 7, 1.01 * g, g),)

    x = torch.tensor(np.linspace(1, 2, 5000), dtype=torch.float32)
    assert gs.check(native("torch", torch.sin, rule), x).verdict == "wrong"


def series(x):
    """The normal distribution, to 8 digits of its value: beyond 4 another series."""
    return torch.special.ndtr(x) + 1e-8 * torch.relu(x - 4)


def density(dy, y, x):
    return (dy * torch.exp(-x * x / 2) / np.sqrt(2 * np.pi),)


def test_a_slope_in_the_tail_may_be_less_than_the_value_shows():
    """At 5 the slope is 1.5e-6, and the value is 1 to 8 digits."""
    op = native("torch", series, density)
    for x in (TORCH.float(), TORCH):
        report = gs.check(op, x)
        assert report.verdict == "right, with limits", report
        assert "digits" in report.limits[0].message


@pytest.mark.parametrize("beyond", [0.5, 2.5])
def test_a_wrong_tail_is_seen_all_the_same(beyond):
    def rule(dy, y, x):
        (g,) = density(dy, y, x)
        return (torch.where(x > beyond, 0.9 * g, g),)

    x = TORCH.float().clamp(-1.8, 1.8)
    assert gs.check(native("torch", series, rule), x).verdict == "wrong"


def test_wrong_small_elements_are_not_hidden_by_large_ones():
    def rule(dy, y, x):
        return (torch.where(x.abs() < 0.01, 2.2 * dy * x, 2 * dy * x),)

    x = torch.tensor([1e-4, 3.0, -2.0, 5.0, -1e-3, 0.5])
    assert gs.check(native("torch", torch.square, rule), x).verdict == "wrong"


# --- limits


def test_no_gradient_for_labels_hides_no_mistake_elsewhere():
    def loss(x, labels):
        return x * labels

    right = native("torch", loss, lambda dy, y, x, t: (dy * t, None))
    report = gs.check(right, TORCH, TORCH + 2)
    assert report.verdict == "right, with limits", report
    assert "no gradient" in whats(report.limits)
    wrong = native("torch", loss, lambda dy, y, x, t: (2 * dy * t, None))
    assert gs.check(wrong, TORCH, TORCH + 2).verdict == "wrong"


def test_no_gradient_for_weights_of_rows():
    op = native(
        "torch",
        lambda x, w: torch.sin(x) * w,
        lambda dy, y, x, w: (dy * x.cos() * w, None),
    )
    report = gs.check(op, TORCH, torch.tensor([[1.0], [2.0], [3.0]]).double())
    assert report.verdict == "right, with limits", report


def test_an_argument_of_a_function_that_has_no_gradient():
    report = gs.check(lambda x, w: x.sin() * w.detach(), TORCH, TORCH + 2)
    assert report.verdict == "right, with limits", report
    assert [(f.what, f.argument) for f in report.limits] == [("no gradient", "w")]
    wrong = lambda x, w: x.sin() * x.data * w.data
    assert gs.check(wrong, TORCH, TORCH + 2).verdict == "wrong"
    meant = lambda x, w: x.sin() * x.detach() * w.detach()
    assert gs.check(meant, TORCH, TORCH + 2).verdict == "surrogate"


def test_no_gradient_at_all_is_wrong():
    op = native("torch", torch.sin, lambda dy, y, x: (None,))
    assert gs.check(op, TORCH).verdict == "wrong"


def test_float64_written_into_a_value():
    @tf.custom_gradient
    def mask(x):
        return tf.cast(x > 0.1, tf.float64), lambda dy: tf.exp(-x * x) * dy

    assert gs.check(mask, tf.constant(X)).verdict == "surrogate"


def test_float32_written_into_a_rule():
    @jax.custom_vjp
    def f(x):
        return jnp.sin(x)

    f.defvjp(
        lambda x: (f(x), x), lambda x, dy: ((dy * jnp.cos(x)).astype(jnp.float32),)
    )
    assert gs.check(f, jnp.asarray(X, jnp.float32)).ok


def test_deviations_of_a_single_number():
    op = lambda x: torch.sqrt(torch.mean((x - x.mean(-1, True)) ** 2, -1))
    report = gs.check(op, TORCH)
    assert report.verdict == "right, with limits", report
    assert {"not finite"} == {*whats(report.limits)}
    assert "with axes of length 1" in str(report)


@pytest.mark.parametrize("x", [X, X[0]])
def test_wrong_at_zero_alone(x):
    cube = lambda x: x**3 + x
    rule = lambda dy, y, x: (dy * torch.where(x == 0, 2.0, 3 * x**2 + 1),)
    report = gs.check(native("torch", cube, rule), torch.tensor(x))
    assert report.verdict == "right, with limits", report
    assert "wrong at argument 0 = 0, and right elsewhere" in " ".join(
        str(report).split()
    )
    given = torch.tensor([0.0, *x.ravel()])
    assert gs.check(native("torch", cube, rule), given).verdict == "wrong"


def test_limits_of_several_arguments_are_one_line():
    def rule(dy, y, a, b, c):
        return tuple(dy * other.detach() for other in (b * c, a * c, a * b))

    op = native("torch", lambda a, b, c: a * b * c, rule)
    report = gs.check(op, *(TORCH.abs() + k for k in (1, 2, 3)))
    assert whats(report.limits).count("second order") == 3, report
    assert str(report).count("limit: second order") == 1
    assert "(of argument 0, argument 1 and argument 2)" in str(report)


def test_nan_of_second_order_is_a_limit():
    # sqrt(x * x): its gradient x / y is right, and the derivative of that is NaN at 0
    class Length(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.abs()

        @staticmethod
        def backward(ctx, dy):
            (x,) = ctx.saved_tensors
            safe = torch.where(x == 0, torch.ones_like(x), x)
            return torch.where(x == 0, 0 * x, dy * x / torch.sqrt(safe * safe + 0 * x)
                               ) + 0 * torch.sqrt(x.abs())  # fmt: skip

    x = torch.tensor([0.0, 1.0, -2.0, 0.5], dtype=torch.float64)
    report = gs.check(Length, x)
    assert report.verdict == "right, with limits", report
    second = [limit for limit in report.limits if limit.what == "second order"]
    assert any("nan" in limit.message for limit in second)


def test_a_rule_that_changes_what_it_saved_is_not_random():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.twice = 2 * x
            return x * x

        @staticmethod
        def backward(ctx, dy):
            return ctx.twice.mul_(dy)

    report = gs.check(Square, TORCH)
    assert report.verdict == "right, with limits", report
    assert "a second backward" in whats(report.limits)
    assert "random" not in str(report)


def test_nan_in_a_region_of_the_given_inputs_is_wrong():
    def rule(dy, y, x):
        return dy * torch.exp(x) / (1 + torch.exp(x))

    op = native(
        "torch", torch.nn.functional.softplus, lambda dy, y, x: (rule(dy, y, x),)
    )
    assert gs.check(op, 1000 + TORCH).verdict == "wrong"
    report = gs.check(op, TORCH)
    assert report.verdict == "right, with limits", report
    assert "not finite" in whats(report.limits)


def test_a_gradient_of_another_shape_is_told_not_raised():
    @tf.custom_gradient
    def total(x):
        return tf.reduce_sum(x * x), lambda dy: 2 * dy * tf.reduce_sum(x)

    report = gs.check(lambda x: total(x), tf.constant(X))
    assert report.verdict == "wrong", report


def test_arguments_without_a_gradient_that_are_left_at_their_defaults():
    @partial(jax.custom_vjp, nondiff_argnums=(1,))
    def power(x, n=2):
        return x**n

    power.defvjp(
        lambda x, n: (power(x, n), x), lambda n, x, dy: (n * x ** (n - 1) * dy,)
    )
    report = gs.check(power, jnp.asarray(X))
    assert report.ok, report
    assert "contract" not in whats(report.limits)


# --- inputs of the same kind


SIMPLEX = np.abs(X) / np.sum(np.abs(X), -1, keepdims=True)
LENGTHS = np.linalg.norm(X, axis=-1, keepdims=True)
SQUARE = X[:, :3]


@pytest.mark.parametrize(
    ("x", "name"),
    [
        (SQUARE + SQUARE.T, "symmetric"),
        (SQUARE @ SQUARE.T + np.eye(3), "positive definite"),
        (np.tril(SQUARE), "triangular"),
        (np.linalg.qr(SQUARE)[0], "orthogonal"),
        (SIMPLEX, "probabilities"),
        (np.log(SIMPLEX), "logarithms of probabilities"),
        (X / LENGTHS, "unit vectors"),
        (np.eye(4)[[0, 2, 1]], "one-hot"),
        ((X > 0).astype(float), "zeros and ones"),
        (np.array([3.0, 0.0, 5.0, 2.0]), "integers"),
        (np.sort(X, -1), "in order"),
    ],
)
def test_structure_is_recognized_and_kept(x, name):
    structure = structure_of(x)
    assert structure is not None
    assert structure.name == name
    kept = structure.keep(5 * np.random.default_rng(1).normal(size=x.shape))
    again = structure_of(kept)
    assert again is not None
    assert again.name in (name, "positive definite" if name == "symmetric" else name)


@pytest.mark.parametrize("x", [X, X[0, 0], X[0, :2], np.zeros((0, 3))])
def test_plain_numbers_have_no_structure(x):
    assert structure_of(np.asarray(x)) is None


def test_inputs_that_we_make_up_stay_probabilities():
    problem = problem_for(np.sum, CheckInputs((SIMPLEX,), {}, ()), "numpy")
    made = [*scenarios(problem, [0.3], np.random.default_rng(0))]
    assert len(made) > 5
    for scenario in made:
        (p,) = scenario.problem.xs
        np.testing.assert_allclose(np.sum(p, -1), 1, err_msg=scenario.name)
        assert np.all(p >= 0), scenario.name


@pytest.mark.parametrize(
    ("body", "rule", "x"),
    [
        # each loss by what the argument is made of: softmax, x / sum(x), x / |x|
        (lambda x: -x[:, 0], lambda x: np.exp(x) - np.eye(4)[0], np.log(SIMPLEX)),
        (lambda x: np.sum(x * np.log(x), -1), lambda x: np.log(x), SIMPLEX),
        (lambda x: np.sum(x**3, -1), lambda x: 3 * x**2 - 5 * x, X / LENGTHS),
    ],
)
def test_right_as_long_as_the_structure_is_kept(body, rule, x):
    def check(scale):
        op = gs.operation(body)
        op.vjp(lambda dy, y, x: dy[:, None] * scale * rule(x))
        return gs.check(op, x)

    report = check(1.0)
    assert report.verdict == "right, with limits", report
    assert any("keeps to" in limit.message for limit in report.limits)
    assert check(1.01).verdict == "wrong"


def test_the_gradient_of_ctc_loss_is_meant_for_log_probabilities():
    labels = torch.tensor([[1, 2, 2], [3, 1, 1]])
    lengths = torch.tensor([6, 5]), torch.tensor([3, 2])
    x = torch.tensor(np.random.default_rng(0).normal(size=(6, 2, 4)))
    report = gs.check(torch.nn.CTCLoss(), x.log_softmax(-1), labels, *lengths)
    assert report.ok, report
    assert any("keeps to" in limit.message for limit in report.limits)


def scaled_density(x, s):
    """That of a normal distribution, with a rule for positive s."""
    y = np.exp(-0.5 * (x / s) ** 2) / np.abs(s)
    return y, lambda dy: (-dy * y * x / s / np.abs(s), dy * y * ((x / s) ** 2 - 1) / s)


def mixed(x, s):
    """The same of sums, which is no elementwise operation."""
    z, back = scaled_density(x, s)
    return np.cumsum(z), lambda dy: back(np.cumsum(dy[::-1])[::-1])


@pytest.mark.parametrize("body", [scaled_density, mixed])
@pytest.mark.parametrize("seed", range(3))
def test_a_parameter_keeps_its_sign_where_others_are_judged(body, seed):
    x, s = np.array([0.7, -1.1, 0.3, -0.2]), np.array([0.5, 1.5, 0.8, 1.1])
    op = gs.custom_gradient(body)
    report = gs.check.options(seed=seed)(op, x, s)
    assert report.verdict == "right, with limits", report
    assert any("signs of s" in (limit.scenario or "") for limit in report.limits)
    assert gs.check.options(seed=seed)(op, x, -s).verdict == "wrong"


@pytest.mark.parametrize("wide", [False, True])
def test_wrong_for_other_signs_of_itself_stays_wrong(wide):
    """Of one argument among several, given with one sign."""

    def body(x, w):
        z = np.cumsum(x * w) if wide else x * w
        back = (lambda dy: np.cumsum(dy[::-1])[::-1]) if wide else (lambda dy: dy)

        def grad(dy):
            dx = back(dy) * w
            return np.where(x < 0, 0.5 * dx, dx), back(dy) * x

        return z, grad

    x, w = np.array([0.7, 1.1, 0.3, 0.2]), np.array([0.5, -1.5, 0.8, 1.1])
    for other in (w, np.abs(w)):
        report = gs.check(gs.custom_gradient(body), x, other)
        assert report.verdict == "wrong", report
        assert report.findings[0].argument == "x"


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        (torch.linalg.solve, (X[:, :3], X)),
        (torch.linalg.inv, (X[:, :3],)),
        (torch.linalg.cholesky, (SQUARE @ SQUARE.T + np.eye(3),)),
        (torch.pow, (np.array([2.0, 3.0, 0.5]), np.array([20.0, 3.0, 2.0]))),
        (torch.xlogy, (np.abs(X), np.abs(X))),
        (torch.atan2, (X, X[::-1].copy())),
        (lambda x: torch.linalg.norm(x, dim=-1), (X,)),
    ],
)
def test_right_everywhere_that_counts(op, inputs, seed):
    report = gs.check.options(seed=seed)(op, *map(torch.tensor, inputs))
    assert report.ok, report


# --- the budget


@pytest.fixture
def slow(monkeypatch):
    """An operation that takes a share of the check's time, by the check's clock."""
    now = [0.0]
    monkeypatch.setattr(budget, "time", SimpleNamespace(perf_counter=lambda: now[0]))

    def of(seconds, share):
        def slow(x):
            now[0] += seconds * share
            return torch.sin(x)

        slow.now = now
        return slow

    return of


def test_a_slow_operation_gets_the_verdict_so_far(slow):
    op = slow(6, 1 / 40)
    report = gs.check.options(seconds=6)(op, TORCH)
    assert op.now[0] < 6 * 1.2
    assert report.ok, report
    assert any("not reached in 6 s" in note for note in report.notes)


def test_too_little_time_gives_no_verdict(slow):
    report = gs.check.options(seconds=0.5)(slow(0.5, 0.4), TORCH)
    assert report.verdict == "could not tell"
    assert "seconds=" in str(report)


ENDLESS = """
import time
from types import SimpleNamespace
import torch
import gradsmith as gs
from gradsmith.tools.check import budget

# By its clock a check takes no time, whatever else runs; what never ends is left
budget.time = SimpleNamespace(perf_counter=lambda: 0.0)

def op(x):  # it never ends for negative numbers
    while bool((x < 0).any()):
        time.sleep(0.1)
    return torch.sin(x)

report = gs.check.options(seconds=6)(op, torch.linspace(0.5, 2, 6))
print(report)
assert report.ok
assert any("not reached in 6 s: other inputs" in note for note in report.notes)
"""


def test_a_loop_that_never_ends_at_inputs_that_we_made_up():
    # In a process of its own: the loop goes on as long as that does.
    command = [sys.executable, "-c", ENDLESS]
    found = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize("seconds", [0, -1, "a"])
def test_seconds_are_a_positive_number(seconds):
    with pytest.raises(gs.GradsmithError, match="seconds="):
        gs.check.options(seconds=seconds)


# --- options


def test_keywords_are_the_operations_own():
    def noise(x, *, seed, framework):
        assert framework == "mine"
        return x * seed

    assert gs.check(noise, X, seed=3, framework="mine").ok


def test_an_option_as_a_keyword_is_told():
    with pytest.raises(gs.GradsmithError, match=r"gs.check.options\(seed=...\)"):
        gs.check(lambda x: x, X, seed=3)


def test_an_unknown_option_is_told():
    with pytest.raises(gs.GradsmithError, match="no option 'speed'; it has framework"):
        gs.check.options(speed=3)


# --- proof


def torch_square():
    return native("torch", lambda x, b: x * x * b,
                  lambda dy, y, x, b: (3 * x * b * dy, x * x * dy))  # fmt: skip


def jax_square():
    return native("jax", lambda x, b: x * x * b,
                  lambda dy, y, x, b: (3 * x * b * dy, x * x * dy))  # fmt: skip


def tensorflow_square():
    return native("tensorflow", lambda x, b: x * x * b,
                  lambda dy, y, x, b: (3 * x * b * dy, x * x * dy))  # fmt: skip


@gs.operation
def square(x, b):
    return x * x * b


@square.vjp
def _(dy, y, x, b):
    return 3 * x * b * dy, x * x * dy


@pytest.mark.parametrize(
    ("op", "array"),
    [
        (torch_square(), torch.tensor),
        (jax_square(), jnp.asarray),
        (tensorflow_square(), tf.constant),
        (square, np.asarray),
    ],
    ids=["torch", "jax", "tensorflow", "numpy"],
)
def test_the_reproducer_shows_it(op, array):
    report = gs.check(op, array(X), array(X + 3))
    (finding,) = report.findings
    script = finding.reproducer
    assert script is not None
    assert "gradsmith" not in script or op is square
    comment = next(
        x for x in script.splitlines() if "was checked" in x or "square" in x
    )
    name = comment.split()[1] if comment.startswith("#") else "square"
    said, scope = io.StringIO(), {name: op}
    before = jax.config.jax_enable_x64  # which the script sets
    try:
        with redirect_stdout(said):
            exec(script, scope)
    finally:
        jax.config.update("jax_enable_x64", before)
    # The rule has 3 x b in place of 2 x b, so it is 3/2 of the difference.
    rule, difference = (float(x) for x in re.findall(r": +(\S+)", said.getvalue()))
    assert rule == pytest.approx(1.5 * difference, rel=1e-6)
    assert difference != 0


def test_the_rule_is_shown_with_its_line():
    report = gs.check(square, X, X + 3)
    assert report.rule is not None
    assert report.rule.file == __file__
    assert "3 * x * b * dy" in report.rule.text
    assert f"{__file__}:{report.rule.line}" in str(report).replace("\n    ", "")


def test_the_rule_of_a_closure_is_its_authors_not_the_frameworks():
    def body(x):
        return x * x, lambda dy: (3 * x * dy,)

    report = gs.check(jax.custom_gradient(body), jnp.asarray(X))
    assert report.verdict == "wrong"
    assert report.rule is not None
    assert report.rule.file == __file__
    assert "3 * x * dy" in report.rule.text


def test_a_limit_says_on_which_inputs():
    finding = gs.tools.check.Finding("first order", "off", "x", scenario="some zeros")
    assert finding.limit == "first order (of x, with some zeros): off"
    given = replace(finding, scenario="the given inputs")
    assert given.limit == "first order (of x): off"
