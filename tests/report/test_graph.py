"""Layout and folding of graphs."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gradsmith.report.drawing import FOLDED, INPUT, Box, Drawing, folded
from gradsmith.report.plots.graph import BESIDE, Layout, apart

names = st.sampled_from(["f", "np.tanh", "an operation with a long name"])


@st.composite
def graphs(draw, most=14):
    boxes = []
    for i in range(draw(st.integers(1, most))):
        parents = draw(st.lists(st.integers(0, max(i - 1, 0)), max_size=3, unique=True))
        parents = tuple(p for p in parents if p < i)
        boxes.append(Box(draw(names), "f", "" if parents else INPUT, parents))
    return boxes


@given(graphs())
def test_boxes_don_t_overlap_and_edges_lead_down(boxes):
    figure = Drawing("g", boxes, most=100).figure
    layout = Layout(figure.data["boxes"])
    width, height = layout.size
    places = [layout.place(i) for i in range(len(boxes))]
    for x, y, wide in places:
        assert x >= 0
        assert x + wide <= width
        assert 0 < y < height
    for i, (x, y, wide) in enumerate(places):
        for other_x, other_y, other_wide in places[:i]:
            apart = x >= other_x + other_wide + 1 or other_x >= x + wide + 1
            assert y != other_y or apart
    for i, box in enumerate(boxes):
        for parent in box.parents:
            ys = [y for _, y in layout.points(parent, i)]
            assert ys == sorted(ys)
            assert len(ys) >= 2


@given(
    st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(1, 99)), min_size=1, max_size=9)
)
def test_places_are_apart_and_the_nearest(pairs):
    wanted, widths = zip(*pairs, strict=True)
    found = apart(wanted, widths)
    for (x, y), (a, b) in zip(pairwise(found), pairwise(widths), strict=True):
        assert y - x >= (a + b) / 2 + BESIDE - 1e-6
    best = np.sum((np.array(found) - wanted) ** 2)
    for shift in (-1.0, 1.0):  # all of it, which keeps the distances
        assert np.sum((np.array(found) + shift - wanted) ** 2) >= best - 1e-6


@given(graphs(most=40), st.integers(1, 12))
def test_folding_keeps_every_operation_and_the_order(boxes, most):
    fewer, _ = folded(boxes, most)
    working = [box for box in fewer if box.kind != INPUT]
    assert len(working) <= max(most, 1)
    for i, box in enumerate(fewer):
        assert all(parent < i for parent in box.parents)
    counts = [
        np.prod([int(n) for n in re.findall(r"\d+", box.detail)])
        if box.kind == FOLDED
        else 1
        for box in working
    ]
    assert sum(counts) == sum(box.kind != INPUT for box in boxes)


def layers(n):
    """A network: each layer with weights of its own, and a way around it."""
    boxes = [Box("x", kind=INPUT)]
    boxes += [Box(f"w{i}", kind=INPUT) for i in range(n)]
    last = 0
    for i in range(n):
        boxes.append(Box("np.matmul", "f", "", (last, 1 + i)))
        boxes.append(Box("np.tanh", "f", "", (len(boxes) - 1,)))
        boxes.append(Box("np.add", "f", "", (len(boxes) - 1, last)))
        last = len(boxes) - 1
    return boxes


def test_a_network_of_many_layers_is_one_box_with_its_weights():
    fewer, said = folded(layers(20), 30)
    assert said == "; a sequence that repeats is one box"
    (loop,) = [box for box in fewer if box.kind == FOLDED]
    assert loop.name == "np.matmul, np.tanh, np.add"
    assert re.fullmatch(r"(19|20) times 3 operations", loop.detail)
    inputs = [box.name for box in fewer if box.kind == INPUT]
    assert "x" in inputs
    assert any(re.fullmatch(r"(19|20) inputs", name) for name in inputs)


def test_what_does_not_repeat_is_counted():
    boxes = [Box("x", kind=INPUT)]
    boxes += [Box(f"f{i}", "f", "", (i,)) for i in range(100)]
    fewer, said = folded(boxes, 30)
    assert said == "; the first 71 are one box"
    assert len(fewer) == 31
    assert fewer[-1].name == "f99"


def test_few_boxes_stay_as_they_are():
    boxes = layers(3)
    assert folded(boxes, 30) == (boxes, "")
