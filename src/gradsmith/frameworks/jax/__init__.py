"""Operations on JAX's arrays: native under each of its transformations.

Reverse mode, forward mode, or both follow from the one rule that an operation has.
"""

from ._adapter import call
from ._host import host

__all__ = ["call", "host"]
