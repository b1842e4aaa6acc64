"""Calls of custom gradients, as a recorder is told of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol


class Seen:
    """An array among the inputs; no dataclass, since these are taken apart as trees.

    An axis whose length is not known is None. `copy` gives the values, if there are
    any: a compiler traces with arrays that have none. `differentiated` says whether its
    gradient is wanted; it is None if that is not known.
    """

    def __init__(
        self,
        shape: tuple[int | None, ...],
        dtype: str,
        copy: Callable[[], Any] | None = None,
        differentiated: bool | None = None,
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.copy = copy
        self.differentiated = differentiated
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


class Decorated:
    """A function that is to be decorated again when it is checked."""

    def __init__(self, decorator: Callable[[Any], Any], body: Any) -> None:
        self.decorator = decorator
        self.body = body

    def operation(self) -> Any:
        return self.decorator(self.body)


# What is seen of an argument: nothing, if it is static
Read = Callable[[Any], Seen | None]


class Recorder(Protocol):
    """Is told of every call of a custom gradient, before it runs."""

    # What the hook CALL calls: `see(operation, args, kwargs)`. It is a function, so
    # that a compiler that traces the call can leave it out.
    see: Callable[[Any, Any, Any], None]

    def record(
        self,
        framework: str,
        op: Any,
        name: str,
        definitions: tuple[Any, ...],
        inputs: Any,
        read: Read,
    ) -> None:
        """A call of one of a framework's own; it never raises.

        It is found in the source by `definitions`, the first that was written in
        Python. `op` is None if it can't be called after the test, and `inputs`, else
        `(args, kwargs)`, is None if only a compiler knows them.
        """
        ...

    def record_operation(
        self, operation: Any, inputs: Any, read: Read, framework: str
    ) -> None:
        """A call of one of ours, where a compiler traces it; it never raises."""
        ...

    def guarded(self, doing: str) -> AbstractContextManager[None]:
        """The context in which an exception becomes a line of the summary."""
        ...
