"""What is wrong with a gradient: which elements, which mistake, how to repair it."""

from .explain import Explanation, explain, facts

__all__ = ["Explanation", "explain", "facts"]
