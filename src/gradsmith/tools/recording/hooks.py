"""Putting a function of ours around one of a framework's, and taking it away again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from ...core.import_hooks import once_imported
from .recorder import Recorder

# The module that must be there, and ours, which hooks into it
_MODULES = (
    ("gradsmith.operations.operation", "ours"),
    ("gradsmith.tools.check", "ours_checked"),
    ("gradsmith.tools.survival", "ours_checked"),
    ("torch", "torch"),
    ("torch._dynamo", "dynamo"),
    ("jax", "jax"),
    ("tensorflow", "tensorflow"),
)


class Hooks:
    """All that was replaced, in order."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._before: list[tuple[Any, str, Any]] = []

    def install(self) -> None:
        """Hook into each framework, now or when somebody imports it."""
        for name, ours in _MODULES:
            once_imported(name, partial(self._install, ours))

    def _install(self, ours: str, module: Any) -> None:
        if self.recorder.active:
            with self.recorder.guarded(f"hooking into {module.__name__}"):
                import_module(f"{__package__}.{ours}").install(self, module)

    def replace(self, owner: Any, name: str, around: Callable[[Any], Any]) -> None:
        """Put what `around` makes of an attribute in its place."""
        original = vars(owner)[name]
        setattr(owner, name, around(original))
        self._before.append((owner, name, original))

    def remove(self) -> None:
        """Leave everything as it was."""
        self.recorder.active = False
        while self._before:
            setattr(*self._before.pop())
