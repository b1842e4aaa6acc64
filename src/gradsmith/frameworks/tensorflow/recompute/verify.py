"""Is the gradient of a checkpointed function that of the function? On TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from ....core.errors import GradsmithError
from ..._recompute import require_same
from ..arrays import numpy
from ..call.specs import is_floating
from ..private import executing_eagerly
from .block import Block
from .replay import Log, logged, replayed


def require_equal(block: Block) -> Log:
    """Raise if the two differ; else what stateful operations returned."""
    if not executing_eagerly():
        raise GradsmithError(
            "verify=True compares values, which a tf.function does not have\n"
            "  what to do: verify it in eager mode, once: "
            "tf.config.run_functions_eagerly(True)"
        )
    log = Log()
    flat = block.flat
    with block.streams.unchanged(), tf.GradientTape() as tape, logged(log):
        for x in flat.arrays:
            if is_floating(x):
                tape.watch(x)
        with block.losses.unchanged():
            plain = block.called(flat.fn, flat.arrays)
    random = np.random.default_rng(0)
    dys = [tf.cast(random.standard_normal(y.shape), y.dtype) for y in _floating(plain)]
    with block.streams.unchanged(), replayed(log, {}), block.losses.unchanged():
        recomputed = block.run()
    names = [f"the value {i}" for i in range(len(plain))]
    _compare(block.name, names, plain, recomputed)
    sources = [*flat.arrays, *block.variables]
    expected = tape.gradient(_floating(plain), sources, dys)
    found = block.gradients(block.inputs, dys)
    n, m = len(flat.arrays), len(block.captured)
    found = [*found[:n], *found[n + m :]]
    names = [f"the gradient for {name}" for name in flat.names]
    names += [f"the gradient for {variable.name}" for variable in block.variables]
    _compare(block.name, names, expected, found)
    return log


def _floating(ys: list[Any]) -> list[Any]:
    return [y for y in ys if is_floating(y)]


def _compare(name: str, names: list[str], plain: Any, recomputed: Any) -> None:
    for what, one, other in zip(names, plain, recomputed, strict=True):
        pair = ({what: _numpy(one)}, {what: _numpy(other)})
        require_same(name, *pair, exact=False)


def _numpy(x: Any) -> Any:
    return None if x is None else numpy(x)
