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

from types import FunctionType, ModuleType
from typing import Any

from ..core.import_hooks import once_imported
from ..core.tape import Traced

# What else is computed as tensors are: by its own `__array_function__`
KINDS: list[type] = [Traced]
_REDIRECTED = ("log_softmax", "logsumexp", "multigammaln", "polygamma", "softmax")


def install() -> None:
    """Redirect now if `scipy.special` is there, else as soon as it is imported."""
    once_imported("scipy.special", redirect_all)


def redirect_all(module: ModuleType) -> None:
    for name in _REDIRECTED:
        fn = getattr(module, name, None)
        # Only a function without a closure can take other code; with SciPy's array API
        # mode some are wrapped. A tensor then gets an error (see `Tensor.__array__`).
        if (
            isinstance(fn, FunctionType)
            and not fn.__code__.co_freevars
            and fn.__code__ is not _with_tensors.__code__
        ):
            _redirect(fn)


def _redirect(fn: Any) -> None:
    original = FunctionType(
        fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__
    )
    original.__kwdefaults__ = fn.__kwdefaults__
    original.__doc__ = fn.__doc__
    fn.__wrapped__ = original  # where inspect.signature finds the parameters
    fn.__code__ = _with_tensors.__code__
    fn.__defaults__ = None
    fn.__kwdefaults__ = {"_call": _caller(fn, original)}


def _with_tensors(*args: Any, _call: Any, **kwargs: Any) -> Any:
    return _call(args, kwargs)


def _caller(fn: Any, original: Any) -> Any:
    def call(args: Any, kwargs: Any) -> Any:
        for x in (*args, *kwargs.values()):
            tensor = _tensor_in(x)
            if tensor is not None:
                kind = type(tensor)
                return kind.__array_function__(tensor, fn, (kind,), args, kwargs)
        return original(*args, **kwargs)

    return call


def _tensor_in(x: Any) -> Any:
    kinds = tuple(KINDS)
    if isinstance(x, kinds):
        return x
    if isinstance(x, (list, tuple)):
        return next((part for part in x if isinstance(part, kinds)), None)
    return None
