"""Fourier transforms."""

from __future__ import annotations

from ..writer import Writer
from ._table import kind


@kind(0.8)
def fft(w: Writer) -> str:
    name = w.any(1, filled=True)
    real = w.values[name].dtype.kind == "f"
    function = w.one_of(("fft", "ifft", "irfft", "hfft") + ("rfft", "ihfft") * real)
    options = [f"axis={w.axis(name)}"]
    if w.chance(0.4):
        options.append(f"n={w.one_of((2, 3, 4, 5))}")
    if w.chance(0.3):
        options.append(f"norm={w.one_of(('ortho', 'forward', 'backward'))!r}")
    return f"np.fft.{function}({name}, {', '.join(options)})"


@kind(0.4)
def fftn(w: Writer) -> str:
    name = w.any(2, filled=True)
    real = w.values[name].dtype.kind == "f"
    names = ("fft2", "ifft2", "fftn", "ifftn", "irfft2") + ("rfft2", "rfftn") * real
    shift = w.one_of(("", "", "np.fft.fftshift", "np.fft.ifftshift"))
    return f"{shift}(np.fft.{w.one_of(names)}({name}))"
