"""The memory that a loop nest needs beside its inputs and outputs.

Values are kept from one pass to the next. Behind them are arrays that each row needs
(near.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..fusion import Nest, Node
from .lanes import KINDS, kind_of
from .near import LINE, nbytes, nbytes_added

# Outputs that are sums of the same rows, and the numbers that these are multiplied by;
# what is known last comes last
Sums = list[tuple[int, Sequence[Node]]]


def kept_in(nest: Nest) -> list[Node]:
    """The values that a later pass takes up."""
    return [node for each in nest.passes for node in each.keeps]


def kept_kind(node: Node) -> str:
    """As what kind of number a value is kept."""
    kind = kind_of(node.dtype)
    return "i8" if kind == "i1" else kind


def homes(nest: Nest, storage: Sequence[str]) -> dict[int, int]:
    """Outputs in whose memory values are kept, until the output itself is written.

    If there is one row alone, that is memory which has to be in the cache anyway: the
    gradient of logsumexp of 10**6 numbers takes 0.85 of the time. Of many rows, one row
    that is used again and again is nearer.
    """
    found: dict[int, int] = {}
    stored = {i: k for k, each in enumerate(nest.passes) for i, _ in each.stores}
    for node in kept_in(nest) if nest.rows == 1 else ():
        last = max(k for k, each in enumerate(nest.passes) if node in each.takes)
        for i, k in stored.items():
            kind = KINDS[storage[len(nest.inputs) + i]][1]
            if k >= last and kind == kept_kind(node) and i not in found.values():
                found[id(node)] = i
                break
    return found


def near_in(nest: Nest) -> tuple[dict[int, tuple[str, int]], dict[int, Sums]]:
    """Inputs of whose rows each is needed, their kind and number; and sums of rows."""
    lines: dict[int, tuple[str, int]] = {}
    sums: dict[int, Sums] = {}
    for node in nest.nodes:
        if node.op == "line":
            i, _, rows = node.data
            lines[i] = kind_of(node.dtype), rows
    for i, y in sorted(enumerate(nest.outputs), key=lambda each: each[1].level):
        if y.op == "totals":
            sums.setdefault(id(y.args[0]), []).append((i, y.args[1:]))
    return lines, sums


def rows_near(nest: Nest) -> int:
    """The memory for these, as so many times 8 bytes for each column."""
    lines, sums = near_in(nest)
    if not lines and not sums:
        return 0
    n = nest.columns
    size = LINE + sum(nbytes(kind, rows, n) for kind, rows in lines.values())
    for of in sums.values():
        size += nbytes_added(n, sum(len(factors) for _, factors in of))
    return -(-size // (8 * n))
