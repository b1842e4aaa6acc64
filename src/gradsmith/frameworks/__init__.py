"""The frameworks that operations run on, one row each.

A row says what a framework is called and which arrays are its own; its folder says the
rest (`_protocol.py`), and is loaded when one of its arrays is first seen.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from ..core.arrays import register
from ..core.compilers import add_rewriter
from ..core.import_hooks import once_imported
from . import keras  # noqa: F401  (it registers)
from ._protocol import Framework

ROWS = (
    Framework(
        "numpy",
        "NumPy",
        arrays="ndarray",
        example="np.asarray(x)",
        cannot={"kernels": "its own functions are called as they are"},
    ),
    Framework(
        "tensorflow",
        "TensorFlow",
        arrays="Tensor Variable IndexedSlices RaggedTensor SparseTensor",
        example="tf.convert_to_tensor(x)",
        packages=("tf_keras",),
        oldest=(2, 18),
        install="tensorflow-cpu",
        custom_gradients=("tf.custom_gradient",),
        derivatives="tf.GradientTape",
        becomes="__tf_tensor__",
        untouched="autograph_info__",
        generated="__autograph_generated",
        quiet={"TF_CPP_MIN_LOG_LEVEL": "3"},
        early=("tensorflow",),
    ),
    Framework(
        "jax",
        "JAX",
        arrays="Array",
        example="jnp.asarray(x)",
        roots=("jaxlib",),
        oldest=(0, 10),
        gpu_kernels=("jax-triton", "0.3.1", "jax-gpu"),
        custom_gradients=("jax.custom_vjp", "jax.custom_jvp"),
        derivatives="jax.grad, jax.jvp and their like",
        becomes="__jax_array__",
        early=("jax",),
    ),
    Framework(
        "torch",
        "PyTorch",
        arrays="Tensor fx.Proxy",
        example="torch.as_tensor(x)",
        packages=("functorch",),
        oldest=(2, 7),
        custom_gradients=(
            "a torch.autograd.Function (the class, or its apply)",
            "a torch.library.custom_op",
        ),
        derivatives="y.backward(), torch.autograd or torch.func",
        early=("torch._dynamo",),
    ),
    Framework(
        "mlx",
        "MLX",
        arrays="array",
        example="mx.array(x)",
        module="mlx.core",
        roots=("mlx",),
        oldest=(0, 32),
        install='"mlx[cpu]"',
        custom_gradients=("mx.custom_function",),
        derivatives="mx.grad, mx.vjp or mx.jvp",
        cannot={
            "intercept": "MLX's functions are compiled code that calls itself, without "
            "a place where a call could be answered by something else",
        },
    ),
)


def add(framework: Framework) -> None:
    """Let operations run on a framework."""
    register(framework)
    if framework.untouched:
        add_rewriter(framework.untouched)
    for module in framework.loads_with:
        once_imported(module, partial(_load_early, framework))


def _load_early(framework: Framework, module: Any) -> None:
    if not framework.is_too_old():
        framework.part("early")


for _row in ROWS:
    add(_row)
