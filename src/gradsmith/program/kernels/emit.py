"""A loop nest as LLVM's assembly: `assembly(nest, storage)`.

The function takes the addresses of inputs, outputs and of memory for one row, and which
rows (of a flat nest: which columns) to compute. Columns go by as many at once as fit
into a register, the last of them under a mask. It returns 1 if a place to read from was
out of bounds.

This module writes what is around the passes; loops.py writes the loops of a pass,
body.py what these do, and values.py what that is computed of.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..fusion import FULL, ROW, Nest
from .arrays import Arrays
from .body import Body, SumsOfRows
from .lanes import Code, kind_of
from .loops import write_pass
from .machine import Machine
from .near import Memory, added
from .scratch import homes, kept_in, near_in
from .values import Values


def assembly(
    nest: Nest,
    storage: Sequence[str],
    machine: Machine,
    in_place: Sequence[tuple[int, int]] = (),
) -> str:
    """The function `kernel`; `storage` are the dtypes of inputs, then of outputs.

    Pairs of an input and an output that are products `in_place` may have the same
    address: then nothing is done in a row where all the factors are 1.
    """
    return _Function(nest, storage, machine, in_place).text()


class _Function:
    def __init__(
        self,
        nest: Nest,
        storage: Sequence[str],
        machine: Machine,
        in_place: Sequence[tuple[int, int]],
    ) -> None:
        self.nest, self.in_place = nest, in_place
        self.code = code = Code(fma=machine.fma, scales=machine.scales)
        elsewhere = {} if in_place else homes(nest, storage)
        kept = [n for n in kept_in(nest) if id(n) not in elsewhere]
        self.near = len(kept) * nest.columns  # where arrays begin behind what is kept
        self.arrays = Arrays(code, storage, len(nest.inputs))
        self.values = Values(code, nest, self.arrays, kept, elsewhere)
        wide = any(
            kind_of(n.dtype) == "f64" and n.kind == FULL for n in self.values.nodes
        )
        width = machine.bytes // (8 if wide else 4)
        self.body = Body(nest, self.values, self.arrays, width)

    def text(self) -> str:
        code, nest = self.code, self.nest
        code.label("entry")
        code.write("  %bad = alloca i32")
        code.write("  store i32 0, ptr %bad")
        self._begin_near()
        self.values.compute_scalars()
        if nest.flat:
            self._columns()
        else:
            self._rows()
        for sums in self.body.sums.values():
            sums.write()
        code.write("  %answer = load i32, ptr %bad")
        code.write("  ret i32 %answer")
        body = "\n".join(code.lines)
        # What is kept on the stack lies in one cache line each: 0.9 of the time
        attributes = (
            "attributes #0 = { nounwind mustprogress alignstack=64 "
            '"prefer-vector-width"="512" "min-legal-vector-width"="512" }'
        )
        declared = "\n".join(sorted(code.declared))
        return f"{declared}\n{attributes}\n{self._head()}\n{body}\n}}\n"

    def _head(self) -> str:
        pointers = [f"in{i}" for i in range(len(self.nest.inputs))]
        pointers += [f"out{i}" for i in range(len(self.nest.shapes))]
        # An output may be the memory of an input: to leave that open costs nothing
        apart = "" if self.in_place or self.nest.flat else "noalias "
        given = [f"ptr {apart}%{p}" for p in pointers]
        given += ["ptr noalias %kept", "i64 %start", "i64 %stop", "i64 %columns"]
        return f"define i32 @kernel({', '.join(given)}) #0 {{"

    def _begin_near(self) -> None:
        """Copy the rows that are needed for each row, and clear the sums of rows."""
        lines, sums = near_in(self.nest)
        if not lines and not sums:
            return
        code, columns = self.code, self.nest.columns
        memory = Memory(code, code.address("%kept", "i64", self.near))
        for i, (kind, rows) in lines.items():
            near = self.values.lines[i] = memory.array(kind, rows, columns)
            near.begin(f"%in{i}")
        for x, outputs in sums.items():
            n = sum(len(factors) for _, factors in outputs)
            total = added(memory, columns, n, self.body.width)
            self.body.sums[x] = SumsOfRows(outputs, total, self.values)

    def _columns(self) -> None:
        """Some columns of a flat nest."""
        start, stop = self.code.named("start"), self.code.named("stop")
        self._unless_ones("done")
        write_pass(self.nest.passes[0], self.body, start, stop)
        self.code.write("  br label %done")
        self.code.label("done")

    def _rows(self) -> None:
        code, values = self.code, self.values
        code.write("  %some = icmp slt i64 %start, %stop")
        code.write("  br i1 %some, label %row, label %done")
        code.label("row")
        code.write("  %r = phi i64 [%start, %entry], [%next, %rowend]")
        values.begin_row()
        self._unless_ones("rowend")
        for i, each in enumerate(self.nest.passes):
            write_pass(each, self.body, code.number(0, "i64"), values.columns)
            values.compute_row(i + 1)
        for i, y in enumerate(self.nest.outputs):
            if y.kind == ROW:
                self.arrays.write(i, values.one[id(y)], values.row)
        for sums in self.body.sums.values():
            sums.end_row(code.named("stop"))
        code.write("  br label %rowend")
        code.label("rowend")
        code.write("  %next = add i64 %r, 1")
        code.write("  %more = icmp slt i64 %next, %stop")
        code.write("  br i1 %more, label %row, label %done")
        code.label("done")

    def _unless_ones(self, label: str) -> None:
        """Go to a label if all that is left to do is to multiply in place by 1."""
        if not self.in_place:
            return
        code = self.code
        every = code.number(1, "i1")
        for i, k in self.in_place:
            x, y = self.nest.outputs[k].args
            factor = y if (x.op, x.data) == ("input", i) else x
            same = code.value(f"icmp eq ptr %in{i}, %out{k}", "i1", 1)
            every = every & same & self.values.one[id(factor)].equals(1)
        code.write(f"  br i1 {every.name}, label %{label}, label %some.to.do")
        code.label("some.to.do")
