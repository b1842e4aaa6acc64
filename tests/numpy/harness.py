"""Runs the cases in a framework and in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
import tensorflow as tf
import torch

import gradsmith as gs
import gradsmith.numpy as gnp

from .cases import ELEMENTWISE, Case
from .cases_axes import AXES
from .cases_linalg import LINALG

CASES = [*ELEMENTWISE, *AXES, *LINALG]
FRAMEWORKS = ("tensorflow", "jax", "torch")
NATIVE: dict[str, Callable[[Any], Any]] = {
    "numpy": lambda x: x,
    "tensorflow": tf.constant,
    "jax": jnp.asarray,
    "torch": lambda x: torch.tensor(x),
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
    """SciPy's function in float64; a float stays what it is, whole numbers become it."""

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


# Gradients


def sources(case: Case) -> list[int]:
    """Which arrays are differentiated."""
    xs = arrays((case.args, case.options))
    return [i for i, x in enumerate(xs) if x.dtype.kind == "f"]


def weights(case: Case) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [rng.normal(size=np.shape(y)) for y in expected(case)]


def weighed(case: Case, xs: Any, framework: str) -> Any:
    """A number whose gradient is that of each result by a weight of its own."""
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
    return tape.gradient(y, chosen, unconnected_gradients="zero")


def jax_gradient(case: Case) -> list[Any]:
    xs = native_args(case, "jax")
    return jax.grad(lambda *xs: weighed(case, xs, "jax"), sources(case))(*xs)


def torch_gradient(case: Case) -> list[Any]:
    xs = native_args(case, "torch")
    chosen = [xs[i].requires_grad_() for i in sources(case)]
    y = weighed(case, xs, "torch")
    if not y.requires_grad:
        return [torch.zeros_like(x) for x in chosen]
    return list(torch.autograd.grad(y, chosen, materialize_grads=True))


GRADIENT = {
    "tensorflow": tensorflow_gradient,
    "jax": jax_gradient,
    "torch": torch_gradient,
}
