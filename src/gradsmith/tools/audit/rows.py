"""Functions of several arguments or of vectors against the truth, point by point.

A point is a row of each argument, its error that of its worst element. A gradient of
vectors is a sum over the outputs, in which terms may cancel whatever one does: its unit
is that of the sum of their sizes. With an upstream gradient of one element, which most
points have, that is the gradient's own size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.transforms import vjp
from .certify import certify
from .formats import Format, format_of, literal
from .judged import Judged, judge
from .runs import Run
from .samples import upstreams
from .tally import Tally, tally
from .truth import DECIDED, KINK, OUTSIDE, UNDECIDED


@dataclass(frozen=True)
class Rows:
    """Several arguments or vectors; like `Task`, pure and picklable.

    A chunk is a pair: its rows of each argument, and of the upstream gradient.
    """

    run: Run
    reference: Callable[..., Any]
    format: str
    names: tuple[str, ...]

    @property
    def form(self) -> Format:
        return format_of(self.format)

    def judged(self, chunk: tuple[Sequence[Any], Any]) -> list[Judged]:
        """The errors of the value and of the gradient by each argument."""
        xs, dy = chunk
        form = self.form
        y, dxs = self.run(xs, form, dy)
        wide = [x.astype(np.float64) for x in xs]
        value, slopes = certify(
            self.reference, wide, form, dy=None if dy is None else dy.astype(float)
        )
        sizes = self._sizes(wide, dy)
        found = [judge(y, value, form, skip=self.run.skip(xs, value, form))]
        for dx, slope, size in zip(dxs, slopes, sizes, strict=True):
            skip = self.run.skip(xs, slope, form, dx)
            found.append(judge(dx, slope, form, skip=skip, size=size))
        return [by_rows(each) for each in found]

    def upstream(self, xs: Sequence[Any], *, seed: int) -> Any:
        """Upstream gradients, where a value has several elements."""
        if all(x.ndim == 1 for x in xs):
            return None
        y, _ = self.run([x[:1] for x in xs], self.form)
        if y.ndim < 2:
            return None
        return upstreams((len(xs[0]), *y.shape[1:]), self.form, seed=seed)

    def _sizes(self, xs: Sequence[Any], dy: Any) -> list[Any]:
        """The sums of the sizes of terms, in double precision."""
        if dy is None:
            return [None] * len(xs)
        try:
            with np.errstate(all="ignore"):
                y, pull = vjp(self.reference, *xs)
                sums = [np.zeros(x.shape) for x in xs]
                for place in np.ndindex(*np.shape(y)[1:]):
                    one = np.zeros(np.shape(y))
                    one[(slice(None), *place)] = dy[(slice(None), *place)]
                    for total, dx in zip(sums, pull(one), strict=True):
                        total += np.abs(dx)
        except Exception:  # a reference that runs on balls alone
            return [None] * len(xs)
        return [np.where(np.isfinite(total), total, 0) for total in sums]

    def tally(self, xs: Sequence[Any], dy: Any, errors: Judged) -> Tally:
        def shown(i: int) -> str:
            parts = [
                f"{name}={literals(x[i], self.form)}"
                for name, x in zip(self.names, xs, strict=True)
            ]
            if dy is not None:
                parts.append(f"dy={literals(dy[i], self.form)}")
            return ", ".join(parts)

        return tally(errors, np.arange(len(errors.ulp)), shown)


def literals(x: Any, form: Format) -> str:
    """A number or an array of numbers, exactly."""
    if np.ndim(x) == 0:
        return literal(x, form)
    return f"[{', '.join(literals(each, form) for each in x)}]"


def by_rows(errors: Judged) -> Judged:
    """The worst element of each row; what is open of any is open of all."""
    if errors.ulp.ndim == 1:
        return errors
    n = len(errors.ulp)
    parts = {name: getattr(errors, name).reshape(n, -1) for name in _PARTS}
    known = ~np.isnan(parts["ulp"])
    at = np.argmax(np.where(known, parts["ulp"], -1), axis=1)[:, None]
    rows = {name: np.take_along_axis(x, at, 1)[:, 0] for name, x in parts.items()}
    status = np.full(n, DECIDED, np.uint8)
    for each in (KINK, UNDECIDED):
        status[(parts["status"] == each).any(axis=1)] = each
    status[(parts["status"] == OUTSIDE).all(axis=1)] = OUTSIDE
    return Judged(**{**rows, "status": status})


_PARTS = ("ulp", "slack", "bits", "kind", "status", "true")
