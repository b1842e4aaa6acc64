"""Why is this gradient None? The answer in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from weakref import ref

from .errors import TapeError
from .tape import Node, Traced, leading_to
from .tensor import Variable

Silent = Mapping[Node, set[Node]]  # the inputs for which nodes had no cotangent


class Stop(NamedTuple):
    """A place where a followed value lost its gradient."""

    where: str
    why: str
    file: str
    line: int
    node: ref[Node] | None = None
    parent: ref[Node] | None = None  # of that node, which dies with its value

    @classmethod
    def here(cls, where: str, why: str, node: Node | None = None) -> Stop:
        from .places import user_frame  # nearly never needed

        frame = user_frame()
        file = "?" if frame is None else frame.f_code.co_filename
        line = 0 if frame is None else frame.f_lineno
        if node is None:
            return cls(where, why, file, line)
        parents = node.parents  # one of them: 0.1 us, all would take 0.4
        first = parents if isinstance(parents, Node) else parents and parents[0]
        return cls(where, why, file, line, ref(node), ref(first) if first else None)

    def __str__(self) -> str:
        from .places import line_name  # nearly never needed

        return f"{line_name(self.file, self.line)}: {self.where}: {self.why}"


class Stops(dict[tuple[str, str, int], Stop]):
    """Where gradients stop on a tape, the last one for each operation and line."""

    def add(self, stop: Stop) -> None:
        self[stop.where, stop.file, stop.line] = stop


_WAITS = (
    " It was opened in a generator, and records nothing while that is suspended: open "
    "it in the consumer, or in a @contextlib.contextmanager."
)


def explain(tape: Any, target: Any, source: Any, stops: Stops, silent: Silent) -> str:
    """Say why the gradient of `target` with respect to `source` is what it is."""
    trouble = _trouble_with_source(tape, source)
    if trouble:
        return trouble
    start = tape.mark_of(source, reading=False)
    if not isinstance(target, Traced):
        return (
            f"The target is a plain {type(target).__name__}, which no tape follows."
            + _told(stops, start)
        )
    if target.dtype.kind not in "fcO":
        return (
            f"The target has dtype {target.dtype}; only floating and complex values "
            "have gradients." + _told(stops, start)
        )
    end = tape.mark_of(target, reading=False)
    if end is None:
        return (
            "Nothing that the target was computed from is followed by this tape."
            + (_WAITS if tape.of_generator else "")
            + _told(stops, start)
        )
    if not reaches(end, start):
        return (
            "The target does not depend on the source through recorded operations."
            + _told(stops, start)
        )
    return _on_the_way(tape, target, source, silent)


def _on_the_way(tape: Any, target: Any, source: Any, silent: Silent) -> str:
    """What the walk back meets: it is tried, unless what was saved is used up."""
    connected = "The target depends on the source: it has a gradient."
    try:
        tape.probe(target, source)
    except TapeError:
        pass
    except Exception as error:
        return f"{connected} But computing it raises {type(error).__name__}: {error}"
    start, end = tape.mark_of(source), tape.mark_of(target)
    if reaches(end, start, silent):
        return connected
    ends = [node for node in leading_to([start], [end]) if silent.get(node)]
    return (
        "The target depends on the source, but every path has an operation that "
        "declares no gradient, so it is None:" + _list(map(_silence, ends))
    )


def _silence(node: Node) -> str:
    """Which operation had no cotangent for an input; in its own words, if it can."""
    own = getattr(node.rule, "silent", None)
    if own:
        return "; ".join(own.values())
    note = getattr(node.rule, "note", "")
    return f"{node.rule.name} has no gradient for an argument" + (note and f": {note}")


def _trouble_with_source(tape: Any, source: Any) -> str | None:
    if not isinstance(source, Traced):
        return (
            f"The source is a plain {type(source).__name__}. Make it a gs.Tensor, "
            "watch it, and compute the target from that tensor."
        )
    if source.dtype.kind not in "fcO":
        return (
            f"The source has dtype {source.dtype}; only floating and complex values "
            "have gradients. Convert it first: gs.Tensor(x, dtype=float)."
        )
    if tape.mark_of(source, reading=False) is not None:
        return None
    if isinstance(source, Variable):
        if not source.trainable:
            return (
                f"The variable {source.name!r} is not trainable: call tape.watch on it."
            )
        if not tape.watch_variables:
            return (
                f"The variable {source.name!r} was not watched: the tape was opened "
                "with watch_accessed_variables=False."
            )
        return f"The variable {source.name!r} was never read while the tape recorded."
    return "The source was not watched: call tape.watch(source) before it is used."


def reaches(end: Node, start: Node, silent: Silent | None = None) -> bool:
    """Whether `end` was computed from `start`, on a way that has a gradient."""
    seen, stack, silent = {end}, [end], silent or {}
    while stack:
        node = stack.pop()
        if node is start:
            return True
        new = {p for p in node.inputs() if p.index >= start.index}
        new -= seen | silent.get(node, set())
        seen |= new
        stack.extend(new)
    return False


def _told(stops: Stops, start: Node) -> str:
    """What befell values computed from the source."""
    told = []
    for stop in stops.values():
        node = stop.node and stop.node()
        if node is None:
            told.append(f"{stop} (or values of another source: the graph is gone)")
        elif reaches(node, start):
            told.append(str(stop))
    if not told:
        return ""
    return " Values computed from the source lost their gradient at:" + _list(told)


def _list(lines: Iterable[Any]) -> str:
    return "".join(f"\n  {line}" for line in lines)
