"""Linear least squares: a polynomial with m coefficients beside a sign function.

The powers are of an array that nobody differentiates, so NumPy makes them where a
program says `np.vander`: in 26 us and 1.5 ms, of 48 us and 1.6 ms in all. For us they
are written as `gradsmith.numpy.vander`, which takes 10 us and 0.14 ms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.gradbench.libraries import Library, torch_value_and_grad

SIZES = ({"n": 64, "m": 128}, {"n": 4_096, "m": 128})
VARIABLES = 1


def inputs(rng: Any, n: int, m: int) -> tuple[Any, ...]:
    t = np.linspace(-1, 1, n)
    return rng.uniform(size=m), t, np.sign(t)


def in_numpy(library: Library, n: int, m: int) -> Any:
    np = library.np

    def objective(x: Any, t: Any, s: Any) -> Any:
        residuals = s - library.vander(t, m, increasing=True) @ x
        return 0.5 * np.sum(residuals**2)

    return library.value_and_grad(objective)


def in_torch(torch: Any, n: int, m: int) -> Any:
    def objective(x: Any, t: Any, s: Any) -> Any:
        residuals = s - torch.vander(t, N=m, increasing=True) @ x
        return 0.5 * torch.sum(residuals**2)

    return torch_value_and_grad(torch, objective)
