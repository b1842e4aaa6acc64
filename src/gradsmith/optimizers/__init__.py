"""Optimizers: SGD, Adam, AdamW and RMSprop with the interface of Keras.

>>> import gradsmith as gs
>>> w = gs.Variable([1.0, 2.0], name="w")
>>> optimizer = SGD(0.25)
>>> with gs.GradientTape() as tape:
...     loss = np.sum(w * w)
>>> optimizer.apply_gradients(zip(tape.gradient(loss, [w]), [w]))
>>> w
Variable([0.5, 1. ])

The formulas are those of Keras, which are PyTorch's but for three details:

- `epsilon` of Adam is added to the root of the uncorrected second moment; PyTorch's, to
  that of the corrected one, is `epsilon / sqrt(1 - beta_2**t)` in these terms. That of
  RMSprop stands under the root; PyTorch's beside it.
- The velocity holds the learning rate that was in force when a gradient entered it.
- The t of Adam's correction counts the steps of the optimizer, not of the variable.

As in PyTorch, a complex number is optimized as the two real numbers it consists of.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from math import sqrt
from typing import Any

import numpy as np

from ..core.errors import GradsmithError
from ._base import FLAG, FRACTION, NONNEGATIVE, POSITIVE, RATE, Optimizer, Rate

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "RMSprop"]


@dataclass(eq=False)
class SGD(Optimizer):
    """Gradient descent, optionally with momentum.

    velocity = momentum * velocity + rate * g;  x -= velocity, or with Nesterov's
    look ahead x -= momentum * velocity + rate * g.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> w = gs.Variable([1.0, 2.0])
    >>> optimizer = gs.optimizers.SGD(0.1, momentum=0.9)
    >>> optimizer.apply_gradients([(np.array([0.5, 0.0]), w)])
    >>> np.round(w.numpy(), 3)
    array([0.95, 2.  ])

    Raises
    ------
    GradsmithError
        If an option is out of range, or a gradient does not fit its variable.
    """

    learning_rate: Rate = field(default=0.01, metadata=RATE)
    _: KW_ONLY
    momentum: float = field(default=0.0, metadata=FRACTION)
    nesterov: bool = field(default=False, metadata=FLAG)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nesterov and not self.momentum:
            raise GradsmithError("SGD(nesterov=True) needs a momentum above 0")

    def step(self, g: Any, x: Any, slots: dict[str, Any], rate: float) -> Any:
        step = g * rate
        if not self.momentum:
            return step
        velocity = slots["velocity"]
        velocity *= self.momentum
        velocity += step
        if self.nesterov:
            step += self.momentum * velocity
        else:
            step[...] = velocity
        return step


@dataclass(eq=False)
class Adam(Optimizer):
    """Adam: momentum, divided by the root of the mean square of each element.

    m and v are running means of g and g**2, corrected for their start at 0:
    x -= rate * sqrt(1 - beta_2**t) / (1 - beta_1**t) * m / (sqrt(v) + epsilon).
    With `amsgrad` the largest v so far takes the place of v.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> w = gs.Variable([1.0, 2.0])
    >>> optimizer = gs.optimizers.Adam(0.1)
    >>> optimizer.apply_gradients([(np.array([0.5, 0.0]), w)])
    >>> np.round(w.numpy(), 3)
    array([0.9, 2. ])

    Raises
    ------
    GradsmithError
        If an option is out of range, or a gradient does not fit its variable.
    """

    learning_rate: Rate = field(default=0.001, metadata=RATE)
    _: KW_ONLY
    beta_1: float = field(default=0.9, metadata=FRACTION)
    beta_2: float = field(default=0.999, metadata=FRACTION)
    epsilon: float = field(default=1e-7, metadata=POSITIVE)
    amsgrad: bool = field(default=False, metadata=FLAG)

    squares = ("v", "v_max")

    def step(self, g: Any, x: Any, slots: dict[str, Any], rate: float) -> Any:
        m, v, t = slots["m"], slots["v"], self.iterations + 1
        step = g * g
        _blend(v, step, self.beta_2, step)
        _blend(m, g, self.beta_1, step)
        if self.amsgrad:
            v = np.maximum(slots["v_max"], v, out=slots["v_max"])
        np.sqrt(v, out=step)
        step += self.epsilon
        np.divide(m, step, out=step)
        step *= rate * sqrt(1 - self.beta_2**t) / (1 - self.beta_1**t)
        return step


@dataclass(eq=False)
class AdamW(Adam):
    """Adam with decoupled weight decay: x also loses rate * decay * x.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> w = gs.Variable([1.0, 2.0])
    >>> optimizer = gs.optimizers.AdamW(0.1, weight_decay=0.01)
    >>> optimizer.apply_gradients([(np.array([0.5, 0.0]), w)])
    >>> np.round(w.numpy(), 3)
    array([0.899, 1.998])

    Raises
    ------
    GradsmithError
        If an option is out of range, or a gradient does not fit its variable.
    """

    _: KW_ONLY
    weight_decay: float = field(default=0.004, metadata=NONNEGATIVE)

    def step(self, g: Any, x: Any, slots: dict[str, Any], rate: float) -> Any:
        step = super().step(g, x, slots, rate)
        step += x * (rate * self.weight_decay)
        return step


@dataclass(eq=False)
class RMSprop(Optimizer):
    """Gradient descent, divided by the root of the mean square of each element.

    v is a running mean of g**2 (minus the squared mean of g if `centered`), and
    x -= rate * g / sqrt(v + epsilon), through a velocity if there is momentum.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> w = gs.Variable([1.0, 2.0])
    >>> optimizer = gs.optimizers.RMSprop(0.1)
    >>> optimizer.apply_gradients([(np.array([0.5, 0.0]), w)])
    >>> np.round(w.numpy(), 3)
    array([0.684, 2.   ])

    Raises
    ------
    GradsmithError
        If an option is out of range, or a gradient does not fit its variable.
    """

    learning_rate: Rate = field(default=0.001, metadata=RATE)
    _: KW_ONLY
    rho: float = field(default=0.9, metadata=FRACTION)
    momentum: float = field(default=0.0, metadata=FRACTION)
    epsilon: float = field(default=1e-7, metadata=POSITIVE)
    centered: bool = field(default=False, metadata=FLAG)

    squares = ("v",)

    def step(self, g: Any, x: Any, slots: dict[str, Any], rate: float) -> Any:
        v, step = slots["v"], g * g
        _blend(v, step, self.rho, step)
        if self.centered:
            mean = slots["mean"]
            _blend(mean, g, self.rho, step)
            np.multiply(mean, mean, out=step)
            np.subtract(v, step, out=step)
            np.maximum(step, 0, out=step)  # below 0 by rounding alone
            step += self.epsilon
        else:
            np.add(v, self.epsilon, out=step)
        np.sqrt(step, out=step)
        np.divide(g, step, out=step)
        step *= rate
        if self.momentum:
            velocity = slots["velocity"]
            velocity *= self.momentum
            velocity += step
            step[...] = velocity
        return step


def _blend(mean: Any, new: Any, keep: float, scratch: Any) -> None:
    """Move a running mean towards `new`, in place; `scratch` may be `new` itself."""
    np.multiply(new, 1 - keep, out=scratch)
    mean *= keep
    mean += scratch
