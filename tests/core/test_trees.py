"""Trees: taken apart and put together again, whatever they are made of."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import InitVar, dataclass, field
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradsmith as gs
from gradsmith.core import trees as _tree

Point = namedtuple("Point", "x y")


@dataclass
class Node:
    left: Any
    right: Any


@dataclass(frozen=True)
class Frozen:
    value: Any


@dataclass(slots=True)
class Slotted:
    value: Any


def _containers(children):
    pairs = st.tuples(children, children)
    named = st.dictionaries(
        st.text("abc", max_size=3) | st.integers(), children, max_size=3
    )
    return st.one_of(
        st.lists(children, max_size=3),
        st.lists(children, max_size=3).map(tuple),
        named,
        named.map(OrderedDict),
        named.map(lambda d: defaultdict(list, d)),
        pairs.map(lambda p: Point(*p)),
        pairs.map(lambda p: Node(*p)),
        children.map(Frozen),
        children.map(Slotted),
    )


leaves = st.one_of(
    st.integers(), st.none(), st.text(max_size=2), st.floats(allow_nan=False)
)
trees = st.recursive(leaves, _containers, max_leaves=12)
derandomized = settings(max_examples=80)


@derandomized
@given(trees)
def test_what_is_flattened_can_be_put_together(tree):
    again = _tree.unflatten(tree, _tree.leaves(tree))
    assert again == tree
    assert type(again) is type(tree)


@derandomized
@given(trees)
def test_other_leaves_come_in_the_same_order(tree):
    numbers = list(range(len(_tree.leaves(tree))))
    assert _tree.leaves(_tree.unflatten(tree, numbers)) == numbers


@derandomized
@given(trees)
def test_map_visits_every_leaf_once_in_order(tree):
    seen = []
    mapped = _tree.map(lambda leaf: seen.append(leaf) or (), tree)
    assert seen == _tree.leaves(tree)
    assert _tree.leaves(mapped) == []


@derandomized
@given(trees)
def test_mapping_two_trees_meets_leaf_with_leaf(tree):
    pairs = _tree.map(lambda a, b: Frozen(a == b), tree, tree)
    assert all(_tree.leaves(pairs))


@derandomized
@given(trees)
def test_a_name_is_an_expression_that_reaches_its_leaf(tree):
    named = list(_tree.leaves_with_names(tree, "tree"))
    assert [leaf for _, leaf in named] == _tree.leaves(tree)
    for name, leaf in named:
        assert eval(name, {"tree": tree}) == leaf


@derandomized
@given(trees)
def test_trees_of_two_structures_are_refused(tree):
    for one, other in [
        ([tree], 1),
        ([tree], [tree, tree]),
        ({"a": tree}, {"b": tree}),
        ([tree], {0: tree}),
        (Point(tree, [tree]), Node(tree, [tree])),
        ([1, (tree,)], [tree, ()]),
    ]:
        with pytest.raises(gs.GradsmithError, match="one structure"):
            _tree.map(lambda a, b: None, one, other)


def test_dicts_meet_by_key_and_keep_the_order_of_the_first():
    met = _tree.map(lambda a, b: (a, b), {"b": 1, "a": 2}, {"a": 20, "b": 10})
    assert list(met.items()) == [("b", (1, 10)), ("a", (2, 20))]


def test_a_container_is_not_changed():
    tree = {"a": [1, {"b": 2}]}
    _tree.map(lambda x: x + 1, tree)
    assert tree == {"a": [1, {"b": 2}]}


def test_a_defaultdict_keeps_its_default():
    tree = _tree.map(lambda x: x, defaultdict(list, a=1))
    assert tree["new"] == []


@dataclass
class Odd:
    """Fields that aren't given to __init__, and names that aren't fields."""

    a: Any
    given_once: InitVar[int] = 3
    shared: ClassVar[str] = "of the class"
    computed: Any = field(init=False, default=None)

    def __post_init__(self, given_once):
        self.computed = given_once


def test_dataclasses_are_rebuilt_without_running_their_init():
    odd = Odd(1, given_once=7)
    assert _tree.leaves(odd) == [1, 7]
    again = _tree.map(lambda x: x * 10, odd)
    assert (again.a, again.computed) == (10, 70)
    assert "shared" not in vars(again)


class Checked(namedtuple("Checked", "x y")):
    """A named tuple that is made in its own way."""

    def __new__(cls, x):
        return super().__new__(cls, x, 2 * x)


def test_named_tuples_are_rebuilt_field_by_field():
    again = _tree.map(lambda x: x + 1, Checked(1))
    assert (type(again), again.x, again.y) == (Checked, 2, 3)


def test_a_class_is_a_leaf():
    assert _tree.leaves([Node, Point, int]) == [Node, Point, int]
