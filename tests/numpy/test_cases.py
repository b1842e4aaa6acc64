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
