"""What `survives` is called with: checked, and made ready for a framework."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

from .. import _tree
from .._arrays import NAMES, common_framework, is_array
from .._errors import GradsmithError
from .._tensor import Tensor
from .row import Row
from .subject import Subject, is_floating, of_function, of_operation

_INSTALL = {"tensorflow": "tensorflow-cpu", "jax": "jax", "torch": "torch"}
_KITS = {"numpy": "engine"}


def framework_for(op: Any, inputs: Any, asked: str | None) -> str:
    """The framework in which an operation is to be run."""
    require_operation(op)
    if asked is not None and asked not in NAMES:
        raise GradsmithError(
            f"framework={asked!r} is unknown: it is one of {', '.join(NAMES)}"
        )
    own = None if of_operation(op) else _framework_of_native(op)
    arrays = [x for x in _tree.leaves(inputs) if is_array(x)]
    found = common_framework(arrays, "survives()") if arrays else "numpy"
    name = asked or own or found
    if own not in (None, name):
        raise GradsmithError(
            f"{op!r} is an operation of {NAMES[own]}, and framework={asked!r}: leave "
            "framework= away"
        )
    if found not in ("numpy", name):
        raise GradsmithError(
            f"the inputs are {NAMES[found]}'s arrays, and the operation is to run in "
            f"{NAMES[name]}\n  what to do: give NumPy arrays, which are converted, or "
            f"{NAMES[name]}'s"
        )
    return name


def require_operation(op: Any) -> None:
    if callable(op) and not (inspect.isclass(op) and _framework_of_native(op) is None):
        return
    raise GradsmithError(
        f"survives() wants an operation, not {op!r}\n  what to do: give it one made by "
        "gs.custom_gradient, gs.operation or gs.with_gradient, or a framework's own: "
        "tf.custom_gradient, jax.custom_vjp, jax.custom_jvp, a torch.autograd.Function "
        "(the class, or its apply), a torch.library.custom_op"
    )


def _framework_of_native(op: Any) -> str | None:
    """The framework whose operation this is; only those already loaded can have any."""
    for name in _INSTALL:
        if name in sys.modules and kit_for(name).subject_of(op) is not None:
            return name
    # Not one that we know, but of a class of theirs: a jitted function, a module
    classes = () if inspect.isclass(op) else type(op).__mro__
    roots = {
        cls.__module__.partition(".")[0].replace("jaxlib", "jax") for cls in classes
    }
    return next((name for name in _INSTALL if name in roots), None)


def kit_for(name: str) -> Any:
    """The module with a framework's transformations."""
    try:
        return import_module(f".{_KITS.get(name, name)}", __package__)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise GradsmithError(
            f"{NAMES[name]} is not installed: pip install {_INSTALL[name]}"
        ) from None


def subject_of(op: Any, kit: Any) -> Subject:
    return of_operation(op) or kit.subject_of(op) or of_function(op)


def prepared(name: str, kit: Any, inputs: Any) -> Any:
    """The inputs with arrays of the framework; numbers, if there are no arrays."""
    leaves = _tree.leaves(inputs)
    convert = is_array if any(map(is_array, leaves)) else is_floating
    if not any(convert(x) and is_floating(x) for x in leaves):
        raise GradsmithError(
            f"survives({name}) needs inputs to differentiate by: at least one array of "
            "floating numbers (or a number), as in gs.survives(op, np.ones(3))"
        )

    def array(x: Any) -> Any:
        if not convert(x):
            return x
        return kit.array(x.numpy() if isinstance(x, Tensor) else x)

    return _tree.map(array, inputs)


def chosen(
    rows: Sequence[Row], only: str | Iterable[str] | None, skip: str | Iterable[str]
) -> list[Row]:
    """The rows that were asked for."""
    known = [row.name for row in rows]
    wanted = known if only is None else _names(only, known)
    unwanted = _names(skip, known)
    return [row for row in rows if row.name in wanted and row.name not in unwanted]


def _names(names: str | Iterable[str], known: Sequence[str]) -> list[str]:
    found = [names] if isinstance(names, str) else list(names)
    for name in found:
        if name not in known:
            raise GradsmithError(
                f"there is no transformation {name!r} here; there are "
                f"{', '.join(known)}"
            )
    return found
