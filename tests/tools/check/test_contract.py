import numpy as np
import pytest

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith.tools.check.contract import check_contract

from .helpers import FRAMEWORKS, X, checked, kinds, native

NATIVE = FRAMEWORKS[1:]
B = X[0]


def add(x, b):
    return x + b


def summed(dy, y, x, b):
    return dy, gnp.sum(dy, axis=0)


def op_of(framework, rule):
    return native(framework, add, rule)


@pytest.mark.parametrize("framework", NATIVE)
def test_right_rule_is_right(framework):
    session = checked(check_contract, op_of(framework, summed), X, B)
    assert not session.reported
    assert [check.what for check in session.checks] == ["contract"]


@pytest.mark.parametrize("framework", NATIVE)
def test_missing_broadcast_sum(framework):
    op = op_of(framework, lambda dy, y, x, b: (dy, dy))
    (finding,) = checked(check_contract, op, X, B).reported
    assert finding.diagnosis == "missing broadcast sum"
    assert "(3, 4), not (4,)" in finding.message
    assert ("PyTorch sums it" in finding.message) == (framework == "torch")


@pytest.mark.parametrize("framework", NATIVE)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_dtype_that_leaks(framework, dtype):
    if (framework, dtype) == ("jax", "float64"):
        return  # JAX has no float64 beside float32, unless it is told to

    def rule(dy, y, x, b):
        return gnp.astype(dy, getattr(gnp, dtype)), gnp.sum(dy, axis=0)

    (finding,) = checked(check_contract, op_of(framework, rule), X, B).reported
    assert (finding.what, dtype in finding.message) == ("dtype", True)


@pytest.mark.parametrize("framework", NATIVE)
def test_transposed_shape_is_found_though_the_framework_raises(framework):
    op = op_of(framework, lambda dy, y, x, b: (gnp.transpose(dy), gnp.sum(dy, axis=0)))
    (finding,) = checked(check_contract, op, X, B).reported
    assert finding.what == "shape"
    assert "transposed" in finding.message


@pytest.mark.parametrize("framework", NATIVE)
def test_too_few_gradients(framework):
    op = op_of(framework, lambda dy, y, x, b: (dy,))
    (finding,) = checked(check_contract, op, X, B).reported
    assert "wrong number of gradients" in finding.message


@pytest.mark.parametrize("framework", NATIVE)
def test_none_where_the_outputs_do_change(framework):
    op = op_of(framework, lambda dy, y, x, b: (dy, None))
    assert kinds(checked(check_contract, op, X, B)) == ["no gradient"]


@pytest.mark.parametrize("framework", NATIVE)
def test_none_where_they_do_not(framework):
    op = native(framework, lambda x, b: x * 2, lambda dy, y, x, b: (2 * dy, None))
    assert not checked(check_contract, op, X, B).reported


@pytest.mark.parametrize("framework", NATIVE)
def test_what_the_rule_raises_passes_through(framework):
    def rule(dy, y, x, b):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        checked(check_contract, op_of(framework, rule), X, B)


def test_jax_arguments_that_are_not_differentiated():
    jax = pytest.importorskip("jax")
    op = jax.custom_vjp(lambda n, x: n * x, nondiff_argnums=(0,))
    op.defvjp(lambda n, x: (n * x, None), lambda n, _, dy: (n * dy,))
    assert not checked(check_contract, op, 3, X).reported


def test_torch_constants_have_a_none():
    torch = pytest.importorskip("torch")

    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, n):
            ctx.n = n
            return n * x

        @staticmethod
        def backward(ctx, dy):
            return ctx.n * dy, None

    assert not checked(check_contract, Scale, X, 3).reported


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_our_contract_is_reported_not_raised(framework):
    @gs.custom_gradient
    def wrong(x, b):
        return x + b, lambda dy: (dy, dy)

    (finding,) = checked(check_contract, wrong, X, B, framework=framework).reported
    assert (finding.what, finding.argument) == ("contract", "b")
    assert finding.diagnosis == "missing broadcast sum"


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_ours_is_right(framework):
    @gs.operation
    def plus(x, b):
        return x + b

    plus.vjp(lambda dy, y, x, b: (dy, gs.unbroadcast(dy, np.shape(b))))
    assert not checked(check_contract, plus, X, B, framework=framework).reported


def test_a_gradient_that_was_not_summed_in_tensorflow():
    tf = pytest.importorskip("tensorflow")

    @tf.custom_gradient
    def add(x, b):
        return x + b, lambda dy: (dy, dy)

    report = gs.check(add, tf.ones((3, 4), tf.float64), tf.ones(4, tf.float64))
    (finding,) = report.findings
    assert (finding.what, finding.argument) == ("shape", "b")
    assert "was not summed over the axes" in finding.message


def test_gradients_in_a_dict_are_told_apart_by_their_keys():
    jax = pytest.importorskip("jax")

    @jax.custom_vjp
    def line(p):
        return p["slope"] + jax.numpy.sum(p["a shift"])

    # JAX sorts keys, so that those of the gradient have another order.
    line.defvjp(
        lambda p: (line(p), p),
        lambda p, dy: (jax.tree.map(lambda x: jax.numpy.broadcast_to(dy, x.shape), p),),
    )
    p = {"slope": jax.numpy.ones(()), "a shift": jax.numpy.ones(1)}
    assert gs.check(line, p).ok


def test_a_limit_says_what_was_expected_in_its_line():
    @gs.custom_gradient
    def step(v):
        # The value is float64, and so is dy, also where v is float32
        return gnp.where(v > 0, 1.0, 0.0), lambda dy: dy / (1 + gnp.abs(v)) ** 2

    (limit,) = gs.check(step, np.linspace(-1.0, 1.0, 5)).limits
    assert limit.limit.endswith(
        "(expected: shape (5,), float32; got: shape (5,), float64)"
    )
