"""Every function, in every framework, eager and traced, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith.numpy as gnp

from .harness import (
    CASES,
    arrays,
    call,
    chunks,
    compare,
    engine_gradient,
    find,
    jax_gradients,
    jax_traced,
    mlx_gradient,
    native_args,
    noted,
    plain,
    tensorflow_gradient,
    tensorflow_traced,
    torch_gradient,
)

SMOOTH = [case for case in CASES if case.slope]
each_case = pytest.mark.parametrize("case", CASES, ids=str)
each_smooth = pytest.mark.parametrize("case", SMOOTH, ids=str)


def families(cases):
    """Chunks of the cases, called by the first and the last of each."""
    return [
        pytest.param(chunk, id=f"{chunk[0].name}-{chunk[-1].name}")
        for chunk in chunks(cases)
    ]


def test_every_function_has_a_case():
    public = {
        find(name) for name in gnp.__all__ if callable(getattr(gnp, name))
    } | {find(f"{part}.{name}") for part in ("linalg", "special")
         for name in getattr(gnp, part).__all__}  # fmt: skip
    covered = {find(case.name) for case in CASES} | {gnp.result_type, gnp.finfo}
    covered.add(gnp.empty_like)  # its values are anything; see test_creation
    assert {fn.__name__ for fn in public - covered} == set()


# Eager


@each_case
def test_numpy_is_numpy(case):
    with np.errstate(all="ignore"):
        xs = arrays((case.args, case.options))
        compare(case, call(case, find(case.name), xs), "numpy")


@each_case
@pytest.mark.parametrize("framework", ["tensorflow", "torch", "mlx"])
def test_eager_is_numpy(case, framework):
    compare(case, call(case, find(case.name), native_args(case, framework)), framework)


FIRST = list({case.name: case for case in reversed(CASES)}.values())


@pytest.mark.parametrize("case", FIRST, ids=str)
def test_eager_jax_is_numpy(case):
    """One case of each, since JAX compiles every operation; all are traced below."""
    compare(case, call(case, find(case.name), native_args(case, "jax")), "jax")


# Traced


@pytest.mark.parametrize("cases", families(CASES))
def test_jitted_jax_is_numpy(cases):
    for case, ys in zip(cases, jax_traced(cases), strict=True):
        noted(case, compare, case, ys, "jax")


def needs_lengths(case):
    """What can't be done if a graph leaves the lengths of axes open."""
    by_index = case.name == "pad" and "mode" in case.options
    unnamed = case.name == "squeeze" and not case.options
    by_length = case.name == "vander" and len(case.args) == 1 and not case.options
    return by_index or unnamed or by_length or case.name == "unstack"


OPEN = [case for case in CASES if not needs_lengths(case)]
KNOWN = [case for case in CASES if needs_lengths(case)]


@pytest.mark.parametrize("cases", families(OPEN))
def test_tensorflow_graph_with_open_lengths_is_numpy(cases):
    results = tensorflow_traced(cases, open_lengths=True)
    for case, ys in zip(cases, results, strict=True):
        noted(case, compare, case, ys, "tensorflow")


@pytest.mark.parametrize("cases", families(CASES[::4] + KNOWN))
def test_tensorflow_graph_is_numpy(cases):
    results = tensorflow_traced(cases, open_lengths=False)
    for case, ys in zip(cases, results, strict=True):
        noted(case, compare, case, ys, "tensorflow")


# Gradients


def compare_gradients(found, case):
    wanted = engine_gradient(case)
    for dx, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(plain(dx), want, rtol=1e-8, atol=1e-10)


@each_smooth
def test_gradient_of_torch_is_the_engines(case):
    compare_gradients(torch_gradient(case), case)


@each_smooth
def test_gradient_of_mlx_is_the_engines(case):
    compare_gradients(mlx_gradient(case), case)


@each_smooth
def test_gradient_of_tensorflow_is_the_engines(case):
    compare_gradients(tensorflow_gradient(case), case)


@pytest.mark.parametrize("cases", families(SMOOTH))
def test_gradient_of_jax_is_the_engines(cases):
    for case, found in zip(cases, jax_gradients(cases), strict=True):
        noted(case, compare_gradients, found, case)
