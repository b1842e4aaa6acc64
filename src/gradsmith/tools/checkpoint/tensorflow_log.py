"""What TensorFlow's stateful operations returned in the first run of a function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...core.errors import GradsmithError
from ...frameworks.tensorflow.private import default_graph, executing_eagerly


def _graph() -> Any:
    return None if executing_eagerly() else default_graph()


class Log:
    """What stateful operations returned, each with its name and the graph it is in."""

    def __init__(self) -> None:
        self.graph = _graph()
        self.entries: list[tuple[str, Any, Any]] = []

    def add(self, name: str, y: Any) -> None:
        self.entries.append((name, y, _graph()))

    def again(self) -> Iterator[tuple[str, Any]]:
        for name, y, graph in self.entries:
            if graph is not self.graph:
                raise GradsmithError(
                    f"{name} is run in a loop or a branch of a graph, inside of a "
                    "checkpointed function: what it returned is gone when the function "
                    "is run again\n"
                    "  what to do: checkpoint the body of the loop, not what is around "
                    "it; or call it before the loop"
                )
            yield name, y
