"""Sums along another axis than the differences show, or along none.

Where T[j, i] is not zero, output j depends on element i. If this is so only for
j[l] == i[k], the output's axis l goes with the argument's axis k; along axes that go
with none, elements are coupled: something is summed there. The rule has to couple
along the same axes.
"""

from __future__ import annotations

import numpy as np

from .case import Case
from .jacobian import JacobianBlock, axes_of, jacobian_blocks
from .model import Diagnosis
from .simple import broadcast_count

Links = frozenset[tuple[int, int]]


def wrong_axis(case: Case) -> Diagnosis | None:
    """The rule couples other elements than the differences do."""
    found = [_links(each) for s in map(jacobian_blocks, case.points) for each in s]
    for truth, rule, s in found:
        if truth == rule or rule > truth or not s.is_wrong:
            continue
        if not np.any(s.present("rule")) or not (truth or rule):
            continue
        if all(t == truth and r == rule for t, r, _ in found if _alike(_, s)):
            return _diagnosis(s, truth, rule)
    return None


def _alike(a: JacobianBlock, b: JacobianBlock) -> bool:
    return a.output == b.output


def _links(s: JacobianBlock) -> tuple[Links, Links, JacobianBlock]:
    return _links_of(s, "truth"), _links_of(s, "rule"), s


def _links_of(s: JacobianBlock, which: str) -> Links:
    places = np.nonzero(np.atleast_1d(s.present(which)))
    n = len(s.out)
    return frozenset(
        (j, i)
        for j in range(n)
        for i in range(len(s.inner))
        if s.out[j] == s.inner[i] > 1
        and places[0].size
        and np.array_equal(places[j], places[n + i])
    )


def _diagnosis(s: JacobianBlock, truth: Links, rule: Links) -> Diagnosis:
    return Diagnosis(
        "wrong axis",
        f"the rule reduces along other axes than the derivative: {_words(rule)} by "
        f"the rule, {_words(truth)} by the differences",
        _repair(s, truth),
    )


def _words(links: Links) -> str:
    if not links:
        return "every element depends on every output"
    each = (f"axis {i} with axis {j} of the output" for j, i in sorted(links))
    return ", ".join(each)


def _repair(s: JacobianBlock, links: Links) -> str:
    """Along which axes the derivative couples or repeats."""
    for axes, which, of in ((s.inner, 1, "argument"), (s.out, 0, "output")):
        linked = {link[which] for link in links}
        if free := [str(k) for k in range(len(axes)) if k not in linked]:
            return f"reduce or broadcast along axis {' and '.join(free)} of the {of}"
    return "reduce along no axis"


def wrong_axis_inside(case: Case) -> Diagnosis | None:
    """The factor of dy is reduced along a wrong axis: it depends on other elements."""
    axes = axes_of(case.part)
    if len([n for n in axes if n > 1]) < 2 or case.elementwise:
        return None
    if len(case.evidence.columns) < case.part.size:
        return None
    seen = [_coupled(case, place) for place in _places(axes)]
    if None in seen or len(set(seen)) != 1:
        return None
    truth, rule = seen[0]  # type: ignore[misc]
    if not truth or not rule or truth == rule:
        return None
    return Diagnosis(
        "wrong axis",
        f"the gradient of an element depends on the others along axis {_list(rule)} by "
        f"the rule, and along axis {_list(truth)} by the differences",
        f"reduce along axis {_list(truth)} of the argument",
    )


def _list(axes: frozenset[int]) -> str:
    return " and ".join(map(str, sorted(axes)))


def _places(axes: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [tuple(n // 2 for n in axes), tuple(0 for _ in axes)]


def _coupled(
    case: Case, place: tuple[int, ...]
) -> tuple[frozenset[int], frozenset[int]] | None:
    """The axes along which gradients change when one element is perturbed."""
    axes, before = axes_of(case.part), case.evidence
    x = case.point.x.copy()
    i = case.part.start + int(np.ravel_multi_index(place, axes))
    x[i] += 0.375 * case.point.scale[i]
    after = case.evidence_at(x)
    if after is None or not np.array_equal(before.rows, after.rows):
        return None
    u = before.upstream(case.random)
    moved = after.expected(u) - before.expected(u)
    truth = np.abs(moved) > 4 * (after.tolerance(u) + before.tolerance(u))
    g = before.rule(u)
    rule = np.abs(after.rule(u) - g) > 1e-9 * np.max(np.abs(g))
    return _differing(truth, axes, place), _differing(rule, axes, place)


def _differing(
    where: np.ndarray, axes: tuple[int, ...], place: tuple[int, ...]
) -> frozenset[int]:
    indices = np.nonzero(where.reshape(axes)) if axes else ()
    return frozenset(k for k, at in enumerate(indices) if np.any(at != place[k]))


def missing_sum(case: Case) -> Diagnosis | None:
    """Of the outputs that an element was broadcast to, only some are summed."""
    if broadcast_count(case) < 2:
        return None
    name = case.part.name
    for each in case.points:
        for s in jacobian_blocks(each):
            kept = s.present("rule")
            right = np.abs(s.rule - s.truth) <= s.margin
            dropped = s.present("truth") & ~kept
            full = np.all(right | dropped) and np.any(dropped) and np.any(kept)
            if not full or np.all(dropped.reshape(-1, case.part.size).any(0) == 0):
                return None
    return Diagnosis(
        "missing broadcast sum",
        f"{name} was broadcast, and its gradient sums only some of the outputs that "
        "its elements were used for",
        f"sum over the axes along which {name} was broadcast: "
        f"gs.unbroadcast(d{name}, {name}.shape)",
    )
