"""A viscous, incompressible fluid in a periodic box that carries a dye.

    ∂u/∂t + (u·∇)u = ν Δu - ∇p,   ∇·u = 0,   ∂c/∂t + (u·∇)c = ν Δc

on a square grid, with central differences and explicit steps. After each one the
velocity is projected: its divergence is taken away by a pressure that solves Δp = ∇·u.
That solve has a gradient of its own: the solve itself, since Δ is symmetric.
"""

from __future__ import annotations

import numpy as np

import gradsmith as gs
import gradsmith.numpy as gnp

VISCOSITY = 0.003  # in units of cells and steps


@gs.operation
def pressure(divergence, fluid):
    """p with Δp = divergence: in the eigenvectors of Δ that is a division."""
    basis = gnp.astype(fluid.basis, divergence.dtype)
    inverse = gnp.astype(fluid.inverse, divergence.dtype)
    turned = gnp.swapaxes(basis, 0, 1)
    modes = gnp.matmul(gnp.matmul(turned, divergence), basis)
    return gnp.matmul(gnp.matmul(basis, modes * inverse), turned)


@pressure.vjp
def _(dp, p, divergence, fluid):
    return pressure(dp, fluid)


class Fluid:
    """Steps of states (u, v, dye), each a square grid, on the arrays of a framework."""

    def __init__(self, size, asarray=np.asarray):
        i = np.arange(size)
        slope = np.zeros((size, size))
        slope[i, (i + 1) % size], slope[i, i - 1] = 0.5, -0.5
        values, basis = np.linalg.eigh(slope @ slope)
        sums = values[:, None] + values
        still = np.abs(sums) < 1e-9  # modes that have no gradient
        inverse = np.where(still, 0, 1 / np.where(still, 1, sums))
        self.slope, self.basis, self.inverse = map(asarray, (slope, basis, inverse))

    def pressure(self, divergence):
        return pressure(divergence, self)

    def divergence(self, u, v):
        return gnp.matmul(self.slope, u) - gnp.matmul(v, self.slope)

    def projected(self, u, v):
        """The nearest velocity without divergence."""
        p = self.pressure(self.divergence(u, v))
        return u - gnp.matmul(self.slope, p), v + gnp.matmul(p, self.slope)

    def step(self, state):
        east, west = gnp.roll(state, -1, axis=1), gnp.roll(state, 1, axis=1)
        north, south = gnp.roll(state, -1, axis=2), gnp.roll(state, 1, axis=2)
        u, v = state[0], state[1]
        carried = u * (east - west) / 2 + v * (north - south) / 2
        spread = east + west + north + south - 4 * state
        state = state - carried + VISCOSITY * spread
        return gnp.stack([*self.projected(state[0], state[1]), state[2]])


class IteratedFluid(Fluid):
    """The same fluid, its pressure found by steps that autodiff goes through."""

    iterations = 100

    def pressure(self, divergence):
        """Conjugate gradients for -Δp = -divergence."""
        p, r = 0 * divergence, -divergence
        d, rr = r, gnp.sum(r * r)
        for _ in range(self.iterations):
            q = -self.divergence(gnp.matmul(self.slope, d), -gnp.matmul(d, self.slope))
            step = rr / (gnp.sum(d * q) + 1e-300)
            p, r = p + step * d, r - step * q
            rr, before = gnp.sum(r * r), rr
            d = r + rr / (before + 1e-300) * d
        return p


@pressure.example
def _():
    return gs.spec((6, 6)), Fluid(6)
