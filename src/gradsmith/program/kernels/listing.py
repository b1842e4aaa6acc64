"""A loop nest as text that reads like Python."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from ..fusion import COLUMN, FULL, ROW, SCALAR, Nest, Node, Repeats

_SIGNS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "less": "<",
    "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==",
    "not_equal": "!=", "and": "&", "or": "|", "xor": "^", "right_shift": ">>",
}  # fmt: skip

_UNNAMED = ("number", "spread", "total", "totals")


def listing(nest: Nest, storage: list[str]) -> str:
    """The loops, and what they compute.

    Names are given as in a program; an array has its place in brackets.
    """
    return "\n".join(_Lines(nest, storage).lines())


class _Lines:
    def __init__(self, nest: Nest, storage: list[str]) -> None:
        self.nest, self.storage = nest, storage
        self.names: dict[int, str] = {}
        self.numbers = count()

    def lines(self) -> Iterator[str]:
        nest = self.nest
        n = len(nest.inputs)
        inputs = [f"x{i}: {t}" for i, t in enumerate(self.storage[:n])]
        outputs = [f"y{i}: {t}" for i, t in enumerate(self.storage[n:])]
        yield f"def {nest.name}({', '.join([*inputs, *outputs])}):"
        yield from self._ones(SCALAR, 0, "    ")
        indent = "    "
        if not nest.flat:
            yield f"    for r in range({nest.rows}):"
            indent = "        "
        for i, each in enumerate(nest.passes):
            yield from self._ones(ROW, i, indent)
            yield f"{indent}for c in range({nest.columns}):"
            inner = indent + "    "
            known = dict(self.names)
            for node in each.takes:
                self.names[id(node)] = f"kept{self._kept(node)}[c]"
            for node in reversed(_ordered(each.nodes)):
                yield from self._define(node, inner)
            for node in each.reductions:
                known[id(node)] = name = self._new(node)
                yield f"{inner}{name} = {node.op} of {self._name(node.args[0])}"
            for node in each.keeps:
                yield f"{inner}kept{self._kept(node)}[c] = {self._name(node)}"
            for k, y in each.stores:
                sign = "+=" if y.op in ("total", "totals") else "="
                yield f"{inner}{self._stored(k)} {sign} {self._name(y)}"
            self.names = known
        yield from self._ones(ROW, len(nest.passes), indent)
        for k, y in enumerate(nest.outputs):
            if y.kind == ROW:
                yield f"{indent}y{k}[r] = {self._name(y)}"

    def _ones(self, kind: str, level: int, indent: str) -> Iterator[str]:
        for node in self.nest.nodes:
            if node.kind == kind and node.level == level:
                yield from self._define(node, indent)

    def _define(self, node: Node, indent: str) -> Iterator[str]:
        if id(node) in self.names or node.op in _UNNAMED:
            return
        yield f"{indent}{self._new(node)} = {self._text(node)}"

    def _new(self, node: Node) -> str:
        name = self.names[id(node)] = f"v{next(self.numbers)}"
        return name

    def _name(self, node: Node) -> str:
        if node.op == "number":
            return repr(node.data)
        if node.op in ("spread", "total"):
            return self._name(node.args[0])
        if node.op == "totals":
            x, *factors = map(self._name, node.args)
            return f"{x} * ({', '.join(factors)})"
        if id(node) in self.names:
            return self.names[id(node)]
        return f"({self._text(node)})"  # at one place, outside of the loop

    def _text(self, node: Node) -> str:
        if node.op == "input":
            return f"x{node.data}[{self._place(node.kind)}]"
        if node.op == "repeated":
            columns = ", c" * (node.kind == FULL)
            return f"x{node.data.i}[{_row(node.data)}{columns}]"
        if node.op in ("part", "line"):
            i, k, _ = node.data
            return f"x{i}[{f'r, {k}' if node.op == 'part' else f'{k}, c'}]"
        if node.op == "strided":
            i, at, stride = node.data
            return f"x{i}[{f'c * {stride} + ' * bool(stride)}{at}]"
        if node.op == "index":
            whole = node.kind == FULL and not self.nest.flat
            return f"r * {self.nest.columns} + c" if whole else "c"
        if node.op == "gather":
            x, place = node.args
            return f"({self._text(x)}) where c = {self._name(place)}"
        args = [self._name(a) for a in node.args]
        if node.op in _SIGNS:
            return f" {_SIGNS[node.op]} ".join(args)
        if node.op == "convert":
            return f"{node.dtype.name}({args[0]})"
        return f"{node.op}({', '.join(args)})"

    def _stored(self, k: int) -> str:
        """Where an output is written."""
        data = self.nest.outputs[k].data
        if self.nest.outputs[k].op == "totals":
            return f"y{k}[:, c]"
        if isinstance(data, Repeats):
            return f"y{k}[{_row(data)}, c]"
        if self.nest.places is None:
            return f"y{k}[{self._place(FULL)}]"
        i, at, stride = self.nest.places[k]
        return f"y{i}[c]" if stride == 1 else f"y{i}[c * {stride} + {at}]"

    def _place(self, kind: str) -> str:
        full = "c" if self.nest.flat else "r, c"
        return {SCALAR: "0", ROW: "r", COLUMN: "c", FULL: full}[kind]

    def _kept(self, node: Node) -> int:
        kept = [n for each in self.nest.passes for n in each.keeps]
        return next(i for i, n in enumerate(kept) if n is node)


def _row(data: Repeats) -> str:
    """Which row of an array belongs to row r."""
    return " + ".join(f"r // {e} % {n} * {m}" for e, n, m in data.own) or "0"


def _ordered(nodes: list[Node]) -> list[Node]:
    """Those within a loop, each before what it is computed of."""
    within = {id(n) for n in nodes}
    done: dict[int, Node] = {}

    def visit(node: Node) -> None:
        if id(node) in within and id(node) not in done:
            for a in node.args:
                visit(a)
            done[id(node)] = node

    for node in nodes:
        visit(node)
    return [*done.values()][::-1]
