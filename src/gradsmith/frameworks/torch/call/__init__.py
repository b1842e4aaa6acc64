"""Operations on PyTorch's tensors."""

from .callbacks import host
from .dispatch import call

__all__ = ["call", "host"]
