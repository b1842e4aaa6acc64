"""What the engine's tape keeps alive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from weakref import ref

import numpy as np

from ...core import trees
from ...core.gradient_tape import GradientTape
from ...core.places import Place, place_here
from ...core.reach import arrays_kept
from ...core.tape import Node, Traced
from ...core.tensor import Tensor
from .._protocol import Residual
from .observe import name_of


class _Tape(GradientTape):
    """A tape that knows which line made each node; the nodes die as they would."""

    def __init__(self) -> None:
        super().__init__()
        self.records_one = False  # so that `record` sees everything
        self.made: list[tuple[str, Place | None, ref[Node]]] = []

    def record(
        self, rule: Any, inputs: Sequence[Any], call: Any, kept: Any, y: Any
    ) -> None:
        super().record(rule, inputs, call, kept, y)
        for output in (y,) if isinstance(y, Traced) else y:
            self._note(rule, output)

    def _note(self, rule: Any, y: Traced) -> None:
        node = y.marks.get(self.key) if y.marks else None
        if node is not None:
            name, place = name_of(rule), place_here()
            self.made.append((name, place, ref(node)))
            for parent in node.inputs():  # one of several outputs: the call's own node
                if parent.rule is rule and len(node.inputs()) == 1:
                    self.made.append((name, place, ref(parent)))

    def alive(self) -> Iterator[tuple[str, Place | None, Node]]:
        for name, place, reference in self.made:
            node = reference()
            if node is not None:
                yield name, place, node


def residuals(fn: Any, args: Any, kwargs: Any) -> list[Residual]:
    """The arrays that a gradient keeps."""
    tape = _Tape()

    def lifted(x: Any) -> Any:
        if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "fc":
            return Tensor(x)
        return x

    args, kwargs = trees.map(lifted, (args, kwargs))
    with tape:
        tape.watch([x for x in trees.leaves((args, kwargs)) if _is_floating(x)])
        result = fn(*args, **kwargs)
    taken = {id(x) for x in arrays_kept(args, kwargs)}
    variables = [variable.value for variable, _ in tape.leaves.values()]
    taken |= {id(x) for x in arrays_kept(*variables)}
    alive = {id(n): (name, place, n) for name, place, n in tape.alive()}
    beside = [tape, tape.key, *(node for _, _, node in alive.values())]
    beside += [node for _, node in tape.leaves.values()]
    found = []
    for name, place, node in alive.values():
        for array in arrays_kept(node.pull, node.saved, beside=beside):
            if id(array) not in taken and array.nbytes:
                taken.add(id(array))
                found.append(Residual(name, place, array.nbytes))
    del result
    return found


def _is_floating(x: Any) -> bool:
    return isinstance(x, Traced) and x.dtype.kind in "fc"
