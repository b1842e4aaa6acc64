"""The design problem: which first velocity turns a disk of dye into a triangle?"""

from __future__ import annotations

import numpy as np

import gradsmith as gs
import gradsmith.numpy as gnp

from .solver import Fluid

SIZE, STEPS, SNAPSHOTS = 48, 1000, 20


def disk(size):
    x, y = np.mgrid[:size, :size] - (size - 1) / 2
    return softened(x**2 + y**2 < (size / 4) ** 2)


def triangle(size):
    """An upright triangle with the area of the disk."""
    x, y = np.mgrid[:size, :size] - (size - 1) / 2
    area = np.pi * (size / 4) ** 2
    height = np.sqrt(area * np.sqrt(3))
    down = x + 2 * height / 3  # from the tip
    return softened((down > 0) & (down < height) & (np.abs(y) < down / np.sqrt(3)))


def softened(picture):
    """A picture without edges that no grid could carry."""
    picture = picture.astype(float)
    for _ in range(4):
        around = sum(np.roll(picture, s, a) for s in (-1, 1) for a in (0, 1))
        picture = picture + 0.2 * (around - 4 * picture)
    return picture


class Design:
    """How far the dye is from the target after all steps, by the first velocity."""

    def __init__(self, *, size=SIZE, steps=STEPS, fluid=Fluid, asarray=np.asarray):
        self.steps = steps
        self.fluid = fluid(size, asarray)
        self.dye, self.target = asarray(disk(size)), asarray(triangle(size))

    def start(self, velocity):
        u, v = self.fluid.projected(velocity[0], velocity[1])
        return gnp.stack([u, v, self.dye])

    def end(self, velocity, *, snapshots=SNAPSHOTS):
        """The last state, by storing `snapshots` of them, or all (None)."""
        state = self.start(velocity)
        if snapshots:
            step = self.fluid.step
            return gs.checkpoint_scan(step, state, self.steps, snapshots=snapshots)
        for _ in range(self.steps):
            state = self.fluid.step(state)
        return state

    def loss(self, velocity, **how):
        return gnp.mean((self.end(velocity, **how)[2] - self.target) ** 2)


def optimise(design, rounds, rate=0.004):
    """Adam; yields the loss and the velocity after each round."""
    velocity = gs.Variable(np.zeros((2, *design.dye.shape)))
    adam = gs.optimizers.Adam(rate)
    for _ in range(rounds):
        with gs.GradientTape() as tape:
            loss = design.loss(velocity)
        adam.apply_gradients([(tape.gradient(loss, velocity), velocity)])
        yield float(loss), velocity.numpy()
