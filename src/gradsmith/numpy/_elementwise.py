"""Elementwise functions: NumPy's ufuncs, each computed in the dtype of NumPy's loop."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

import numpy as np

from ..core.compilers import not_rewritten
from ..core.tensor import joined
from ..frameworks._dtypes import is_inexact
from ._dispatch import ADOPTED, LISTS, NUMPY, kernels_of, native
from ._operands import converted, first_array, kind_of

# For ufuncs that a framework has no kernel of, a formula; `_formulas` fills it.
FORMULAS: dict[str, Callable[..., Any]] = {}


def in_loop(K: Any, name: str, xs: tuple[Any, ...]) -> Any:
    """Run a ufunc's native kernel in the dtypes of NumPy's loop."""
    *inputs, output = K.loop(name, *[kind_of(K, x) for x in xs])
    if name == "power" and not is_inexact(output):
        _refuse_negative(xs[1])
    elif name in _COMPARISONS:
        xs, inputs = _comparable(K, xs, inputs)
    like = first_array(K, xs)
    takes_number = (
        name in _COMPARISONS and K.COMPARES_NUMBERS and inputs[0].startswith("int")
    )
    xs = tuple([
        x if i and takes_number and type(x) is int else converted(K, x, dtype, like)
        for i, (x, dtype) in enumerate(zip(xs, inputs, strict=True))
    ])  # fmt: skip
    if _is_identity(name, output):
        return xs[0]
    return K.cast(_kernel(K, name)(*xs), output)


def _kernel(K: Any, name: str) -> Any:
    return K.ELEMENTWISE.get(name) or FORMULAS[name]


def _refuse_negative(power: Any) -> None:
    if isinstance(power, int) and power < 0:
        raise ValueError("Integers to negative integer powers are not allowed.")


_COMPARISONS = (
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
)  # fmt: skip


def _comparable(K: Any, xs: tuple[Any, ...], dtypes: list[str]) -> Any:
    """A Python number that the array's whole numbers can't reach is infinite to them.

    uint8 and -1 compare in NumPy too, though they add up to an error.
    """
    for i, x in enumerate(xs):
        if type(x) is int and not K.fits(x, dtypes[i]):
            far = float("inf") if x > 0 else float("-inf")
            return (*xs[:i], far, *xs[i + 1 :]), ["float64", "float64"]
    return xs, dtypes


def _is_identity(name: str, dtype: str) -> bool:
    """Whether a function leaves numbers of this dtype as they are."""
    if name in ("floor", "ceil", "trunc"):
        return not is_inexact(dtype)
    return name == "absolute" and dtype.startswith(("bool", "uint"))


def _unary(name: str, doc: str) -> Callable[[Any], Any]:
    ufunc = getattr(np, name)
    of_floats = _takes_floats(ufunc)

    def call(x: Any, /) -> Any:
        K = kernels_of(name, (x,))
        if K is None or K is NUMPY:
            return ufunc(joined(x) if x.__class__ in LISTS else x)
        x = native(x) if ADOPTED else x
        if of_floats and K.is_float(x):  # computed in its own dtype: 4 us less
            return _kernel(K, name)(x)
        return in_loop(K, name, (x,))

    return _published(call, name, doc)


def _binary(name: str, doc: str) -> Callable[[Any, Any], Any]:
    ufunc = getattr(np, name)
    of_floats = _takes_floats(ufunc)

    def call(x1: Any, x2: Any, /) -> Any:
        K = kernels_of(name, (x1, x2))
        if K is None or K is NUMPY:
            if x1.__class__ in LISTS:  # there may be tensors in it
                x1 = joined(x1)
            return ufunc(x1, x2)
        if ADOPTED:
            x1, x2 = native(x1), native(x2)
        if of_floats:
            floats = K.as_floats(name, x1, x2)  # of one dtype, in which it is computed
            if floats is not None:
                return _kernel(K, name)(*floats)
        return in_loop(K, name, (x1, x2))

    return _published(call, name, doc)


def _takes_floats(ufunc: np.ufunc) -> bool:
    return any(types.startswith("d") for types in ufunc.types)


def _published(call: Any, name: str, doc: str) -> Any:
    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    names = ("x",) if call.__code__.co_argcount == 1 else ("x1", "x2")
    call.__signature__ = Signature(
        [Parameter(each, Parameter.POSITIONAL_ONLY) for each in names]
    )
    return not_rewritten(call)


absolute = _unary("absolute", "The distance of each element from 0.")
abs = absolute
negative = _unary("negative", "-x")
positive = _unary("positive", "+x")
sign = _unary("sign", "-1, 0 or 1; NaN of NaN, and x / |x| of a complex x.")
reciprocal = _unary("reciprocal", "1 / x")
square = _unary("square", "x * x")
sqrt = _unary("sqrt", "The square root of each element.")
cbrt = _unary("cbrt", "The real cube root, of negative numbers too.")
exp = _unary("exp", "e to the power of each element.")
exp2 = _unary("exp2", "2 to the power of each element.")
expm1 = _unary("expm1", "exp(x) - 1, precise near 0.")
log = _unary("log", "The natural logarithm of each element.")
log2 = _unary("log2", "The logarithm to base 2 of each element.")
log10 = _unary("log10", "The logarithm to base 10 of each element.")
log1p = _unary("log1p", "log(1 + x), precise near 0.")

sin = _unary("sin", "The sine of each element, in radians.")
cos = _unary("cos", "The cosine of each element, in radians.")
tan = _unary("tan", "The tangent of each element, in radians.")
arcsin = asin = _unary("arcsin", "The angle in [-pi/2, pi/2] with this sine.")
arccos = acos = _unary("arccos", "The angle in [0, pi] with this cosine.")
arctan = atan = _unary("arctan", "The angle in (-pi/2, pi/2) with this tangent.")
sinh = _unary("sinh", "The hyperbolic sine of each element.")
cosh = _unary("cosh", "The hyperbolic cosine of each element.")
tanh = _unary("tanh", "The hyperbolic tangent of each element.")
arcsinh = asinh = _unary("arcsinh", "The number with this hyperbolic sine.")
arccosh = acosh = _unary("arccosh", "The number >= 0 with this hyperbolic cosine.")
arctanh = atanh = _unary("arctanh", "The number with this hyperbolic tangent.")
deg2rad = radians = _unary("deg2rad", "Degrees as radians: x * pi / 180.")
rad2deg = degrees = _unary("rad2deg", "Radians as degrees: x * 180 / pi.")

floor = _unary("floor", "The greatest whole number that is not above x.")
ceil = _unary("ceil", "The least whole number that is not below x.")
trunc = _unary("trunc", "The nearest whole number towards 0.")
rint = _unary("rint", "The nearest whole number; of two, the even one.")
conjugate = conj = _unary("conjugate", "The complex conjugate of each element.")

isnan = _unary("isnan", "Whether each element is NaN.")
isinf = _unary("isinf", "Whether each element is plus or minus infinity.")
isfinite = _unary("isfinite", "Whether each element is neither infinite nor NaN.")
signbit = _unary("signbit", "Whether the sign of each element is minus, -0.0's too.")
logical_not = _unary("logical_not", "Whether each element is 0.")
invert = bitwise_not = bitwise_invert = _unary("invert", "The other value of each bit.")

add = _binary("add", "x1 + x2")
subtract = _binary("subtract", "x1 - x2")
multiply = _binary("multiply", "x1 * x2")
divide = true_divide = _binary("divide", "x1 / x2; of whole numbers in float64.")
floor_divide = _binary("floor_divide", "The greatest whole number up to x1 / x2.")
remainder = mod = _binary("remainder", "What floor_divide leaves; the sign is x2's.")
fmod = _binary("fmod", "What division towards 0 leaves; the sign is x1's.")
power = pow = _binary(
    "power",
    """x1 to the power x2.

    A negative Python number as power of whole numbers raises as in NumPy. Within an
    array it gives what the framework makes of it, for a compiler can't look.
    """,
)
arctan2 = atan2 = _binary("arctan2", "The angle of the point (x2, x1), in (-pi, pi].")
hypot = _binary("hypot", "sqrt(x1**2 + x2**2) without overflow.")
logaddexp = _binary("logaddexp", "log(exp(x1) + exp(x2)) without overflow.")
logaddexp2 = _binary("logaddexp2", "log2(2**x1 + 2**x2) without overflow.")
maximum = _binary("maximum", "The greater of two; NaN if one is NaN.")
minimum = _binary("minimum", "The lesser of two; NaN if one is NaN.")
fmax = _binary("fmax", "The greater of two; the other if one is NaN.")
fmin = _binary("fmin", "The lesser of two; the other if one is NaN.")
copysign = _binary("copysign", "x1 with the sign of x2.")

equal = _binary("equal", "x1 == x2")
not_equal = _binary("not_equal", "x1 != x2")
less = _binary("less", "x1 < x2")
less_equal = _binary("less_equal", "x1 <= x2")
greater = _binary("greater", "x1 > x2")
greater_equal = _binary("greater_equal", "x1 >= x2")
logical_and = _binary("logical_and", "Whether both are not 0.")
logical_or = _binary("logical_or", "Whether one of the two is not 0.")
logical_xor = _binary("logical_xor", "Whether exactly one of the two is not 0.")
bitwise_and = _binary("bitwise_and", "The bits that are in both.")
bitwise_or = _binary("bitwise_or", "The bits that are in one of the two.")
bitwise_xor = _binary("bitwise_xor", "The bits that are in exactly one of the two.")
left_shift = bitwise_left_shift = _binary("left_shift", "The bits, x2 to the left.")
right_shift = bitwise_right_shift = _binary("right_shift", "The bits, to the right.")
