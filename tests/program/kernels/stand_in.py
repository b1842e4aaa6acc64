"""A stand-in for Triton, on NumPy: it runs the source of a kernel, tile by tile.

Programs that wait for each other run in threads, at the same time.
"""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import reduce
from inspect import signature
from types import ModuleType

import numpy as np
import scipy.special


class Tile(np.ndarray):
    def to(self, dtype, bitcast=False):
        x = np.asarray(self)
        return (x.view(dtype) if bitcast else x.astype(dtype)).view(Tile)


def tile(x):
    return np.asarray(x).view(Tile)


class Pointer:
    """Memory and where in it: the places of a tile."""

    def __init__(self, memory, places=0):
        self.memory, self.places = memory, places

    def __add__(self, places):
        return Pointer(self.memory, self.places + places)

    def to(self, dtype, bitcast):
        assert bitcast
        return Pointer(self.memory.view(dtype), self.places)


class Language(ModuleType):
    constexpr = int
    int1, int8, int16, int32, int64 = "?", "i1", "i2", "i4", "i8"
    uint8, uint32 = "u1", "u4"
    float16, float32, float64 = map(np.dtype, ("f2", "f4", "f8"))
    bfloat16 = "no such dtype"
    PropagateNan = type("PropagateNan", (), {"ALL": None})
    programs = 0
    running = threading.local()

    def program_id(self, axis):
        assert axis == 0
        return tile(np.int32(self.running.program))

    def pointer_type(self, dtype):
        return dtype

    def num_programs(self, axis):
        assert axis == 0
        return tile(np.int32(self.programs))

    def range(self, *ends):
        return (tile(np.int32(i)) for i in range(*map(int, ends)))

    def where(self, condition, x, y):
        are_literal = isinstance(x, float) and isinstance(y, float)
        z = np.where(condition, x, y)
        return tile(z.astype("f4") if are_literal else z)

    def reshape(self, x, shape):
        return tile(np.reshape(x, shape))

    def load(self, pointer, mask=None, other=None, eviction_policy="", volatile=False):
        places = np.asarray(pointer.places)
        if mask is None:
            return tile(pointer.memory[places])
        places, mask = np.broadcast_arrays(places, mask)
        inside = pointer.memory[np.where(mask, places, 0)]
        return tile(np.where(mask, inside, np.asarray(other, inside.dtype)))

    def store(self, pointer, value, mask=True, eviction_policy=""):
        places, value, mask = np.broadcast_arrays(pointer.places, value, mask)
        assert value.dtype == pointer.memory.dtype
        pointer.memory[places[mask]] = value[mask]

    def atomic_xchg(self, pointer, value, sem):
        self.store(pointer, value)

    def debug_barrier(self):
        pass

    def reduce(self, x, axis, fn, keep_dims=False):
        if isinstance(x, tuple):
            assert fn.__name__ == "add_both"
            return tuple(self.sum(each, axis, keep_dims) for each in x)
        y = reduce(fn, np.moveaxis(np.asarray(x), axis, 0))
        return tile(np.expand_dims(y, axis) if keep_dims else y)

    def inline_asm_elementwise(self, text, names, args, *, dtype, is_pure, pack):
        x, *more = map(np.asarray, args)
        if "nanosleep" in text:
            time.sleep(1e-5)
        if "and.b32" in text and more:  # what is kept in some rows
            return tile(np.where(more[0], x, 0).astype(dtype))
        if "sat" in text:  # what is held for the exponential
            y = np.exp(x, dtype=float)
            return tile((y * more[0] if more else y).astype(dtype))
        for name, fn in {"ex2": np.exp2, "lg2": np.log2, "rcp": np.reciprocal}.items():
            if name in text:
                return tile(fn(x))
        return tile(x.astype(dtype))


def _reduction(fn):
    return lambda self, x, axis=None, keep_dims=False: tile(
        fn(np.asarray(x), axis=axis, keepdims=keep_dims, **_same_dtype(fn, x))
    )


def _same_dtype(fn, x):
    return {"dtype": x.dtype} if fn is np.sum else {}


def _plain(fn):
    return lambda self, *args, **options: tile(fn(*args))


for _name, _fn in {
    "arange": lambda a, b: np.arange(a, b, dtype="i4"),
    "abs": np.abs, "maximum": np.maximum, "minimum": np.minimum, "sqrt": np.sqrt,
    "sqrt_rn": np.sqrt, "floor": np.floor, "ceil": np.ceil, "log": np.log,
    "fma": lambda a, b, c: np.float32(np.float64(a) * b + c), "full": np.full,
    "zeros": np.zeros, "cdiv": lambda a, b: -(-a // b),
    "broadcast_to": np.broadcast_to,
}.items():  # fmt: skip
    setattr(Language, _name, _plain(_fn))
for _name, _fn in {"sum": np.sum, "max": np.max, "min": np.min}.items():
    setattr(Language, _name, _reduction(_fn))


class Jitted:
    def __init__(self, fn):
        self.fn = fn
        self.__name__ = fn.__name__

    def __call__(self, *args, **options):
        return self.fn(*args, **options)

    def _run(self, program, given, options):
        LANGUAGE.running.program = program
        with np.errstate(all="ignore"):
            self.fn(*given, **options)

    def __getitem__(self, grid):
        def start(*args, num_warps, maxnreg=None, **options):
            arrays = [isinstance(x, np.ndarray) for x in args]
            assert arrays == sorted(arrays, reverse=True)
            given = [
                Pointer(x.reshape(-1)) if isinstance(x, np.ndarray) else x for x in args
            ]
            LANGUAGE.programs = grid[0]
            if "words" not in signature(self.fn).parameters:
                for program in range(grid[0]):
                    self._run(program, given, options)
                return
            with ThreadPoolExecutor(grid[0]) as pool:
                runs = [
                    pool.submit(self._run, program, given, options)
                    for program in range(grid[0])
                ]
            for each in runs:
                each.result()

        return start


LANGUAGE = Language("triton.language")


@contextmanager
def triton(monkeypatch):
    """Let `import triton` give the stand-in."""
    module, extra = ModuleType("triton"), ModuleType("triton.language.extra")
    module.jit, module.language = Jitted, LANGUAGE
    libdevice = ModuleType("triton.language.extra.libdevice")
    for name in ("exp", "expm1", "log", "log1p", "tanh", "trunc", "rint", "sin", "cos"):
        setattr(libdevice, name, _tiled(getattr(np, name)))
    for name in ("erf", "erfc"):
        setattr(libdevice, name, _tiled(getattr(scipy.special, name)))
    extra.libdevice = libdevice
    LANGUAGE.extra = extra
    names = {"triton": module, "triton.language": LANGUAGE}
    with monkeypatch.context() as patch, np.errstate(all="ignore"):
        for name, each in {**names, "triton.language.extra": extra}.items():
            patch.setitem(sys.modules, name, each)
        yield


def _tiled(fn):
    return lambda *args: tile(fn(*args))
