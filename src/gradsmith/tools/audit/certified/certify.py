"""The certified oracle: values and true derivatives, with as many bits as they need.

A definition runs on balls at some precision. Where a result's ball is wider than a
small part of a unit in the last place, it runs again on those points with twice the
bits; what is open at the last precision is counted as undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..formats import Format
from .arb import balls_of, each, ones, precision
from .balls import Balls, Notes, gradients, noting, watched
from .choices import union
from .truth import DECIDED, KINK, OUTSIDE, UNDECIDED, Truth, read

LIMIT = 4096  # bits; what needs more stays undecided


def certify(
    fn: Callable[..., Any],
    xs: Sequence[Any],
    form: Format,
    *,
    dy: Any = None,
    limit: int = LIMIT,
) -> tuple[Truth, list[Truth]]:
    """The true values of fn and its true cotangents, for points along the first axis.

    Each point is computed from its own elements alone: fn is elementwise, or works on
    rows (axis=-1). dy is the upstream gradient, of ones if it is not given.

    >>> from ..formats import FORMATS
    >>> y, (dx,) = certify(np.exp, [np.array([0.0, 1.0])], FORMATS["float32"])
    >>> y.hi
    array([1.        , 2.71828183])
    """
    todo = np.arange(len(xs[0]))
    found: list[Truth] = []
    bits = 64 if form.digits < 40 else 128
    for careful in (False, *[True] * 16):
        with precision(bits):
            some = _Points(fn, [x[todo] for x in xs], form, _part(dy, todo))
            truths = some.settled(careful=careful)
        found = found or [Truth.empty((len(xs[0]), *t.hi.shape[1:])) for t in truths]
        for truth, new in zip(found, truths, strict=True):
            truth.put(todo, new)
        todo = todo[_rows([t.status == UNDECIDED for t in truths], len(todo))]
        bits *= 2
        if not len(todo) or bits > limit:
            break
    return found[0], found[1:]


def _part(dy: Any, at: Any) -> Any:
    return dy if dy is None else dy[at]


def _rows(masks: Sequence[Any], n: int) -> Any:
    """At which points any of the masks says so."""
    total = np.zeros(n, bool)
    for mask in masks:
        mask = np.asarray(mask, bool)
        if mask.ndim and len(mask) == n:
            total |= mask.reshape(n, -1).any(axis=1)
        elif mask.any():  # not by points: it may be any of them
            total[:] = True
    return total


class _Points:
    """Some points, evaluated at the present precision."""

    def __init__(self, fn: Any, xs: Sequence[Any], form: Format, dy: Any) -> None:
        self.fn, self.xs, self.form, self.dy = fn, xs, form, dy

    def run(self, *, side: int, careful: bool) -> tuple[list[Any], Notes]:
        """The value and the cotangents as balls, and what was met."""
        with noting(side=side, careful=careful) as notes:
            xs = [watched(x, self.form.name) for x in self.xs]
            y = self.fn(*xs)
            y = y if isinstance(y, Balls) else Balls(balls_of(y))
            dy = ones(y.shape) if self.dy is None else balls_of(self.dy)
            dxs = gradients(y, np.broadcast_to(dy, y.shape), xs)
        return [np.broadcast_to(y.value, self._shape(y.value)), *dxs], notes

    def _shape(self, y: Any) -> Any:
        """That of y; of a constant function, that of its argument."""
        return y.shape if y.ndim else self.xs[0].shape

    def settled(self, *, careful: bool) -> list[Truth]:
        """What is true, as far as it can be known at this precision."""
        balls, notes = self.run(side=0, careful=careful)
        truths = [read(b, self.form) for b in balls]
        n = len(self.xs[0])
        tied = np.flatnonzero(_rows(notes.ties, n))
        if len(tied):
            xs, dy = [x[tied] for x in self.xs], _part(self.dy, tied)
            sides = _Points(self.fn, xs, self.form, dy).both_sides()
            for truth, new in zip(truths[1:], sides, strict=True):
                truth.put(tied, new)
        outside, kinks = _rows(notes.outside, n), _rows(notes.kinks, n)
        for i, truth in enumerate(truths):
            _settle(truth, outside | kinks if i == 0 else outside, OUTSIDE)
            _settle(truth, kinks, KINK)
            truth.status[_rows(notes.unsure, n)] = UNDECIDED
        gone = _rows([truths[0].status == OUTSIDE], n) & outside
        for truth in truths[1:]:
            truth.status[gone] = OUTSIDE  # a formula may go on where the value ends
        return truths

    def both_sides(self) -> list[Truth]:
        """The cotangents where a tie is broken upwards and downwards.

        They are the same where the function is smooth after all; else it has a kink,
        and what lies between them is a subgradient.
        """
        above, below = ([*self.run(side=s, careful=True)[0][1:]] for s in (1, -1))
        return [self._between(a, b) for a, b in zip(above, below, strict=True)]

    def _between(self, above: Any, below: Any) -> Truth:
        truth, other = read(above, self.form), read(below, self.form)
        apart = ~np.asarray(_overlap(above, below), bool)
        hull = read(union(above, below), self.form)
        hull.status[apart & (truth.status == DECIDED) & (other.status == DECIDED)] = (
            KINK
        )
        truth.put(apart, hull.at(apart))
        truth.status[other.status == UNDECIDED] = UNDECIDED
        return truth


_overlap = each(lambda a, b: a.overlaps(b), 2)


def _settle(truth: Truth, rows: Any, status: int) -> None:
    """Give points a status that explains why they have no finite ball."""
    if not rows.any():
        return
    gone = (truth.status == UNDECIDED) & ~np.isfinite(truth.hi + truth.rad)
    at = gone & rows.reshape(-1, *[1] * (gone.ndim - 1))
    truth.status[at] = status
    truth.hi[at], truth.lo[at], truth.rad[at] = 0, 0, np.inf
