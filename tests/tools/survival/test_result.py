"""The results as values, and as tables."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.report.html import html
from gradsmith.tools.survival import Fate, Outcome, Survival

FOUND = Survival(
    "square",
    "PyTorch",
    "2.13.0",
    (
        Outcome("backward", Fate.HONOURED),
        Outcome("compile(func.grad)", Fate.DROPPED, "the result is the same"),
        Outcome("func.jvp", Fate.REFUSED, "NotImplementedError: <no> jvp"),
    ),
)
FINE = Survival("other", "PyTorch", "2.13.0", FOUND.outcomes[::2])


def test_a_drop_is_not_ok_and_a_refusal_is():
    assert not FOUND.ok
    assert FINE.ok
    assert [o.ok for o in FOUND.outcomes] == [True, False, True]
    wrong = dataclasses.replace(FINE, outcomes=(Outcome("a", Fate.WRONG),))
    assert not wrong.ok


def test_outcomes_are_found_by_name():
    assert FOUND["func.jvp"].verdict == "refused"
    with pytest.raises(KeyError, match=r"is none of backward, compile\(func.grad\)"):
        FOUND["jvp"]
    assert FOUND.count("dropped") == 1


def test_the_results_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        FOUND.operation = "x"


@pytest.mark.parametrize("fate", Fate)
def test_a_verdict_has_the_same_colour_side_by_side(fate):
    """A wrong result is as red as a rule that was dropped."""
    colours = {Fate.HONOURED: "good", Fate.REFUSED: "", Fate.UNCLEAR: "open"}
    one = dataclasses.replace(FINE, outcomes=(Outcome("a", fate),))
    both = html(gs.survival_table({"ours": one}).document().blocks)
    colour = colours.get(fate, "bad")
    kind = f' class="{colour}"' if colour else ""
    assert f"<td{kind}>{fate.symbol} {fate}</td>" in both


def test_the_table_lines_up():
    lines = str(FOUND).splitlines()
    assert lines == [
        "square in PyTorch 2.13.0",
        "  backward            ✓ honoured",
        "  compile(func.grad)  ✗ dropped   the result is the same",
        "  func.jvp            - refused   NotImplementedError: <no> jvp",
        "  1 honoured, 1 dropped, 1 refused",
    ]


def test_long_details_are_cut_to_the_width():
    lines = FOUND.table(width=50).splitlines()
    assert max(map(len, lines)) == 50
    assert lines[3].endswith("…")


def test_a_note_is_shown():
    noted = dataclasses.replace(FOUND, note="can't be silenced")
    assert "  note: can't be silenced" in str(noted)
    assert "can&#x27;t be silenced" in noted._repr_html_()


def test_nothing_run():
    assert str(dataclasses.replace(FOUND, outcomes=())).endswith("nothing run")


def test_json():
    found = json.loads(FOUND.to_json())
    assert found["ok"] is False
    assert found["outcomes"][1] == {
        "transformation": "compile(func.grad)",
        "verdict": "dropped",
        "detail": "the result is the same",
    }
    assert found == FOUND.as_dict() | {"outcomes": list(found["outcomes"])}


def test_html_is_escaped():
    html = FOUND._repr_html_()
    assert "<table>" in html
    assert "&lt;no&gt; jvp" in html


def test_side_by_side():
    both = gs.survival_table({"ours": FINE, "theirs": FOUND})
    assert not both.ok
    assert str(both).splitlines() == [
        "transformation      ours        theirs",
        "------------------  ----------  ----------",
        "backward            ✓ honoured  ✓ honoured",
        "func.jvp            - refused   - refused",
        "compile(func.grad)              ✗ dropped",
    ]
    assert both.markdown().splitlines()[:3] == [
        "| transformation | ours | theirs |",
        "| --- | --- | --- |",
        "| backward | ✓ honoured | ✓ honoured |",
    ]
    assert json.loads(both.to_json())["ours"]["ok"] is True
    assert '<th scope="col">theirs</th>' in both._repr_html_()


def test_columns_are_called_by_their_operations():
    assert str(gs.survival_table([FOUND, FINE])).splitlines()[0].split() == [
        "transformation", "square", "other",
    ]  # fmt: skip


def test_only_results_can_stand_side_by_side():
    with pytest.raises(gs.GradsmithError, match=r"needs results of gs\.survives"):
        gs.survival_table([np.ones(3)])
