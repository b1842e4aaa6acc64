"""Runs the cases in a framework and in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import mlx.core as mx
import numpy as np
import scipy.special
import tensorflow as tf
import torch

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith.core.arrays import FRAMEWORKS as REGISTRY

from .cases import ELEMENTWISE, Case
from .cases_axes import AXES
from .cases_linalg import LINALG

CASES = [*ELEMENTWISE, *AXES, *LINALG]
FRAMEWORKS = ("tensorflow", "jax", "torch", "mlx")
NATIVE: dict[str, Callable[[Any], Any]] = {
    "numpy": lambda x: x,
    "tensorflow": tf.constant,
    "jax": jnp.asarray,
    "torch": lambda x: torch.tensor(x),
    "mlx": lambda x: REGISTRY["mlx"].arrays.array(x),
}


def find(name: str) -> Any:
    found: Any = gnp
    for part in name.split("."):
        found = getattr(found, part)
    return found


def reference(name: str) -> Any:
    """NumPy's own function, or SciPy's; ours for NumPy if neither has it so."""
    if name.startswith("special."):
        return in_double(getattr(scipy.special, name.removeprefix("special.")))
    if name == "argsort":
        return partial(np.argsort, stable=True)
    return find(name) if name in OURS else eval(f"np.{name}", {"np": np})


def in_double(fn: Any) -> Any:
    """SciPy's function in float64; the result is of the floats' dtype."""

    def run(*args: Any, **options: Any) -> Any:
        dtype = np.result_type(*args)
        y = fn(*(np.asarray(x, float) for x in args), **options)
        return np.asarray(y, dtype if dtype.kind == "f" else float)

    return run


# Ours alone, or called otherwise in NumPy
OURS = (
    "astype", "stop_gradient", "unbroadcast", "asarray", "zeros", "ones", "full",
    "arange", "eye", "linspace",
)  # fmt: skip


def is_array(x: Any) -> bool:
    return isinstance(x, (np.ndarray, np.generic)) and not isinstance(x, np.float32)


def swapped(x: Any, swap: Callable[[Any], Any]) -> Any:
    """The arguments with something in the place of NumPy arrays."""
    if is_array(x):
        return swap(np.asarray(x))
    if isinstance(x, (list, tuple)):
        return type(x)(swapped(each, swap) for each in x)
    if isinstance(x, dict):
        return {key: swapped(each, swap) for key, each in x.items()}
    return x


def arrays(x: Any) -> list[np.ndarray]:
    found: list[np.ndarray] = []
    swapped(x, found.append)
    return found


def native_args(case: Case, framework: str) -> list[Any]:
    """The arrays of a call, in order, as a framework's own."""
    with np.errstate(all="ignore"):
        return [NATIVE[framework](x) for x in arrays((case.args, case.options))]


def call(case: Case, fn: Any, xs: Any) -> list[Any]:
    """The results of a call with these arrays, in a row."""
    given = iter(xs)
    args, options = swapped((case.args, case.options), lambda _: next(given))
    y = fn(*args, **options)
    return list(y) if isinstance(y, (tuple, list)) else [y]


def expected(case: Case, framework: str = "numpy") -> list[Any]:
    xs = arrays((case.args, case.options))
    with np.errstate(all="ignore"):
        xs = [x.astype(canonical(x.dtype, framework)) for x in xs]
        return call(case, reference(case.name), xs)


def canonical(dtype: np.dtype, framework: str) -> np.dtype:
    """What of NumPy's dtype a framework has: JAX without x64 has no 64 bits."""
    if framework == "mlx" and dtype == np.complex128:
        return np.dtype(np.complex64)
    return jax.dtypes.canonicalize_dtype(dtype) if framework == "jax" else dtype


def plain(y: Any) -> Any:
    if isinstance(y, torch.Tensor):
        return y.detach().resolve_conj().numpy()
    return np.asarray(y)


def compare(case: Case, ys: list[Any], framework: str) -> None:
    """Value, dtype and shape are NumPy's."""
    wanted = expected(case, framework)
    assert len(ys) == len(wanted), (len(ys), len(wanted))
    for y, want in zip(ys, wanted, strict=True):
        if isinstance(want, int):  # a length, or a count
            assert int(y) == want
            continue
        y, want = plain(y), np.asarray(want)
        dtype = canonical(want.dtype, framework)
        assert y.dtype == dtype, f"dtype {y.dtype}, and NumPy's is {dtype}"
        assert y.shape == want.shape, f"shape {y.shape}, and NumPy's is {want.shape}"
        if case.sizes:
            y, want = abs(y), abs(want)
        if case.name != "empty_like":
            check_values(y, want, dtype)


def check_values(y: Any, want: Any, dtype: np.dtype) -> None:
    inexact = dtype.kind in "fc"
    eps = np.finfo(dtype).eps if inexact else 0
    with np.errstate(all="ignore"):
        want = want.astype(dtype)
        scale = np.max(abs(want[np.isfinite(want)]), initial=0) if inexact else 0
    # Rounding adds up over a few dozen operations on elements of this size.
    np.testing.assert_allclose(y, want, rtol=200 * eps, atol=50 * eps * scale)


# Gradients. A rule for a symmetric matrix may put the gradient into one triangle or
# both: what is compared is that of a matrix made symmetric.

_SYMMETRIC = ("linalg.cholesky", "linalg.eigvalsh")


def sources(case: Case) -> list[int]:
    """Which arrays are differentiated."""
    xs = arrays((case.args, case.options))
    return [i for i, x in enumerate(xs) if x.dtype.kind == "f"]


def weights(case: Case) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [rng.normal(size=np.shape(y)) for y in expected(case)]


def weighed(case: Case, xs: Any, framework: str) -> Any:
    """A number whose gradient is that of each result by a weight of its own."""
    if case.name in _SYMMETRIC:
        xs = [(x + gnp.matrix_transpose(x)) / 2 for x in xs]
    ys = call(case, find(case.name), xs)
    total = 0
    for y, w in zip(ys, weights(case), strict=True):
        total = total + gnp.sum(y * NATIVE[framework](w))
    return total


def engine_gradient(case: Case) -> list[np.ndarray]:
    xs = arrays((case.args, case.options))
    with np.errstate(all="ignore"):
        run = lambda *xs: weighed(case, xs, "numpy")
        return gs.grad(run, argnums=sources(case))(*xs)


def tensorflow_gradient(case: Case) -> list[Any]:
    xs = native_args(case, "tensorflow")
    chosen = [xs[i] for i in sources(case)]
    with tf.GradientTape() as tape:
        tape.watch(chosen)
        y = weighed(case, xs, "tensorflow")
    found = tape.gradient(y, chosen, unconnected_gradients="zero")
    return [tf.convert_to_tensor(dx) for dx in found]


def torch_gradient(case: Case) -> list[Any]:
    xs = native_args(case, "torch")
    chosen = [xs[i].requires_grad_() for i in sources(case)]
    y = weighed(case, xs, "torch")
    if not y.requires_grad:
        return [torch.zeros_like(x) for x in chosen]
    return list(torch.autograd.grad(y, chosen, materialize_grads=True))


def mlx_gradient(case: Case) -> list[Any]:
    xs, places = native_args(case, "mlx"), sources(case)
    return list(
        mx.vjp(
            lambda *chosen: weighed(case, [*_replaced(xs, places, chosen)], "mlx"),
            [xs[i] for i in places],
            [mx.array(1.0, mx.float64)],
        )[1]
    )


def _replaced(xs: list[Any], places: list[int], chosen: Any) -> list[Any]:
    new = dict(zip(places, chosen, strict=True))
    return [new.get(i, x) for i, x in enumerate(xs)]


# Tracing, many cases at once: one trace of a hundred costs what ten of one do.


def noted(case: Case, run: Callable[..., Any], *args: Any) -> Any:
    """Run it; an error tells the case."""
    try:
        return run(*args)
    except Exception as error:
        error.add_note(f"in the case {case}")
        raise


def chunks(cases: list[Case]) -> list[list[Case]]:
    return [cases[i : i + 100] for i in range(0, len(cases), 100)]


def tensorflow_traced(cases: list[Case], *, open_lengths: bool) -> list[list[Any]]:
    """The results of a graph, which may not know the length of any axis."""
    xs = [native_args(case, "tensorflow") for case in cases]
    specs = [
        [tf.TensorSpec([None] * x.shape.rank if open_lengths else x.shape, x.dtype)
         for x in each] for each in xs
    ]  # fmt: skip

    @tf.function(input_signature=[specs])
    def run(xs: Any) -> Any:
        return [
            noted(case, call, case, find(case.name), x)
            for case, x in zip(cases, xs, strict=True)
        ]

    return run(xs)


_QUICK = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
}


def jax_compiled(run: Any, *args: Any) -> Any:
    return jax.jit(run).lower(*args).compile(_QUICK)(*args)


def jax_traced(cases: list[Case]) -> list[list[Any]]:
    def run(xs: Any) -> Any:
        return [
            noted(case, call, case, find(case.name), x)
            for case, x in zip(cases, xs, strict=True)
        ]

    return jax_compiled(run, [native_args(case, "jax") for case in cases])


def jax_gradients(cases: list[Case]) -> list[list[Any]]:
    def gradient(case: Case, xs: Any) -> Any:
        return jax.grad(lambda *xs: weighed(case, xs, "jax"), sources(case))(*xs)

    def run(xs: Any) -> Any:
        return [
            noted(case, gradient, case, x) for case, x in zip(cases, xs, strict=True)
        ]

    with jax.enable_x64(True):
        return jax_compiled(run, [native_args(case, "jax") for case in cases])
