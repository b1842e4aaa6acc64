"""Einstein's sums, of any number of operands in any notation NumPy reads.

    y[out] = sum over all other indices of x1[s1] * x2[s2] * ...

is linear in each operand, and dx1[s1] = sum of dy[out] * conj(x2[s2]) * ... is a sum of
the same kind, but for three things: an index of s1 that occurs nowhere else was summed
out, and dx1 is constant along it; an axis of length 1 that was stretched gets the sum;
and an index that occurs twice in s1 took a diagonal, outside of which dx1 is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from string import ascii_lowercase, ascii_uppercase
from typing import Any

import numpy as np

from .._rule import RULES, Bilinear, composite, primitive
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
    notation = explicit(notation, [x.ndim for x in arrays])
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


def explicit(notation: str, ndims: Sequence[int]) -> str:
    """Write letters for every ellipsis, and the output, as NumPy understands them.

    >>> explicit("ij,jk", [2, 2])
    'ij,jk->ik'
    >>> explicit("...i,i", [3, 1])
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


def operand_cotangent(i: int, dy: Any, notation: str, operands: Sequence[Any]) -> Any:
    """The cotangent of the i-th operand."""
    inputs, output = notation.split("->")
    term, *others = _first(inputs.split(","), i)
    x, *rest = _first(operands, i)
    known = set(output).union(*others)
    kept = [
        c
        for j, c in enumerate(term)
        if c in known and x.shape[j] != 1 and c not in term[:j]
    ]
    sources = ",".join([output, *others])
    dx = _sum(f"{sources}->{''.join(kept)}", dy, *map(conj, rest))
    sizes = dict(zip(kept, dx.shape, strict=True))
    lined_up = [sizes.pop(c, 1) for c in term]  # 1 also where an index occurs again
    return _on_diagonals(np.reshape(dx, lined_up), term, x.shape)


def _first(parts: Sequence[Any], i: int) -> list[Any]:
    return [parts[i], *parts[:i], *parts[i + 1 :]]


def _sum(notation: str, *operands: Any) -> Any:
    """`np.einsum`, by matrix products if there is enough to do.

    Finding the way takes 12 us, in which a plain loop makes about 30 000 steps.
    """
    inputs = notation.partition("->")[0].split(",")
    sizes: dict[str, int] = {}
    for term, x in zip(inputs, operands, strict=True):
        for c, n in zip(term, x.shape, strict=True):
            sizes[c] = max(n, sizes.get(c, 1))
    large = len(operands) > 1 and prod(sizes.values()) > 50_000
    return np.einsum(notation, *operands, optimize=large)


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
