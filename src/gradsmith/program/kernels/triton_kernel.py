"""A loop nest as a kernel that runs on a GPU: its source, compiled and started."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from functools import cached_property
from math import gcd
from typing import Any

from ..fusion import COLUMN, FULL, ROW, SCALAR, Nest
from .triton import source
from .triton_launch import Launch, launch_of
from .triton_shared import words_of


class GpuKernel:
    """A loop nest that runs on a GPU, compiled by Triton when it is first started.

    What is read and written are Triton's pointers: arrays with an address and a dtype.
    """

    def __init__(
        self,
        nest: Nest,
        storage: Sequence[str],
        in_place: Sequence[tuple[int, int]] = (),
        launch: Launch | None = None,
    ) -> None:
        self.nest, self.storage, self.in_place = nest, storage, in_place
        self.launch = launch or launch_of(nest, storage, in_place=bool(in_place))
        self.source = source(nest, storage, self.launch, in_place=in_place)
        self.options: dict[str, Any] = {"num_warps": self.launch.warps}
        if self.launch.registers:
            self.options["maxnreg"] = self.launch.registers

    def for_gpu(self, processors: int) -> GpuKernel:
        """The kernel that runs on a GPU with so many processors.

        The programs that share a row must run at the same time, and two of them fit
        into a processor at least. Kernels that run beside each other may all wait for
        programs that don't fit in any more: with this limit, not before there are nine.
        """
        is_small = 4 * self.launch.parts(self.nest) > processors
        return self._apart if self.launch.shared and is_small else self

    @cached_property
    def _apart(self) -> GpuKernel:
        """The same kernel with a program for each row."""
        launch = launch_of(self.nest, self.storage, shared=False)
        return GpuKernel(self.nest, self.storage, launch=launch)

    @property
    def words(self) -> int:
        """How many words of 64 bits are to follow the outputs, all of them 0."""
        if not self.launch.shared:
            return 0
        return words_of(self.nest) * self.nest.rows * self.launch.parts(self.nest)

    def programs(self, processors: int) -> int:
        """How many there are in the grid, on a GPU with so many processors."""
        return self.launch.programs(self.nest, processors)

    @cached_property
    def function(self) -> Any:
        """The kernel; Triton reads its source as that of a file."""
        name = f"<kernel {self.nest.name} {hash(self.source):x}>"
        lines = self.source.splitlines(keepends=True)
        linecache.cache[name] = (len(self.source), None, lines, name)
        names: dict[str, Any] = {"__name__": "gradsmith_kernels"}
        exec(compile(self.source, name, "exec"), names)
        return names["kernel"]

    def strides(self, kind: str) -> tuple[int, int]:
        """Those of a contiguous input: along rows, and along columns."""
        return {
            SCALAR: (0, 0), ROW: (1, 0), COLUMN: (0, 1), FULL: (self.nest.columns, 1),
        }[kind]  # fmt: skip

    def numbers(self, *, in_place: bool = False) -> dict[str, int]:
        """All that it takes beside contiguous arrays, by name.

        `in_place` says that what may be a product in place is one.
        """
        strides = [n for kind, _ in self.nest.inputs for n in self.strides(kind)]
        found = {
            "n_rows": self.nest.rows, "n_columns": self.nest.columns,
            "ROWS": self.launch.rows, "BLOCK": self.launch.block,
            "MULTIPLE": self._multiple(strides),
        }  # fmt: skip
        for i in range(len(self.nest.inputs)):
            found[f"down{i}"], found[f"along{i}"] = strides[2 * i : 2 * i + 2]
        return found | ({"IN_PLACE": in_place} if self.in_place else {})

    def start(
        self, arrays: Sequence[Any], strides: Sequence[int], processors: int
    ) -> None:
        """Run: inputs, constants, outputs and words, and the strides of what is read.

        The words have 64 bits, of any dtype, where there are some.
        """
        nest = self.nest
        options = {**self.options, "MULTIPLE": self._multiple(strides)}
        if self.in_place:
            n = len(nest.inputs)
            same = all(arrays[i] is arrays[n + k] for i, k in self.in_place)
            options["IN_PLACE"] = same
        self.function[(self.programs(processors),)](
            *arrays, *strides, nest.rows, nest.columns, **options
        )

    def _multiple(self, strides: Sequence[int]) -> int:
        """What divides the columns, and how far rows of whole arrays are apart.

        Of 16 Triton takes notice itself.
        """
        pairs = zip(strides[::2], self.nest.inputs, strict=True)
        downs = [down for down, (kind, _) in pairs if kind == FULL]
        found = gcd(16, self.nest.columns, *downs)
        return found if found < 16 else 1
