"""Fourier transforms: dtypes, deprecated forms and when the rules are read."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import gradsmith as gs


@pytest.mark.parametrize("fn", [np.fft.fft, np.fft.rfft, np.fft.ihfft, np.fft.fftn])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_real_input_has_a_real_gradient(fn, dtype):
    dx = gs.grad(lambda x: np.sum(np.abs(fn(x)) ** 2))(np.arange(5, dtype=dtype))
    assert dx.dtype == dtype


def test_parseval():
    """sum |fft(x)|^2 = n sum x^2."""
    x = np.arange(5.0)
    dx = gs.grad(lambda x: np.sum(np.abs(np.fft.fft(x)) ** 2))(x)
    np.testing.assert_allclose(dx, 10 * x, atol=1e-12)


def test_frequencies_that_must_be_real_ignore_their_imaginary_part():
    x = np.array([1 + 1j, 2 - 1j, 3 + 2j])
    dx = gs.grad(lambda x: np.sum(np.arange(4) * np.fft.irfft(x)))(x)
    assert dx[0].imag == 0  # the mean
    assert abs(dx[2].imag) < 1e-15  # half the sampling rate
    assert dx[1].imag != 0


@pytest.mark.parametrize("fn", [np.fft.fftn, np.fft.ifftn, np.fft.irfftn])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("options", [{"s": (3, 4)}, {"s": (3, None), "axes": (0, 1)}])
def test_deprecated_lengths(fn, options):
    """NumPy warns of lengths without axes, and of None as a length."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 3)) + 1j * rng.standard_normal((2, 3))
    v = rng.standard_normal((2, 3)) + 1j * rng.standard_normal((2, 3))
    y, pull = gs.vjp(lambda x: fn(x, **options), x)
    (dx,) = pull(y)
    np.testing.assert_allclose(
        np.vdot(dx, v).real, np.vdot(y, fn(v, **options)).real, rtol=1e-12
    )


def test_the_rules_are_read_when_they_are_needed():
    """`import gradsmith` reads no rules of np.fft, which NumPy itself loads late."""
    code = """
import sys, numpy as np, gradsmith as gs
early = "numpy.fft" in sys.modules
assert "gradsmith.rules.fft" not in sys.modules
dx = gs.grad(lambda x: np.sum(np.abs(np.fft.fft(x)) ** 2))(np.ones(3))
assert np.allclose(dx, 6)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_out_is_refused():
    with pytest.raises(gs.UnsupportedOperationError, match="out"):
        gs.vjp(lambda x: np.fft.fft(x, out=np.empty(3, complex)), np.ones(3))
