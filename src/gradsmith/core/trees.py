"""Trees: nested tuples, lists, dicts, named tuples and dataclasses of leaves.

Everything that is not one of these containers is a leaf, `None` included. Dicts keep
their order of insertion, so flattening is the order in which a reader sees the leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from .caches import remember
from .errors import GradsmithError


class Kind(NamedTuple):
    """How one container type is taken apart and put together again."""

    keys: Callable[[Any], Sequence[Any]]
    values: Callable[[Any], list[Any]]
    step: Callable[[Any], str]  # the expression that reaches a child by its key
    rebuild: Callable[[Any, list[Any]], Any]


def _rebuild_dict(node: Any, children: list[Any]) -> Any:
    items = zip(node, children, strict=True)
    if type(node) is dict:
        return dict(items)
    from copy import copy

    clone = copy(node)  # a defaultdict keeps its default
    clone.update(items)
    return clone


def _fields(node: Any) -> list[str]:
    from dataclasses import fields  # loaded already, if there is a dataclass

    return [field.name for field in fields(node)]


def _rebuild_dataclass(node: Any, children: list[Any]) -> Any:
    # `dataclasses.replace` would run __post_init__ and refuse init=False fields.
    clone = object.__new__(type(node))
    for name, child in zip(_fields(node), children, strict=True):
        object.__setattr__(clone, name, child)
    return clone


_SEQUENCE = Kind(
    keys=lambda node: range(len(node)),
    values=list,
    step="[{}]".format,
    rebuild=lambda node, children: type(node)(children),
)
_NAMEDTUPLE = Kind(
    keys=lambda node: node._fields,
    values=list,
    step=".{}".format,
    rebuild=lambda node, children: type(node)._make(children),
)
_DICT = Kind(
    keys=list,
    values=lambda node: list(node.values()),
    step="[{!r}]".format,
    rebuild=_rebuild_dict,
)
_DATACLASS = Kind(
    keys=_fields,
    values=lambda node: [getattr(node, name) for name in _fields(node)],
    step=".{}".format,
    rebuild=_rebuild_dataclass,
)


# Who knows further containers. Each is asked once for a type, with a node of it.
FOREIGN: list[Callable[[Any], Kind | None]] = []
_kinds: dict[type, Kind | None] = {}


def kind_of(node: Any) -> Kind | None:
    """How to take a node apart, or None for a leaf. Known by its type alone."""
    cls = type(node)
    try:
        return _kinds[cls]
    except KeyError:
        return remember(_kinds, cls, kind_of_type(cls) or _foreign_kind(node))


def kind_of_type(cls: type) -> Kind | None:
    if issubclass(cls, (list, tuple)):
        return _NAMEDTUPLE if hasattr(cls, "_fields") else _SEQUENCE
    if issubclass(cls, dict):
        return _DICT
    return _DATACLASS if hasattr(cls, "__dataclass_fields__") else None


def _foreign_kind(node: Any) -> Kind | None:
    return next((kind for find in FOREIGN if (kind := find(node))), None)


def leaves_with_names(tree: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each leaf with the expression that reaches it.

    >>> list(leaves_with_names({"aux": [1, 2]}, "loss"))
    [("loss['aux'][0]", 1), ("loss['aux'][1]", 2)]
    """
    kind = kind_of(tree)
    if kind is None:
        yield name, tree
        return
    for key, child in zip(kind.keys(tree), kind.values(tree), strict=True):
        yield from leaves_with_names(child, name + kind.step(key))


def leaves(tree: Any) -> list[Any]:
    """Return the leaves of a tree, in reading order.

    >>> leaves((1, [2, {"a": 3}]))
    [1, 2, 3]
    """
    kind = kind_of(tree)
    if kind is None:
        return [tree]
    return [leaf for child in kind.values(tree) for leaf in leaves(child)]


def map(fn: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Apply `fn` to the leaves of trees of one structure.

    >>> map(lambda a, b: a + b, {"x": 1, "y": (2,)}, {"x": 10, "y": (20,)})
    {'x': 11, 'y': (22,)}
    """
    kind = kind_of(tree)
    if kind is None:
        return fn(tree, *others)
    if not others:
        return kind.rebuild(tree, [map(fn, child) for child in kind.values(tree)])
    columns = [_matching_children(other, tree, kind) for other in (tree, *others)]
    return kind.rebuild(tree, [map(fn, *row) for row in zip(*columns, strict=True)])


def unflatten(like: Any, flat: list[Any]) -> Any:
    """Put leaves back into the structure of `like`.

    >>> unflatten({"a": 0, "b": [0, 0]}, [1, 2, 3])
    {'a': 1, 'b': [2, 3]}
    """
    remaining = iter(flat)
    return map(lambda _: next(remaining), like)


def _matching_children(other: Any, tree: Any, kind: Kind) -> list[Any]:
    if kind_of(other) is kind:
        wanted, given = kind.keys(tree), kind.keys(other)
        if wanted == given:
            return kind.values(other)
        children = dict(zip(given, kind.values(other), strict=True))
        if len(wanted) == len(given) and all(key in children for key in wanted):
            return [children[key] for key in wanted]
    raise GradsmithError(
        f"two trees should have one structure: {shape_of(tree)} and {shape_of(other)}"
    )


def shape_of(tree: Any) -> str:
    """A tree in words, without its leaves.

    >>> shape_of({"a": 1, "b": (2, 3)})
    "{'a': *, 'b': (*, *)}"
    """
    text = repr(map(lambda leaf: _Leaf(), tree))
    return text if len(text) < 80 else f"a tree of {len(leaves(tree))} leaves"


class _Leaf:
    def __repr__(self) -> str:
        return "*"


def is_leaf(node: Any) -> bool:
    """Whether a node is no container."""
    return kind_of(node) is None


def children(node: Any) -> list[tuple[str, Any]] | None:
    """The children of a container, each with the step that reaches it; None for a leaf.

    >>> children({"w": 1, "b": 2})
    [("['w']", 1), ("['b']", 2)]
    """
    kind = kind_of(node)
    if kind is None:
        return None
    steps = [kind.step(key) for key in kind.keys(node)]
    return list(zip(steps, kind.values(node), strict=True))
