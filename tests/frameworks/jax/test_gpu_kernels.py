"""Kernels for a GPU as JAX calls them, without one: by a stand-in, and lowered.

On a GPU: test_cuda.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

import gradsmith as gs  # noqa: E402
import gradsmith.numpy as gnp  # noqa: E402
from gradsmith import ops  # noqa: E402
from gradsmith.frameworks.jax.call import custom, fused, gpu  # noqa: E402
from gradsmith.operations import fusing  # noqa: E402
from gradsmith.operations.operation import Operation  # noqa: E402
from gradsmith.ops import _rows, exponentials  # noqa: E402
from gradsmith.program.kernels import triton_launch  # noqa: E402
from gradsmith.program.kernels.triton_kernel import GpuKernel  # noqa: E402
from tests.program.kernels.stand_in import triton  # noqa: E402

RNG = np.random.default_rng(0)
X = jnp.asarray(RNG.normal(size=(6, 37)), "float32")
W = jnp.asarray(RNG.normal(size=(6, 37)), "float32")
LABELS = jnp.asarray([3, 36, -100, 0, 7, 7])


@gs.custom_gradient(fused=True)
def rmsnorm(x):
    r = 1 / gnp.sqrt(gnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)
    y = x * r
    return y, lambda dy: r * (dy - y * gnp.mean(dy * y, axis=-1, keepdims=True))


ROWS = {
    "softmax": lambda x: jnp.sum(W * ops.softmax(x)),
    "log_softmax": lambda x: jnp.sum(W * ops.log_softmax(x)),
    "logsumexp": lambda x: jnp.sum(W[:, 0] * ops.logsumexp(x, axis=-1)),
    "cross_entropy": lambda x: ops.cross_entropy(x, LABELS),
    "a user's rmsnorm": lambda x: jnp.sum(W * rmsnorm(x)),
}


def _forget():
    """No plan of one test is another's: its functions are those of a stand-in."""
    for module in (_rows, exponentials):
        for each in vars(module).values():
            if isinstance(each, Operation) and each.fused is not None:
                each.fused.forget()
    rmsnorm.fused.forget()
    fused._calls.clear()


@pytest.fixture(autouse=True)
def for_gpu(monkeypatch):
    """JAX takes the CPU for a GPU where it chooses kernels."""
    monkeypatch.setattr(fusing, "SMALL", 0)
    monkeypatch.setattr(fused, "_platform", lambda: "cuda")
    monkeypatch.setattr(gpu, "is_installed", lambda: True)
    monkeypatch.setattr(gpu, "refusal", lambda: "")
    _forget()
    yield
    _forget()


# --- run by a stand-in


@pytest.fixture
def calls(monkeypatch):
    """Calls of kernels, which NumPy runs: the arguments are those of jax-triton."""
    found = []

    def triton_call(
        *args, kernel, out_shape, grid, name, input_output_aliases,
        num_warps, zeroed_outputs, **numbers,
    ):  # fmt: skip
        assert all(isinstance(x, jax.Array) for x in args)
        found.append((name, input_output_aliases))

        def run(*arrays):
            given = [_stored(np.asarray(x)) for x in arrays]
            outs = [_stored(np.full(y.shape, -7).astype(y.dtype)) for y in out_shape]
            for i in zeroed_outputs:
                outs[i][:] = 0
            for i, k in input_output_aliases.items():
                given[i] = outs[k] = given[i].copy()
            with np.errstate(all="ignore"):
                kernel[(grid,)](*given, *outs, num_warps=num_warps, **numbers)
            return [y.view(of.dtype) for y, of in zip(outs, out_shape, strict=True)]

        return jax.pure_callback(run, out_shape, *args)

    library = SimpleNamespace(triton_call=triton_call)
    lowered, where = custom.platform_of, fused._platform_of
    on_gpu = {"cpu": "cuda"}
    monkeypatch.setattr(gpu, "_library", lambda: library)
    monkeypatch.setattr(custom, "platform_of", lambda ctx: on_gpu.get(lowered(ctx), ""))
    monkeypatch.setattr(fused, "_platform_of", lambda xs: on_gpu.get(where(xs), ""))
    with triton(monkeypatch):
        yield found


def _stored(x):
    """An array as Triton sees it: a bool is a byte."""
    return x.view("int8") if x.dtype == bool else x


def close(got, expected, rtol=3e-6):
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        a, b = np.asarray(a, "float32"), np.asarray(b, "float32")
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * np.max(abs(b)))


@pytest.mark.parametrize("name", ROWS)
def test_value_and_gradient(name, calls):
    f = jax.value_and_grad(ROWS[name])
    got = jax.jit(f)(X)
    assert len(calls) == 2
    got = [got, f(X)]
    assert len(calls) == 4
    with gs.kernels(False):
        close(got, [f(X), f(X)])
    assert len(calls) == 4


def test_half_precision(calls):
    x = X.astype("float16")
    f = jax.jit(jax.value_and_grad(lambda x: jnp.sum(W * ops.softmax(x))))
    got = f(x)
    assert got[1].dtype == "float16"
    with gs.kernels(False):
        close(got, jax.value_and_grad(ROWS["softmax"])(x.astype("float32")), 3e-3)


def test_a_gradient_made_ahead_is_written_over(calls):
    f = jax.jit(jax.value_and_grad(lambda x: 3 * ROWS["cross_entropy"](x)))
    got = f(X)
    (_, first), (_, second) = calls
    assert (first, second) == ({}, {1: 0})
    with gs.kernels(False):
        close(got, jax.value_and_grad(lambda x: 3 * ROWS["cross_entropy"](x))(X))


def test_eager_gradients_are_never_written_over(calls):
    _, pull = jax.vjp(ROWS["cross_entropy"], X)
    (first,), (second,) = pull(jnp.float32(3)), pull(jnp.float32(1))
    assert [aliases for _, aliases in calls] == [{}] * len(calls)
    close(first, 3 * second)


def test_labels_out_of_range_give_nan(calls):
    labels = LABELS.at[1].set(37)
    got = jax.jit(lambda y: ops.cross_entropy(X, y, reduction="none"))(labels)
    assert calls
    np.testing.assert_array_equal(np.isnan(got), np.arange(6) == 1)


def test_what_is_mapped_or_differentiated_again_is_composed(calls):
    f = ROWS["softmax"]
    wraps = {
        "jvp": lambda x: jax.jvp(f, (x,), (W,)),
        "forward over reverse": lambda x: jax.jvp(jax.grad(f), (x,), (W,)),
        "reverse over reverse": jax.grad(lambda x: jnp.sum(jax.grad(f)(x) ** 2)),
        "vmap": lambda x: jax.vmap(ops.softmax)(jnp.stack([x, x + 1])),
    }
    got = {key: jax.jit(wrap)(X) for key, wrap in wraps.items()}
    got |= {f"eager {key}": wrap(X) for key, wrap in wraps.items()}
    with gs.kernels(False):
        close(got, {key: wraps[key.removeprefix("eager ")](X) for key in got})


def test_arithmetic_of_elements_stays_with_xla_unless_it_is_fused_by_name(calls):
    jax.jit(lambda x: ops.silu(x) + ops.round(x))(X)
    assert not calls

    @gs.custom_gradient(fused=True)
    def double(x):
        return 2 * x, lambda dy: 2 * dy

    close(jax.jit(double)(X), 2 * X)
    assert len(calls) == 1


def test_turned_off(calls):
    with gs.kernels(False):
        jax.jit(lambda x: ops.softmax(x))(X)
    jax.vmap(ops.softmax)(X)
    assert not calls


def test_the_kernels_that_are_shown_are_those_of_the_gpu(calls):
    plan = ops.softmax.kernels(X)
    assert plan.gpu
    assert not plan.note


# --- lowered for a GPU


@pytest.fixture
def compiled(monkeypatch):
    """What XLA would be given, by jax-triton itself."""
    for name in ("jax_triton", "triton"):
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    library = gpu._library().triton_lib.triton_kernel_call_lib
    if not hasattr(library, "TritonKernel"):
        pytest.skip("JAX's plugin for CUDA is not installed")
    monkeypatch.setattr(library, "get_compute_capability", lambda device: 90)

    def text(fn, *args):
        lowered = jax.jit(fn).trace(*args).lower(lowering_platforms=("cuda",))
        return lowered.as_text()

    return text


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("name", ROWS)
def test_value_and_gradient_are_two_kernels(name, dtype, compiled):
    def f(x):
        return ROWS[name](x).astype("float32")

    text = compiled(jax.value_and_grad(f), X.astype(dtype))
    assert text.count("@triton_kernel_call") == 2
    is_ahead = name in ("cross_entropy", "logsumexp") and dtype != "float16"
    assert ("#stablehlo.output_operand_alias" in text) == is_ahead


@pytest.mark.parametrize("columns", [1, 3, 1025, 50257, 200000])
def test_rows_of_any_length(columns, compiled):
    x, labels = jnp.ones((8, columns)), jnp.zeros(8, "int32")
    fns = [ops.softmax]
    if columns > 3:  # else what is summed is not small beside what it is computed of
        fns.append(lambda x: ops.cross_entropy(x, labels))
    for fn in fns:
        text = compiled(jax.value_and_grad(lambda x, fn=fn: jnp.sum(fn(x))), x)
        assert text.count("@triton_kernel_call") == 2


def test_masks_are_arguments(compiled):
    @gs.custom_gradient(fused=True)
    def masked(x, mask):
        y = gnp.where(mask, x, 0.0)
        return y, lambda dy: gnp.where(mask, dy, 0.0)

    text = compiled(masked, X, X > 0)
    assert "tensor<6x37xi1>) -> tensor<6x37xf32>" in text


# --- without jax-triton


def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(fusing, "SMALL", 0)
    monkeypatch.setattr(fused, "_platform", lambda: "cuda")
    monkeypatch.setattr(fused, "_platform_of", lambda arrays: "cuda")
    monkeypatch.setattr(gpu, "is_installed", lambda: False)
    monkeypatch.setattr(gpu, "refusal", gpu.refusal.__wrapped__)
    note = ops.softmax.kernels(X).note
    assert note == (
        "JAX composes it: jax-triton is not installed "
        '(pip install "gradsmith[jax-gpu]")'
    )
    close(jax.jit(jax.grad(ROWS["softmax"]))(X), jax.grad(ROWS["softmax"])(X))

    def broken():
        raise AttributeError("no such part")

    monkeypatch.setattr(gpu, "is_installed", lambda: True)
    monkeypatch.setattr(gpu, "_library", broken)
    assert "no such part" in ops.softmax.kernels(X).note
    close(jax.jit(lambda x: ops.softmax(x))(X), jax.nn.softmax(X))


@pytest.mark.parametrize("before", [None, "/tmp/kernels"])
def test_the_cache_of_triton_is_left_as_it_was(before, tmp_path):
    """jax-triton sets a variable when it is imported."""
    (tmp_path / "jax_triton.py").write_text(
        "import os\nos.environ['TRITON_CACHE_DIR'] = ''\n"
    )
    code = (
        "import os\nfrom gradsmith.frameworks.jax.call import gpu\n"
        "gpu._library()\nprint(os.environ.get('TRITON_CACHE_DIR'))"
    )
    env = {k: v for k, v in os.environ.items() if k != "TRITON_CACHE_DIR"}
    env["PYTHONPATH"] = os.pathsep.join([str(tmp_path), *sys.path])
    env |= {} if before is None else {"TRITON_CACHE_DIR": before}
    found = subprocess.run(
        [sys.executable, "-c", code],
        env=env,
        capture_output=True,
        check=True,
        text=True,
    )
    assert found.stdout.strip() == str(before)


@pytest.mark.parametrize("processors", [132, 0])
@pytest.mark.parametrize("name", ["softmax", "cross_entropy"])
def test_programs_share_rows(name, processors, calls, monkeypatch):
    """Not where nobody knows whether they fit into the GPU together."""
    small = {"LONGEST": 4, "_CHUNK": 16, "_SHARE": 16, "_MOST_PARTS": 100}
    for key, n in small.items():
        monkeypatch.setattr(triton_launch, key, n)
    monkeypatch.setattr(gpu, "_processors", lambda: processors)
    words = []
    started = GpuKernel.words.fget
    monkeypatch.setattr(
        GpuKernel, "words", property(lambda k: words.append(started(k)) or words[-1])
    )
    run = jax.jit(jax.value_and_grad(ROWS[name]))
    with gs.kernels(False):
        expected = jax.value_and_grad(ROWS[name])(X)
    for _ in range(2):  # the second call finds none of the first one's totals
        close(run(X), expected)
    assert calls
    assert any(words) is (processors > 0)
