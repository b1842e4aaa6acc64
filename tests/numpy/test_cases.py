"""Every function, in every framework, against NumPy."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import tensorflow as tf

import gradsmith.numpy as gnp

from .harness import (
    CASES,
    FRAMEWORKS,
    GRADIENT,
    NATIVE,
    arrays,
    call,
    compare,
    engine_gradient,
    find,
    native_args,
    plain,
    sources,
)

each_case = pytest.mark.parametrize("case", CASES, ids=str)
each_framework = pytest.mark.parametrize("framework", FRAMEWORKS)


@each_framework
@each_case
def test_eager_is_numpy(case, framework):
    compare(case, call(case, find(case.name), native_args(case, framework)), framework)


@each_case
def test_numpy_is_numpy(case):
    with np.errstate(all="ignore"):
        xs = arrays((case.args, case.options))
        compare(case, call(case, find(case.name), xs), "numpy")


@each_framework
@pytest.mark.parametrize("case", [c for c in CASES if c.slope], ids=str)
def test_gradient_is_the_engines(case, framework):
    with np.errstate(all="ignore"):
        wanted = engine_gradient(case)
    with jax.enable_x64(True):
        found = GRADIENT[framework](case)
    assert len(found) == len(wanted) == len(sources(case))
    for dx, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(plain(dx), want, rtol=1e-8, atol=1e-10)
