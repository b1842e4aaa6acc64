"""What a tool is called with: an operation and its inputs, checked and made ready."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..core import trees
from ..core.arrays import FRAMEWORKS, NUMPY, common_framework, is_array, title_of
from ..core.errors import GradsmithError, type_of
from ..core.tensor import Tensor
from ..operations.info import OperationInfo, is_floating, of_function, of_operation

RANDOM = (
    "the operation is random: two calls with the same inputs differ. Give it a seed or "
    "a generator as an argument, and it can be checked"
)


def framework_for(op: Any, inputs: Any, framework: str | None, *, caller: str) -> str:
    """The framework in which an operation is to be run."""
    require_operation(op, caller)
    if framework is not None and framework not in FRAMEWORKS:
        raise GradsmithError(
            f"framework={framework!r} is unknown: it is one of {', '.join(FRAMEWORKS)}"
        )
    own = None if of_operation(op) else framework_of_native(op)
    arrays = [x for x in trees.leaves(inputs) if is_array(x)]
    found = common_framework(arrays, caller) if arrays else NUMPY
    name = framework or own or found
    if own not in (None, name):
        raise GradsmithError(
            f"{op!r} is an operation of {title_of(own)}, and framework={framework!r}: "
            "omit framework="
        )
    if found not in (NUMPY, name):
        raise GradsmithError(
            f"the inputs are {title_of(found)}'s arrays, and the operation is to run "
            f"in {title_of(name)}\n  what to do: give NumPy arrays, which are "
            f"converted, or {title_of(name)}'s"
        )
    return name


def require_operation(op: Any, caller: str) -> None:
    if callable(op) and not (inspect.isclass(op) and framework_of_native(op) is None):
        return
    theirs = [each for row in FRAMEWORKS.values() for each in row.custom_gradients]
    raise GradsmithError(
        f"{caller} needs an operation, not {type_of(op)}\n  what to do: pass the "
        "function itself and then its arguments, (op, x) and not op(x). It can be made "
        "by gs.custom_gradient, gs.operation or gs.with_gradient, or be a framework's "
        f"own ({', '.join(theirs)}), any function of arrays, or an instance of a "
        "module or layer"
    )


def framework_with_rule(op: Any) -> str | None:
    """The framework by whose means this has its own rule, if it has one."""
    for name, framework in FRAMEWORKS.items():
        if framework.is_imported and _native(op, name) is not None:
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
    roots = {module.partition(".")[0] for module in modules}
    for name, framework in FRAMEWORKS.items():
        if name != NUMPY and not roots.isdisjoint(framework.roots):
            return name
    return None


def info_of(op: Any, framework: str) -> OperationInfo:
    """What is known of an operation that runs in a framework."""
    return of_operation(op) or _native(op, framework) or of_function(op)


def _native(op: Any, framework: str) -> OperationInfo | None:
    row = FRAMEWORKS[framework]
    return row.natives.info_of(op) if row.has("natives") else None


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
