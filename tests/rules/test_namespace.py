"""No NumPy function is forgotten: each is ruled, declared constant, or on a list."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

import gradsmith as gs
from gradsmith import rules
from gradsmith.core import calls, rule
from gradsmith.core.rule import NOT_YET, RULES, Nondifferentiable
from gradsmith.rules.nondifferentiable import IN_PLACE
from tests.rules import cases, harness

DISPATCHED = type(np.sum)  # every function that takes part in __array_function__


def public(kind):
    """The public functions of NumPy of a kind, by name."""
    return {
        f"{module.__name__}.{name}": fn
        for module in (np, np.linalg, np.fft, np.emath, np.lib.stride_tricks)
        for name in dir(module)
        if not name.startswith("_") and isinstance(fn := getattr(module, name), kind)
    }


@pytest.fixture(scope="module", autouse=True)
def _all_families():
    for family in ("fft", "special"):
        rules.load(family)


def test_the_walk_sees_what_it_should():
    functions = public((DISPATCHED, np.ufunc))
    assert len(functions) > 330
    for name in ("numpy.exp", "numpy.where", "numpy.linalg.svd", "numpy.fft.rfft"):
        assert name in functions


def test_every_function_is_accounted_for():
    missing = [
        name
        for name, fn in public((DISPATCHED, np.ufunc)).items()
        if fn not in RULES and fn not in NOT_YET
    ]
    assert missing == []


def test_every_ufunc_has_a_rule():
    assert [name for name, fn in public(np.ufunc).items() if fn not in RULES] == []
    assert [fn for fn in NOT_YET if isinstance(fn, np.ufunc)] == []


def test_what_has_no_rule_yet_raises_and_says_why():
    x = gs.Tensor([0.5, 4.0])
    for fn, why in NOT_YET.items():
        args = (2, x) if fn in (np.emath.logn, np.emath.power) else (x,)
        fn(*args)
        with gs.GradientTape() as tape:
            tape.watch(x)
            with pytest.raises(gs.UnsupportedOperationError, match=why[:20]):
                fn(*args)


def test_nothing_is_in_both_lists():
    assert set(RULES) & set(NOT_YET) == set()


def test_every_silence_has_a_reason():
    declared = [rule for rule in RULES.values() if isinstance(rule, Nondifferentiable)]
    reasons = {rule.name: rule.why for rule in declared}
    reasons |= {fn.__name__: why for fn, why in NOT_YET.items()}
    assert [name for name, why in reasons.items() if len(why.split()) < 3] == []


def test_every_differentiable_rule_has_a_case():
    tried = {case.fn for case in cases.ALL if case.fn in RULES}
    tried |= called_by([case for case in cases.ALL if case.fn not in RULES])
    untried = [
        rule.name
        for fn, rule in RULES.items()
        if fn in public((DISPATCHED, np.ufunc)).values()
        and not isinstance(rule, Nondifferentiable)
        and fn not in IN_PLACE
        and fn not in tried
    ]
    assert untried == []


def called_by(wrappers):
    """The functions that these cases call: a case may be a function of its own."""
    called = set()

    class Spy(dict):
        def get(self, fn):
            called.add(fn)
            return super().get(fn)

    def find_rule(fn):
        called.add(fn)
        return rule.find_rule(fn)

    with (
        patch.object(calls, "RULES", Spy(RULES)),
        patch.object(calls, "find_rule", find_rule),
        np.errstate(all="ignore"),
    ):
        for case in wrappers:
            fn, xs = harness.as_function(case)
            fn(*map(gs.Tensor, xs))
    return called
