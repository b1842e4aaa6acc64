"""The operations as kernels: at the ends of the floating range, and checked."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("flint")
pytest.importorskip("llvmlite")

import gradsmith as gs
from gradsmith import ops
from gradsmith.operations import fusing
from gradsmith.tools.audit.formats import FORMATS
from tests.frameworks.portable import ALL
from tests.ops.ends import CASES
from tests.ops.samples import LOSSES, STABLE
from tests.ops.test_ends import faults

# Where kernels are used. They are the same ones; NumPy has no bfloat16, and the others'
# tensors are computed in float32 where NumPy's arrays are in float64.
DTYPES = {
    "numpy": ("float16", "float32", "float64"),
    "torch": ("bfloat16", "float32"),
    "tensorflow": ("bfloat16", "float32"),
}
RUNS = [
    pytest.param(case, framework, dtype, id=f"{case}-{framework.name}-{dtype}")
    for case in CASES
    for framework in ALL
    for dtype in case.dtypes
    if dtype in DTYPES.get(framework.name, ())
]


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Kernels at the first call, also of small arrays."""
    monkeypatch.setattr(fusing, "SMALL", 0)


@pytest.mark.parametrize(("case", "framework", "dtype"), RUNS)
def test_values_and_gradients_at_the_ends(case, framework, dtype):
    lines = faults(case, framework, FORMATS[dtype])
    assert not lines, f"{len(lines)} faults\n" + "\n".join(lines[:20])


@pytest.mark.parametrize("sample", [*STABLE, *LOSSES], ids=str)
def test_the_gradient_is_right(sample):
    gs.assert_gradients(lambda *xs: sample.fn(*xs, *sample.fixed), *sample.xs)


FUSED = {
    "silu": ops.silu, "sigmoid": ops.sigmoid, "gelu": ops.gelu,
    "softplus": ops.softplus, "log_sigmoid": ops.log_sigmoid, "softmax": ops.softmax,
    "log_softmax": ops.log_softmax, "log1mexp": ops.log1mexp, "round": ops.round,
    "one_hot_argmax": ops.one_hot_argmax, "sign": ops.sign,
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", FUSED)
def test_operations_are_fused(name, dtype):
    plan = FUSED[name].kernels(np.ones((3, 5), dtype))
    assert plan.forward.storage[0] == dtype
    assert plan.backward().storage[-1] == dtype
