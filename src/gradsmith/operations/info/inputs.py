"""What a tool that looks at operations is called with: checked, and made ready."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from ...core import trees
from ...core.arrays import FRAMEWORKS, common_framework, is_array, title_of
from ...core.errors import GradsmithError
from ...core.tensor import Tensor
from .info import Subject, is_floating, of_function, of_operation

_INSTALL = {"tensorflow": "tensorflow-cpu", "jax": "jax", "torch": "torch"}


def framework_for(op: Any, inputs: Any, asked: str | None, *, caller: str) -> str:
    """The framework in which an operation is to be run."""
    require_operation(op, caller)
    if asked is not None and asked not in FRAMEWORKS:
        raise GradsmithError(
            f"framework={asked!r} is unknown: it is one of {', '.join(FRAMEWORKS)}"
        )
    own = None if of_operation(op) else framework_of_native(op)
    arrays = [x for x in trees.leaves(inputs) if is_array(x)]
    found = common_framework(arrays, caller) if arrays else "numpy"
    name = asked or own or found
    if own not in (None, name):
        raise GradsmithError(
            f"{op!r} is an operation of {title_of(own)}, and framework={asked!r}: "
            "omit framework="
        )
    if found not in ("numpy", name):
        raise GradsmithError(
            f"the inputs are {title_of(found)}'s arrays, and the operation is to run "
            f"in {title_of(name)}\n  what to do: give NumPy arrays, which are "
            f"converted, or {title_of(name)}'s"
        )
    return name


def require_operation(op: Any, caller: str) -> None:
    if callable(op) and not (inspect.isclass(op) and framework_of_native(op) is None):
        return
    raise GradsmithError(
        f"{caller} wants an operation, not {op!r}\n  what to do: give it one made by "
        "gs.custom_gradient, gs.operation or gs.with_gradient, or a framework's own: "
        "tf.custom_gradient, jax.custom_vjp, jax.custom_jvp, a torch.autograd.Function "
        "(the class, or its apply), a torch.library.custom_op; any function of arrays "
        "will do, and an instance of a module or layer"
    )


def framework_with_rule(op: Any) -> str | None:
    """The framework by whose means this has its own rule, if it has one."""
    for name in _INSTALL:
        if name in sys.modules and _natives(name).subject_of(op) is not None:
            return name
    return None


def framework_of_native(op: Any) -> str | None:
    """The framework whose operation this is; only those already loaded can have any."""
    known = framework_with_rule(op)
    if known is not None:
        return known
    # Not one that we know, but theirs or of a class of theirs: a function, a module
    if inspect.isclass(op):
        return None
    modules = [getattr(op, "__module__", None) or ""]
    modules += [cls.__module__ for cls in type(op).__mro__]
    roots = {name.partition(".")[0].replace("jaxlib", "jax") for name in modules}
    return next((name for name in _INSTALL if name in roots), None)


def module_for(package: str, name: str) -> Any:
    """A package's module of a framework, which is imported if it is installed."""
    try:
        return import_module(f"{package}.{name}")
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise GradsmithError(
            f"{title_of(name)} is not installed: pip install {_INSTALL[name]}"
        ) from None


def _natives(name: str) -> Any:
    return module_for(__package__ or "", name)


def subject_of(op: Any, framework: str) -> Subject:
    """What is known of an operation; the engine has none of its own."""
    own = None if framework == "numpy" else _natives(framework).subject_of(op)
    return of_operation(op) or own or of_function(op)


def prepared(inputs: Any, array: Callable[[Any], Any], *, caller: str) -> Any:
    """The inputs with arrays of the framework; numbers, if there are no arrays."""
    leaves = trees.leaves(inputs)
    convert = is_array if any(map(is_array, leaves)) else is_floating
    if not any(convert(x) and is_floating(x) for x in leaves):
        raise GradsmithError(
            f"{caller} needs inputs to differentiate by: at least one array of "
            "floating numbers (or a number), such as np.ones(3)"
        )

    def ready(x: Any) -> Any:
        if not convert(x):
            return x
        return array(x.numpy() if isinstance(x, Tensor) else x)

    return trees.map(ready, inputs)
