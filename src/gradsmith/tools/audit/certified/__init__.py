"""Certified numbers: true values and derivatives, with proven bounds.

A definition runs on arrays of `balls` (a midpoint and a radius), or over intervals on
arrays of power `series` with balls as coefficients. One table serves both: a row for
each function of corresponding elements (`elementwise`, `special`, `bessel`). `choices`
compare and choose, `arrays` move and sum. `certify` raises the precision of balls until
each number is known.
"""

from importlib import import_module

from ....core.import_hooks import once_imported
from . import arrays, elementwise

__all__ = ["arrays", "elementwise"]

once_imported("scipy.special", lambda _: import_module(f"{__name__}.special"))
