"""PyTorch's compiler traces calls of operations, also if the first one is compiled.

It can't trace an import, so what it will need is loaded before.
"""

from ...core.arrays import FRAMEWORKS

for _part in ("call", "kernels", "recompute"):
    FRAMEWORKS["torch"].part(_part)
