"""Lists with arrays in them are arrays, in every framework and to its derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs
import gradsmith.numpy as gnp
from tests.frameworks.portable import ALL

X = np.array([0.3, 0.7, 1.9])
CASES = {
    "array": lambda x: gnp.array([x[0], 2 * x[1], 3.0]),
    "array, nested": lambda x: gnp.array([[x[0], 2.0], (x[1], x[2])]),
    "array of an array": lambda x: gnp.array(x),
    "asarray": lambda x: gnp.asarray([x, [1.0, 2.0, 3.0]], dtype="float32"),
    "full": lambda x: gnp.full(3, x[0]) * x[1],
    "full of a list": lambda x: gnp.full((2, 3), [x[0], x[1], 1.0]),
    "full_like": lambda x: gnp.full_like(x, x[0]),
    "exp": lambda x: gnp.exp([x[0], x[1]]),
    "multiply": lambda x: gnp.multiply([x[0], x[1]], [x[1], 3.0]),
    "maximum": lambda x: gnp.maximum(x, [x[1], 0.0, 0.0]),
    "power": lambda x: gnp.power([x[0], x[1], 2.0], x),
    "sum": lambda x: gnp.sum([x[0] ** 2, x[1]]),
    "mean": lambda x: gnp.mean([[x[0] ** 2, x[1]], [x[2], 1.0]], axis=0),
    "max": lambda x: gnp.max([x[0], 2 * x[1]]),
    "stack": lambda x: gnp.stack([[x[0], x[1]], [x[2], 1.0]], axis=1),
    "concatenate": lambda x: gnp.concatenate([[x[0], x[1]], x]),
    "where": lambda x: gnp.where(x > 0.5, [x[0], x[1], 1.0], [x[2], 1.0, 2.0]),
    "clip": lambda x: gnp.clip(x, [x[1], 0.0, 0.0], 1.5),
    "dot": lambda x: gnp.dot([x[0], x[1]], [x[1], x[2]]),
    "linspace": lambda x: gnp.linspace([x[0], x[1]], x[2], 3),
}


@pytest.mark.parametrize("framework", ALL, ids=lambda f: f.name)
@pytest.mark.parametrize("name", CASES)
def test_a_list_of_arrays_is_an_array(framework, name):
    def f(x):
        y = CASES[name](x)
        return gnp.add(gnp.sum(y * y), gnp.sum(x))

    want = CASES[name](X.astype(np.float32))
    got = CASES[name](framework.array(X, "float32"))
    np.testing.assert_allclose(framework.plain(got), want, rtol=1e-6)
    (dx,) = framework.gradients(f, framework.array(X, "float32"))
    truth = [(f(X + h) - f(X - h)) / 2e-6 for h in 1e-6 * np.eye(3)]
    if name == "asarray":  # which rounds
        truth = 2 * X + 1
    np.testing.assert_allclose(framework.plain(dx), truth, rtol=1e-5)


@pytest.mark.parametrize("framework", ALL, ids=lambda f: f.name)
def test_an_array_is_a_new_one(framework):
    x = framework.array(X, "float32")
    y = gnp.array(x)
    assert y is not x
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(framework.plain(y), framework.plain(x))


def test_memory_is_not_shared_where_arrays_can_change():
    assert not np.shares_memory(gnp.array(X), X)
    assert gnp.asarray(X) is X


@pytest.mark.parametrize("values", [[1, 2.5], [np.float32(1), 2], [True, 2]])
def test_dtypes_are_those_of_np_array(values):
    x = gs.Tensor(values[0])
    assert gnp.array([x, values[1]]).dtype == np.array(values).dtype
