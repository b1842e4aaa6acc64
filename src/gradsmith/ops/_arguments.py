"""What the arguments of a ready-made operation mean, when it is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..core.arrays import framework_of
from ..operations.operation import Operation
from ._inputs import is_real, number, operand

Op = TypeVar("Op", bound=Operation[..., Any])
Call = tuple[tuple[Any, ...], dict[str, Any]]

_PLAIN = {int, float, bool, str, type(None)}  # types of options


def takes(*names: str, takes_complex: bool = False) -> Callable[[Op], Op]:
    """Name the operands of an operation, which are its first parameters.

    Lists and numbers become arrays. What holds no real numbers is refused, or no
    complex ones if it `takes_complex`. All other parameters but a seed are options:
    numbers of NumPy become numbers of Python.
    """

    def declare(operation: Op) -> Op:
        operation.convert = _converter(operation, names, takes_complex)
        return operation

    return declare


def _converter(
    operation: Any, operands: tuple[str, ...], takes_complex: bool
) -> Callable[[tuple[Any, ...], dict[str, Any]], Call]:
    op, names, n = operation.name, operation.signature.names, len(operands)

    def convert(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        if kwargs:
            return converted(args, kwargs)
        for k, x in enumerate(args):  # 0.3 us in the usual case
            if k >= n:
                if x.__class__ not in _PLAIN:
                    return converted(args, kwargs)
            elif framework_of(x) is None or not is_real(x.dtype):
                return converted(args, kwargs)
        return args, kwargs

    def converted(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        given = dict(zip(names, args, strict=False)) | kwargs
        like = _first_array([given.get(name) for name in operands])
        values = [meant(*each, like) for each in zip(names, args, strict=False)]
        named = {name: meant(name, x, like) for name, x in kwargs.items()}
        return (*values, *args[len(names) :]), named

    def meant(name: str, x: Any, like: Any) -> Any:
        if name in operands:
            return operand(op, name, x, like, takes_complex=takes_complex)
        # A seed may be an array, so that one kernel serves all of them
        return x if name == "seed" else number(x)

    return convert


def _first_array(values: list[Any]) -> Any:
    for x in values:
        if framework_of(x) is not None:
            return x
    return None
