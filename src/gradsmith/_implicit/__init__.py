"""Operations that are defined by equations, and differentiated by them."""

from .doors import argmin, fixed_point, linear_solve, odeint, root

__all__ = ["argmin", "fixed_point", "linear_solve", "odeint", "root"]
