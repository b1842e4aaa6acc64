"""What is wrong with a gradient: which elements, which mistake, how to repair it."""

from .explain import Explanation, explain

__all__ = ["Explanation", "explain"]
