"""Do something once a module is imported, by whomever, without importing it here."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

Then = Callable[[ModuleType], Any]
_loaded: set[str] = set()  # whose code has run, though their import may not be over


def once_imported(name: str, then: Then) -> None:
    """Call `then(module)`: now, if the module is there, else after it was loaded.

    >>> once_imported("sys", lambda module: print(module.__name__))
    sys
    """
    module = sys.modules.get(name)
    if module is not None and (name in _loaded or not _is_loading(module)):
        then(module)
        return
    finder = next((f for f in sys.meta_path if isinstance(f, _Finder)), None)
    if finder is None:
        finder = _Finder()
        sys.meta_path.insert(0, finder)
    finder.waiting.setdefault(name, []).append(then)


def _is_loading(module: ModuleType) -> bool:
    return getattr(module.__spec__, "_initializing", False)


class _Finder:
    """Finds modules like everybody else, and tells those who wait for them."""

    def __init__(self) -> None:
        self.waiting: dict[str, list[Then]] = {}
        self.asking: set[str] = set()  # for which the other finders are asked now

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in self.waiting or name in self.asking:
            return None
        self.asking.add(name)
        try:
            spec = find_spec(name)
        finally:
            self.asking.discard(name)
        if spec is not None:
            self._tell_after_loading(spec)
        return spec

    def _tell_after_loading(self, spec: ModuleSpec) -> None:
        loader: Any = spec.loader
        load = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            _loaded.add(module.__name__)
            # Not before: many a spec is looked for and never loaded.
            for then in self.waiting.pop(module.__name__, ()):
                then(module)

        loader.exec_module = exec_module
