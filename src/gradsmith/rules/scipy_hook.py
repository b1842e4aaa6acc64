"""Let SciPy's Python functions that have rules see tensors.

NumPy hands a tensor to the engine before a ufunc runs, but `scipy.special.logsumexp`
and a few others are Python functions which ask for a plain array first. A test for
tensors is put in front of their code. The function object stays the same, so it does
not matter when and by whom it was imported, and it is found under every name it has;
replacing the name in its module would miss `from scipy.special import logsumexp` before
`import gradsmith`. For anything but a tensor the original code runs as ever.

SciPy itself is never imported from here.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from types import FunctionType, ModuleType
from typing import Any

from ..core.import_hooks import once_imported
from ..core.symbolic import Symbolic
from ..core.tape import Traced

# What else is computed as tensors are: by its own `__array_function__`
KINDS: list[type] = [Traced, Symbolic]
_REDIRECTED = ("log_softmax", "logsumexp", "multigammaln", "polygamma", "softmax")
_patches = ExitStack()  # never closed
_known: set[FunctionType] = set()


def install() -> None:
    """Redirect now if `scipy.special` is there, else as soon as it is imported."""
    once_imported("scipy.special", redirect_all)


def redirect_all(module: ModuleType) -> None:
    from ..core.patching import patched_function

    for name in _REDIRECTED:
        fn = getattr(module, name, None)
        if isinstance(fn, FunctionType) and fn not in _known:
            _known.add(fn)
            _patches.enter_context(patched_function(fn, partial(_call, fn)))


def _call(fn: Any, original: Any, args: Any, kwargs: Any) -> Any:
    for x in (*args, *kwargs.values()):
        tensor = _tensor_in(x)
        if tensor is not None:
            kind = type(tensor)
            return kind.__array_function__(tensor, fn, (kind,), args, kwargs)
    return original(*args, **kwargs)


def _tensor_in(x: Any) -> Any:
    kinds = tuple(KINDS)
    if isinstance(x, kinds):
        return x
    if isinstance(x, (list, tuple)):
        return next((part for part in x if isinstance(part, kinds)), None)
    return None
