"""Operations that are defined by equations, and differentiated by them."""

from .odeint import odeint
from .solutions import argmin, fixed_point, root
from .systems import linear_solve

__all__ = ["argmin", "fixed_point", "linear_solve", "odeint", "root"]
