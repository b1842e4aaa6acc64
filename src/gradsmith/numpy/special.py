"""Special functions: SciPy's names in every framework.

For NumPy's arrays SciPy does the work, and `pip install "gradsmith[special]"` brings
it; the functions of exponentials and logarithms run without it. Floats of every width
stay what they are, also beside a Python number, and whole numbers become float64 (in
SciPy that differs from function to function).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from ..frameworks._dtypes import inexact_of, kind_of_value, result_type
from . import _elementwise as e
from ._choosing import where
from ._dispatch import portable
from ._exponentials import log_softmax, logsumexp, softmax
from ._formulas import SPECIAL
from ._missing import missing as _missing
from ._operands import converted, first_array, kind_of
from ._types import astype

__all__ = [
    "betaln",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfinv",
    "expit",
    "gammaln",
    "log_expit",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "ndtr",
    "ndtri",
    "psi",
    "softmax",
    "xlog1py",
    "xlogy",
]


def __getattr__(name: str) -> Any:
    raise _missing(name, __name__)


def __dir__() -> list[str]:
    return __all__


@cache
def _found(name: str) -> Any:
    try:
        import scipy.special
    except ImportError as error:
        raise ImportError(
            f"gnp.special.{name} of NumPy arrays is SciPy's, which is not installed: "
            'pip install "gradsmith[special]"'
        ) from error
    return getattr(scipy.special, name)


def _scipy(name: str) -> Callable[..., Any]:
    """SciPy's function, in the dtype of this namespace."""

    def call(*xs: Any) -> Any:
        kinds = [x.dtype.name if hasattr(x, "dtype") else kind_of_value(x) for x in xs]
        dtype = inexact_of(result_type(*kinds))
        wide = _WIDE.get(dtype, dtype)
        return astype(_found(name)(*[astype(x, wide) for x in xs]), dtype)

    return call


_WIDE = {"float16": "float32", "bfloat16": "float32"}  # 16 bits are computed in 32


def _run(K: Any, name: str, own: Any, *xs: Any) -> Any:
    dtype = inexact_of(K.result_type(*[kind_of(K, x) for x in xs]))
    like, wide = first_array(K, xs), _WIDE.get(dtype, dtype)
    xs = tuple([converted(K, x, wide, like) for x in xs])
    y = K.SPECIAL[name](*xs) if name in K.SPECIAL else NotImplemented
    return K.cast((own or SPECIAL[name])(*xs) if y is NotImplemented else y, dtype)


def _special(name: str, doc: str, own: Any = None, *, n: int = 1) -> Any:
    """A function that is SciPy's for NumPy, and for others a kernel or our own."""

    def unary(K: Any, x: Any, /) -> Any:
        return _run(K, name, own, x)

    def binary(K: Any, x1: Any, x2: Any, /) -> Any:
        return _run(K, name, own, x1, x2)

    definition: Any = unary if n == 1 else binary
    definition.__name__ = definition.__qualname__ = name
    definition.__doc__ = doc
    without_scipy = own if name in _WITHOUT_SCIPY else None
    return portable(_scipy_or(name, without_scipy))(definition)


_WITHOUT_SCIPY = ("expit", "log_expit", "logit")


def _scipy_or(name: str, own: Any) -> Callable[..., Any]:
    """SciPy's function if it is there, for it knows every corner; else our own."""
    scipy = _scipy(name)

    def call(*xs: Any) -> Any:
        try:
            _found(name)
        except ImportError:
            if own is None:
                raise
            return own(*xs)
        return scipy(*xs)

    return call


erf = _special("erf", "2/sqrt(pi) times the integral of exp(-t**2) from 0 to x.")
erfc = _special("erfc", "1 - erf(x), precise for large x.")
erfinv = _special("erfinv", "The x with this erf(x).")
gammaln = _special("gammaln", "The logarithm of the size of the gamma function.")
digamma = psi = _special("digamma", "The derivative of gammaln.")
ndtr = _special("ndtr", "The share of the normal distribution below x.")
ndtri = _special("ndtri", "The x below which this share of the normal distribution is.")
log_ndtr = _special("log_ndtr", "log(ndtr(x)), precise far below 0.")


def _betaln(x1: Any, x2: Any) -> Any:
    return e.subtract(e.add(gammaln(x1), gammaln(x2)), gammaln(e.add(x1, x2)))


def _xlog(log: Any, least: int) -> Any:
    def own(x1: Any, x2: Any) -> Any:
        # The logarithm is the derivative by x1, also at 0, and so it stays if it can.
        finite = e.logical_and(e.greater(x2, least), e.isfinite(x2))
        gone = e.logical_and(e.equal(x1, 0), e.logical_not(e.isnan(x2)))
        gone = e.logical_and(gone, e.logical_not(finite))
        return e.multiply(x1, log(where(gone, 1 + least, x2)))

    return own


def _entr(x: Any) -> Any:
    return where(e.less(x, 0), float("-inf"), e.negative(xlogy(x, x)))


betaln = _special("betaln", "The logarithm of the beta function's size.", _betaln, n=2)
xlogy = _special("xlogy", "x1 * log(x2), which is 0 where x1 is.", _xlog(e.log, 0), n=2)
xlog1py = _special(
    "xlog1py", "x1 * log(1 + x2), which is 0 where x1 is.", _xlog(e.log1p, -1), n=2
)
entr = _special("entr", "-x log(x); 0 at 0, and minus infinity below.", _entr)


# The functions of exponentials and logarithms, which NumPy alone can do.


def _expit(x: Any) -> Any:
    t = e.exp(e.negative(e.absolute(x)))  # never overflows
    return e.divide(where(e.less(x, 0), t, 1), e.add(t, 1))


def _log_expit(x: Any) -> Any:
    return e.subtract(e.minimum(x, 0), e.log1p(e.exp(e.negative(e.absolute(x)))))


def _logit(x: Any) -> Any:
    return e.subtract(e.log(x), e.log1p(e.negative(x)))


expit = _special("expit", "The logistic sigmoid, 1 / (1 + exp(-x)).", _expit)
log_expit = _special("log_expit", "log(expit(x)) without underflow.", _log_expit)
logit = _special("logit", "The inverse of expit: log(x / (1 - x)).", _logit)
