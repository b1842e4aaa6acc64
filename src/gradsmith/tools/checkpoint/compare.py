"""Whether two runs agree, and the words if they don't."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.errors import GradsmithError


def difference(plain: Any, again: Any, *, exact: bool) -> str:
    """How far two results are apart, in words; nothing if they agree.

    Without `exact`, rounding is forgiven: a compiler may order sums in another way.

    >>> difference(1.0, 1.0, exact=True), difference(1.0, 3.0, exact=True)
    ('', '1.0 in the plain run, 3.0 when it is run again')
    """
    if plain is None or again is None or isinstance(plain, (str, bytes)):
        return "" if _equal(plain, again) else f"{plain!r} at first, then {again!r}"
    try:
        a, b = np.asarray(plain), np.asarray(again)
    except Exception:  # no arrays: nothing to compare
        return ""
    if a.dtype == object or b.dtype == object:
        return ""
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.dtype}{list(a.shape)} at first, then {b.dtype}{list(b.shape)}"
    bad = np.asarray((a != b) & ~((a != a) & (b != b)))  # two NaN agree
    if not exact and a.dtype.kind in "fc":
        eps = np.finfo(a.dtype).eps
        scale = np.nanmax(np.abs(a), initial=0.0)
        bad = bad & ~(np.abs(a - b) <= 100 * eps * scale)
    if not bad.any():
        return ""
    where = np.unravel_index(int(np.argmax(bad)), a.shape) if a.shape else ()
    at = f" at {[int(i) for i in where]}" if where else ""
    return f"{a[where]} in the plain run{at}, {b[where]} when it is run again"


def _equal(a: Any, b: Any) -> bool:
    return a is b or (a is not None and b is not None and a == b)


def disagreement(name: str, what: str, words: str, first: str = "") -> GradsmithError:
    """The error of `verify=True`."""
    lines = [
        f"gs.checkpoint: {name!r} computes something else when it is run again, so its "
        "gradient is wrong",
        f"  what differs: {what}: {words}",
    ]
    if first:
        lines.append(f"  first at: {first}")
    lines.append(
        "  what to do: let it depend on its arguments and what it captures alone; pass "
        "random generators as arguments, and keep counters and files outside"
    )
    return GradsmithError("\n".join(lines))
