"""A long chain of steps in stages: one after the other for a block of columns.

A processor looks at some 200 instructions at once. Where each of them waits for the one
before, that is too few to keep it busy: log(1.5 exp(x)) takes 1.5 times as long as
exp(x) + log(x). So the first stage runs for a whole block, and leaves what the next one
needs in memory that stays in the cache.
"""

from __future__ import annotations

from ..fusion import COLUMN, FULL, Node, Pass, ordered

# Registers of columns that a stage goes through before the next one starts
BLOCK = 16

# For how many cycles a value is waited for, about
_WAITS = {
    "input": 0, "convert": 0, "where": 2, "divide": 14, "sqrt": 16, "exp": 40,
    "log": 50, "log_sum": 54, "log1p": 65, "expm1": 60, "tanh": 80, "erf": 120,
    "erfc": 110,
}  # fmt: skip
_OTHERS_WAIT = 4
_LONG = 80  # from which on a chain is cut
_STAGE = 60
_SHORT = 8  # up to which a value is computed again rather than written and read
_FEW = 2  # values that a stage may leave
_TRIED = 8  # times at which a chain might be cut


def stages_of(each: Pass) -> list[list[Node]]:
    """What each stage but the last one leaves; nothing if one is enough."""
    nodes = [n for n in ordered(each.roots) if n.kind in (FULL, COLUMN)]
    if any(n.op == "exp_times" for n in nodes):
        return []  # which has its parts in common with an exp
    known = _times(nodes)
    end = max(known.values(), default=0)
    if end < _LONG:
        return []
    count = -(-end // _STAGE)
    ready: set[int] = set()
    found = []
    for i in range(1, count):
        left = _cut(nodes, each.roots, known, end * i // count, end // count // 2)
        found.append([n for n in left if id(n) not in ready])
        ready |= {id(n) for n in left}
    return [left for left in found if left]


def _cut(
    nodes: list[Node], roots: list[Node], known: dict[int, int], about: int, off: int
) -> list[Node]:
    """What is left where that is least, close to a time; nothing if it is too much."""
    near = {t for t in known.values() if abs(t - about) <= off}
    nearest = sorted(near, key=lambda t: abs(t - about))[:_TRIED]
    ways = [_left(nodes, roots, known, t) for t in nearest]
    return min((w for w in ways if 0 < len(w) <= _FEW), key=len, default=[])


def _times(nodes: list[Node]) -> dict[int, int]:
    """After how many cycles each value is known."""
    known: dict[int, int] = {}
    for node in nodes:
        before = max((known.get(id(a), 0) for a in node.args), default=0)
        known[id(node)] = before + _waits(node)
    return known


def _waits(node: Node) -> int:
    ops = {a.op for a in node.args}
    if node.op in ("add", "subtract") and ops == {"multiply", "number"}:
        return 0  # one instruction
    return _WAITS.get(node.op, _OTHERS_WAIT)


def _left(
    nodes: list[Node], roots: list[Node], known: dict[int, int], cut: int
) -> list[Node]:
    """What is known by then, and needed after that."""
    todo = [a for n in nodes if known[id(n)] > cut for a in n.args]
    todo += roots
    left: dict[int, Node] = {}
    while todo:
        node = todo.pop()
        if known.get(id(node), cut + 1) > cut:
            continue
        if known[id(node)] <= _SHORT or node.dtype.kind == "b":
            todo += node.args
        else:
            left[id(node)] = node
    return [*left.values()]
