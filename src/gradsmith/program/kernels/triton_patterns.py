"""What GPU kernels look for in a nest: inputs in some rows, values at one place."""

from __future__ import annotations

from ..fusion import COLUMN, FULL, ROW, SCALAR, Node


def is_in_rows(node: Node) -> bool:
    """Whether it is an input in some rows, and 0 in the others."""
    if node.op != "where" or node.kind != FULL or node.args[0].kind != ROW:
        return False
    _, x, zero = node.args
    return x.op == "input" and x.kind == FULL and zero.op == "number" and zero.data == 0


def input_of(node: Node) -> Node | None:
    """The array that a tile is, in all rows or in those that count."""
    node = node.args[1] if is_in_rows(node) else node
    return node if node.op == "input" and node.kind == FULL else None


def read_in(node: Node) -> list[Node]:
    """The arrays that it is computed of, in all rows or in some."""
    found: list[Node] = []
    seen: set[int] = set()
    todo = [node]
    while todo:
        each = todo.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if each.op != "input" and not is_in_rows(each):
            todo += reversed(each.args)
        elif each.kind == FULL:
            found.append(each)
    return found


def is_known_early(node: Node) -> bool:
    """Whether it is known before all passes where to gather, and in which rows."""
    rows = [each.args[0] for each in read_in(node.args[0]) if each.op != "input"]
    return all(each.level == 0 for each in (node.args[1], *rows))


def one_place(node: Node) -> Node | None:
    """The column of each row that has a value of its own, if it is such a choice."""
    if node.op != "where" or node.args[0].op != "equal" or node.args[1].kind == FULL:
        return None
    places = [x for x in node.args[0].args if _without_conversion(x).op != "index"]
    if len(places) != 1 or places[0].kind not in (ROW, SCALAR):
        return None
    is_whole = places[0].dtype.kind in "iu"  # no address has a fraction
    return places[0] if is_whole and node.args[1].kind != COLUMN else None


def _without_conversion(node: Node) -> Node:
    return node.args[0] if node.op == "convert" else node
