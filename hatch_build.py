"""Compiles the engine's hot path, where it is asked for.

    GRADSMITH_COMPILE=1 pip install .

makes a wheel for this Python and this platform: Cython compiles the modules that
pyproject.toml names, as they are, with the C types of the .pxd files beside them.
Without the variable, and for an editable install, the wheel is Python alone, and does
the same in more time.
"""

from __future__ import annotations

import os
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

DIRECTIVES = {
    "language_level": 3,
    # Annotations mean what they do in Python. C types are in .pxd files.
    "annotation_typing": False,
    "binding": True,
    "nonecheck": True,  # None is an AttributeError, not a crash
    "auto_pickle": False,
}
# Half of the time of -O3 for the same speed, and no tables for a debugger
FLAGS = () if os.name == "nt" else ("-O2", "-g0", "-w")


class CompiledModules(BuildHookInterface):
    @property
    def is_wanted(self) -> bool:
        return os.environ.get("GRADSMITH_COMPILE", "") not in ("", "0")

    def dependencies(self) -> list[str]:
        return ["cython>=3.1", "setuptools>=77"] if self.is_wanted else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or not self.is_wanted:
            return
        self.folder = TemporaryDirectory()  # which is gone when the wheel is made
        folder = Path(self.folder.name)
        compile_modules(Path(self.root, "src"), self.config["modules"], folder)
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        for path in folder.joinpath("lib").rglob("*.*"):
            name = path.relative_to(folder / "lib").as_posix()
            build_data["force_include"][str(path)] = name


def compile_modules(sources: Path, modules: list[str], folder: Path) -> None:
    """Extension modules under `folder/lib`, in the folders of their packages."""
    from Cython.Build import cythonize
    from Cython.Compiler.Options import get_directive_defaults
    from setuptools import Distribution, Extension

    extensions = [
        Extension(name, [f"{name.replace('.', '/')}.py"], extra_compile_args=[*FLAGS])
        for name in modules
    ]
    # A chain of a million nodes is freed one by one, as Python does it: recursion would
    # overflow the stack. Cython has no other way to say it of a class in a .py file.
    get_directive_defaults()["trashcan"] = True
    with chdir(sources):  # tracebacks name the files as they are given here
        found = cythonize(
            extensions,
            build_dir=str(folder / "c"),
            compiler_directives=DIRECTIVES,
            quiet=True,
        )
        command: Any = Distribution({"ext_modules": found}).get_command_obj("build_ext")
        command.build_lib = str(folder / "lib")
        command.build_temp = str(folder / "o")
        command.parallel = os.cpu_count() or 1
        command.ensure_finalized()
        command.run()
