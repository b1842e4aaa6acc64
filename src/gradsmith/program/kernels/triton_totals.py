"""What a pass of a Triton kernel sums up, and how: totals of tiles, and of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..fusion import FULL, Node, Pass
from .primitives import SUMS

# Numbers next to each other, for which there is one greatest number so far
TOGETHER = 8
TYPES = {
    "bool": "tl.int1", "int8": "tl.int8", "int16": "tl.int16", "int32": "tl.int32",
    "int64": "tl.int64", "uint8": "tl.uint8", "float16": "tl.float16",
    "bfloat16": "tl.bfloat16", "float32": "tl.float32", "float64": "tl.float64",
}  # fmt: skip
_EMPTY = {
    "sum": "0",
    "max": 'float("-inf")',
    "min": 'float("inf")',
    "any": "0",
    "all": "1",
}


@dataclass(frozen=True)
class Total:
    """What a pass sums up: the dtype, what it is of nothing, and how many columns."""

    dtype: str
    empty: str
    columns: str = "BLOCK"


@dataclass(frozen=True)
class Group:
    """Reductions of a pass that are made together, and which of its totals they take.

    Those `of_exp` are the greatest, and sums of exp(x - top) with the greatest so far
    for top: if a greater one comes, the sums are multiplied.
    """

    nodes: tuple[Node, ...]
    places: tuple[int, ...]
    of_exp: bool = False


def groups(each: Pass) -> list[Group]:
    found: list[Group] = []
    of_exp: dict[int, list[Node]] = {}
    count = 0
    for node in each.reductions:
        if node.op in SUMS_OF_EXP:
            of_exp.setdefault(id(node.args[0]), []).append(node)
    for node in each.reductions:
        others = of_exp.get(id(node.args[0]), [])
        if node.op in SUMS_OF_EXP and node is others[0]:
            places = (count, count + 1, count + 2)
            found.append(Group(tuple(others), places, of_exp=True))
            count += 3
        elif node.op not in SUMS_OF_EXP and not (node.op == "max" and others):
            found.append(Group((node,), (count,)))
            count += 1
    return found


SUMS_OF_EXP = (*SUMS.values(),)
_OF_EXP = {"max": 0, "exp_total": 1, "exp_rest": 2}
GROUPS = f"BLOCK // {TOGETHER}"


def known_by(each: Pass) -> Iterator[tuple[Node, int]]:
    """The reductions of a pass, and which total each of them is."""
    for group in groups(each):
        if not group.of_exp:
            yield group.nodes[0], group.places[0]
            continue
        for node in each.reductions:
            if node.op in _OF_EXP and node.args[0] is group.nodes[0].args[0]:
                yield node, group.places[_OF_EXP[node.op]]


def totals_of(each: Pass) -> list[Total]:
    found: list[Total] = []
    for group in groups(each):
        if group.of_exp:
            dtype = accumulated(group.nodes[0])
            top, total = (Total(dtype, e, GROUPS) for e in ('float("-inf")', "0.0"))
            found += [top, total, total]
        else:
            (node,) = group.nodes
            found.append(Total(accumulated(node), empty_of(node)))
    return found


def off_top(node: Node) -> Node | None:
    """The x of exp(x - top), with the top that a sum of exponentials has."""
    if node.op != "exp" or node.args[0].op != "where":
        return None
    same, zero, less = node.args[0].args
    if (same.op, zero.op, less.op) != ("equal", "number", "subtract"):
        return None
    x, top = less.args
    is_off = zero.data == 0 and same.args[0] is x and same.args[1] is top
    return x if is_off and _is_top(top, x) else None


def _is_top(node: Node, x: Node) -> bool:
    """Whether it is the greatest of x, and 0 for one of minus infinity."""
    if node.op != "where" or node.args[0].op != "equal":
        return False
    same, zero, greatest = node.args
    first, least = same.args
    are_numbers = zero.op == least.op == "number"
    is_held = are_numbers and zero.data == 0 and least.data == -np.inf
    is_greatest = greatest.op == "max" and greatest.args[0] is x
    return is_held and is_greatest and first is greatest


def is_share(node: Node) -> bool:
    """Whether it is such an exponential, also times or over numbers of its row.

    One place of the row may have another value.
    """
    while off_top(node) is None:
        full = [a for a in node.args if a.kind == FULL]
        if node.op == "where" and node.args[0].op == "equal":
            node = node.args[2]
        elif node.op in ("multiply", "divide") and len(full) == 1:
            (node,) = full
        else:
            return False
    return True


def accumulated(node: Node) -> str:
    """The dtype that a reduction goes on in."""
    name = node.args[0].dtype.name
    if node.op in ("any", "all") or name == "bool":
        return "int32"
    if node.op == "sum":
        return {"float16": "float32", "bfloat16": "float32"}.get(name, name)
    return name


def empty_of(node: Node) -> str:
    name = accumulated(node)
    if node.op in ("max", "min") and name.startswith(("int", "uint")):
        info = np.iinfo(name)
        return str(info.min if node.op == "max" else info.max)
    return _EMPTY[node.op]


def reduced(node: Node, x: str) -> str:
    name = accumulated(node)
    floats = name.startswith("float")
    text = {
        "sum": f"tl.sum({x}, 1, keep_dims=True)",
        "any": f"tl.max({x}, 1, keep_dims=True) != 0",
        "all": f"tl.min({x}, 1, keep_dims=True) != 0",
        "max": f"tl.reduce({x}, 1, greatest, keep_dims=True)"
        if floats
        else f"tl.max({x}, 1, keep_dims=True)",
        "min": f"tl.reduce({x}, 1, least, keep_dims=True)"
        if floats
        else f"tl.min({x}, 1, keep_dims=True)",
    }[node.op]
    kept = node.op in ("any", "all") or name == node.dtype.name
    return text if kept else f"({text}).to({TYPES[node.dtype.name]})"


def combined(node: Node, a: str, b: str) -> str:
    op = {"any": "max", "all": "min"}.get(node.op, node.op)
    if op == "sum":
        return f"{a} + {b}"
    return f"{'greatest' if op == 'max' else 'least'}({a}, {b})"
