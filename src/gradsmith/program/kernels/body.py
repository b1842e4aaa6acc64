"""What a pass does with the columns of one register."""

from __future__ import annotations

from collections.abc import Sequence

from ..fusion import Nest, Node, Pass, Repeats
from .arrays import Arrays, store
from .carried import Powers
from .lanes import Lane, part
from .near import Added
from .scratch import Sums
from .values import Scope, Values


class SumsOfRows:
    """Outputs that are sums of the same rows, each times numbers of its own."""

    def __init__(self, outputs: Sums, added: Added, values: Values) -> None:
        self._outputs, self._added, self._values = outputs, added, values

    def take(self, i: int, column: Lane, x: Lane) -> None:
        """Some columns of a row, for an output; once for all of them."""
        if i == self._outputs[-1][0]:  # all factors are known
            self._added.take(self._values.row, column, x, self._factors())

    def end_row(self, stop: Lane) -> None:
        self._added.end_row(self._values.row, stop, self._factors())

    def write(self) -> None:
        """Write the outputs, behind all rows."""
        start = 0
        for i, factors in self._outputs:
            self._added.totals.end(f"%out{i}", start, len(factors))
            start += len(factors)

    def _factors(self) -> list[Lane]:
        return [
            self._values.one[id(x)] for _, factors in self._outputs for x in factors
        ]


class Body:
    """The body of all loops; `width` is the number of lanes of a register."""

    def __init__(self, nest: Nest, values: Values, arrays: Arrays, width: int) -> None:
        self.nest, self.values, self.arrays, self.width = nest, values, arrays, width
        self.sums: dict[int, SumsOfRows] = {}  # by what is summed up

    def run(self, each: Pass, scope: Scope, powers: Sequence[Powers]) -> list[Lane]:
        """All that is to be done with the columns of a scope: what is reduced."""
        value = self.values.at
        for p in powers:
            scope.known[id(p.node)] = p.taken()
        reduced = [value(n.args[0], scope) for n in each.reductions]
        for node in each.keeps:
            address, kind = self.values.kept_at(node, scope)
            store(value(node, scope).converted(kind), address, scope.mask)
        if self.nest.places is not None:  # one after the other, not by deep recursion
            for node in self.values.nodes:
                value(node, scope)
        for node in each.takes:  # before something is written in its place
            value(node, scope)
        if self.nest.flat:  # before one output is written where an input was
            for _, y in each.stores:
                value(y, scope)
        for i, y in each.stores:
            self._write(i, y, value(y, scope), scope)
        return reduced

    def leave(self, nodes: Sequence[Node], scope: Scope) -> None:
        """Compute what a stage leaves, and write it for the next one."""
        for node in nodes:
            x = self.values.at(node, scope)
            address, kind = self.values.kept_at(node, scope)
            store(x.converted(kind), address, None)

    def _write(self, i: int, y: Node, x: Lane, scope: Scope) -> None:
        column, mask, places = scope.column, scope.mask, self.nest.places
        if y.op == "total":
            self._add(i, x, y.data, column, mask)
        elif y.op == "totals":
            self.sums[id(y.args[0])].take(i, column, x)
        elif places is None:
            self.arrays.write(i, x, self.values.base + column, mask)
        else:
            i, at, stride = places[i]
            if stride == 1:
                self.arrays.write(i, x, column, mask)
            else:
                self.arrays.write_strided(i, x, column, at, stride, mask)

    def _add(
        self, i: int, x: Lane, data: Repeats, column: Lane, mask: Lane | None
    ) -> None:
        """Add to a row of an output, which is new memory when it is first written.

        What is left of a row one by one: what was written under a mask can't be read
        again before it is in the cache (5 times the time for rows of 10).
        """
        if mask is not None:
            for k in range(self.nest.columns % x.width):
                self._add(i, part(x, k, 1), data, column + k, None)
            return
        place = self.values.rows_of[data] * self.values.columns + column
        self.arrays.add(i, x, place, self.values.first[data])
