"""What a body returned: its tensors flat, its structure, and the specs of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ....core import trees
from ....operations.application import OutputSpecs
from ..._outputs import refuse_numpy
from .specs import TensorSpec, has_gradient


class Outputs:
    """The tensors that a body returned, and the structure they were in.

    `flat` are all of them; `varied` the places of those that have a gradient.
    """

    __slots__ = ("flat", "structure", "varied")

    def __init__(self, operation: Any, outputs: Any) -> None:
        self.flat: list[torch.Tensor] = []
        self.structure: Any = 0
        if outputs.__class__ is torch.Tensor:  # the usual case
            self.flat.append(outputs)
            self.varied = [0] if has_gradient(outputs) else []
        else:
            self.structure = trees.map(lambda y: self._place(operation, y), outputs)
            self.varied = [i for i, y in enumerate(self.flat) if has_gradient(y)]

    def _place(self, operation: Any, y: Any) -> Any:
        y = as_tensor(operation, y)
        if not isinstance(y, torch.Tensor):
            return _Static(y)
        self.flat.append(y)
        return len(self.flat) - 1

    def structured(self, flat: Sequence[Any]) -> Any:
        """Others in the structure of the outputs."""
        if self.structure == 0:
            return flat[0]
        return trees.map(
            lambda place: place.value if isinstance(place, _Static) else flat[place],
            self.structure,
        )

    def specs_from(self, specs: list[TensorSpec]) -> OutputSpecs:
        """The specs of the outputs that have a gradient, also in their structure."""
        if self.structure == 0:
            return OutputSpecs(specs[0] if specs else None, [*specs])
        mine = dict(zip(self.varied, specs, strict=True))
        tree = trees.map(
            lambda place: None if isinstance(place, _Static) else mine.get(place),
            self.structure,
        )
        return OutputSpecs(tree, [*specs])


class _Static:
    """An output that is no tensor."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def as_tensor(operation: Any, y: Any) -> Any:
    """An output as it is given back: a number with a gradient is a tensor."""
    if isinstance(y, (float, complex)):
        return torch.as_tensor(y)
    refuse_numpy(y, operation.name, "PyTorch")
    return y
