"""Memory for time: recomputing instead of storing."""

from .door import checkpoint
from .scan import checkpoint_scan

__all__ = ["checkpoint", "checkpoint_scan"]
