"""Operations on JAX's arrays: native under each of its transformations.

Reverse mode, forward mode, or both follow from the one rule that an operation has.
"""

from .adapter import call
from .callbacks import host

__all__ = ["call", "host"]
