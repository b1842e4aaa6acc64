"""Trees: nested tuples, lists, dicts, named tuples and dataclasses of leaves.

Everything that is not one of these containers is a leaf, `None` included. Dicts keep
their order of insertion, so flattening is the order in which a reader sees the leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, NamedTuple

from ._errors import GradsmithError


class _Kind(NamedTuple):
    """How one container type is taken apart and put together again."""

    children: Callable[[Any], list[tuple[str, Any]]]
    rebuild: Callable[[Any, list[Any]], Any]


def _fields(node: Any) -> list[tuple[str, Any]]:
    from dataclasses import fields  # loaded already, if there is a dataclass

    return [(f".{field.name}", getattr(node, field.name)) for field in fields(node)]


def _rebuild_dataclass(node: Any, children: list[Any]) -> Any:
    # `dataclasses.replace` would run __post_init__ and refuse init=False fields.
    clone = object.__new__(type(node))
    for (path, _), child in zip(_fields(node), children, strict=True):
        object.__setattr__(clone, path[1:], child)
    return clone


_SEQUENCE = _Kind(
    lambda node: [(f"[{i}]", child) for i, child in enumerate(node)],
    lambda node, children: type(node)(children),
)
_NAMEDTUPLE = _Kind(
    lambda node: [(f".{f}", getattr(node, f)) for f in node._fields],
    lambda node, children: type(node)._make(children),
)


def _rebuild_dict(node: Any, children: list[Any]) -> Any:
    items = zip(node, children, strict=True)
    if type(node) is dict:
        return dict(items)
    clone = copy(node)  # a defaultdict keeps its default
    clone.update(items)
    return clone


_DICT = _Kind(
    lambda node: [(f"[{key!r}]", child) for key, child in node.items()], _rebuild_dict
)
_DATACLASS = _Kind(_fields, _rebuild_dataclass)


_kinds: dict[type, _Kind | None] = {}


def _kind(node: Any) -> _Kind | None:
    """How to take a node apart, or None for a leaf. Known by its type alone."""
    cls = type(node)
    try:
        return _kinds[cls]
    except KeyError:
        kind = _kinds[cls] = _kind_of_type(cls)
        return kind


def _kind_of_type(cls: type) -> _Kind | None:
    if issubclass(cls, (list, tuple)):
        return _NAMEDTUPLE if hasattr(cls, "_fields") else _SEQUENCE
    if issubclass(cls, dict):
        return _DICT
    return _DATACLASS if hasattr(cls, "__dataclass_fields__") else None


def leaves_with_names(tree: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each leaf with the expression that reaches it.

    >>> list(leaves_with_names({"aux": [1, 2]}, "loss"))
    [("loss['aux'][0]", 1), ("loss['aux'][1]", 2)]
    """
    kind = _kind(tree)
    if kind is None:
        yield name, tree
        return
    for path, child in kind.children(tree):
        yield from leaves_with_names(child, name + path)


def leaves(tree: Any) -> list[Any]:
    """Return the leaves of a tree, in reading order.

    >>> leaves((1, [2, {"a": 3}]))
    [1, 2, 3]
    """
    kind = _kind(tree)
    if kind is None:
        return [tree]
    return [leaf for _, child in kind.children(tree) for leaf in leaves(child)]


def map(fn: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Apply `fn` to the leaves of trees of one structure.

    >>> map(lambda a, b: a + b, {"x": 1, "y": (2,)}, {"x": 10, "y": (20,)})
    {'x': 11, 'y': (22,)}
    """
    kind = _kind(tree)
    if kind is None:
        return fn(tree, *others)
    children = [child for _, child in kind.children(tree)]
    columns = [_matching_children(other, tree, kind) for other in others]
    mapped = [map(fn, *row) for row in zip(children, *columns, strict=True)]
    return kind.rebuild(tree, mapped)


def unflatten(like: Any, flat: list[Any]) -> Any:
    """Put leaves back into the structure of `like`.

    >>> unflatten({"a": 0, "b": [0, 0]}, [1, 2, 3])
    {'a': 1, 'b': [2, 3]}
    """
    remaining = iter(flat)
    return map(lambda _: next(remaining), like)


def _matching_children(other: Any, tree: Any, kind: _Kind) -> list[Any]:
    if _kind(other) is kind:
        children = dict(kind.children(other))
        paths = [path for path, _ in kind.children(tree)]
        if len(children) == len(paths) and all(path in children for path in paths):
            return [children[path] for path in paths]
    raise GradsmithError(
        f"two trees should have one structure: {_shape(tree)} and {_shape(other)}"
    )


def _shape(tree: Any) -> str:
    text = repr(map(lambda leaf: _Leaf(), tree))
    return text if len(text) < 80 else f"a tree of {len(leaves(tree))} leaves"


class _Leaf:
    def __repr__(self) -> str:
        return "*"


def is_leaf(node: Any) -> bool:
    """Whether a node is no container."""
    return _kind(node) is None


def children(node: Any) -> list[tuple[str, Any]] | None:
    """The children of a container, each with the step that reaches it; None for a leaf.

    >>> children({"w": 1, "b": 2})
    [("['w']", 1), ("['b']", 2)]
    """
    kind = _kind(node)
    return None if kind is None else kind.children(node)
