"""What is remembered about types and functions is bounded: both are made in loops."""

from __future__ import annotations

import gc
import types

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.core import arity, arrays, caches, trees
from gradsmith.core.cotangent import Spec
from gradsmith.operations.operation import OPERATIONS
from gradsmith.operations.trial import Trials

MOST = 50
CODE = """
from dataclasses import dataclass

@dataclass
class Point:
    x: object

@gs.operation
def double(p, scale=1.0):
    return p.x * 2 * scale

@double.vjp
def _(dy, y, p, scale=1.0):
    return Point(dy * 2 * scale)
"""


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    monkeypatch.setattr(caches, "MOST", MOST)
    for cache in (arity._known, arrays._known, trees._kinds):
        cache.clear()


def test_operations_that_are_defined_and_called():
    before = len(OPERATIONS)
    for _ in range(500):
        scope = {"gs": gs, "__name__": __name__}
        exec(CODE, scope)
        dx = gs.grad(lambda x, s=scope: s["double"](s["Point"](x)))(3.0)
        assert dx == 2
        assert max(map(len, (arity._known, arrays._known, trees._kinds))) <= MOST
    del scope
    gc.collect()
    # Those that the caches still know, and no other
    assert len(OPERATIONS) - before <= MOST


def test_what_trials_found():
    trials, runs = Trials(), []
    for n in range(500):
        call = types.SimpleNamespace(values=[Spec((n,), np.dtype("float32"))])
        for _ in range(2):
            run = lambda n=n: runs.append(n) or n
            assert trials.once("outputs", call, run, "op") == n
        assert len(trials._found) <= MOST
    assert runs == [*range(500)]


def test_the_latest_entries_stay():
    table = caches.Latest()
    for i in range(500):
        table[i] = str(i)
        assert table[0] == "0"  # used all the time
        assert len(table) <= 2 * MOST
    assert all(table[i] == str(i) for i in range(500 - MOST, 500))
    with pytest.raises(KeyError):
        table[1]
    del table[0]
    assert 0 not in table
