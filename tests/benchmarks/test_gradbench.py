"""GradBench's problems: everybody computes the same numbers. No figure is judged."""

from __future__ import annotations

import json
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks.gradbench import measure
from benchmarks.gradbench.benchmark import PROBLEMS
from benchmarks.gradbench.libraries import PEERS, with_compile, with_tape


@pytest.fixture(autouse=True)
def float64():
    """JAX in double precision, for this test alone."""
    if find_spec("jax") is None:
        yield
        return
    import jax

    with jax.enable_x64(True):
        yield


def module_of(problem):
    return import_module(f"benchmarks.gradbench.{problem}")


def inputs_of(module):
    return module.inputs(np.random.default_rng(0), **module.SIZES[0])


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_peer_agrees_with_the_tape(problem, peer):
    if find_spec(peer) is None:
        pytest.skip(f"{peer} is not installed")
    module = module_of(problem)
    calls = [
        make(module, module.SIZES[0], inputs_of(module))
        for make in (with_tape, PEERS[peer])
    ]
    ours, theirs = (measure.arrays(call()) for call in calls)
    measure.require_agreement(theirs, ours)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_compiled_code_agrees_with_the_tape(problem):
    module = module_of(problem)
    calls = [
        make(module, module.SIZES[0], inputs_of(module))
        for make in (with_tape, with_compile)
    ]
    ours, compiled = (measure.arrays(call()) for call in calls)
    measure.require_agreement(compiled, ours)


@pytest.mark.parametrize("problem", ["lse", "llsq", "gmm", "det", "lstm", "ode"])
def test_the_gradient_is_that_of_the_value(problem):
    """Against differences in a random direction, for all libraries share the code."""
    module = module_of(problem)
    inputs = inputs_of(module)
    variables, rest = inputs[: module.VARIABLES], inputs[module.VARIABLES :]
    rng, h = np.random.default_rng(1), 1e-6
    steps = [rng.normal(size=x.shape) for x in variables]

    def run(t):
        moved = [x + t * dx for x, dx in zip(variables, steps, strict=True)]
        return measure.arrays(with_tape(module, module.SIZES[0], (*moved, *rest))())

    slope = sum(np.sum(g * d) for g, d in zip(run(0)[1:], steps, strict=True))
    np.testing.assert_allclose((run(h)[0] - run(-h)[0]) / (2 * h), slope, rtol=1e-6)


def test_the_determinant_is_that_of_numpy():
    module = module_of("det")
    (a,) = inputs_of(module)
    value, gradient = with_tape(module, module.SIZES[0], (a,))()
    np.testing.assert_allclose(value, np.linalg.det(a))
    np.testing.assert_allclose(gradient, value * np.linalg.inv(a).T)


def test_a_newton_step_of_kmeans_leads_to_the_means():
    module = module_of("kmeans")
    centroids, points = inputs_of(module)
    step = with_tape(module, module.SIZES[0], (centroids, points))()
    far = np.sum((points[:, None] - centroids) ** 2, axis=2)
    nearest = np.argmin(far, axis=1)
    means = [np.mean(points[nearest == i], axis=0) for i in range(len(centroids))]
    np.testing.assert_allclose(centroids - step, means)


def test_it_has_a_row_for_each_size_and_the_seed(capsys):
    command.main(["gradbench", "--only", "hello", "--quick", "--json", "--peers", ""])
    report = json.loads(capsys.readouterr().out)
    assert report["refused"] == []
    assert report["notes"] == [f"seed of the inputs: {measure.SEED}"]


def test_a_wrong_result_is_refused_and_not_timed(monkeypatch):
    from benchmarks.gradbench import hello

    wrong = lambda library: lambda x: (x * x, 3 * x)
    monkeypatch.setattr(hello, "in_jax", wrong, raising=False)
    if find_spec("jax") is None:
        pytest.skip("jax is not installed")
    found = measure.measure("hello", True, ["jax"])
    assert "hello" in found["refused"][0]
    assert "AssertionError" in found["refused"][0]
    assert "jax" not in found["rows"][0]["seconds"]
