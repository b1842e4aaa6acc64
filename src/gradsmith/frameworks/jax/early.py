"""Containers that their classes have registered with JAX, as trees of ours."""

from __future__ import annotations

import sys
from typing import Any

from ...core import trees


def _registered(node: Any) -> trees.Kind | None:
    """How to take a container apart that its class registered with JAX."""
    theirs = getattr(sys.modules.get("jax"), "tree_util", None)
    if theirs is None or node is None or theirs.all_leaves([node]):
        return None

    def children(node: Any) -> Any:
        return theirs.tree_flatten_with_path(node, is_leaf=lambda x: x is not node)

    return trees.Kind(
        keys=lambda node: [theirs.keystr(path) for path, _ in children(node)[0]],
        values=lambda node: [child for _, child in children(node)[0]],
        step=str,
        rebuild=lambda node, new: theirs.tree_unflatten(children(node)[1], new),
    )


trees.FOREIGN.append(_registered)
