"""What gs.checkpoint_scan says to bad input: one clear error each."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.tools.checkpoint.schedule import actions

U = np.linspace(-1.0, 1.0, 8)


BAD = {
    "too small": ({"budget": "16 B"}, ["too small", "one state, which takes 64 B"]),
    "no amount": ({"budget": "much"}, ["no amount of memory", "'512 MB'"]),
    "no limit": ({"budget": float("inf")}, ["no amount of memory", "a number"]),
    "no snapshots": ({"snapshots": 0}, ["snapshots=0 is too small", "1 or more"]),
    "a fraction": ({"snapshots": 2.5}, ["whole number, not 2.5"]),
    "negative": ({"steps": -1, "snapshots": 1}, ["steps=-1", "0 or more"]),
    "neither": ({}, ["neither of snapshots= and budget="]),
    "both": ({"snapshots": 1, "budget": 5}, ["both of snapshots= and budget="]),
    "no array": ({"state": {"t": 0.5}, "snapshots": 1}, ["state['t'] is a float"]),
    "nothing": ({"state": {}, "snapshots": 1}, ["has no arrays in it"]),
    "no function": ({"step": 3, "snapshots": 1}, ["given an int as its step"]),
    "no rows": (
        {"inputs": np.ones((4, 2)), "snapshots": 1},
        ["inputs has no row for each step", "(5, ...)", "shape (4, 2)"],
    ),
    "structure": (
        {"step": lambda s: (s, s), "snapshots": 1},
        ["step 0 changes the structure of the state", "got: (*, *)"],
    ),
    "shape": (
        {"step": lambda s: np.append(s, 1.0), "snapshots": 1},
        ["changes the shape of state", "shape (8,), float64", "got: shape (9,)"],
    ),
    "dtype": (
        {"step": lambda s: s.astype("float32"), "snapshots": 1},
        ["step 0 changes the dtype of state", "float64", "float32"],
    ),
    "not an array any more": (
        {"step": lambda s: 1.0, "snapshots": 1},
        ["step 0 changes what is an array of state", "got: float"],
    ),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("recorded", [False, True])
def test_bad_input_has_one_clear_error(case, recorded):
    options, words = BAD[case]
    options = {"step": lambda s: s * 2, "state": U, "steps": 5, **options}
    args = [options.pop(name) for name in ("step", "state", "steps")]

    def run(u):
        given = [u if x is U else x for x in args]
        return np.sum(gs.checkpoint_scan(*given, **options))

    with pytest.raises(gs.GradsmithError) as caught:
        gs.grad(run)(U) if recorded else run(U)
    for each in words:
        assert each in str(caught.value)


def test_an_exception_of_the_step_passes_with_its_number():
    def step(x, i):
        return x / [1, 1, "three"][i]

    with pytest.raises(TypeError) as caught:
        gs.checkpoint_scan(step, U, 3, snapshots=1)
    assert "in step 2 of 3 of a checkpoint_scan" in caught.value.__notes__


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "checkpoint_schedules", None)
    actions.cache_clear()
    with pytest.raises(gs.GradsmithError, match=r"pip install 'gradsmith\[checkpoint"):
        gs.grad(lambda u: np.sum(gs.checkpoint_scan(np.sin, u, 9, snapshots=2)))(U)
