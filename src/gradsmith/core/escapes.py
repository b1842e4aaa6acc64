"""Values that leave the recorders' sight, and who is told of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .errors import UnsupportedOperationError
from .tape import INSIDE, Traced, state

LEFT = "the value became a plain array or number, which no tape follows"


def tell_lost(xs: Sequence[Traced], where: str, why: str) -> None:
    for recorder in state().recorders:
        recorder.lost(xs, INSIDE.get() or where, why)


def traced_in(x: Any) -> Iterator[Traced]:
    if isinstance(x, Traced):
        yield x
    elif isinstance(x, (list, tuple)):
        for part in x:
            yield from traced_in(part)
    elif isinstance(x, dict):
        yield from traced_in(list(x.values()))


def is_followed(x: Traced) -> bool:
    return any(recorder.mark_of(x) is not None for recorder in state().recorders)


def refuse_scipy(x: Traced, frame: Any) -> None:
    """SciPy's Python functions make plain arrays of their arguments without a word."""
    fn = None
    while frame:
        module = frame.f_globals.get("__name__", "")
        if module.startswith("scipy."):
            fn = f"{module}.{frame.f_code.co_name}"
        elif not module.startswith("numpy."):
            break
        frame = frame.f_back
    if fn and is_followed(x):
        raise UnsupportedOperationError(
            f"{fn} has no gradient rule, and its argument is being differentiated. "
            "Give it one with gs.with_gradient, or pass gs.stop_gradient(x) or "
            "x.numpy() if it should count as a constant."
        )
