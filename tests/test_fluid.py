"""The flagship example: its gradient, its cost, and the frameworks it runs on."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs
from examples.fluid.__main__ import write
from examples.fluid.design import Design, optimise
from examples.fluid.frameworks import BY
from examples.fluid.measure import costs, error
from examples.fluid.solver import Fluid, IteratedFluid, pressure

VELOCITY = 0.05 * np.random.default_rng(0).normal(size=(2, 16, 16))


def test_the_gradient_agrees_with_differences():
    assert error(Design(size=16, steps=30), VELOCITY) < 1e-6


def test_the_pressure_has_its_adjoint_as_its_gradient():
    fluid = Fluid(8)
    x = np.random.default_rng(1).normal(size=(8, 8))
    gs.assert_gradients(pressure, x, fluid)


def test_no_divergence_is_left():
    fluid = Fluid(16)
    u, v = fluid.projected(*VELOCITY)
    assert np.abs(fluid.divergence(u, v)).max() < 1e-13


def test_adam_brings_the_dye_closer(tmp_path):
    design = Design(size=16, steps=30)
    rounds = list(optimise(design, 5, rate=0.01))
    assert rounds[-1][0] < 0.8 * rounds[0][0]
    write(design, rounds[-1][1], [loss for loss, _ in rounds], tmp_path)
    assert (tmp_path / "dye.png").read_bytes().startswith(b"\x89PNG")
    assert "<polyline" in (tmp_path / "convergence.svg").read_text()


def test_the_iterations_cost_more():
    found = costs(0.05 * np.random.default_rng(0).normal(size=(2, 48, 48)), 3)
    (_, ours, _), _, (_, plain, _) = found.values()
    assert plain > 5 * ours


def test_iterations_that_have_converged_have_the_same_gradient(monkeypatch):
    # As many as it takes; autodiff of more of them divides rounding by rounding.
    monkeypatch.setattr(IteratedFluid, "iterations", 20)
    ours, plain = (Design(size=16, steps=3, fluid=f) for f in (Fluid, IteratedFluid))
    expected = gs.grad(lambda v: plain.loss(v, snapshots=None))(VELOCITY)
    dv = gs.grad(ours.loss)(VELOCITY)
    np.testing.assert_allclose(dv, expected, atol=1e-9 * np.abs(dv).max())


@pytest.mark.parametrize("framework", BY)
def test_the_same_file_runs_on_other_arrays(framework):
    pytest.importorskip(framework)
    loss, dv = BY[framework](Design, VELOCITY, size=16, steps=4)
    expected = gs.value_and_grad(Design(size=16, steps=4).loss)(VELOCITY)
    assert loss == pytest.approx(expected[0])
    np.testing.assert_allclose(dv, expected[1], atol=1e-9)
