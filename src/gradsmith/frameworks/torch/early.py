"""What PyTorch's compiler is told once it is there.

It traces calls of operations, also if the first one is compiled. It can't trace an
import, so what it will need is loaded before.
"""

from typing import Any

import torch

from ...core.arrays import FRAMEWORKS
from ...core.compilers import add_compiler


def _disable(cls: type, method: str, reason: str) -> None:
    hidden: Any = torch.compiler.disable(vars(cls)[method], reason=reason)
    setattr(cls, method, hidden)


for _part in ("arrays", "calculus", "call", "compiled", "kernels", "recompute"):
    FRAMEWORKS["torch"].part(_part)
add_compiler(_disable)
