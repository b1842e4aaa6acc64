"""Other attributes for an object of somebody else's, for a while."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any


@contextmanager
def patched(obj: Any, **attributes: Any) -> Any:
    """Give an object other attributes for a while, also if an exception ends it."""
    missing = object()
    before = {name: vars(obj).get(name, missing) for name in attributes}
    try:
        for name, value in attributes.items():
            setattr(obj, name, value)
        yield
    finally:
        for name, value in before.items():
            if value is missing:
                delattr(obj, name)
            else:
                setattr(obj, name, value)
