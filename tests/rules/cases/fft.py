"""Cases of the Fourier transforms."""

from __future__ import annotations

import numpy as np

from tests.rules.harness import Case

_rng = np.random.default_rng(13)
CASES: list[Case] = []


def real(*shape):
    return _rng.standard_normal(shape)


def complex_(*shape):
    return real(*shape) + 1j * real(*shape)


def add(fn, x, *args, **kwargs):
    options = ",".join([*map(str, args), *(f"{k}={v}" for k, v in kwargs.items())])
    label = f"np.fft.{fn.__name__}-{x.dtype.kind}{x.shape}-{options}".replace(" ", "")
    CASES.append(Case(fn, (x, *args), kwargs, name=label))


_FROM_REAL = (np.fft.rfft, np.fft.ihfft)
_FROM_COMPLEX = (np.fft.fft, np.fft.ifft, np.fft.irfft, np.fft.hfft)
for _fn in (*_FROM_REAL, *_FROM_COMPLEX):
    for _make in (real,) if _fn in _FROM_REAL else (real, complex_):
        for _size in (2, 3, 5, 6):
            add(_fn, _make(_size))
            for _n in (1, 2, 4, 5, 9):
                add(_fn, _make(_size), _n)
        for _norm in ("backward", "forward", "ortho"):
            add(_fn, _make(5), norm=_norm)
            add(_fn, _make(4, 3), n=5, axis=0, norm=_norm)
        add(_fn, _make(4, 3), axis=0)
        add(_fn, _make(2, 4, 3), axis=-2)
        add(_fn, _make(2, 4, 3), 3, 1, "ortho")
        add(_fn, _make(0, 3))
    if _fn not in (np.fft.irfft, np.fft.hfft):
        add(_fn, real(1))

for _fn in (np.fft.fft2, np.fft.ifft2, np.fft.rfft2, np.fft.irfft2):
    for _make in (real,) if _fn is np.fft.rfft2 else (real, complex_):
        add(_fn, _make(4, 3))
        add(_fn, _make(2, 3, 4))
        add(_fn, _make(3, 4), s=(5, 3))
        add(_fn, _make(3, 4), s=(2, 7), norm="ortho")
        add(_fn, _make(3, 4), s=(-1, 6), norm="forward")
        add(_fn, _make(3, 2, 4), axes=(2, 0))
        add(_fn, _make(3, 4, 4), (4, 3), (0, -2), "forward")

for _fn in (np.fft.fftn, np.fft.ifftn, np.fft.rfftn, np.fft.irfftn):
    for _make in (real,) if _fn is np.fft.rfftn else (real, complex_):
        add(_fn, _make(5))
        add(_fn, _make(2, 3, 4))
        add(_fn, _make(2, 3, 4), axes=(0, 1))
        add(_fn, _make(2, 3, 4), axes=(2,))
        add(_fn, _make(2, 3, 4), s=(3, 2, 5), axes=(0, 1, 2))
        add(_fn, _make(2, 3, 4), s=(3, 5), axes=(2, 0), norm="ortho")
        add(_fn, _make(2, 3, 4), s=(-1, 4), axes=(1, 2), norm="forward")
        add(_fn, _make(3, 4), axes=(1, 1))  # the same axis twice
        add(_fn, _make(3, 4), s=(3, 6), axes=(1, 1))
for _make in (real, complex_):
    add(np.fft.fftn, _make(3, 4), axes=())
    for _fn in (np.fft.fftshift, np.fft.ifftshift):
        add(_fn, _make(5))
        add(_fn, _make(4, 3))
        add(_fn, _make(4, 3), axes=0)
        add(_fn, _make(4, 3, 2), (0, -2))
