"""How Triton kernels are started: tiles, warps, and whether the next row is read ahead.

By a rule, without trials: what was fastest on an H200 of what was tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..fusion import FULL, LONG, Nest, Node
from .triton_shared import fit_into_words
from .triton_totals import SUMS_OF_EXP, is_share

# The longest row that is read once: its numbers fill half of the registers that a
# processor has. Of 16 bits, the next row takes a quarter, and is read ahead.
LONGEST = 32768
# Longer rows are shared by some programs, with so many numbers of an array for each, or
# fewer: several of them run in a processor, and one computes while others wait
_SHARE = 8192
_MOST_PARTS = 32
# Rows of other lengths than powers of two leave registers empty, and are shared sooner
_UNEVEN = 4096
_CHUNK = 16384  # of rows that are longer still
_TILE = 2048  # numbers of a tile without reductions
_ROWS_IN_PLACE = 16

HALF = ("float16", "bfloat16")


@dataclass(frozen=True)
class Launch:
    """How a kernel is started: the tile, and how many warps run it."""

    rows: int  # of a tile
    block: int  # columns of a tile, or of a chunk
    warps: int
    chunked: bool
    exact: bool  # no column of a tile is left over
    half: bool  # all that is read and written has 16 bits
    split: bool  # columns of a row are given to several programs
    again: bool = False  # each pass computes its tiles anew
    at_once: bool = False  # rows are read before it is known whether they count
    ahead: bool = False  # a program takes many rows, and reads the next one early
    shared: bool = False  # programs with parts of a row exchange totals
    registers: int = 0  # at most so many for each thread

    def parts(self, nest: Nest) -> int:
        """How many programs have columns of the same rows."""
        return -(-nest.columns // self.block) if self.split else 1

    def programs(self, nest: Nest, processors: int) -> int:
        """One for each tile, or for each processor."""
        tiles = -(-nest.rows // self.rows) * self.parts(nest)
        return min(tiles, processors) if self.ahead else tiles


def launch_of(
    nest: Nest, storage: Sequence[str], *, in_place: bool = False, shared: bool = True
) -> Launch:
    """The tile and the warps of a nest, whose arrays have the dtypes of `storage`.

    A product in place mostly finds that its factor is 1. Its programs take some whole
    rows, or large tiles of what has no rows, so that few have to look.
    """
    columns = nest.columns
    full = [kind == FULL for kind, _ in nest.inputs] + [
        y.kind == FULL for y in nest.outputs
    ]
    big = [s for s, is_full in zip(storage, full, strict=True) if is_full]
    half = bool(big) and all(s in HALF for s in big)
    whole = 1 << max(columns - 1, 0).bit_length()
    if not reduces(nest):
        split = not in_place or nest.rows == 1
        tile, warps = (4 * _TILE, 8) if in_place else (_TILE, 4)
        tile = 2 * tile if half and tile == _TILE else tile
        block = min(whole, tile if split else tile // _ROWS_IN_PLACE)
        chunked = not split and whole > block
        rows, exact = max(tile // block, 1), columns % block == 0
        return Launch(rows, block, warps, chunked, exact, half, split)
    is_long = any(n.op in LONG for n in nest.nodes)
    # To compute an exponential anew takes longer than its registers are worth
    again = half and len(nest.passes) > 1 and not is_long
    exact = columns == whole
    is_long_row = whole > (2 * LONGEST if again else LONGEST)
    if is_long_row or (columns > _UNEVEN and not exact):
        share = _shared(nest, half=half, again=again)
        if shared and not in_place and _can_be_shared(nest, share):
            return share
    if is_long_row:
        return _in_chunks(nest, half=half)
    if half and whole == LONGEST and len(arrays_of(nest)) == 1:
        # A cross entropy takes 1.06 of a copy, and 1.42 without
        return Launch(1, whole, 16, False, exact, half, False, again, ahead=True)
    rows = max(1024 // whole, 1)
    most = 32 if _has_room(nest, half=half) else 16
    # Of 1000 columns of 16 bits a cross entropy takes 1.84 of a copy by two warps, and
    # 2.39 by four; of 3000 1.47 by four, and 1.76 by eight
    each = 512 if whole > _UNEVEN else 1024
    warps = min(max(rows * whole // each, 2), most)
    # A cross entropy of 32768 columns takes 1.04 of a copy, and 1.15 if a row is read
    # when its label is there
    at_once = whole == LONGEST
    return Launch(rows, whole, warps, False, exact, half, False, again, at_once)


def _shared(nest: Nest, *, half: bool, again: bool) -> Launch:
    """Programs of few warps, so that some wait while others compute.

    Of 131072 columns a cross entropy takes 1.03 of a copy in float32, and 1.08 in 16
    bits. There it is given few registers, so that more programs fit in: of 151936
    columns its kernel takes 1.04, and 1.22 with all that it asks for.
    """
    arrays = max(len(arrays_of(nest)), 1)
    share, warps = _share_of(nest.columns, half=half)
    block = share >> (arrays - 1).bit_length()
    registers = 80 if half and arrays == 1 else 0
    exact = nest.columns % block == 0
    return Launch(1, block, warps, False, exact, half, True, again, True,
                  shared=True, registers=registers)  # fmt: skip


def _share_of(columns: int, *, half: bool) -> tuple[int, int]:
    """How many columns a program takes of one array, and by how many warps.

    A small share leaves less over: of 10000 columns a cross entropy takes 1.10 of a
    copy in float32, of 32000 1.08, and of 20000 of 16 bits 1.25; as whole rows 1.95,
    1.82 and 1.67. Of an odd number of columns elements are read one by one.
    """
    if columns > 2 * LONGEST or not columns & (columns - 1):
        return _SHARE, 4
    if columns % 2:
        return (_SHARE // 2 if half else _SHARE), 4
    return (_SHARE // 2 if half else _SHARE // 4), 2


def _can_be_shared(nest: Nest, launch: Launch) -> bool:
    has_totals = any(each.reductions for each in nest.passes)
    if not has_totals or launch.parts(nest) > _MOST_PARTS or not fit_into_words(nest):
        return False
    return not (launch.half and _has_no_room(nest))


def _has_no_room(nest: Nest) -> bool:
    """Whether it needs more than exponentials behind their sums, as a log_softmax.

    One of 131072 columns takes 1.16 of a copy in 16 bits, and 1.30 shared.
    """
    of_exp = any(node.op in SUMS_OF_EXP for node in nest.nodes)
    return of_exp and not all(is_share(y) for y in nest.outputs if y.kind == FULL)


def _in_chunks(nest: Nest, *, half: bool) -> Launch:
    """With labels, many programs that wait for them; else few, which share the cache.

    Of 131072 columns of 16 bits a cross entropy takes 1.46 of a copy (1.70 with these
    the other way round), and a softmax 1.31 (1.48).
    """
    waits = any(n.op == "gather" for n in nest.nodes)
    block, warps = (_CHUNK // 2, 16) if waits else (_CHUNK, 32)
    return Launch(1, block, warps, True, nest.columns % block == 0, half, False)


def _has_room(nest: Nest, *, half: bool) -> bool:
    """Whether 64 registers for each thread do: then twice as many run.

    They do where a pass reads some inputs alone, and of 16 bits where the last one is
    short: a log_softmax of 32768 columns and its gradient take 0.9 of the time.
    """
    if len(nest.passes) < 2:
        return False
    first, last = nest.passes[0], nest.passes[-1]
    read = [n for n in first.nodes if n.op == "input" and n.kind == FULL]
    reads_fewer = len(read) < sum(kind == FULL for kind, _ in nest.inputs)
    return reads_fewer or (half and not any(n.op in LONG for n in last.nodes))


def arrays_of(nest: Nest) -> list[Node]:
    """What is read of each element."""
    return [n for n in nest.nodes if n.op == "input" and n.kind == FULL]


def reduces(nest: Nest) -> bool:
    return any(each.reductions for each in nest.passes) or any(
        node.op == "gather" for node in nest.nodes
    )
