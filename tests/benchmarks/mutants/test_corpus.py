"""The corpus has what it promises: enough of everything, all of it wrong."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from benchmarks.mutants.accepted import accepted
from benchmarks.mutants.corpus import Subject, controls, corpus
from benchmarks.mutants.differing import differs, upstream
from benchmarks.mutants.kind import FRAMEWORKS, Kind, of_all
from benchmarks.mutants.kinds import KINDS
from benchmarks.mutants.operations import HELD_OUT, OPERATIONS

MUTANTS = list(corpus())
HELD = """
absolute bce_with_logits convolve cumsum distance divide gram hinge huber inverse
layer_norm leaky_relu log logaddexp logdet matvec max_rows maximum
mean_and_deviation mse norm_rows polynomial prod_rows reciprocal segment_sum
softplus sort square_root tanh trace_product var_rows xlogy
"""


def test_there_is_enough_of_everything():
    assert len(OPERATIONS) >= 48
    assert len(KINDS) >= 24
    assert len({(m.operation, m.kind) for m in MUTANTS}) > 600
    assert len(MUTANTS) > 1500
    assert len(list(controls())) == 4 * len(OPERATIONS)


def test_every_framework_has_its_share():
    shares = Counter(m.framework for m in MUTANTS)
    assert set(shares) == set(FRAMEWORKS)
    assert min(shares.values()) > 300
    places = {(m.kind, m.framework) for m in MUTANTS}
    assert places == {(k.name, f) for k in KINDS.values() for f in k.frameworks}
    for name in OPERATIONS:  # and no operation stays in one framework
        assert len({m.framework for m in MUTANTS if m.operation == name}) == 4


def test_no_subject_is_there_twice():
    names = [m.name for m in MUTANTS]
    assert len(names) == len(set(names))


def test_half_of_every_family_is_held_out():
    for family in {op.family for op in OPERATIONS.values()}:
        names = {op.name for op in OPERATIONS.values() if op.family == family}
        assert len(names & HELD_OUT) == len(names) // 2


def test_the_choice_is_fixed():
    """Another would show to those who tune what they must not have seen."""
    assert set(HELD.split()) == HELD_OUT


def test_the_halves_make_the_whole():
    tuned, held_out = list(corpus(half="tuned")), list(corpus(half="held-out"))
    assert {*tuned, *held_out} == {*MUTANTS}
    assert not {m.operation for m in tuned} & HELD_OUT
    assert {m.operation for m in held_out} == HELD_OUT
    with pytest.raises(ValueError, match="tuned, held-out, both, not 'half'"):
        list(corpus(half="half"))


def test_selection():
    (only,) = corpus(kind="sign", operation="tanh")
    assert (only.kind, only.operation) == ("sign", "tanh")
    everywhere = list(corpus(kind="sign", operation="tanh", every=True))
    assert [m.framework for m in everywhere] == list(FRAMEWORKS)
    assert list(controls(framework="jax", operation="tanh")) == [Subject("tanh", "jax")]


def test_what_a_mutation_leaves_right_is_no_mutant():
    assert not differs("cholesky", "transposed")  # its gradient is symmetric
    assert not differs("hard_tanh", "wrong beyond 2.5")  # zero there
    assert not differs("absolute", "detached")  # its second derivative is zero
    assert not differs("tanh", "swapped")  # one argument
    assert differs("inverse", "transposed")
    assert differs("tanh", "detached")


def test_a_right_rule_does_not_differ(monkeypatch):
    same = Kind("same", lambda op: of_all(op, lambda dx: 1.0 * dx))
    monkeypatch.setitem(KINDS, "same", same)
    assert not any(differs(name, "same") for name in OPERATIONS)


@pytest.mark.parametrize("kind", [k for k in KINDS.values() if k.given or k.shows])
def test_given_inputs_do_not_show_what_only_others_show(kind):
    for name, op in OPERATIONS.items():
        if not differs(name, kind.name):
            continue
        xs = kind.inputs(op, 0)
        y = op.forward(*xs)
        dy = upstream(y, 0)
        rule = kind.make(op)
        assert rule is not None
        for a, b in zip(op.rule(dy, y, *xs), rule(dy, y, *xs), strict=True):
            if a is not None:
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_inputs_come_from_the_seed():
    mutant = MUTANTS[0]
    one, same, other = (mutant.arrays("float32", seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one[0], same[0])
    assert (one[0] != other[0]).any()
    assert one[0].dtype == np.float32


def test_diagnoses_that_come_to_the_same_are_accepted():
    assert accepted("mse", "swapped") == {"swap", "sign"}  # dx and -dx
    assert accepted("sum_columns", "wrong axis") == {"axis", "transpos"}
    assert accepted("softmax", "wrong axis") == {"axis"}
    assert accepted("multiply", "mean for sum") == {"mean"}
    assert accepted("tanh", "noise") == set()
