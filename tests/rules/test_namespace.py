"""No NumPy function is forgotten: each is ruled, declared constant, or on a list."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs
from gradsmith import rules
from gradsmith._rule import RULES, Nondifferentiable
from gradsmith.rules.nondifferentiable import IN_PLACE
from gradsmith.rules.not_yet import NOT_YET
from tests.rules import cases

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
    x = gs.Tensor([1.0, 4.0])
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
    tried = {case.fn for case in cases.ALL}
    everything = set(public((DISPATCHED, np.ufunc)).values())
    differentiable = {
        fn
        for fn in everything & set(RULES)
        if not isinstance(RULES[fn], Nondifferentiable) and fn not in IN_PLACE
    }
    assert sorted(RULES[fn].name for fn in differentiable - tried) == []
