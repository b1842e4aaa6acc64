"""The corpus: one module for each framework, loaded without importing any package."""

from __future__ import annotations

from importlib import import_module

from benchmarks.wild.case import Case

FRAMEWORKS = ("torch", "tensorflow", "jax")


def corpus(framework: str | None = None, only: str = "") -> list[Case]:
    """The cases of a framework, or of all, whose names contain `only`."""
    names = FRAMEWORKS if framework is None else (framework,)
    modules = [import_module(f"benchmarks.wild.cases.{name}_cases") for name in names]
    found = [case for module in modules for case in module.CASES]
    return [case for case in found if only in case.name]
