"""What is done with each chunk of inputs: pure, so that it can be done anywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .certify import certify
from .formats import Format, format_of, literal
from .judged import Judged, judge
from .runs import Run
from .tally import Tally, tally


@dataclass(frozen=True)
class Task:
    """A unary elementwise operation against the truth.

    `task(x)` gives the tallies of the value and of the gradient for some numbers of the
    format, `task.judged(x)` their errors one by one. It can be pickled if `run.call`
    and `reference` can. `ends` are the first and the last code of the whole domain.
    """

    run: Run
    reference: Callable[..., Any]
    format: str
    ends: tuple[int, int]

    @property
    def form(self) -> Format:
        return format_of(self.format)

    def __call__(self, x: Any) -> tuple[Tally, Tally]:
        value, gradient = self.judged(x)
        return self.tally(x, value), self.tally(x, gradient)

    def tally(self, x: Any, errors: Judged) -> Tally:
        """The tally of errors that are known, whoever has found them."""
        form = self.form
        return tally(errors, form.codes(x), lambda i: literal(x[i], form), self.ends)

    def judged(self, x: Any) -> tuple[Judged, Judged]:
        """The errors of the value and of the gradient at some inputs."""
        form = self.form
        y, (dx,) = self.run([x], form)
        value, (gradient,) = certify(self.reference, [x.astype(np.float64)], form)
        return (
            judge(y, value, form, skip=self.run.skip([x], value, form)),
            judge(dx, gradient, form, skip=self.run.skip([x], gradient, form, dx)),
        )
