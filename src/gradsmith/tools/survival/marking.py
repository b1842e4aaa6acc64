"""Marking a rule: a copy of an operation whose answers are multiplied by a factor.

A rule may well equal the true derivative, so its result doesn't show whether it was
used. With the factor 0, all that comes from the rule vanishes, to every order; what is
left did not come from it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any

from ...core import trees
from ...operations.info import OperationInfo, is_floating, signature_of


def marked(
    subject: OperationInfo, factor: float
) -> AbstractContextManager[Callable[..., Any]]:
    """The context in which a marked copy of an operation may be called."""
    assert subject.altered is not None
    return subject.altered(lambda rule: scaled(rule, factor))


def scaled(rule: Callable[..., Any], factor: float) -> Callable[..., Any]:
    """A rule whose answers are multiplied by a factor."""

    @wraps(rule)
    def marked(*args: Any, **kwargs: Any) -> Any:
        return scale_tree(rule(*args, **kwargs), factor)

    signature = signature_of(rule)  # some read it without following __wrapped__
    if signature is not None:
        marked.__signature__ = signature  # type: ignore[attr-defined]
    return marked


def scale_tree(gradients: Any, factor: float) -> Any:
    """Multiply what is a number or an array of such; leave None and markers alone."""

    def scale(g: Any) -> Any:
        if type(g).__name__ == "IndexedSlices":  # TensorFlow's, of an embedding
            return type(g)(g.values * factor, g.indices, g.dense_shape)
        return g * factor if is_floating(g) else g

    return trees.map(scale, gradients)
