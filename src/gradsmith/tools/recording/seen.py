"""The inputs of a call, as they are remembered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ...core import trees
from .place import is_plain


class Seen:
    """An array among the inputs; no dataclass, since these are taken apart as trees.

    An axis whose length is not known is None. `copy` gives the values, if there are
    any: a compiler traces with arrays that have none. `asked` says whether a gradient
    was asked for; it is None if that is not known.
    """

    def __init__(
        self,
        shape: tuple[int | None, ...],
        dtype: str,
        copy: Callable[[], Any] | None = None,
        asked: bool | None = None,
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.copy = copy
        self.asked = asked
        self.value: Any = None

    @property
    def has_values(self) -> bool:
        return self.copy is not None or self.value is not None

    def keep(self) -> None:
        """Copy the values, since the suite may change them, and let go of its array."""
        if self.copy is not None:
            self.value, self.copy = self.copy(), None

    @property
    def size(self) -> int:
        n = 1
        for length in self.shape:
            n *= 1 if length is None else length
        return n

    def __str__(self) -> str:
        axes = ",".join("?" if n is None else str(n) for n in self.shape)
        return f"{self.dtype}[{axes}]"


class Constant:
    """A static argument that a compiler knows only in its own wrapping."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return repr(self.value)


class Decorated:
    """A function that is to be decorated again when it is checked."""

    def __init__(self, decorator: Callable[[Any], Any], body: Any) -> None:
        self.decorator = decorator
        self.body = body

    def operation(self) -> Any:
        return self.decorator(self.body)


# What is seen of an argument: nothing, if it is static
Read = Callable[[Any], Seen | Constant | None]


@dataclass
class Case:
    """Inputs of one signature, with arrays as `Seen`."""

    inputs: Any  # (args, kwargs)
    op: Any  # what was called with them

    @property
    def arrays(self) -> list[Seen]:
        return [x for x in trees.leaves(self.inputs) if isinstance(x, Seen)]

    @property
    def has_values(self) -> bool:
        return all(x.has_values for x in self.arrays)


def seen_of(x: Any, read: Read) -> Any:
    found = read(x)
    if isinstance(found, Constant):
        return found.value
    return x if found is None else found


def note_asked(asked: dict[str, bool], seen: Any) -> None:
    """Of which arguments tests want gradients; calls that want none say nothing."""
    named = [(path, x) for path, x in trees.leaves_with_names(seen) if type(x) is Seen]
    if any(x.asked for _, x in named):
        for path, x in named:
            asked[path] = asked.get(path, False) or x.asked is not False


def signature_of(seen: Any) -> Iterator[Any]:
    for name, x in trees.leaves_with_names(seen):
        if isinstance(x, Seen):
            yield name, str(x)
        else:
            yield name, repr(x) if is_plain(x) else type(x).__qualname__
