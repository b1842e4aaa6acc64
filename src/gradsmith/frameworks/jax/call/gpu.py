"""Kernels on a GPU of NVIDIA's: Triton's, which the package jax-triton hands to XLA.

XLA's arrays are dense, and code is compiled for their shapes. So strides and sizes are
constants of a kernel here, by name: jax-triton has outputs follow all other arguments.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import jax
import jax.numpy as jnp

# Not `maxnreg`, which jax-triton has no way for: where programs share a row of 16 bits,
# fewer of them fit into a processor than with PyTorch.
_OPTIONS = ("num_warps", "num_stages", "num_ctas", "enable_fp_fusion")


@cache
def is_installed() -> bool:
    """Whether jax-triton is there, by the extra `jax-gpu`."""
    return find_spec("jax_triton") is not None


@cache
def refusal() -> str:
    """Why there are no kernels on a GPU, if so."""
    if not is_installed():
        return 'jax-triton is not installed (pip install "gradsmith[jax-gpu]")'
    try:
        _library()
    except Exception as error:  # it uses what JAX and Triton don't publish
        return f"jax-triton does not work with this JAX and Triton: {error!r}"
    return ""


@cache
def _library() -> Any:
    """jax-triton, imported when a kernel is going to run.

    It turns off Triton's cache on disk by a variable, and PyTorch's kernels, in the
    same process, would find no directory.
    """
    name = "TRITON_CACHE_DIR"
    before = os.environ.get(name)
    try:
        return import_module("jax_triton")
    finally:
        os.environ.pop(name, None)
        if before is not None:
            os.environ[name] = before


_AN_H200 = 132


@cache
def _processors() -> int:
    """How many the GPU has; 0 where code is compiled for one elsewhere."""
    try:
        devices = jax.local_devices(backend="gpu")
    except RuntimeError:
        return 0
    return getattr(devices[0], "core_count", 0)


def call(
    kernel: Any, outs: Sequence[Any], inputs: Sequence[Any], *, in_place: bool
) -> Sequence[Any]:
    """What a kernel computes, as traced code; `in_place` over inputs that it may take.

    XLA then gives it one buffer for both, a copy if the input is needed afterwards.
    """
    gpu = kernel.on_gpu.for_gpu(_processors())
    # Two of 32 bits for each word: JAX has those of 64 only if it is told to
    words = [jax.ShapeDtypeStruct((2 * gpu.words,), jnp.int32)] if gpu.words else []
    found = _library().triton_call(
        *inputs,
        *map(jnp.asarray, gpu.nest.constants),
        kernel=gpu.function,
        out_shape=[*outs, *words],
        zeroed_outputs=tuple(range(len(outs), len(outs) + len(words))),
        # More or fewer programs than fit are right too, and take longer
        grid=gpu.programs(_processors() or _AN_H200),
        name=gpu.nest.name,
        input_output_aliases=dict(kernel.in_place) if in_place else {},
        **{name: gpu.options[name] for name in _OPTIONS if name in gpu.options},
        **gpu.numbers(in_place=in_place),
    )
    return found[: len(outs)]
