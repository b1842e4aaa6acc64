"""The cases of all families: each module of this package has a list `CASES`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

FAMILIES = sorted(
    path.stem for path in Path(__file__).parent.glob("*.py") if path.stem != "__init__"
)
ALL = [
    case for family in FAMILIES for case in import_module(f"{__name__}.{family}").CASES
]
