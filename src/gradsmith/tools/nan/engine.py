"""The embedded engine: a tape that looks at what it records, and at the way back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import trees
from ...core.cotangent import Scattered
from ...core.tape import Traced
from ...core.tensor import Tensor, unwrap
from ...operations.info import is_floating
from .engine_tape import WatchingTape
from .inside import key, looking_inside
from .watch import Watch

version = np.__version__
WHERE = "np.where"


def array(x: Any) -> np.ndarray:
    return np.asarray(x)


def numpy(x: Any) -> np.ndarray | None:
    """Arrays and numbers; nothing of what can't be NaN."""
    x = x.dense() if isinstance(x, Scattered) else unwrap(x)
    if not isinstance(x, (np.ndarray, np.generic, float, complex)):
        return None
    x = np.asarray(x)
    return x if x.dtype.kind in "fc" else None


def look(fn: Any, args: Any, kwargs: Any, named: Sequence[tuple[str, Any]]) -> Any:
    """Run a function and its backward pass under a watch."""
    watch = Watch(numpy)
    tape = WatchingTape(watch)
    tensors = {id(x): Tensor(x) for _, x in named}
    for name, x in named:
        watch.given(name, tensors[id(x)], key(tensors[id(x)]))
    args, kwargs = trees.map(lambda x: tensors.get(id(x), x), (args, kwargs))
    with looking_inside(watch, lambda: tape.phase):
        with tape:
            for x in tensors.values():
                tape.follow(x)
            returned = fn(*args, **kwargs)
        ys = [*trees.leaves_with_names(returned, "the value")]
        found = [watch.result(name, y, key(y)) for name, y in ys if is_floating(y)]
        results = [each for each in found if each is not None]
        if results:
            return watch, results, []
        targets = [y for _, y in ys if isinstance(y, Traced) and y.dtype.kind in "fc"]
        return watch, *_backward(tape, targets, named, tensors)


def _backward(tape: WatchingTape, targets: Any, named: Any, tensors: Any) -> Any:
    if all(tape.mark_of(y, reading=False) is None for y in targets):
        return [], ["the value does not depend on the inputs: no gradient to look at"]
    sources = [(name, tensors[id(x)]) for name, x in named]
    sources += [(v.name or "a variable", v) for v in tape.watched_variables()]
    tape.phase = "backward"
    gradients = tape.gradient(targets, [x for _, x in sources])
    pairs = zip(sources, gradients, strict=True)
    found = [
        tape.watcher.gradient(name, dx, tape.mark_of(x)) for (name, x), dx in pairs
    ]
    return [each for each in found if each is not None], []
