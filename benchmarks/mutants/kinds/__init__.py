"""The kinds of wrong gradients, one file for what each is about."""

from __future__ import annotations

from ..kind import Kind
from . import formulas, memory, regions, results, structure, upstream

KINDS: dict[str, Kind] = {
    kind.name: kind
    for module in (results, upstream, structure, formulas, regions, memory)
    for kind in module.KINDS
}
