"""A kernel: a program compiled to one loop nest.

It runs on memory: whoever calls it gives addresses of contiguous arrays. A call with
NumPy's arrays does that for them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from typing import Any

import numpy as np

from ...core.errors import GradsmithError
from ..fusion import Nest, nest_of
from ..graph import Program, replaced
from . import builtin
from .emit import assembly
from .listing import listing
from .machine import compiled, function_at, this_machine
from .scratch import homes, kept_in, rows_near
from .triton_kernel import GpuKernel
from .xla import handler

# Elements that each of several threads must have: starting one takes 30 us.
SHARE = 1 << 16
# Elements from which on other threads of Python run meanwhile: some 10 us
SHORT = 1 << 14


class Kernel:
    """A program as one loop nest, compiled when it first runs.

    `storage` are the dtypes of inputs and outputs in memory, where they are not those
    of the program: half precision is computed in float32. `repeated` is as in
    `fusion.nest_of`, `in_place` as in `emit.assembly`. A `nest` is the program's, if it
    is known.
    """

    def __init__(
        self,
        program: Program,
        storage: tuple[str, ...] | None = None,
        repeated: dict[int, str] | None = None,
        in_place: Sequence[tuple[int, int]] = (),
        nest: Nest | None = None,
    ) -> None:
        self.program, self.in_place = program, in_place
        self.nest = nest = nest or nest_of(program, repeated)
        own = [dtype.name for _, dtype in nest.inputs]
        own += [y.dtype.name for y in program.results]
        if storage is not None:
            n = len(program.inputs)
            own[:n] = storage[:n]
            own[len(nest.inputs) :] = storage[n:]
        self.storage = own
        self.count = nest.columns if nest.flat else nest.rows
        self.size = nest.rows * nest.columns
        elsewhere = {} if in_place else homes(nest, own)
        self.kept = len(kept_in(nest)) - len(elsewhere) + rows_near(nest)
        self.constants = [x.ctypes.data for x in nest.constants]
        self.parts = self.size // SHARE  # for as many threads, if it has as many rows
        self.is_small = self.parts < 2  # for one thread

    def __str__(self) -> str:
        return listing(self.nest, self.storage)

    @cached_property
    def source(self) -> str:
        """Its code, as LLVM's assembly."""
        return assembly(self.nest, self.storage, this_machine(), self.in_place)

    @cached_property
    def function(self) -> Any:
        """The compiled code; the same for all kernels with the same source."""
        digest = _digest(self.source)
        found = _functions.get(digest)
        if found is None:
            address = compiled(self.source, this_machine())
            found = function_at(address, len(self.storage) + 1)
            _functions[digest] = found
        return found

    @cached_property
    def launch(self) -> Any:
        """The kernel as a builtin function of addresses, which runs in this thread.

        It returns whether a place to read from was out of bounds.
        """
        return self.launcher({})

    def launcher(self, block: Mapping[int, int]) -> Any:
        """The same, with some of the arrays in a bytearray: where each starts."""
        inputs = len(self.nest.inputs) - len(self.constants)
        code = self.source + builtin.caller(
            (inputs, len(self.nest.outputs)),
            self.constants,
            kept=8 * self.kept * self.nest.columns,
            count=self.count,
            columns=self.nest.columns,
            others_run=self.size >= SHORT,
            block=block,
        )
        return _builtin(code)

    @cached_property
    def launch_arrays(self) -> Any:
        """The same as a function of NumPy's arrays, contiguous and of its dtypes.

        The last one is memory for `kept` numbers of each column, if it needs any.
        """
        inputs = len(self.nest.inputs) - len(self.constants)
        outputs = len(self.program.results)
        if not builtin.knows_arrays():
            n = inputs + outputs
            return lambda *arrays: self._by_addresses(*arrays[:n])
        code = self.source + builtin.caller_of_arrays(
            (inputs, outputs),
            self.constants,
            kept=self.kept > 0,
            count=self.count,
            columns=self.nest.columns,
            others_run=self.size >= SHORT,
        )
        return _builtin(code)

    def _by_addresses(self, *arrays: np.ndarray) -> None:
        inputs = len(arrays) - len(self.program.results)
        addresses = [x.ctypes.data for x in arrays]
        self.run(addresses[:inputs], addresses[inputs:])

    @cached_property
    def for_xla(self) -> tuple[str, int]:
        """The name and the address of what XLA calls; the memory is never given back.

        The name says what it computes, in every process: compiled programs that are
        kept on disk contain it.
        """
        columns, outputs = self.nest.columns, len(self.nest.outputs)
        arrays = len(self.storage) - outputs - len(self.constants), outputs
        numbers = {
            "kept": 8 * self.kept * columns,
            "count": self.count,
            "columns": columns,
            "parts": max(1, min(self.count, self.parts)),
        }
        content = sha256(f"{self.source}{numbers}".encode())
        for x in self.nest.constants:
            content.update(x.tobytes())
        name = f"gradsmith_{content.hexdigest()[:32]}"
        if name not in _handlers:
            code = self.source + handler(arrays, self.constants, **numbers)
            _handlers[name] = compiled(code, this_machine(), "handler"), self
        return name, _handlers[name][0]

    @cached_property
    def on_gpu(self) -> GpuKernel:
        """The same nest for a GPU."""
        return GpuKernel(self.nest, self.storage, self.in_place)

    def __call__(self, *arrays: np.ndarray, threads: int = 1) -> Any:
        """Run on NumPy's arrays of the program's shapes and dtypes."""
        given = [
            np.ascontiguousarray(x, v.dtype)
            for x, v in zip(arrays, self.program.inputs, strict=True)
        ]
        for x, v in zip(given, self.program.inputs, strict=True):
            if x.size != v.size:
                raise GradsmithError(
                    f"the kernel of {self.program.name!r} is for an array of shape "
                    f"{v.shape}, and was given one of shape {x.shape}"
                )
        values = self.program.results
        outputs = [np.empty(v.shape, v.dtype) for v in values]
        self.run(
            [x.ctypes.data for x in given], [y.ctypes.data for y in outputs], threads
        )
        return replaced(self.program.outputs, dict(zip(values, outputs, strict=True)))

    def run(self, inputs: list[int], outputs: list[int], threads: int = 1) -> None:
        """Compute, from memory at some addresses to that at others."""
        given = (*inputs, *self.constants, *outputs)
        threads = min(threads, self.parts, self.count)
        if threads < 2:
            self._part(given, 0, self.count)
            return
        cuts = [self.count * i // threads for i in range(threads + 1)]
        (first, *rest) = pairwise(cuts)
        others = [_pool().submit(self._part, given, *cut) for cut in rest]
        self._part(given, *first)
        for each in others:
            each.result()

    def run_small(self, addresses: list[int]) -> None:
        """The same, in this thread; 1 us less."""
        if self.launch(*addresses):
            raise self.out_of_bounds()

    def _part(self, given: tuple[int, ...], start: int, stop: int) -> None:
        columns = self.nest.columns
        kept = _memory(self.kept * columns) if self.kept else 0
        if self.function(*given, kept, start, stop, columns):
            raise self.out_of_bounds()

    def out_of_bounds(self) -> IndexError:
        return IndexError(
            f"{self.program.name}: a place along the last axis is out of bounds, which "
            f"has {self.nest.columns} elements"
        )


def _builtin(code: str) -> Any:
    digest = _digest(code)
    found = _functions.get(digest)
    if found is None:
        address = compiled(code, this_machine(), "call", builtin.symbols())
        found = _functions[digest] = builtin.function_at(address)
    return found


_thread = threading.local()


def _memory(n: int) -> int:
    """The address of n numbers of this thread, which the next kernel writes over."""
    have = getattr(_thread, "kept", None)
    if have is None or have[0].size < n:
        array = np.empty(n)
        have = _thread.kept = array, array.ctypes.data
    return have[1]


def _digest(code: str) -> bytes:
    return sha256(code.encode()).digest()


_functions: dict[bytes, Any] = {}  # by the digest of their source
_handlers: dict[str, tuple[int, Kernel]] = {}  # and the owner of constants, by name
_pools: dict[int, ThreadPoolExecutor] = {}


def _pool() -> ThreadPoolExecutor:
    """The threads of this process: a fork has none of its parent's."""
    pool = _pools.get(os.getpid())
    if pool is None:
        _pools.clear()
        pool = ThreadPoolExecutor(os.cpu_count() or 1, "gradsmith-kernel")
        _pools[os.getpid()] = pool
    return pool
