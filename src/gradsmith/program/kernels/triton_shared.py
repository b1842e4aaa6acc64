"""What programs exchange that share a row.

Each writes its totals into words of 64 bits, two into each, and waits for those of the
others. A word is there if it is not 0, so that nothing else need be ordered. That they
don't wait for each other for ever rests on this: programs start in the order of their
numbers, and those of a row fit into the GPU together, also beside some more kernels of
this kind (`GpuKernel.for_gpu`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from ..fusion import Nest, Pass
from .triton_lines import Lines
from .triton_totals import Group, accumulated, groups, totals_of

_EMPTY_WORD = 1  # of a part that there is not


def exchanged(
    to: Lines,
    each: Pass,
    totals: Sequence[str],
    places: Sequence[str],
    parts: int,
    warps: int,
) -> list[str]:
    """Totals of all parts of a row, as tiles; `places` are those of the first words.

    Each word is read by one thread, after a pause: programs that read all the time are
    in each other's way (a cross entropy of 131072 columns of 16 bits takes 1.06 of a
    copy, and 1.15 if each warp reads at once).
    """
    infos, pairs, found = totals_of(each), paired(each), [*totals]
    for _, total, rest in _with_rest(each):
        found[total] = to.let(_packed(found[total], found[rest]))
    for place, (i, j) in zip(places, pairs, strict=True):
        word = f"word_of({found[i]}, {found[j]})"
        # A plain store is seen later: 1.33 of a copy in float32, and 1.05 with this
        to.write(f"tl.atomic_xchg({place} + part, {word}, sem='relaxed')")
    part = to.let(f"tl.arange(0, {32 * warps})[None, :]", "part")
    guard = f"mask={part} < {parts}, other={_EMPTY_WORD}, volatile=True"
    reads = [f"tl.load({place} + {part}, {guard})" for place in places]
    to.write("pause(300)")
    words = [to.let(read, "word") for read in reads]
    are_there = " & ".join(f"({word} != 0)" for word in words)
    to.write(f"while tl.min(({are_there}).to(tl.int32)) == 0:")
    to.write("    pause(100)")
    for word, read in zip(words, reads, strict=True):
        to.write(f"    {word} = {read}")
    for word, (i, j) in zip(words, pairs, strict=True):
        for k, which in ((i, "first"), (j, "second")):
            kind = "float" if infos[k].dtype == "float32" else "whole"
            value = f"{which}_{kind}({word})"
            found[k] = to.let(f"tl.where({part} < {parts}, {value}, {infos[k].empty})")
    for group in groups(each):
        if group.of_exp:
            _, total, rest = group.places
            found[rest] = found[total]
    for _, total, rest in _with_rest(each):
        found[total] = to.let(_unpacked(found[rest]))
    return found


def has_rest(group: Group) -> bool:
    """Whether it is asked for the sum without the greatest.

    Where programs share a row, it is that only if the total is less than 1.5: else
    nobody looks at it.
    """
    return any(node.op == "exp_rest" for node in group.nodes)


def _with_rest(each: Pass) -> list[tuple[int, ...]]:
    """The places of the greatest, the total and the rest, where that is asked for."""
    return [group.places for group in groups(each) if group.of_exp and has_rest(group)]


def _packed(total: str, rest: str) -> str:
    """One number for both: the rest counts where there is one greatest, which is 1."""
    return f"tl.where({total} < 1.5, {rest}, {total})"


def _unpacked(both: str) -> str:
    """The total; 1 where there is nothing, which counts for nothing with its top."""
    return f"tl.where({both} < 1, 1 + {both}, {both})"


def paired(each: Pass) -> list[tuple[int, int]]:
    """The places of two totals for each word; a last one alone is there twice."""
    alone = [group.places[0] for group in groups(each) if not group.of_exp]
    found = [group.places[:2] for group in groups(each) if group.of_exp]
    found += zip_longest(alone[::2], alone[1::2], fillvalue=alone[-1] if alone else 0)
    return [(i, j) for i, j, *_ in found]


def words_of(nest: Nest) -> int:
    """How many words a program writes for each row."""
    return sum(len(paired(each)) for each in nest.passes)


def fit_into_words(nest: Nest) -> bool:
    """Whether totals have 32 bits: floats, and of whole numbers counts, any and all."""
    found = [node for each in nest.passes for node in each.reductions]
    whole = [n for n in found if accumulated(n) != "float32"]
    return all(n.op in ("any", "all") or n.args[0].dtype == bool for n in whole)
