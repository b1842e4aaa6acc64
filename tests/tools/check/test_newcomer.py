"""`check` on what people have: functions, modules, layers, odd inputs and outputs."""

import dataclasses

import jax
import jax.numpy as jnp
import keras
import numpy as np
import pytest
import tensorflow as tf
import torch

import gradsmith as gs

from .helpers import X


@dataclasses.dataclass
class Pair:
    w: object
    b: object


def right(op, *inputs, seed=0, **keywords):
    report = gs.check.options(seed=seed)(op, *inputs, **keywords)
    assert report.ok, report
    return report


# --- where several kinks meet: each choice is a valid subgradient ---------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sort", [torch.sort, jnp.sort, tf.sort])
def test_sorting_equal_numbers(sort, seed):
    right(sort, X, seed=seed)


@pytest.mark.parametrize("seed", range(3))
def test_equal_eigenvalues(seed):
    right(lambda x: torch.linalg.eigvalsh(x + x.T), torch.tensor(X[:, :3]), seed=seed)


def test_sorting_with_a_wrong_rule_for_equal_numbers():
    class Sort(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y, places = x.sort(-1)
            ctx.save_for_backward(x, y, places)
            return y

        @staticmethod
        def backward(ctx, dy):
            x, y, places = ctx.saved_tensors
            tied = (x[..., :, None] == y[..., None, :]).sum(-1)
            return torch.zeros_like(x).scatter(-1, places, dy) * tied

    report = gs.check(Sort, X)
    assert "first order" in [limit.what for limit in report.limits]
    assert gs.check(Sort, np.round(X)).verdict == "wrong"


# --- modules and layers ---------------------------------------------------------------

MODULES = {
    "Linear": torch.nn.Linear(4, 3),
    "in double": torch.nn.Linear(4, 3).double(),
    "Sequential": torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)
    ),
    "BatchNorm1d": torch.nn.BatchNorm1d(4),
    "frozen": torch.nn.Linear(4, 3).requires_grad_(False),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules(name):
    dtype = torch.float64 if name == "in double" else torch.float32
    right(MODULES[name], torch.tensor(X, dtype=dtype))


def test_a_module_is_not_changed():
    module = torch.nn.BatchNorm1d(4)
    right(module, torch.tensor(X, dtype=torch.float32))
    assert int(module.num_batches_tracked) == 0
    assert module.weight.dtype is torch.float32
    assert module.weight.grad is None


def test_the_gradient_of_a_parameter():
    class Halved(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x * w

        @staticmethod
        def backward(ctx, dy):
            x, w = ctx.saved_tensors
            return dy * w, (dy * x).sum(0) / 2

    class Scale(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.arange(1.0, 5.0))

        def forward(self, x):
            return Halved.apply(x, self.w)

    (finding,) = gs.check(Scale(), torch.tensor(X, dtype=torch.float32)).findings
    assert (finding.argument, finding.diagnosis) == ("w", "factor")


def test_indices_alone_are_enough_for_a_module():
    right(torch.nn.Embedding(5, 3), torch.tensor([0, 2, 1]))


def test_a_random_module():
    report = gs.check(torch.nn.Dropout(), torch.tensor(X))
    assert "random" in str(report)


def test_a_class_is_no_operation():
    with pytest.raises(gs.GradsmithError, match="an instance of a module or layer"):
        gs.check(torch.nn.Linear, X)


@pytest.mark.parametrize("x", [X, tf.constant(X, tf.float32)])
def test_a_layer_that_computes_in_float32(x):
    report = right(keras.layers.Dense(3), x)
    assert "computes in float32" in str(report)


def test_a_function_for_float32_alone():
    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32)])
    def f(x):
        return tf.tanh(x)

    report = right(f, tf.constant(X, tf.float32))
    assert "does not take float64" in str(report)
    assert "not reached" not in str(report)  # as if it had kept its lock


def test_an_argument_without_a_name():
    op = gs.operation(lambda *xs: xs[0] * 2.0)
    op.vjp(lambda dy, y, *xs: dy)
    (finding,) = gs.check(op, X).findings
    assert finding.argument == "argument 0"


# --- inputs and outputs ---------------------------------------------------------------


@pytest.mark.parametrize("sin", [torch.sin, tf.sin, jnp.sin, np.sin])
@pytest.mark.parametrize("x", [X, 0.5])
def test_whose_function_it_is(sin, x):
    right(sin, x)


@pytest.mark.parametrize("f", [torch.tanh, jnp.tanh])
def test_a_function_that_does_not_say_whose_it_is(f):
    with pytest.raises(TypeError) as caught:
        gs.check(lambda x: f(x), X)
    assert "framework='torch'" in "".join(caught.value.__notes__)


def test_structures():
    right(lambda p: p.w * p.b, Pair(torch.tensor(X), torch.tensor(X + 1)))
    right(lambda p: {"y": p["w"] * 2, "n": 3, "z": None}, {"w": jnp.asarray(X)})


def test_an_output_that_an_argument_does_not_reach():
    report = right(lambda w, b: (w * 2, w.sum() * b), X, np.array(2.0))
    assert report.resolution < 1e-9


def test_random_keys_and_strings():
    def f(key, x):
        return x * jax.random.normal(key, (4,))

    right(f, jax.random.key(0), jnp.asarray(X))
    right(f, jax.random.PRNGKey(0), jnp.asarray(X))  # other numbers in float32
    right(lambda x, s: x * 2, tf.constant(X), tf.constant(["a", "b"]))


def test_captured_variables():
    v = tf.Variable(2.0, dtype=tf.float64)

    @tf.custom_gradient
    def scaled(x):
        return x * v, lambda dy, variables=None: (dy * v, [tf.reduce_sum(dy * x)])

    right(scaled, tf.constant(X))


def test_masked_and_read_only_arrays():
    right(np.tanh, np.ma.array(X))
    x = X.copy()
    x.setflags(write=False)
    right(np.tanh, x)


def test_a_size_that_stands_in_the_code():
    def picked(x, i):
        return jax.nn.log_softmax(x)[jnp.arange(3), i]

    right(picked, jnp.asarray(X), jnp.array([0, 1, 2]))


# --- what can't be checked, or only in part -------------------------------------------


@pytest.mark.parametrize("sin", [torch.sin, tf.sin, jnp.sin, np.sin])
def test_no_elements(sin):
    report = gs.check(sin, X[:0])
    assert report.verdict == "could not tell"
    assert "no elements" in str(report)


def test_a_number_is_no_output():
    report = gs.check(lambda x: x.sum().item(), torch.tensor(X))
    assert "no gradient is needed" in str(report)


def test_some_values_are_not_finite():
    assert "5 of 12 elements of the outputs are not" in str(right(np.log, X))


@pytest.mark.parametrize("seed", [-1, "a", 0.5])
def test_a_seed_is_a_number(seed):
    with pytest.raises(gs.GradsmithError, match=r"seed="):
        gs.check.options(seed=seed)(np.tanh, X)


# --- words ----------------------------------------------------------------------------


def test_a_surrogate_that_is_not_declared():
    op = gs.operation(np.round)
    op.vjp(lambda dy, y, x: dy)
    report = gs.check(op, X)
    assert report.verdict == "surrogate"
    assert report.ok
    assert not gs.check.options(strict=True)(op, X).ok
    assert "surrogate=" in str(report)
    declared = gs.check.options(surrogate="straight-through", strict=True)(op, X)
    assert declared.verdict == "as declared"
    assert declared.ok


def test_why_an_argument_has_no_gradient():
    op = gs.operation(lambda x, k: x * k)
    op.vjp(lambda dy, y, x, k: (dy * k, gs.not_differentiable("a constant")))
    report = right(op, X, np.array(2.0))
    assert "k is declared to have no gradient: a constant" in report.notes


def test_outputs_of_several_shapes():
    # The last row of Vh is free, and PyTorch takes its gradient for zero.
    report = gs.check(torch.linalg.svd, X)
    assert report.verdict == "wrong"
    assert "could not be checked at" not in str(report)


def test_nan_at_a_kink():
    report = gs.check(jnp.linalg.norm, X)
    assert "anything from -1 to 1" in str(report)


# --- rounding that is no mistake ------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_rounding_that_depends_on_the_size_of_the_upstream(seed):
    right(torch.matrix_exp, X[:, :3], seed=seed)


@pytest.mark.parametrize("seed", range(3))
def test_rounding_of_one_mode_alone(seed):
    right(lambda x: torch.logcumsumexp(x, -1), torch.tensor(X), seed=seed)


@pytest.mark.parametrize("framework", ["torch", "tensorflow"])
def test_numpy_arrays_of_another_framework(framework):
    """A function that leaves its framework has no gradient there."""

    def leaves(x):
        x = x.detach() if framework == "torch" else x
        return np.sin(x.numpy())

    report = gs.check.options(framework=framework)(leaves, np.ones(3))
    assert report.verdict == "could not tell", report
    assert "it returns NumPy arrays" in str(report)
    assert "gs.python_op" in str(report)
    # Beside a tensor it is something to look at.
    report = gs.check.options(framework=framework)(
        lambda x: (x * x, leaves(x)), np.ones(3)
    )
    assert report.ok, report
