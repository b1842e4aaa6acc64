"""The loops of a pass: over registers of columns, the rest of these under a mask."""

from __future__ import annotations

from collections.abc import Callable

from ..fusion import FULL, ROW, SCALAR, Node, Pass, is_choice, usual_of
from .body import Body
from .carried import Powers, Reduction, gathers
from .lanes import Lane, abs_, joined, kind_of
from .scratch import kept_kind
from .stages import BLOCK, stages_of
from .values import Scope, Way

# Divisors up to here, and from its inverse on, have an inverse that is a normal number
_NORMAL = {"f32": 2.0**100, "f64": 2.0**1000}

# Registers that a loop takes at once where what they have is reduced among them first
_AT_ONCE = 4


def write_pass(each: Pass, body: Body, start: Lane, stop: Lane) -> None:
    """The loop, twice if something in it is chosen by row: as usual, and not so.

    A choice takes time for each element, and what is usual may be cheap. So does a
    division by one number of the row, which is usually a product.
    """
    choices = [n for n in each.nodes if is_choice(n)]
    divisors = {id(n.args[1]): n.args[1] for n in each.nodes if _is_over_one(n)}
    if choices or divisors:
        totals = _two_ways(each, body, start, stop, choices, divisors)
    else:
        totals, _ = _Loops(each, body, start, stop, Way()).write(often=True)
    for node, total in zip(each.reductions, totals, strict=True):
        body.values.one[id(node)] = total


def _two_ways(
    each: Pass,
    body: Body,
    start: Lane,
    stop: Lane,
    choices: list[Node],
    divisors: dict[int, Node],
) -> list[Lane]:
    """The loops as usual and not so; what they reduce to."""
    code, one = body.values.code, body.values.one
    usual = Way({id(n): usual_of(n) for n in choices})
    every = code.number(1, "i1")
    for n in choices:
        condition = one[id(n.args[0])]
        every = every & (condition if usual_of(n) is n.args[1] else ~condition)
    for key, n in divisors.items():
        size, most = abs_(one[key]), _NORMAL[kind_of(n.dtype)]
        every = every & (size > 1 / most) & (size < most)
        usual.inverses[key] = 1 / one[key]
    name = code.name()
    code.write(f"  br i1 {every.name}, label %usual{name}, label %unusual{name}")
    ends: list[tuple[list[Lane], str]] = []
    for label, way in ((f"usual{name}", usual), (f"unusual{name}", Way())):
        code.label(label)
        loops = _Loops(each, body, start, stop, way)
        ends.append(loops.write(often=way is usual))
        code.write(f"  br label %join{name}")
    code.label(f"join{name}")
    (first, usual_end), (second, other_end) = ends
    return [
        joined([(a, usual_end), (b, other_end)])
        for a, b in zip(first, second, strict=True)
    ]


def _is_over_one(node: Node) -> bool:
    """Whether many numbers are divided by one.

    A product with the inverse may be off by one more ULP, and takes a third of the
    time.
    """
    if node.op != "divide" or node.kind != FULL or node.dtype.kind != "f":
        return False
    return node.args[1].kind in (ROW, SCALAR) and node.args[1].op != "number"


class _Loops:
    """Loops that follow each other, from a column on: each goes as far as it can."""

    def __init__(
        self, each: Pass, body: Body, start: Lane, stop: Lane, way: Way
    ) -> None:
        self.each, self.body, self.way = each, body, way
        self.code, self.width = body.values.code, body.width
        self.column, self.stop = start, stop
        self.block = ""  # that the last loop ends in
        self.reductions: list[Reduction] = []
        self.powers: list[Powers] = []

    def write(self, *, often: bool) -> tuple[list[Lane], str]:
        """All loops: what they reduce to, and the block that the last one ends in.

        What does not run `often` need not be long code, which takes LLVM as long again.
        """
        each = self.each
        n = self.code.name()
        self.block = f"begin{n}"
        self.code.write(f"  br label %{self.block}")
        self.code.label(self.block)
        self._begin_carried()
        if often and any(map(gathers, each.reductions)):
            self._registers(_AT_ONCE)
        if often and self._is_elementwise() and (stages := stages_of(each)):
            self._stages(stages)
        self._registers(1)
        self._rest(n)
        return [r.total() for r in self.reductions], f"end{n}"

    def _begin_carried(self) -> None:
        code, values = self.code, self.body.values
        columns = self.body.nest.columns
        self.reductions = [
            Reduction(r, code, self.width, columns) for r in self.each.reductions
        ]
        self.powers = [
            Powers(n, values.one[id(n.args[0])], self.width)
            for n in self.each.nodes
            if n.op == "powers" and n not in self.each.takes
        ]

    def _is_elementwise(self) -> bool:
        nest = self.body.nest
        apart = nest.flat and nest.places is None
        return apart and not self.each.reductions and not self.powers

    def _do(self, column: Lane, mask: Lane | None = None) -> list[Lane]:
        """The body for the columns of a register."""
        taken = {id(n) for n in self.each.takes}
        scope = Scope(column, self.width, mask, taken, self.way)
        return self.body.run(self.each, scope, self.powers)

    def _rest(self, n: str) -> None:
        """What is left of the columns, under a mask."""
        code, width = self.code, self.width
        some = self.column < self.stop
        code.write(f"  br i1 {some.name}, label %tail{n}, label %end{n}")
        code.label(f"tail{n}")
        before = [r.current for r in self.reductions]
        here = (self.stop - self.column).spread(width)
        mask = code.numbers(range(width), "i64") < here
        for r, x in zip(self.reductions, self._do(self.column, mask), strict=True):
            r.add([x], mask)
        code.write(f"  br label %end{n}")
        code.label(f"end{n}")
        for r, others in zip(self.reductions, before, strict=True):
            r.merge(others, self.block, f"tail{n}")

    def _registers(self, count: int) -> None:
        """A loop over whole registers, so many at once."""
        loop, before = f"loop{self.code.name()}", self.block
        carried = (*self.reductions, *self.powers)

        def turn(column: Lane) -> None:
            for c in carried:
                c.begin(before, loop)
            found = [
                self._do(column + i * self.width if i else column) for i in range(count)
            ]
            for r, *xs in zip(self.reductions, *found, strict=True):
                r.add(xs, None)
            for c in carried:
                c.close()

        self._repeat(turn, self.width * count, loop, loop)
        for c in carried:
            c.end(before, loop)

    def _stages(self, stages: list[list[Node]]) -> None:
        """A loop over whole blocks of columns, which runs stage by stage."""
        code, n = self.code, self.code.name()
        kinds = {id(node): kept_kind(node) for leaves in stages for node in leaves}
        count = self.width * BLOCK
        memory = {key: (code.on_stack(k, count), k) for key, k in kinds.items()}

        def turn(column: Lane) -> None:
            begin, taken = f"block{n}", set[int]()
            for i, leaves in enumerate([*stages, None]):
                loop = f"stage{i}{n}"
                at, further = code.named(f"x{i}{n}"), code.named(f"y{i}{n}")
                code.write(f"  br label %{loop}")
                code.label(loop)
                ways = f"[0, %{begin}], [{further.name}, %{loop}]"
                code.write(f"  {at.name} = phi i64 {ways}")
                left = {key: (*of, at) for key, of in memory.items()}
                here = column + at
                scope = Scope(here, self.width, None, taken, self.way, left)
                if leaves is None:
                    self.body.run(self.each, scope, ())
                else:
                    self.body.leave(leaves, scope)
                    taken = taken | {id(node) for node in leaves}
                code.write(f"  {further.name} = add i64 {at.name}, {self.width}")
                again = further < count
                begin = f"{loop}end"
                code.write(f"  br i1 {again.name}, label %{loop}, label %{begin}")
                code.label(begin)

        self._repeat(turn, count, f"block{n}", f"stage{len(stages)}{n}end")

    def _repeat(
        self, turn: Callable[[Lane], None], step: int, first: str, last: str
    ) -> None:
        """A loop over whole steps of columns, from its first block to its last."""
        code, start, after = self.code, self.column, f"{first}after"
        whole = self.stop - (step - 1)
        some = start < whole
        code.write(f"  br i1 {some.name}, label %{first}, label %{after}")
        code.label(first)
        column, following = code.named(f"{first}c"), code.named(f"{first}d")
        ways = f"[{start.name}, %{self.block}], [{following.name}, %{last}]"
        code.write(f"  {column.name} = phi i64 {ways}")
        turn(column)
        code.write(f"  {following.name} = add i64 {column.name}, {step}")
        again = following < whole
        code.write(f"  br i1 {again.name}, label %{first}, label %{after}")
        code.label(after)
        self.column, self.block = code.value(f"phi i64 {ways}", "i64", 1), after
