"""The graph of a tape as boxes: what it shows, and that it changes nothing."""

from __future__ import annotations

import weakref
from xml.etree import ElementTree

import numpy as np
import pytest

import gradsmith as gs


@gs.custom_gradient
def swish(x):
    s = 1 / (1 + np.exp(-x))
    return x * s, lambda dy: dy * (s + x * s * (1 - s))


def named(drawing, name):
    (box,) = [box for box in drawing.boxes if box.name == name]
    return box


def parents(drawing, name):
    return [drawing.boxes[i].name for i in named(drawing, name).parents]


@pytest.mark.parametrize("persistent", [True, False])
def test_operations_with_their_shapes_and_what_the_user_calls_them(persistent):
    x, w = (
        gs.Tensor(np.ones((8, 4), np.float32)),
        gs.Variable(np.ones((4, 3)), name="W"),
    )
    with gs.GradientTape(persistent=persistent) as tape:
        tape.watch(x)
        loss = np.sum(swish(x @ w))
    w = None  # it has a name of its own
    drawing = tape.draw(loss)
    shown = [(box.name, box.detail, box.kind) for box in drawing.boxes]
    assert shown == [
        ("x", "float32 (8, 4)", "input"),
        ("W", "float64 (4, 3)", "input"),
        ("np.matmul", "float64 (8, 3)", ""),
        ("swish", "float64 (8, 3)", "custom"),
        ("loss = np.sum", "float64 ()", "result"),
    ]
    assert parents(drawing, "np.matmul") == ["x", "W"]
    assert drawing.title == "The graph of loss"
    assert tape.gradient(loss, x) is not None  # nothing was used up


def test_others_that_are_alive_don_t_matter():
    class Owner:
        pass

    gone, x = weakref.proxy(Owner()), gs.Tensor(np.ones(3))
    with gs.GradientTape() as tape, gs.GradientTape() as other:
        tape.watch(x)
        y = np.exp(x)
    with pytest.raises(ReferenceError):
        isinstance(gone, gs.Tensor)
    for drawing in (tape.draw(), tape.draw(y)):
        assert [box.name for box in drawing.boxes] == ["x", "y = np.exp"]
    with pytest.raises(gs.TapeError):
        other.draw()


def test_without_a_target_all_that_is_alive_is_shown():
    x = gs.Tensor(np.ones(3))
    with gs.GradientTape() as tape:
        tape.watch(x)
        y, z = np.exp(x), np.tanh(x)
    names = [box.name for box in tape.draw().boxes]
    assert names == ["x", "y = np.exp", "z = np.tanh"]
    assert [box.name for box in tape.draw(z).boxes] == ["x", "z = np.tanh"]
    assert [box.name for box in tape.draw({"a": z, "b": [y]}).boxes] == names


def test_after_a_gradient_shapes_of_what_is_alive_remain():
    x = gs.Tensor(np.ones(3))
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = np.sum(np.exp(x))
    tape.gradient(y, x)
    details = {box.name: box.detail for box in tape.draw(y).boxes}
    assert details == {
        "x": "float64 (3,)", "np.exp": "", "y = np.sum": "float64 ()",
    }  # fmt: skip


def test_where_the_gradient_stops():
    x = gs.Tensor(np.ones(3))
    with gs.GradientTape() as tape:
        tape.watch(x)
        scale = gs.stop_gradient(np.max(x))
        loss = np.sum(np.where(x > 0, x, 0) / scale) + np.sum(np.round(x))
    drawing = tape.draw(loss)
    stops = [box.name for box in drawing.boxes if box.kind == "stop"]
    assert stops == ["gs.stop_gradient", "np.round"]  # and not the comparison
    assert parents(drawing, "gs.stop_gradient") == ["x"]  # np.max is gone
    note = named(drawing, "gs.stop_gradient").note
    assert "test_draw.py:" in note
    assert "it makes its argument a constant" in note
    assert "where the gradient stops is red" in str(drawing)


def test_an_input_for_which_an_operation_has_no_gradient():
    @gs.custom_gradient
    def first(x, w):
        return x * w, lambda dy: (dy * w, None)

    x, w = gs.Tensor(2.0), gs.Tensor(3.0)
    with gs.GradientTape() as tape:
        tape.watch([x, w])
        y = first(x, w)
    drawing = tape.draw(y)
    box = named(drawing, "y = first")
    assert [drawing.boxes[i].name for i in box.silent] == ["w"]
    assert 'class="edge stopped"' in drawing.svg


def test_a_target_that_is_not_followed_stands_among_what_is():
    x = gs.Tensor(np.ones(3))
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = np.exp(x)
        z = gs.stop_gradient(y)
    drawing = tape.draw(z)
    assert named(drawing, "z").detail == "not followed"
    assert parents(drawing, "gs.stop_gradient") == ["y = np.exp"]
    assert named(tape.draw(np.ones(3)), "target").kind == "stop"


def test_a_rule_that_fails_is_marked_and_the_rest_is_drawn():
    @gs.custom_gradient
    def broken(x):
        def grad(dy):
            raise ZeroDivisionError("mine")

        return x * 1, grad

    x = gs.Tensor(np.ones(3))
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = np.sum(broken(np.exp(x)))
    box = named(tape.draw(y), "broken")
    assert (box.kind, box.detail) == ("stop", "float64 (3,)")
    assert "ZeroDivisionError: mine" in box.note


def test_several_outputs_are_one_box():
    x = gs.Tensor(np.arange(1.0, 7.0))
    with gs.GradientTape() as tape:
        tape.watch(x)
        a, b = np.split(x, 2)
        c, _ = np.split(a, [1])
        y = np.sum(b) + np.sum(c)
    drawing = tape.draw(y)
    splits = [box for box in drawing.boxes if "np.split" in box.name]
    assert [box.name for box in splits] == ["a, b = np.split", "c = np.split"]
    assert splits[0].detail == "float64 (3,), float64 (3,)"
    assert drawing.boxes[splits[1].parents[0]] is splits[0]


@pytest.mark.parametrize("used_up", [False, True])
@pytest.mark.parametrize("n", [2, 5, 300])
@pytest.mark.parametrize("fn", [np.sin, np.tanh, np.negative, lambda x: x[::-1]])
def test_the_same_operation_again_is_another_box(fn, n, used_up):
    """Its rule is that of its only parent, as it is of one of several outputs."""
    x = gs.Tensor(np.ones(3))
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(n):
            y = fn(y)
    if used_up:
        tape.gradient(y, x)
    assert f"{n} operations, 1 input" in str(tape.draw(y))
    assert len(tape.draw(y, most=1000).boxes) == n + 1


def test_after_an_operation_that_raised():
    """Notebooks hold the last traceback, and with it what was being made."""
    x = gs.Tensor(np.ones(3))
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = np.sum(x)
        with np.errstate(over="raise"), pytest.raises(FloatingPointError) as held:
            np.exp(x * 1e5)
    assert "1 operation, 1 input" in str(tape.draw(y))
    assert held.tb is not None


def test_several_outputs_are_one_box_after_a_gradient():
    x = gs.Tensor(np.arange(1.0, 7.0))
    with gs.GradientTape() as tape:
        tape.watch(x)
        a, _ = np.split(x, 2)
        y = np.sum(a)
    tape.gradient(y, x)
    assert "2 operations, 1 input" in str(tape.draw(y))


def test_nothing_to_draw():
    with gs.GradientTape() as tape:
        pass
    with pytest.raises(gs.TapeError, match=r"tape\.draw\(loss\)"):
        tape.draw()


def test_a_long_loop_is_one_box():
    x = gs.Tensor(np.ones(4))
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(50):
            y = y + 0.1 * np.tanh(y)
        loss = np.sum(y)
    drawing = tape.draw(loss)
    assert len(drawing.boxes) < 10
    (loop,) = [box for box in drawing.boxes if box.kind == "folded"]
    assert loop.detail.endswith("times 3 operations")
    assert "151 operations, 1 input; a sequence that repeats is one box" in str(drawing)
    assert len(tape.draw(loss, most=1000).boxes) == 152


def test_a_file_is_svg_by_itself(tmp_path):
    x = gs.Tensor(np.ones(3))
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = np.exp(x)
    drawing = tape.draw(y)
    path = drawing.save(tmp_path / "graph.svg")
    tree = ElementTree.parse(path)
    texts = [each.text for each in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["x", "float64 (3,)", "y = np.exp", "float64 (3,)"]
    assert drawing._repr_svg_() == path.read_text(encoding="utf-8")
    assert "<svg" in drawing._repr_html_()


def test_words_are_escaped():
    evil = gs.Variable(1.0, name="<script>alert(1)</script>")
    with gs.GradientTape() as tape:
        y = evil * 2
    evil = None
    drawing = tape.draw(y)
    assert "&lt;script&gt;" in drawing.svg
    assert "<script" not in drawing.svg + drawing._repr_html_()


def test_a_program_is_drawn_by_the_same_means():
    program = gs.trace(lambda x, w: np.sum(np.tanh(x @ w)), np.ones((2, 3)), np.ones(3))
    drawing = program.draw()
    shown = [(box.name, box.detail, box.kind) for box in drawing.boxes]
    assert shown == [
        ("x", "float64 (2, 3)", "input"),
        ("w", "float64 (3,)", "input"),
        ("np.matmul", "float64 (2,)", ""),
        ("np.tanh", "float64 (2,)", ""),
        ("np.sum", "float64 ()", "result"),
    ]
    assert "test_draw.py" in drawing.boxes[2].note
    assert "<summary>Graph</summary>" in program._repr_html_()
