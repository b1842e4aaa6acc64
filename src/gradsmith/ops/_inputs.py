"""Arguments of the ready-made operations: precision, shapes, and what is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import numpy as gnp
from ..core.arrays import framework_of
from ..core.errors import GradsmithError
from ..core.symbolic import Symbolic
from ..frameworks._dtypes import is_inexact, name_of
from ..numpy._dispatch import NUMPY, kernels_of
from ..program.kernels.mode import in_kernel

NARROW = ("float16", "bfloat16")


def kind(x: Any) -> str | None:
    """The name of an array's dtype; None for numbers and certified balls."""
    if framework_of(x) is None and not isinstance(x, np.generic):
        return None
    return name_of(x.dtype)


def cast(x: Any, name: str) -> Any:
    return x.astype(name) if isinstance(x, np.generic) else gnp.astype(x, name)


def wide(x: Any) -> Any:
    """x in the precision that is computed in: 16 bits in float32, whole in float64."""
    name = kind(x)
    if name is None:
        return x
    if name in NARROW:
        return cast(x, "float32")
    return x if is_inexact(name) else cast(x, "float64")


def prediction(op: str, x: Any, argument: str) -> Any:
    """The first argument of a loss to compute with."""
    return wide(operand(op, argument, x))


def like(y: Any, x: Any) -> Any:
    """A result in the precision of x."""
    name = kind(x)
    if name in NARROW or (name == "float32" and kind(y) == "float64"):
        return cast(y, name)
    return y


def precise(x: Any) -> Any:
    """x as exp is taken of it: NumPy's own loses 2.4 ULP in float32."""
    if computed_by_numpy(x) and kind(x) == "float32":
        return cast(x, "float64")
    return wide(x)


def computed_by_numpy(x: Any) -> bool:
    """Whether NumPy's own functions compute with x, and not those of a kernel."""
    return framework_of(x) in (NUMPY, None) and not in_kernel()


FAR = 1e4


def held(x: Any) -> Any:
    """x within bounds beyond which exp(-|x|) is 0 in every format.

    So x exp(-|x|) is 0 at infinity, which is its limit, and not NaN.
    """
    return gnp.clip(x, -FAR, FAR)


def times(a: Any, x: Any) -> Any:
    """a x, which is 0 where a is, also if x is infinite."""
    return a * gnp.where(a == 0, gnp.zeros_like(a), x)


def pair(x: Any, y: Any) -> tuple[Any, Any]:
    """Two operands as arrays of one dtype; a number takes that of the other."""
    arrays = [each for each in (x, y) if framework_of(each) is not None]
    if not arrays or kind(x) == kind(y):
        return x, y
    dtype = gnp.result_type(x, y)
    x, y = (gnp.asarray(each, like=arrays[0]) for each in (x, y))
    return gnp.astype(x, dtype), gnp.astype(y, dtype)


def fitted(dx: Any, x: Any) -> Any:
    """A gradient in the shape and dtype of x, which was broadcast; None of a number."""
    if kind(x) is None:
        return None if framework_of(dx) is not None else dx
    dx = gnp.unbroadcast(dx, gnp.shape(x))
    return dx if kind(dx) == kind(x) else gnp.astype(dx, x.dtype)


def if_any(wanted: Any, then: Any, otherwise: Any) -> Any:
    """`then()` if any element of `wanted` holds, else `otherwise()`, which is cheaper.

    Where nothing can choose, `then()`, which must be right in any case.
    """
    K = kernels_of("any", (wanted,))
    if K is NUMPY or K is None:
        return unless_none(wanted, then, otherwise)
    return K.if_any(wanted, then, otherwise)


def unless_none(wanted: Any, then: Any, otherwise: Any) -> Any:
    """`otherwise()` if it is seen for free that no element of `wanted` holds.

    Else `then()`, which must be right in any case: compiled code fuses it with what is
    around it, where a branch would take more time.
    """
    values = known_values(wanted)
    return then() if values is None or values.any() else otherwise()


def polynomial(t: Any, c: tuple[float, ...]) -> Any:
    """c[0] + c[1] t + c[2] t^2 + ..."""
    y = c[-1] * t + c[-2]
    for each in c[-3::-1]:
        y = y * t + each
    return y


def wrong(op: str, argument: str, expected: str, got: Any, do: str) -> GradsmithError:
    """The one error for an argument that can't be."""
    return GradsmithError(
        f"ops.{op}: the argument {argument!r} is wrong\n"
        f"  expected: {expected}\n  got: {got}\n  what to do: {do}"
    )


def number(option: Any) -> Any:
    """An option of NumPy's, a scalar or an array of no axes, as a Python number.

    It then takes the dtype of the array that it meets, and is no array itself.
    """
    if isinstance(option, (np.generic, np.ndarray)) and option.ndim == 0:
        # item() of a longdouble is one
        return float(option) if option.dtype.kind == "f" else option.item()
    return option


_NO_REAL_NUMBERS = "cSUTmM"  # dtype.kind: complex, strings, times


def is_real(dtype: Any) -> bool:
    """Whether a dtype may be one of real numbers: not complex, not strings."""
    if isinstance(dtype, np.dtype):
        return dtype.kind not in _NO_REAL_NUMBERS
    is_complex = getattr(dtype, "is_complex", None)
    if is_complex is None:
        return "complex" not in str(dtype)
    return is_complex is not True  # in a graph of torch.fx it is not known


def operand(
    op: str, argument: str, x: Any, like: Any = None, *, takes_complex: bool = False
) -> Any:
    """An argument that is an array; lists and numbers count as one of NumPy.

    Beside the array `like` a list becomes one of the same framework, and a number
    stays what it is. What holds no real numbers is refused.
    """
    if framework_of(x) is None and not isinstance(x, np.generic):
        if x is None or isinstance(x, (str, bytes)):
            raise wrong(op, argument, "an array", repr(x), "give an array of numbers")
        if not isinstance(x, (list, tuple, int, float, complex)):
            return x  # a certified ball, for one
        if like is not None and isinstance(x, (int, float)):
            return x
        x = gnp.asarray(x, like=like)
    if is_real(x.dtype):
        return x
    name, do = name_of(x.dtype), "convert it to numbers"
    if name.startswith("complex"):
        if takes_complex:
            return x
        do = "give its real and imaginary part, each by itself, or its absolute value"
    raise wrong(op, argument, "an array of real numbers", f"dtype {name}", do)


def shape_of(x: Any) -> tuple[Any, ...]:
    """The shape of an array, with None for lengths that a graph leaves open."""
    try:
        return tuple(x.shape)
    except ValueError:
        gnp.ndim(x)  # says what to do about an unknown number of axes
        raise


def is_number(x: Any) -> bool:
    return isinstance(x, (int, float, np.number)) and not isinstance(x, bool)


def is_whole(x: Any) -> bool:
    """Whether it is a whole number, of Python or of NumPy."""
    return isinstance(x, (int, np.integer)) and not isinstance(x, bool)


def require_positive(op: str, **options: Any) -> None:
    for name, x in options.items():
        if is_number(x) and not 0 < x < float("inf"):
            raise wrong(op, name, "a positive number", x, f"give {name} > 0")


def require_share(op: str, **options: Any) -> None:
    for name, x in options.items():
        if not (is_number(x) and 0 <= x <= 1):
            raise wrong(op, name, "a number from 0 to 1", x, f"give 0 <= {name} <= 1")


def require_axis(op: str, x: Any, axis: Any) -> int:
    """The axis, counted from the front."""
    n = gnp.ndim(x)
    if not is_whole(axis) or not -n <= axis < n:
        if n == 0:
            do = "give an array of at least one axis"
        else:
            do = f"give one from {-n} to {n - 1}"
        raise wrong(op, "axis", f"an axis of an array with {n} of them", axis, do)
    return int(axis) % n


def classes_along(x: Any, axis: int) -> Any:
    """0, 1, 2... along an axis of x."""
    axis %= gnp.ndim(x)
    n = gnp.shape(x)[axis]
    shape = [n if i == axis else 1 for i in range(gnp.ndim(x))]
    return gnp.reshape(gnp.arange(n, like=x), tuple(shape))


def known_values(x: Any) -> Any:
    """The values as NumPy has them, where they can be looked at; else None."""
    K = kernels_of("values", (x,))
    if K is NUMPY or isinstance(x, np.generic):
        x = getattr(x, "value", x)  # a tensor's array
        return None if isinstance(x, Symbolic) else x
    return None if K is None else K.known_values(x)


def is_eager(x: Any) -> bool:
    """Whether what is done to x is done at once, with no compiler behind it."""
    K = kernels_of("values", (x,))
    if K is NUMPY:
        return not isinstance(getattr(x, "value", x), Symbolic)
    return K is not None and K.is_eager(x)


def is_unwatched(x: Any) -> bool:
    """Whether nobody is told of a NaN that is masked later.

    Then an argument of log need not be chosen first: on a CPU, processors wait for a
    comparison and a choice in front of a long function, and hardly for those behind
    it. Inductor's log(x) of 128 x 1024 takes 33 us, 35 masked, of a masked x 46.
    """
    K = kernels_of("values", (x,))
    return in_kernel() or (K is not NUMPY and K is not None and K.is_unwatched(x))


def leaves_out_unused(x: Any) -> bool:
    """Whether a compiler leaves out a value of which the gradient alone is used.

    And nobody is told of a NaN that is masked later.
    """
    K = kernels_of("values", (x,))
    return K is not NUMPY and K is not None and K.leaves_out_unused(x)


def adds_up(x: Any) -> bool:
    """Whether a loss that adds up within its operation is a kernel, or nearly as fast.

    That is so where no compiler makes one loop of it, or where it calls our kernel.
    """
    K = kernels_of("values", (x,))
    return is_eager(x) or (K is not NUMPY and K is not None and K.calls_kernels(x))


def as_target(op: str, target: Any, x: Any, argument: str = "target") -> Any:
    """A target as an array of x's dtype, whose shape goes into that of x."""
    target = operand(op, argument, target, x)
    if framework_of(target) is None:  # a NumPy scalar
        target = gnp.asarray(target, dtype=x.dtype, like=x)
    elif kind(target) != kind(x):
        target = gnp.astype(target, x.dtype)
    mine, given = shape_of(x), shape_of(target)
    if not _goes_into(given, mine):
        raise wrong(
            op,
            argument,
            f"a shape that broadcasts to {mine}",
            f"shape {given}",
            "reshape one of them: broadcasting both would compare all with all",
        )
    return target


def operands(op: str, x: Any, target: Any, argument: str = "x") -> tuple[Any, Any]:
    """The first argument of a loss and its target, in the precision to compute in.

    Two of the same 16 bits stay such: a kernel converts them as it reads them.
    """
    is_narrow = kind(x) in NARROW and kind(target) == kind(x)
    z = x if is_narrow else prediction(op, x, argument)
    return z, as_target(op, target, z)


def _goes_into(given: tuple[Any, ...], shape: tuple[Any, ...]) -> bool:
    if len(given) > len(shape):
        return False
    pairs = zip(given[::-1], shape[::-1], strict=False)
    return all(n == m or n == 1 or n is None or m is None for n, m in pairs)
