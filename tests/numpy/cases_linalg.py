"""Cases of linear algebra and of special functions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .cases import SIGNED, WHOLE, Case, between, case, ints, normal, smooth

A = normal(2, 3, 3) + 2 * np.eye(3)
SPD = A @ np.swapaxes(A, 1, 2) + np.eye(3)
TALL = normal(4, 3)


def linalg() -> Iterator[Case]:
    yield smooth("linalg.solve", A[0], normal(3))
    yield smooth("linalg.solve", A, normal(2, 3, 2))
    yield case("linalg.solve", A[0].astype(np.float32), normal(3, 2))
    yield case("linalg.solve", A, normal(3, 2))
    yield case("linalg.solve", np.array([[2, 0], [0, 4]]), np.array([1, 2]))
    for name in ("inv", "det", "slogdet"):
        yield smooth(f"linalg.{name}", A)
        yield case(f"linalg.{name}", A[0].astype(np.float32))
    yield case("linalg.det", ints(0, 5, 3, 3))
    yield smooth("linalg.cholesky", SPD)
    yield smooth("linalg.cholesky", SPD, upper=True)
    yield case("linalg.cholesky", np.tril(SPD))
    yield smooth("linalg.eigvalsh", SPD)
    yield Case("linalg.eigh", (SPD,), sizes=True)
    yield Case("linalg.eigh", (np.tril(SPD),), sizes=True)
    yield smooth("linalg.svdvals", TALL)
    yield Case("linalg.svd", (TALL,), {"full_matrices": False}, sizes=True)
    yield Case("linalg.svd", (normal(3, 3),), sizes=True)
    yield Case("linalg.qr", (TALL,), sizes=True)
    yield Case("linalg.qr", (TALL,), {"mode": "r"}, sizes=True)
    yield Case("linalg.qr", (normal(3, 3),), {"mode": "complete"}, sizes=True)
    yield smooth("linalg.pinv", TALL)
    for n in (0, 1, 3, -2):
        yield Case("linalg.matrix_power", (A, n), slope=n != 0)
    for name in ("linalg.matmul", "linalg.outer", "linalg.vecdot"):
        yield case(name, A[0, 0], A[0, 1])
    yield smooth("linalg.diagonal", A)
    yield case("linalg.diagonal", A, offset=1)
    yield smooth("linalg.trace", A)
    yield from norms()


def norms() -> Iterator[Case]:
    x = normal(2, 3, 4)
    yield smooth("linalg.norm", x)
    yield case("linalg.norm", SIGNED)
    yield case("linalg.norm", (x + 1j).astype(np.complex64))
    for ord in (None, 0, 1, 2, 3, -1, 0.5, np.inf, -np.inf):
        smooth_here = ord not in (0,)
        yield Case("linalg.norm", (x,), {"ord": ord, "axis": 1}, slope=smooth_here)
    for ord in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        yield smooth("linalg.norm", x, ord=ord, axis=(0, 2))
        yield case("linalg.norm", x, ord=ord, axis=(2, 1), keepdims=True)
        yield case("linalg.matrix_norm", x, ord=ord, keepdims=True)
    yield smooth("linalg.matrix_norm", x)
    yield smooth("linalg.vector_norm", x)
    yield case("linalg.vector_norm", x, axis=(0, 1), ord=3, keepdims=True)


def special() -> Iterator[Case]:
    places = {
        "erf": (-2, 2), "erfc": (-2, 6), "erfinv": (-0.9, 0.9), "gammaln": (0.5, 4),
        "digamma": (0.5, 4), "psi": (0.5, 4), "ndtr": (-2, 2), "ndtri": (0.1, 0.9),
        "log_ndtr": (-4, 3), "expit": (-3, 3), "log_expit": (-3, 3),
        "logit": (0.1, 0.9), "entr": (0.1, 2),
    }  # fmt: skip
    for name, (low, high) in places.items():
        x = between(low, high, 2, 3)
        yield smooth(f"special.{name}", x)
        yield case(f"special.{name}", x.astype(np.float32))
        yield case(f"special.{name}", x.astype(np.float16))
        if name not in ("erfinv", "ndtri", "logit"):
            yield case(f"special.{name}", WHOLE + 1)
    yield case("special.log_ndtr", np.array([-40.0, -10.0, -5.0, -4.9, 0.0, 5.0, 40.0]))
    yield case("special.log_expit", np.array([-1000.0, 0.0, 1000.0]))
    yield case("special.expit", np.array([-1000.0, 0.0, 1000.0]))
    yield case("special.entr", np.array([0.0, -1.0, 1.0]))
    x, y = between(0.5, 2, 2, 3), between(0.5, 2, 3)
    for name in ("betaln", "xlogy", "xlog1py"):
        yield smooth(f"special.{name}", x, y)
        yield case(f"special.{name}", x.astype(np.float32), 2.0)
    yield case("special.xlogy", np.array([0.0, 0.0, 1.0]), np.array([0.0, np.nan, 0.0]))
    for name in ("logsumexp", "softmax", "log_softmax"):
        x = normal(2, 3, 4)
        yield smooth(f"special.{name}", x)
        yield smooth(f"special.{name}", x, axis=-1)
        yield smooth(f"special.{name}", x, axis=(0, 2))
        yield case(f"special.{name}", 1000 * x.astype(np.float32), axis=1)
        yield case(f"special.{name}", WHOLE)
        yield case(f"special.{name}", x.astype(np.float16), axis=0)
    yield case("special.logsumexp", x, axis=1, keepdims=True)
    yield smooth("special.logsumexp", x, axis=1, b=between(0.5, 1, 2, 3, 4))
    yield case("special.logsumexp", np.array([-np.inf, -np.inf]))


LINALG = [*linalg(), *special()]
