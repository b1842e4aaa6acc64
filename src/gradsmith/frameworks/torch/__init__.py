"""Operations on PyTorch's tensors."""

from ._dispatch import call
from ._host import host

__all__ = ["call", "host"]
