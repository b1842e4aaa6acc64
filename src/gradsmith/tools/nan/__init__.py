"""Where does this NaN or inf come from?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import trees
from ...core.arrays import FRAMEWORKS, is_array
from ...core.places import Place
from ...operations.info import OperationInfo, is_floating, signature_of
from .._inputs import framework_for, info_of, prepared
from .judge import judged
from .model import NanReport, TrailStep
from .origins import Origins
from .values import Value

__all__ = ["NanReport", "Place", "TrailStep", "Value", "find_nan"]

_NO_GRADIENT = "the value does not depend on the inputs, so there is no gradient"


def find_nan(
    fn: Any, *inputs: Any, framework: str | None = None, **keywords: Any
) -> NanReport:
    """Find the first operation that made the value or a gradient NaN or inf.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> def entropy(p):
    ...     return -np.sum(p * np.log(p))
    >>> report = gs.find_nan(entropy, np.array([0.0, 1.0]))
    >>> report.operation, report.phase, str(report.inputs[0])
    ('np.log', 'forward', 'x[0] = 0.0')
    >>> gs.find_nan(entropy, np.array([0.5, 0.5])).ok
    True

    The function is an operation of Gradsmith or of a framework, or any function of
    arrays. It is called with these inputs, of any framework, and differentiated. Its
    exceptions pass through. NumPy arrays are converted if `framework` names another.

    Raises
    ------
    GradsmithError
        If fn is not a function, or the framework is not known or not installed.
    """
    given = (inputs, keywords)
    name = framework_for(fn, given, framework, caller="find_nan()")
    chosen = FRAMEWORKS[name]
    info = info_of(fn, name)
    args, kwargs = prepared(
        given, chosen.arrays.as_array, caller=f"find_nan({info.name})"
    )
    named = _named(info, args, kwargs)
    origins = Origins(chosen.arrays.floats)
    with np.errstate(all="ignore"):  # the report says it
        observe = chosen.observe.observe
        gradients = observe(info.call, args, kwargs, named, origins)
    origins.gradients(gradients or ())
    notes = (_NO_GRADIENT,) if gradients is None else ()
    report = NanReport(info.name, chosen.title, chosen.arrays.version, notes=notes)
    return judged(report, origins, chosen.observe.WHERE)


def _named(
    info: OperationInfo, args: Sequence[Any], kwargs: Any
) -> list[tuple[str, Any]]:
    """The floating arrays among the arguments, each with its name."""
    pairs = [*zip(_names(info, len(args)), args, strict=True), *kwargs.items()]
    leaves = [leaf for name, x in pairs for leaf in trees.leaves_with_names(x, name)]
    return [(name, x) for name, x in leaves if is_array(x) and is_floating(x)]


def _names(info: OperationInfo, n: int) -> list[str]:
    """How messages call positional arguments; a layer's are those of its method."""
    method = getattr(info.call, "forward", getattr(info.call, "call", None))
    own = info.signature if method is None else signature_of(method)
    parameters = own.parameters.values() if own is not None else ()
    names = [
        p.name for p in parameters if p.kind not in (p.VAR_KEYWORD, p.KEYWORD_ONLY)
    ]
    several = [p.name for p in parameters if p.kind is p.VAR_POSITIONAL]
    names = [name for name in names if name not in several][:n]
    rest = several[0] if several else "argument "
    return names + [
        f"{rest}[{i}]" if several else f"{rest}{i + len(names)}"
        for i in range(n - len(names))
    ]
