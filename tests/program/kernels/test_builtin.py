"""Kernels as builtin functions of NumPy's arrays."""

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.program.kernels import builtin

X = np.linspace(-1.0, 2.0, 60).reshape(5, 12)


def softmax(x, i):
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    y = e / np.sum(e, axis=1, keepdims=True)
    return y, np.log(np.take_along_axis(y, i, axis=1)) + 2.0


@pytest.mark.parametrize("known", [True, False])
def test_a_kernel_takes_arrays(known, monkeypatch):
    """By the field in which they have their address, or by what NumPy says it is."""
    assert builtin.knows_arrays()
    monkeypatch.setattr(builtin, "knows_arrays", lambda: known)
    i = np.arange(5)[:, None]
    compiled = gs.compile(lambda x: (*softmax(x, i), np.sum(np.tanh(x) * x**2, 1)))
    for x in (X, 2 * X, X.T.copy().T, X[:, ::-1]):
        y, found, total = compiled(x)
        np.testing.assert_allclose(y, softmax(x, i)[0], rtol=1e-13)
        np.testing.assert_allclose(found, softmax(x, i)[1], rtol=1e-13)
        np.testing.assert_allclose(total, np.sum(np.tanh(x) * x**2, 1), rtol=1e-13)
    assert "ctypes" not in next(iter(compiled._codes.values())).source


@pytest.mark.parametrize("known", [True, False])
def test_a_place_out_of_bounds_is_refused(known, monkeypatch):
    monkeypatch.setattr(builtin, "knows_arrays", lambda: known)
    compiled = gs.compile(lambda x, i: softmax(x, i)[1] * x[:, :1] - np.sin(x[:, 1:2]))
    compiled(X, np.zeros((5, 1), int))
    with pytest.raises(IndexError):
        compiled(X, np.full((5, 1), 12))
