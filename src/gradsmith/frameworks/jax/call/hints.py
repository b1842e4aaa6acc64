"""The way out of what JAX can't trace."""

from __future__ import annotations

from jax.errors import (
    ConcretizationTypeError,
    NonConcreteBooleanIndexError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
)

_PYTHON = "for NumPy, SciPy or C code on the values use gs.python_op"


def hint(error: Exception) -> str:
    """A note for an exception that traced code raised, if it is of this kind."""
    if isinstance(error, TracerBoolConversionError):
        return (
            "JAX traces this code without values: choose by gnp.where(condition, a, b) "
            f"(import gradsmith.numpy as gnp) instead of if; {_PYTHON}"
        )
    if isinstance(error, TracerArrayConversionError):
        return (
            "JAX traces this code without values, which NumPy needs: call the same "
            f"function of gradsmith.numpy (as gnp) instead of np; {_PYTHON}"
        )
    if isinstance(
        error,
        (
            ConcretizationTypeError,
            NonConcreteBooleanIndexError,
            TracerIntegerConversionError,
        ),
    ):
        return (
            "JAX traces this code without values: compute with arrays (gnp.where, "
            f"gnp.take_along_axis) instead of Python numbers; {_PYTHON}"
        )
    return ""
