"""A kernel as a builtin function of Python: 0.4 us less for each call than by ctypes.

It is code by LLVM with the signature of METH_FASTCALL, and uses of Python what is in
its stable ABI. It takes addresses, of inputs and then of outputs, and returns whether a
place to read from was out of bounds. Some of the arrays may lie in one bytearray, which
is given at the end: that takes 0.6 us less to make than a framework's array.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

_FASTCALL = 0x80
_USED = (
    "PyBool_FromLong",
    "PyByteArray_AsString",
    "PyEval_RestoreThread",
    "PyEval_SaveThread",
    "PyLong_AsVoidPtr",
)


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_definitions: list[_MethodDef] = []  # a function has the address of its own


def symbols() -> dict[str, int]:
    """The functions of Python that the code calls, and their addresses."""
    found = {name: getattr(ctypes.pythonapi, name) for name in _USED}
    return {
        name: ctypes.cast(fn, ctypes.c_void_p).value or 0 for name, fn in found.items()
    }


def function_at(address: int) -> Any:
    """The Python function whose code is there."""
    definition = _MethodDef(b"kernel", address, _FASTCALL, None)
    _definitions.append(definition)
    make = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
    )(("PyCFunction_NewEx", ctypes.pythonapi))
    return make(ctypes.addressof(definition), None, None)


def caller(
    arrays: tuple[int, int],
    constants: list[int],
    *,
    kept: int,
    count: int,
    columns: int,
    others_run: bool,
    block: Mapping[int, int],
) -> str:
    """The function `call`, for a module that has `kernel` (emit.py).

    `arrays` are the numbers of inputs and outputs, `constants` addresses, `kept` the
    bytes of memory for a row, `count` the rows. `block` is where in the bytearray an
    array starts, by its number. Other threads may run meanwhile, or not: to let them
    takes 0.04 us, and more where one of them is waiting.
    """
    inputs, outputs = arrays
    addresses = [k for k in range(inputs + outputs) if k not in block]
    given = [
        f"  %at{k} = getelementptr ptr, ptr %args, i64 {place}\n"
        f"  %object{k} = load ptr, ptr %at{k}\n"
        f"  %p{k} = call ptr @PyLong_AsVoidPtr(ptr %object{k})"
        for place, k in enumerate(addresses)
    ]
    if block:
        given.append(
            f"  %last = getelementptr ptr, ptr %args, i64 {len(addresses)}\n"
            f"  %bytes = load ptr, ptr %last\n"
            f"  %block = call ptr @PyByteArray_AsString(ptr %bytes)"
        )
    given += [
        f"  %p{k} = getelementptr i8, ptr %block, i64 {start}"
        for k, start in block.items()
    ]
    pointers = [f"ptr %p{k}" for k in range(inputs)]
    pointers += [f"ptr inttoptr (i64 {c} to ptr)" for c in constants]
    pointers += [f"ptr %p{k}" for k in range(inputs, inputs + outputs)]
    is_short = kept <= _ON_STACK
    return _TEXT.format(
        given="\n".join(given),
        pointers=", ".join(pointers),
        kept=f"alloca i8, i64 {max(kept, 1)}, align 64"
        if is_short
        else f"call ptr @malloc(i64 {kept})",
        free="" if is_short else "  call void @free(ptr %kept)",
        leave="  %thread = call ptr @PyEval_SaveThread()" if others_run else "",
        enter="  call void @PyEval_RestoreThread(ptr %thread)" if others_run else "",
        count=count,
        columns=columns,
    )


_ON_STACK = 1 << 15  # bytes
# Where an array of NumPy's has the address of its memory: the first field after what
# every object has, where the macros of NumPy's C interface read it
_DATA = object.__basicsize__


@cache
def knows_arrays() -> bool:
    """Whether the address of an array's memory is where it is expected."""
    x = np.empty(3)
    return ctypes.c_void_p.from_address(id(x) + _DATA).value == x.ctypes.data


def caller_of_arrays(
    arrays: tuple[int, int],
    constants: list[int],
    *,
    kept: bool,
    count: int,
    columns: int,
    others_run: bool,
) -> str:
    """`caller` for a function of NumPy's arrays, and of one as memory for a row.

    To ask an array for its address takes Python 0.6 us, and NumPy's own way nothing.
    """
    inputs, outputs = arrays
    given = [
        f"  %at{k} = getelementptr ptr, ptr %args, i64 {k}\n"
        f"  %object{k} = load ptr, ptr %at{k}\n"
        f"  %field{k} = getelementptr i8, ptr %object{k}, i64 {_DATA}\n"
        f"  %p{k} = load ptr, ptr %field{k}"
        for k in range(inputs + outputs + kept)
    ]
    pointers = [f"ptr %p{k}" for k in range(inputs)]
    pointers += [f"ptr inttoptr (i64 {c} to ptr)" for c in constants]
    pointers += [f"ptr %p{k}" for k in range(inputs, inputs + outputs)]
    memory = f"getelementptr i8, ptr %p{inputs + outputs}, i64 0"
    return _TEXT.format(
        given="\n".join(given),
        pointers=", ".join(pointers),
        kept=memory if kept else "alloca i8, i64 1, align 64",
        free="",
        leave="  %thread = call ptr @PyEval_SaveThread()" if others_run else "",
        enter="  call void @PyEval_RestoreThread(ptr %thread)" if others_run else "",
        count=count,
        columns=columns,
    )


_TEXT = """
declare ptr @malloc(i64)
declare void @free(ptr)
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyByteArray_AsString(ptr)
declare ptr @PyBool_FromLong(i64)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)

define ptr @call(ptr %self, ptr %args, i64 %n) {{
{given}
{leave}
  %kept = {kept}
  %bad = call i32 @kernel({pointers}, ptr %kept, i64 0, i64 {count}, i64 {columns})
{free}
{enter}
  %wide = zext i32 %bad to i64
  %answer = call ptr @PyBool_FromLong(i64 %wide)
  ret ptr %answer
}}
"""
