"""Fused operations in JAX on a GPU, by Triton: `make test-gpu`."""

from __future__ import annotations

import os

# PyTorch's tests may run on the same GPU, in the same process.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

import gradsmith as gs  # noqa: E402
import gradsmith.numpy as gnp  # noqa: E402
from gradsmith import ops  # noqa: E402
from gradsmith.frameworks.jax.call import fused, gpu  # noqa: E402
from gradsmith.operations import fusing  # noqa: E402


def _missing() -> str:
    if jax.default_backend() != "gpu":
        return "JAX has no GPU on this machine"
    return gpu.refusal()


pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(_missing()), reason=_missing())]

EPS = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
DTYPES = [*EPS]
ROWS = {
    "softmax": ops.softmax,
    "log_softmax": ops.log_softmax,
    "logsumexp": lambda x: ops.logsumexp(x, axis=-1),
}


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Kernels also of small arrays; and the calls of them that are made eagerly."""
    monkeypatch.setattr(fusing, "SMALL", 0)
    called, run = [], fused._called
    monkeypatch.setattr(fused, "_called", lambda *a: (called.append(a[3]), run(*a))[1])
    return called


@gs.custom_gradient(fused=True)
def rmsnorm(x):
    r = 1 / gnp.sqrt(gnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)
    y = x * r
    return y, lambda dy: r * (dy - y * gnp.mean(dy * y, axis=-1, keepdims=True))


def both(fn):
    def call(x, dy, *more):
        y, pull = jax.vjp(lambda x: fn(x, *more), x)
        return y, pull(dy)[0]

    return call


def exact(fn, x, dy, *more):
    """The composed form in float64, by the engine."""
    wide = [np.asarray(a.astype("float32"), "float64") for a in (x, dy)]
    with gs.kernels(False), np.errstate(all="ignore"):
        y, pull = gs.vjp(lambda x: fn(x, *map(np.asarray, more)), wide[0])
        (dx,) = pull(np.asarray(wide[1]))
    return y, dx


def kernels_in(fn, *args):
    return jax.jit(fn).lower(*args).as_text().count("@triton_kernel_call")


def compare(fn, x, dy, *more, ulp=8.0):
    """Compiled and eager kernels beside the composed form, by the greatest of a row.

    The gradient of log_softmax has a share of the sum of dy, which is as exact as the
    root of the sum of its squares.
    """
    assert kernels_in(both(fn), x, dy, *more) == 2
    compiled, eager = jax.jit(both(fn))(x, dy, *more), both(fn)(x, dy, *more)
    expected = exact(fn, x, dy, *more)
    for got in (compiled, eager):
        for a, e in zip(got, expected, strict=True):
            assert a.dtype == x.dtype
            assert a.shape == np.shape(e)
            error = np.abs(np.asarray(a, "float64") - e)
            size = np.abs(e) if np.ndim(e) < 2 else np.abs(e).max(-1, keepdims=True)
            if fn is ops.log_softmax and e is expected[1]:
                norm = np.linalg.norm(np.asarray(dy, "float64"), axis=-1, keepdims=True)
                size = np.maximum(size, norm * np.exp(expected[0]))
            bound = ulp * EPS[x.dtype.name] * size
            worst = np.unravel_index(np.argmax(error - bound), error.shape)
            assert np.all(error <= bound), (worst, error[worst], e[worst], size.max())


def arrays(shape, dtype, fn):
    rng = np.random.default_rng(0)
    x = jnp.asarray(3 * rng.normal(size=shape), dtype)
    y = jax.eval_shape(fn, x)
    return x, jnp.asarray(rng.normal(size=y.shape), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*ROWS, "rmsnorm"])
def test_value_and_gradient(name, dtype, at_once):
    fn = ROWS.get(name, rmsnorm)
    compare(fn, *arrays((33, 1000), dtype, fn))
    assert at_once == ["cuda"] * 2


SHAPES = [(1, 1), (5, 3), (7, 1025), (3, 50257), (2, 131072), (2, 200003)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", ROWS)
def test_rows_of_any_length(name, shape):
    compare(ROWS[name], *arrays(shape, "float32", ROWS[name]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [10, 1000, 1025, 50257, 131072])
def test_cross_entropy(columns, dtype):
    rng = np.random.default_rng(0)
    x = 3 * rng.normal(size=(17, columns))
    labels = rng.integers(0, columns, 17)
    labels[3] = -100
    x[5, 2], x[6] = np.inf, -1e4
    x[6, 1] = 3
    x[7, 1:] = -np.inf
    labels[5:8] = 2, 1, 0
    x, labels = jnp.asarray(x, dtype), jnp.asarray(labels, "int32")
    for upstream in (1, 3):

        def f(x, dy, labels):
            return both(ops.cross_entropy)(x, dy, labels)

        dy = jnp.asarray(upstream, dtype)
        assert kernels_in(f, x, dy, labels) == 2
        y, dx = exact(ops.cross_entropy, x, dy, labels)
        for got in (jax.jit(f)(x, dy, labels), f(x, dy, labels)):
            assert [a.dtype for a in got] == [x.dtype] * 2
            np.testing.assert_allclose(float(got[0]), y, rtol=8 * EPS[dtype])
            error = np.abs(np.asarray(got[1], "float64") - dx)
            assert np.all(error <= 8 * EPS[dtype] * (np.abs(dx) + 1e-4))


@pytest.mark.parametrize("reduction", ["sum", "none"])
def test_other_reductions_and_smoothed_labels(reduction):
    def fn(x, labels):
        return ops.cross_entropy(
            x, labels, reduction=reduction, label_smoothing=0.1, z_loss=0.01
        )

    labels = jnp.asarray(np.arange(9) % 7, "int32")
    x, dy = arrays((9, 300), "float32", lambda x: fn(x, labels))
    compare(fn, x, dy, labels, ulp=16)


def test_labels_out_of_range_give_nan():
    x, _ = arrays((6, 37), "float32", ops.softmax)
    labels = jnp.asarray([3, 37, -100, 0, -1, 7])
    y = jax.jit(lambda y: ops.cross_entropy(x, y, reduction="none"))(labels)
    assert np.isnan(y[1])
    assert np.isfinite(np.delete(y, [1, 4])).all()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_gradient_made_ahead_is_written_over_only_if_nobody_needs_it(dtype):
    x, _ = arrays((64, 1000), dtype, ops.softmax)
    labels = jnp.arange(64)
    dys = jnp.asarray([1, 3, 0.5, 1], dtype)

    def several(x, dys):
        _, pull = jax.vjp(lambda x: ops.cross_entropy(x, labels), x)
        return [pull(dy)[0] for dy in dys]

    assert "output_operand_alias" in jax.jit(several).lower(x, dys).as_text()
    got = jax.jit(several)(x, dys)
    for dy, dx in zip(dys, got, strict=True):
        _, expected = exact(lambda x: ops.cross_entropy(x, np.arange(64)), x, dy)
        error = np.abs(np.asarray(dx, "float64") - expected)
        assert np.all(error <= 8 * EPS[dtype] * (np.abs(expected) + 1e-4))


W = np.random.default_rng(1).normal(size=(6, 37)).astype("float32")


def looped(f):
    return lambda x: jax.lax.scan(lambda s, _: (s + f(x + s), None), 1.0, None, 3)[0]


TRANSFORMATIONS = {
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (W,)),
    "forward over reverse": lambda f: lambda x: jax.jvp(jax.grad(f), (x,), (W,)),
    "reverse over reverse": lambda f: jax.grad(lambda x: jnp.sum(jax.grad(f)(x) ** 2)),
    "vmap": lambda f: lambda x: jax.vmap(jax.grad(f))(jnp.stack([x, x + 1])),
    "scan": lambda f: jax.grad(looped(f)),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(f)),
}


@pytest.mark.parametrize("name", [*ROWS, "cross_entropy"])
def test_all_transformations(name):
    labels = jnp.arange(6)

    def f(x):
        if name == "cross_entropy":
            return ops.cross_entropy(x, labels)
        return jnp.sum((W[:, 0] if name == "logsumexp" else W) * ROWS[name](x))

    x = jnp.asarray(np.random.default_rng(0).normal(size=(6, 37)), "float32")

    def everything(x):
        return {key: wrap(f)(x) for key, wrap in TRANSFORMATIONS.items()}

    got = jax.jit(everything)(x), everything(x)
    with gs.kernels(False):
        expected = jax.jit(lambda x: everything(x))(x)
    for each in got:
        pairs = zip(jax.tree.leaves(each), jax.tree.leaves(expected), strict=True)
        for a, b in pairs:
            scale = float(jnp.max(jnp.abs(b)))
            np.testing.assert_allclose(a, b, rtol=3e-6, atol=3e-6 * scale)


def test_elements_stay_with_xla_under_jit_and_are_kernels_eagerly(at_once):
    x, dy = arrays((33, 1000), "float32", ops.silu)
    assert kernels_in(both(ops.silu), x, dy) == 0
    y, dx = both(ops.silu)(x, dy)
    assert at_once == ["cuda"] * 2
    for a, e in zip((y, dx), exact(ops.silu, x, dy), strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-6)


def test_masks():
    @gs.custom_gradient(fused=True)
    def masked(x, mask):
        y = gnp.where(mask, x, 0.0)
        return y, lambda dy: (gnp.where(mask, dy, 0.0), gs.zero)

    x, dy = arrays((33, 70), "float32", lambda x: x)
    for wrap in (jax.jit, lambda f: f):
        y, dx = wrap(both(masked))(x, dy, x > 0)
        np.testing.assert_array_equal(y, jnp.where(x > 0, x, 0))
        np.testing.assert_array_equal(dx, jnp.where(x > 0, dy, 0))


def test_more_than_two_to_the_31_elements():
    rows, columns = 32769, 65540
    x = jnp.zeros((rows, columns), "bfloat16").at[-1, -1].set(8).at[0, 0].set(8)
    f = jax.jit(lambda x: ops.softmax(x)[:: rows - 1, :: columns - 1])
    top = np.exp(8) / (np.exp(8) + columns - 1)
    low = 1 / (np.exp(8) + columns - 1)
    expected = np.array([[top, low], [low, top]])
    np.testing.assert_allclose(np.asarray(f(x), "float64"), expected, rtol=0.01)


def test_turned_off():
    x, dy = arrays((33, 1000), "float32", ops.softmax)
    with gs.kernels(False):
        assert kernels_in(both(lambda x: ops.softmax(x)), x, dy) == 0
    exported = jax.export.export(jax.jit(lambda x: ops.softmax(x)))(x)
    assert "@triton_kernel_call" not in exported.mlir_module()


def test_arrays_on_a_cpu_of_the_same_machine():
    x, _ = arrays((33, 1000), "float32", ops.softmax)
    there = jax.device_put(x, jax.devices("cpu")[0])
    for wrap in (jax.jit, lambda f: f):
        y = wrap(lambda x: ops.softmax(x))(there)
        assert {d.platform for d in y.devices()} == {"cpu"}
        np.testing.assert_allclose(y, jax.nn.softmax(there), rtol=2e-6)


def test_kernels_are_shown():
    plan = ops.softmax.kernels(jnp.ones((33, 1000)))
    assert plan.gpu
    assert not plan.note


def test_the_checker_takes_arrays_of_a_gpu():
    x, _ = arrays((4, 6), "float32", ops.softmax)
    assert gs.check(ops.softmax, x).ok
    assert gs.check(rmsnorm, x).ok


def test_kernels_of_pytorch_in_the_same_process():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no GPU on this machine")
    jax.jit(lambda x: ops.softmax(x))(jnp.ones((33, 999))).block_until_ready()
    assert os.environ.get("TRITON_CACHE_DIR") != ""
    y = ops.softmax(torch.ones(33, 998, device="cuda"))
    torch.testing.assert_close(y, torch.full_like(y, 1 / 998))
