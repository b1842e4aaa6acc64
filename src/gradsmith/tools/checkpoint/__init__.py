"""Memory for time: recomputing instead of storing."""

from .api import checkpoint, checkpoint_scan

__all__ = ["checkpoint", "checkpoint_scan"]
