"""Einstein's sums, of any number of operands in any notation NumPy reads.

    y[out] = sum over all other indices of x1[s1] * x2[s2] * ...

is linear in each operand, and dx1[s1] = sum of dy[out] * conj(x2[s2]) * ... is a sum of
the same kind, but for three things: an index of s1 that occurs nowhere else was summed
out, and dx1 is constant along it; an axis of length 1 that was stretched gets the sum;
and an index that occurs twice in s1 took a diagonal, outside of which dx1 is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from math import prod
from string import ascii_lowercase, ascii_uppercase
from typing import Any, NamedTuple

import numpy as np

from ..core.rule import RULES, Bilinear, composite, primitive
from .products import conj

LETTERS = ascii_uppercase + ascii_lowercase  # in the order that NumPy sorts them


@primitive
def contract(notation: str, *operands: Any, **options: Any) -> Any:
    """`np.einsum` with the notation in letters: no ellipsis, and with the output."""
    return np.einsum(notation, *operands, **options)


def einsum(
    *operands: Any, out: Any = None, optimize: Any = False, **options: Any
) -> Any:
    if isinstance(operands[0], str):
        notation, *arrays = operands
    else:
        notation, arrays = _in_letters(operands)
    arrays = [x if hasattr(x, "dtype") else np.asarray(x) for x in arrays]
    notation = explicit(notation, tuple(x.ndim for x in arrays))
    return contract(notation, *arrays, optimize=optimize, **options)


# --- notation ------------------------------------------------------------------------


def _in_letters(operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """The notation of the form (x1, [0, 1], x2, [1, 2], [0, 2]), and its arrays."""
    arrays, lists = list(operands[:-1:2]), list(operands[1::2])
    with_output = len(operands) % 2 == 1
    terms = [
        "".join("..." if i is Ellipsis else LETTERS[i] for i in indices)
        for indices in [*lists, *([operands[-1]] if with_output else [])]
    ]
    inputs = ",".join(terms[: len(arrays)])
    return (f"{inputs}->{terms[-1]}" if with_output else inputs), arrays


@lru_cache(maxsize=1024)
def explicit(notation: str, ndims: tuple[int, ...]) -> str:
    """Write letters for every ellipsis, and the output, as NumPy understands them.

    >>> explicit("ij,jk", (2, 2))
    'ij,jk->ik'
    >>> explicit("...i,i", (3, 1))
    'ABi,i->AB'
    """
    notation = notation.replace(" ", "")
    inputs, arrow, output = notation.partition("->")
    terms = inputs.split(",")
    lengths = [
        ndim - len(term.replace("...", "")) if "..." in term else 0
        for term, ndim in zip(terms, ndims, strict=True)
    ]
    free = [letter for letter in LETTERS if letter not in notation]
    stack = "".join(free[: max(lengths, default=0)])
    if not arrow:
        letters = inputs.replace(",", "").replace(".", "")
        output = "..." + "".join(c for c in sorted(letters) if letters.count(c) == 1)
    # Ellipses are aligned at their right ends.
    terms = [
        term.replace("...", stack[len(stack) - length :])
        for term, length in zip(terms, lengths, strict=True)
    ]
    return ",".join(terms) + "->" + output.replace("...", stack)


# --- the rule ------------------------------------------------------------------------


class Plan(NamedTuple):
    """How to compute the cotangent of one operand."""

    notation: str  # of the sum of dy and the other operands
    large: bool  # enough to do for matrix products to pay
    shape: tuple[int, ...]  # of the sum with axes of length 1 for what it lacks
    term: str  # the indices of the operand


@lru_cache(maxsize=1024)
def plan(i: int, notation: str, shapes: tuple[tuple[int, ...], ...]) -> Plan:
    """Plan the cotangent of the i-th operand.

    >>> plan(0, "ijj,k->ik", ((2, 3, 3), (4,)))
    Plan(notation='ik,k->i', large=False, shape=(2, 1, 1), term='ijj')
    """
    inputs, output = notation.split("->")
    term, *others = _first(inputs.split(","), i)
    shape, *rest = _first(shapes, i)
    sizes = _lengths(inputs.replace(",", ""), shapes)
    known = {**_lengths("".join(others), rest), **{c: sizes[c] for c in output}}
    kept = "".join(
        c
        for j, c in enumerate(term)
        if c in known and shape[j] != 1 and c not in term[:j]
    )
    lengths = {c: known[c] for c in kept}
    return Plan(
        notation=",".join([output, *others]) + "->" + kept,
        # Finding the way takes 12 us, in which a plain loop makes about 30 000 steps.
        large=bool(others) and prod(sizes.values()) > 50_000,
        shape=tuple(lengths.pop(c, 1) for c in term),  # 1 where an index occurs again
        term=term,
    )


def _lengths(indices: str, shapes: Sequence[Sequence[int]]) -> dict[str, int]:
    """The length that belongs to each index; an axis of length 1 is stretched."""
    lengths = dict.fromkeys(indices, 1)
    for c, n in zip(indices, chain(*shapes), strict=True):
        if lengths[c] == 1:
            lengths[c] = n
    return lengths


def _first(parts: Sequence[Any], i: int) -> list[Any]:
    return [parts[i], *parts[:i], *parts[i + 1 :]]


def operand_cotangent(i: int, dy: Any, notation: str, operands: Sequence[Any]) -> Any:
    """The cotangent of the i-th operand."""
    x, *rest = _first(operands, i)
    way = plan(i, notation, tuple(x.shape for x in operands))
    dx = np.einsum(way.notation, dy, *map(conj, rest), optimize=way.large)
    if dx.shape == x.shape:
        return dx
    return _on_diagonals(np.reshape(dx, way.shape), way.term, x.shape)


def _on_diagonals(dx: Any, term: str, shape: tuple[int, ...]) -> Any:
    """Repeat along the axes of length 1, but 0 where equal indices differ."""
    dx = np.broadcast_to(dx, shape)
    for k, c in enumerate(term):
        j = term.index(c)
        if j < k:
            equal = np.eye(shape[j], dtype=bool)
            axes = [n if a in (j, k) else 1 for a, n in enumerate(shape)]
            dx = np.where(np.reshape(equal, axes), dx, 0)
    return dx


class Contraction(Bilinear):
    """Linear in each of several arrays, for which the others are saved."""

    def keeps(self, i: int, tracked: Sequence[int]) -> bool:
        return any(j != i - self.arrays.start for j in tracked)

    def cotangents(
        self, wanted: Sequence[int], dy: Any, y: Any, args: Any, kwargs: Any
    ) -> Sequence[Any]:
        notation, *operands = args
        return [
            operand_cotangent(i, dy, notation, operands) if i in wanted else None
            for i in range(len(operands))
        ]


RULES[contract] = Contraction(contract, operand_cotangent, arrays=slice(1, None))
composite(np.einsum, einsum)
