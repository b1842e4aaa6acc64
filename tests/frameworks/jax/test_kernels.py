"""Fused operations as XLA's foreign functions, and what is composed."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

jax = pytest.importorskip("jax")
pytest.importorskip("llvmlite")

import jax.numpy as jnp  # noqa: E402
from jax.sharding import AxisType, PartitionSpec  # noqa: E402

import gradsmith as gs  # noqa: E402
import gradsmith.numpy as gnp  # noqa: E402
from gradsmith import ops  # noqa: E402
from gradsmith.frameworks.jax.call import fused  # noqa: E402
from gradsmith.operations import fusing  # noqa: E402
from gradsmith.ops import _rows  # noqa: E402
from gradsmith.program import fuse  # noqa: E402
from gradsmith.program.kernels import machine as machines  # noqa: E402
from gradsmith.program.kernels import xla  # noqa: E402

RNG = np.random.default_rng(0)
X = jnp.asarray(RNG.normal(size=(6, 37)), "float32")
W = jnp.asarray(RNG.normal(size=(6, 37)), "float32")
LABELS = jnp.asarray([3, 36, -100, 0, 7, 7])


@gs.custom_gradient(fused=True)
def squash(x):
    """Of elements, and fused by name."""
    t = gnp.tanh(x)
    return 3 * t, lambda dy: dy * 3 * (1 - t * t)


ROWS = {
    "softmax": lambda x: jnp.sum(W * ops.softmax(x)),
    "log_softmax": lambda x: jnp.sum(W * ops.log_softmax(x)),
    "logsumexp": lambda x: jnp.sum(W[:, 0] * ops.logsumexp(x, axis=-1)),
    "cross_entropy": lambda x: ops.cross_entropy(x, LABELS),
    "kl_divergence": lambda x: ops.kl_divergence(x, jax.nn.softmax(W)),
    "squash": lambda x: jnp.sum(W * squash(x)),
}


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(fusing, "SMALL", 0)


def looped(f):
    """The function in a loop."""
    return lambda x: jax.lax.scan(lambda s, _: (s + f(x * s), None), 1.0, None, 3)[0]


def hvp(f):
    return lambda x: jax.jvp(jax.grad(f), (x,), (W,))[1]


TRANSFORMATIONS = {
    "grad": jax.grad,
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (W,)),
    "forward over reverse": hvp,
    "reverse over reverse": lambda f: jax.grad(lambda x: jnp.sum(jax.grad(f)(x) ** 2)),
    "vmap": lambda f: lambda x: jax.vmap(jax.grad(f))(jnp.stack([x, x + 1])),
    "many cotangents": lambda f: lambda x: jax.vmap(jax.vjp(f, x)[1])(jnp.arange(3.0)),
    "scan": lambda f: jax.grad(looped(f)),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(f)),
}


def close(got, expected):
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=3e-6, atol=3e-6 * float(jnp.max(abs(b))))


def lowered(fn, *args):
    return jax.jit(fn).lower(*args).as_text()


@pytest.mark.parametrize("name", ROWS)
def test_all_transformations(name):
    """In one compiled function each: compiling is what takes the time."""
    f = ROWS[name]

    def everything(x):
        return {key: wrap(f)(x) for key, wrap in TRANSFORMATIONS.items()}

    got = jax.jit(everything)(X)
    with gs.kernels(False):
        expected = jax.jit(everything)(X)
    for key, value in expected.items():
        close(got[key], value)


@pytest.mark.parametrize("name", ROWS)
def test_value_and_gradient_are_foreign_functions(name):
    text = lowered(jax.value_and_grad(ROWS[name]), X)
    assert text.count("stablehlo.custom_call @gradsmith_") == 2
    with gs.kernels(False):
        assert "@gradsmith_" not in lowered(jax.value_and_grad(ROWS[name]), X)


LOSSES = {
    "huber": ops.huber,
    "poisson_nll": ops.poisson_nll,
    "binary": ops.binary_cross_entropy_with_logits,
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_added_up_where_its_gradient_is_made(name):
    """One kernel reads both arrays, and another multiplies by the upstream gradient."""
    x, t = jnp.tile(X, (1, 2)), jnp.abs(jnp.tile(W, (1, 2)))
    text = lowered(jax.value_and_grad(LOSSES[name]), x, t)
    assert text.count("stablehlo.custom_call @gradsmith_") == 2
    assert text.count("(tensor<6x74xf32>, tensor<6x74xf32>) -> (tensor<6xf32>") == 1
    assert "stablehlo.exponential" not in text
    got = jax.jit(jax.value_and_grad(LOSSES[name]))(x, t)
    with gs.kernels(False):
        composed = jax.value_and_grad(lambda x, t: LOSSES[name](x, t))
        assert "@gradsmith_" not in lowered(composed, x, t)
        close(got, jax.jit(composed)(x, t))


def test_small_losses_and_those_of_unknown_shapes_are_loops_of_xla(monkeypatch):
    x, t = jnp.tile(X, (1, 2)), jnp.tile(W, (1, 2))
    shape = jax.ShapeDtypeStruct(jax.export.symbolic_shape("n, 74"), "float32")
    exported = jax.export.export(jax.jit(ops.huber))(shape, shape)
    close(exported.call(x, t), ops.huber(x, t))
    monkeypatch.setattr(fusing, "SMALL", x.size + 1)
    assert "@gradsmith_" not in lowered(lambda x, t: ops.huber(x, t), x, t)


def test_a_loss_whose_kernel_is_not_called_is_right():
    x, t = jnp.ones((2, 3, 64)), jnp.zeros((2, 3, 64))
    close(jax.jit(jax.vmap(ops.huber))(x, t), jnp.full(2, 0.5))
    second = jax.jit(jax.hessian(lambda s: ops.huber(s * x, t)))(0.5)
    assert float(second) == pytest.approx(1.0)


@pytest.mark.parametrize("avx512", [True, False])
def test_which_loops_over_elements_stay_with_xla(monkeypatch, avx512):
    machine = replace(machines.this_machine(), scales=avx512)
    monkeypatch.setattr(fuse, "this_machine", lambda: machine)
    ops.silu.fused.forget()
    assert "@gradsmith_" not in lowered(lambda x: ops.round(x) + 1, X)
    assert ("@gradsmith_" in lowered(lambda x: ops.silu(x) + 1, X)) is avx512
    assert "@gradsmith_" in lowered(lambda x: ops.softmax(x) + 1, X)
    ops.silu.fused.forget()


def test_a_gradient_of_rows_is_a_foreign_function_where_the_value_is_the_argument():
    text = lowered(
        jax.grad(lambda x: jnp.sum(ops.clip_by_norm(x, 1.0, axis=-1) * W)), X
    )
    assert text.count("stablehlo.custom_call @gradsmith_") == 1


@pytest.mark.parametrize("name", ["logsumexp", "log_softmax"])
def test_a_product_that_xla_does_not_round_is_no_second_greatest(name):
    """XLA takes a product and what is subtracted from it together."""
    rng = np.random.default_rng(0)
    x, s = (3 * rng.normal(size=shape) for shape in ((2000, 7), (7,)))
    x, s = np.asarray(x, "float32"), np.asarray(s, "float32")
    with gs.kernels(False):
        got = jax.jit(lambda x, s: getattr(ops, name)(x * s, axis=-1))(x, s)
    expected = getattr(ops, name)((x * s).astype("float64"), axis=-1)
    rounding = float(np.abs(x * s).max()) * 2.0**-22
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=rounding)


def test_what_is_mapped_is_composed():
    assert "@gradsmith_" not in lowered(jax.vmap(ops.softmax), X)


@pytest.mark.parametrize("name", ["silu", "softmax"])
def test_eager_calls_run_as_kernels(name, monkeypatch):
    called, run = [], fused._called
    monkeypatch.setattr(fused, "_called", lambda *a: (called.append(a), run(*a))[1])
    fn = getattr(ops, name)

    y, pull = jax.vjp(fn, X)
    got = [y, *pull(W), fn(X)]
    assert len(called) == 3
    got += [jax.vmap(pull)(jnp.stack([W, -W])), jax.jvp(fn, (X,), (W,))]
    with gs.kernels(False):
        y, pull = jax.vjp(fn, X)
        many, tangent = jax.vmap(pull)(jnp.stack([W, -W])), jax.jvp(fn, (X,), (W,))
        close(got, [y, *pull(W), fn(X), many, tangent])


def test_eager_results_of_one_size_have_their_own_shapes():
    for shape in [(6, 100), (600,), (600, 1)]:
        assert ops.silu(jnp.ones(shape)).shape == shape
        assert jax.grad(lambda x: jnp.sum(ops.silu(x)))(jnp.ones(shape)).shape == shape


def test_integers_that_are_saved_are_as_wide_as_those_of_jax():
    @gs.custom_gradient(fused=True)
    def largest(x):
        k = gnp.argmax(x, axis=-1, keepdims=True)
        y = gnp.take_along_axis(x, k, axis=-1)
        return y, lambda dy: gnp.where(gnp.arange(x.shape[-1]) == k, dy, 0.0 * x)

    (saved,) = largest.kernels(X).saved
    assert saved.dtype == "int64"
    for wrap in (jax.jit, lambda f: f):
        dx = wrap(jax.grad(lambda x: jnp.sum(largest(x))))(X)
        np.testing.assert_array_equal(dx, jax.nn.one_hot(X.argmax(-1), X.shape[-1]))


@settings(max_examples=8, deadline=None)
@given(
    st.integers(1, 5),
    st.integers(1, 70),
    st.sampled_from(["float16", "bfloat16", "float32"]),
    st.sampled_from([ops.softmax, ops.log_softmax, lambda x: ops.logsumexp(x, -1)]),
)
def test_shapes_and_dtypes(rows, columns, dtype, fn):
    x = jnp.asarray(RNG.normal(size=(rows, columns)), dtype)

    def both(x):
        y, pull = jax.vjp(fn, x)
        return y, pull(y)[0]

    got = jax.jit(both)(x)
    with gs.kernels(False):
        expected = jax.jit(both)(x)
    for a, b in zip(got, expected, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        eps = float(jnp.finfo(dtype).eps)
        a, b = np.asarray(a, "float32"), np.asarray(b, "float32")
        np.testing.assert_allclose(a, b, rtol=4 * eps, atol=4 * eps)


def test_what_is_saved_is_the_same_composed():
    labels = np.asarray(LABELS, "int32")
    losses = _rows.of_classes.kernels(X, LABELS, -1, 0.1, -100, 0.01)
    rows = ops.log_softmax.kernels(X)
    for plan, *xs in ((losses, X, labels), (rows, X)):
        kernel = plan.forward(*map(np.asarray, xs))[1:]
        assert len(kernel) == len(plan.saved) > 0
        composed = plan.saved_of([*map(jnp.asarray, xs)], jnp.asarray)
        for a, b in zip(kernel, composed, strict=True):
            assert b.dtype == a.dtype
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_large_arrays_are_cut_into_parts():
    x = jnp.asarray(RNG.normal(size=(999, 601)), "float32")
    assert ops.softmax.kernels(x).forward.for_xla[0].startswith("gradsmith_")
    got = jax.jit(ops.softmax)(x)
    np.testing.assert_allclose(got, jax.nn.softmax(x), rtol=2e-6)


def test_labels_out_of_range_give_nan_as_in_composed_code():
    loss = jax.jit(lambda y: ops.cross_entropy(X, y, reduction="none"))
    labels = LABELS.at[1].set(37).at[3].set(-1)
    got = loss(labels)
    with gs.kernels(False):
        expected = jax.jit(lambda y: ops.cross_entropy(X, y, reduction="none"))(labels)
    assert np.isnan(got[1])
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_exported_code_is_composed():
    exported = jax.export.export(jax.jit(ops.softmax))(X)
    assert "@gradsmith_" not in exported.mlir_module()
    again = jax.export.deserialize(exported.serialize())
    np.testing.assert_allclose(again.call(X), jax.nn.softmax(X), rtol=1e-6)


def test_code_for_a_mesh_is_composed():
    mesh = jax.make_mesh((1,), ("rows",), axis_types=(AxisType.Auto,))
    spec = PartitionSpec("rows")
    f = jax.shard_map(ops.log_softmax, mesh=mesh, in_specs=spec, out_specs=spec)
    gradient = jax.grad(lambda x: jnp.sum(W * f(x)))
    assert "@gradsmith_" not in lowered(gradient, X)
    close(
        jax.jit(gradient)(X), jax.grad(lambda x: jnp.sum(W * jax.nn.log_softmax(x)))(X)
    )


def test_a_version_that_does_not_fit_is_composed_and_said(monkeypatch):
    monkeypatch.setattr(xla, "VERSION", (99, 0))
    monkeypatch.setattr(fused, "_refused", [])
    x = X[:5, :11]  # no kernel of this shape is registered
    assert "API version (99.0) is incompatible" in str(ops.softmax.kernels(x))
    np.testing.assert_allclose(jax.jit(ops.softmax)(x), jax.nn.softmax(x), rtol=1e-6)
    np.testing.assert_allclose(ops.softmax(x), jax.nn.softmax(x), rtol=1e-6)


def test_what_can_not_be_fused_is_refused_at_the_call():
    @gs.custom_gradient(fused=True)
    def running(x):
        return gnp.cumsum(x, axis=-1), lambda dy: dy

    with pytest.raises(gs.UnsupportedOperationError, match="cumsum"):
        jax.jit(running)(X)


def test_the_rule_survives():
    assert gs.survives(squash, X, only=["jit(grad)", "vmap(grad)", "export"]).ok


@pytest.mark.parametrize("name", ["softmax", "logsumexp", "cross_entropy"])
def test_the_gradient_is_right(name):
    gs.assert_gradients(ROWS[name], X)


ROW_BY_ROW = {
    "logsumexp": lambda x: ops.logsumexp(x, axis=-1),
    "cross_entropy": lambda x: ops.cross_entropy(x, LABELS, reduction="none"),
}


@pytest.mark.parametrize("name", ROW_BY_ROW)
def test_gradients_made_ahead_are_written_over_only_if_nobody_needs_them(name):
    f = ROW_BY_ROW[name]
    dys = [jnp.ones(6), jnp.arange(6.0), jnp.ones(6)]

    def several(x, dys):
        _, pull = jax.vjp(f, x)
        return [pull(dy)[0] for dy in dys]

    assert "output_operand_aliases = [#stablehlo" in lowered(several, X, dys)
    got = jax.jit(several)(X, dys)
    with gs.kernels(False):
        close(got, jax.jit(several)(X, dys))
