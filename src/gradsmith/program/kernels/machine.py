"""The processor of this machine, and code compiled for it by LLVM."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import count
from typing import Any

from ...core.errors import GradsmithError


@dataclass(frozen=True)
class Machine:
    """What code is written for.

    The bytes of a register, and whether it has FMA and multiplies by powers of 2.
    """

    name: str
    features: str
    bytes: int
    fma: bool
    scales: bool


_lock = threading.Lock()  # LLVM's compiler is used by one thread at a time
_numbers = count()  # of functions: their names differ


def _llvm() -> Any:
    try:
        return import_module("llvmlite.binding")
    except ImportError as error:
        raise GradsmithError(
            "kernels are compiled by LLVM, and llvmlite is not installed\n"
            '  what to do: pip install "gradsmith[kernels]"'
        ) from error


@cache
def this_machine() -> Machine:
    llvm = _llvm()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    arm = llvm.get_default_triple().startswith(("aarch64", "arm64"))
    size = 64 if features.get("avx512f") else 32 if features.get("avx2") else 16
    fma = arm or bool(features.get("fma"))
    name = llvm.get_host_cpu_name()
    return Machine(name, features.flatten(), size, fma, scales=size == 64)


def compiled(
    assembly: str,
    machine: Machine,
    name: str = "kernel",
    symbols: Mapping[str, int] | None = None,
) -> int:
    """The address of a function of the code, which may call what `symbols` name.

    Its code stays in memory: 26 kB for a kernel of 30 steps, and what LLVM loses while
    it optimizes, 0.27 MB. An engine for each would keep 1.2 MB.
    """
    llvm = _llvm()
    with _lock:
        for symbol, address in (symbols or {}).items():
            llvm.add_symbol(symbol, address)
        module = llvm.parse_assembly(assembly)
        module.verify()
        target, engine = _target(machine), _engine(machine)
        options = llvm.create_pipeline_tuning_options(speed_level=2)
        builder = llvm.create_pass_builder(target, options)
        builder.getModulePassManager().run(module, builder)
        unique = f"{name}_{next(_numbers)}"
        for function in module.functions:  # of all modules, one symbol has a name
            if function.name == name:
                function.name = unique
            elif not function.is_declaration:
                function.linkage = "internal"
        code = target.emit_object(module)
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        return engine.get_function_address(unique)


@cache
def _engine(machine: Machine) -> Any:
    """What owns the code of all functions; it has a target to itself."""
    llvm = _llvm()
    target = _target.__wrapped__(machine)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)


@cache
def _target(machine: Machine) -> Any:
    llvm = _llvm()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=machine.name, features=machine.features, opt=3
    )


def function_at(address: int, pointers: int) -> Any:
    """The kernel as a Python function; others run while it does."""
    argtypes = [ctypes.c_void_p] * pointers + [ctypes.c_int64] * 3
    return ctypes.CFUNCTYPE(ctypes.c_int32, *argtypes)(address)
