"""Special functions: SciPy's names in every framework.

For NumPy's arrays SciPy does the work, and `pip install "gradsmith[special]"` brings
it; the functions of exponentials and logarithms run without it. Elements are computed
in float32 or float64 as SciPy does; a bfloat16 stays one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from . import _elementwise as e
from ._axes import axes_of, one_axis
from ._choosing import where
from ._dispatch import converted, first_array, kind_of, operand, portable
from ._dtypes import inexact_of, is_inexact
from ._dtypes import result_type as _result_type
from ._reductions import max, sum
from ._shaping import squeeze
from ._stopping import stop_gradient

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


def _scipy(name: str) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        return _found(name)(*args)

    return call


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


_SINGLE = ("bool", "int8", "uint8", "int16", "uint16", "float16", "float32")


@cache
def computed_in(*kinds: Any) -> str:
    """The dtype that SciPy computes in, which has loops for single and double."""
    name = _result_type(*kinds)
    if name in ("bfloat16", "complex64", "complex128"):
        return name
    if all(kind in _SINGLE for kind in kinds if isinstance(kind, str)):
        weak = [kind for kind in kinds if not isinstance(kind, str)]
        whole = not any(is_inexact(kind) for kind in kinds if isinstance(kind, str))
        return "float64" if float in weak and whole else "float32"
    return "float64"


def _floats(K: Any, *xs: Any) -> list[Any]:
    name = K.constant_of(computed_in)(*[kind_of(K, x) for x in xs])
    like = first_array(K, xs)
    return [converted(K, x, name, like) for x in xs]


def _ruled(name: str, doc: str) -> Callable[[Any], Any]:
    """A function of one argument that is SciPy's, and every framework's kernel."""

    def definition(K: Any, x: Any, /) -> Any:
        return K.SPECIAL[name](*_floats(K, x))

    definition.__name__ = definition.__qualname__ = name
    definition.__doc__ = doc
    return portable(_scipy(name))(definition)


erf = _ruled("erf", "The error function: 2/sqrt(pi) times the integral of exp(-t**2).")
erfc = _ruled("erfc", "1 - erf(x), precise for large x.")
erfinv = _ruled("erfinv", "The x with this erf(x).")
gammaln = _ruled("gammaln", "The logarithm of the size of the gamma function.")
digamma = _ruled("digamma", "The derivative of gammaln.")
psi = digamma
ndtr = _ruled("ndtr", "The share of the normal distribution below x.")
ndtri = _ruled("ndtri", "The x below which this share of the normal distribution is.")
log_ndtr = _ruled("log_ndtr", "log(ndtr(x)), precise far below 0.")


@portable(_scipy("betaln"))
def betaln(K: Any, x1: Any, x2: Any, /) -> Any:
    """The logarithm of the size of the beta function."""
    x1, x2 = _floats(K, x1, x2)
    return e.subtract(e.add(gammaln(x1), gammaln(x2)), gammaln(e.add(x1, x2)))


@portable(_scipy("entr"))
def entr(K: Any, x: Any, /) -> Any:
    """-x log(x), which is 0 at 0, and minus infinity below."""
    (x,) = _floats(K, x)
    return where(e.less(x, 0), float("-inf"), e.negative(xlogy(x, x)))


def _xlog(name: str, log: Any, words: str) -> Any:
    def definition(K: Any, x1: Any, x2: Any, /) -> Any:
        x1, x2 = _floats(K, x1, x2)
        gone = e.logical_and(e.equal(x1, 0), e.logical_not(e.isnan(x2)))
        inside = where(gone, 1, x2)  # where no logarithm is asked for, a harmless one
        return where(gone, e.multiply(x1, 0), e.multiply(x1, log(inside)))

    definition.__name__ = definition.__qualname__ = name
    definition.__doc__ = words
    return portable(_scipy(name))(definition)


xlogy = _xlog("xlogy", e.log, "x1 * log(x2), which is 0 where x1 is.")
xlog1py = _xlog("xlog1py", e.log1p, "x1 * log(1 + x2), which is 0 where x1 is.")


# The functions of exponentials and logarithms, which NumPy alone can do.


def _scipy_or(name: str, own: Callable[..., Any]) -> Callable[..., Any]:
    """SciPy's function if it is there, for it knows every corner; else our own."""

    def call(*args: Any, **options: Any) -> Any:
        try:
            fn = _found(name)
        except ImportError:
            fn = own
        return fn(*args, **options)

    return call


def _expit(x: Any) -> Any:
    t = e.exp(e.negative(e.absolute(x)))  # never overflows
    return e.divide(where(e.less(x, 0), t, 1), e.add(t, 1))


def _log_expit(x: Any) -> Any:
    return e.subtract(e.minimum(x, 0), e.log1p(e.exp(e.negative(e.absolute(x)))))


def _logit(x: Any) -> Any:
    return e.subtract(e.log(x), e.log1p(e.negative(x)))


def _sigmoidal(name: str, own: Any, doc: str) -> Callable[[Any], Any]:
    def definition(K: Any, x: Any, /) -> Any:
        x = operand(K, x)
        x = K.cast(x, K.loop("exp", K.kind(x))[-1])
        return K.SPECIAL[name](x) if name in K.SPECIAL else own(x)

    definition.__name__ = definition.__qualname__ = name
    definition.__doc__ = doc
    return portable(_scipy_or(name, own))(definition)


expit = _sigmoidal("expit", _expit, "The logistic sigmoid, 1 / (1 + exp(-x)).")
log_expit = _sigmoidal("log_expit", _log_expit, "log(expit(x)) without underflow.")
logit = _sigmoidal("logit", _logit, "The inverse of expit: log(x / (1 - x)).")


def _greatest(x: Any, axis: Any) -> Any:
    """The greatest as a constant that cancels; 0 where it is infinite."""
    top = stop_gradient(max(x, axis, keepdims=True))
    return where(e.isfinite(top), top, 0)


def _logsumexp(
    x: Any, axis: Any = None, b: Any = None, *, keepdims: bool = False
) -> Any:
    top = _greatest(x, axis)
    terms = e.exp(e.subtract(x, top))
    total = sum(terms if b is None else e.multiply(b, terms), axis, keepdims=True)
    y = e.add(e.log(total), top)
    if keepdims:
        return y
    return squeeze(y, tuple(range(np.ndim(y))) if axis is None else axis)


def _softmax(x: Any, axis: Any = None) -> Any:
    terms = e.exp(e.subtract(x, _greatest(x, axis)))
    return e.divide(terms, sum(terms, axis, keepdims=True))


def _log_softmax(x: Any, axis: Any = None) -> Any:
    off = e.subtract(x, _greatest(x, axis))
    return e.subtract(off, e.log(sum(e.exp(off), axis, keepdims=True)))


def _inexact(K: Any, x: Any) -> Any:
    x = operand(K, x)
    return K.cast(x, inexact_of(K.kind(x)))


@portable(_scipy_or("logsumexp", _logsumexp))
def logsumexp(
    K: Any, x: Any, /, axis: Any = None, b: Any = None, *, keepdims: bool = False
) -> Any:
    """log(sum(b * exp(x))) along axes without overflow.

    >>> float(logsumexp(np.array([1000.0, 1000.0]))) - 1000
    0.693147180559...
    """
    if b is not None:
        return _logsumexp(_inexact(K, x), axis, b, keepdims=keepdims)
    x = _inexact(K, x)
    axes = axes_of(axis, K.ndim(x))
    return K.logsumexp(x, axes, keepdims) if axes else x


@portable(_scipy_or("softmax", _softmax))
def softmax(K: Any, x: Any, /, axis: Any = None) -> Any:
    """exp(x) as shares of its sum along axes; of all elements if axis is None.

    >>> softmax(np.array([1000.0, 1000.0]))
    array([0.5, 0.5])
    """
    x = _inexact(K, x)
    if isinstance(axis, int):
        return K.softmax(x, one_axis(axis, K.ndim(x)))
    return _softmax(x, axis)


@portable(_scipy_or("log_softmax", _log_softmax))
def log_softmax(K: Any, x: Any, /, axis: Any = None) -> Any:
    """log(softmax(x)) without underflow.

    >>> log_softmax(np.array([0.0, 0.0]))
    array([-0.69314718, -0.69314718])
    """
    x = _inexact(K, x)
    if isinstance(axis, int):
        return K.log_softmax(x, one_axis(axis, K.ndim(x)))
    return _log_softmax(x, axis)
