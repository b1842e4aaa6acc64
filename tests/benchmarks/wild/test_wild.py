"""The corpus of public packages: its tables, its oracle, and what is counted."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks._report import Options
from benchmarks.wild.case import EDGE, RIGHT, SURROGATE, WRONG, Case, Table
from benchmarks.wild.cases import FRAMEWORKS, corpus
from benchmarks.wild.oracle import judge, ridders
from benchmarks.wild.report import OracleReport, WildReport, agrees, figures
from benchmarks.wild.worker import word

torch = pytest.importorskip("torch")


def case(make, truth=RIGHT, framework="torch", **options):
    return Case("a/b/c", framework, "b", "b.py:1", truth, "a test", make, **options)


def test_the_corpus_is_large_and_varied():
    cases = corpus()
    assert len(cases) >= 100
    assert len({case.package for case in cases}) >= 25
    assert len({case.name for case in cases}) == len(cases)
    for framework in FRAMEWORKS:
        mine = [case.truth for case in cases if case.framework == framework]
        assert len(mine) >= 30
        assert set(mine) >= {RIGHT, EDGE, SURROGATE}


def test_every_case_says_where_it_is_and_why_it_is_judged_so():
    for each in corpus():
        assert re.search(r"\.(py|cpp|yaml)\b", each.source), each.name
        assert each.why, each.name


def test_the_packages_are_pinned():
    with open("benchmarks/wild/requirements.txt") as file:
        lines = [line for line in file if not line.startswith("#")]
    pinned = {line.partition("==")[0] for line in lines}
    assert all(line.strip().partition("==")[2] for line in lines)
    for each in corpus():
        assert each.package.lower().replace("_", "-") in pinned, each.name


def test_ridders_method_is_exact_and_knows_its_error():
    value, error = ridders(np.sin, 0.1)
    assert abs(value - 1) < 1e-10
    assert error < 1e-8


def linear(slope):
    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, dy):
            (x,) = ctx.saved_tensors
            return slope * x**2 * dy

    return lambda random: (Linear.apply, torch.tensor(random.normal(size=4)))


def test_the_oracle_tells_right_from_wrong():
    right, wrong = judge(case(linear(3))), judge(case(linear(3.001)))
    assert (right.first, right.second) == ("agrees", "agrees")
    assert wrong.first == "differs"
    assert wrong.error == pytest.approx(0.001 / 3, rel=1e-2)
    assert right.fits(RIGHT)
    assert right.fits(EDGE)
    assert not right.fits(WRONG)
    assert wrong.fits(WRONG)
    assert wrong.fits(SURROGATE)
    assert not wrong.fits(RIGHT)


def test_the_oracle_keeps_symmetric_matrices_symmetric():
    def make(random):
        a = random.normal(size=(3, 3))
        return torch.linalg.eigvalsh, torch.tensor(a + a.T)

    assert judge(case(make)).first == "agrees"


def test_the_oracle_sees_a_second_order_that_is_lost():
    class Saved(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(3 * x**2)
            return x**3

        @staticmethod
        def backward(ctx, dy):
            return ctx.saved_tensors[0] * dy

    found = judge(case(lambda random: (Saved.apply, torch.tensor([1.0, 2.0]))))
    assert (found.first, found.second) == ("agrees", "differs")


def test_the_verdict_is_one_word_before_and_after_grading():
    assert word(SimpleNamespace(verdict=None, ok=True)) == "right"
    assert word(SimpleNamespace(ok=False)) == "wrong"
    assert word(SimpleNamespace(verdict="inconclusive")) == "could not tell"
    assert word(SimpleNamespace(verdict="right, with limits")) == "right, with limits"


def rows(*pairs):
    return [
        (case(None, truth), {"verdict": verdict, "seconds": 1.0})
        for truth, verdict in pairs
    ]


def test_what_agrees():
    expected = {
        (RIGHT, "right"): True,
        (EDGE, "right, with limits"): True,
        (RIGHT, "wrong"): False,
        (RIGHT, "surrogate"): False,
        (WRONG, "wrong"): True,
        (WRONG, "right"): False,
        (SURROGATE, "surrogate"): True,
        (SURROGATE, "wrong"): False,
        (RIGHT, "could not tell"): False,
    }
    for pair, answer in expected.items():
        assert agrees(*rows(pair)[0]) is answer, pair


def test_figures_count_each_truth_apart():
    found = figures(
        rows((RIGHT, "right"), (EDGE, "wrong"), (WRONG, "right"), (RIGHT, "raised"))
    )
    values = {row.case: (row.value, row.ok) for row in found}
    assert values["right ones called right"] == (pytest.approx(1 / 3), False)
    assert values["bugs found"] == (0, False)
    assert values["crashes"] == (1, False)
    assert values["seconds, p90"] == (1.0, True)


def test_the_reports_are_tables_and_json():
    report = WildReport("wild", Options(), rows((RIGHT, "right"), (RIGHT, "wrong")))
    assert "disagreements: 1" in report.table()
    json.dumps(report.as_dict())
    measured = judge(case(linear(2))).as_dict()
    outcome = {**measured, "fits": False, "seconds": 1.0}
    oracle = OracleReport("wild", Options(), [(case(None), outcome)])
    assert "NO" in oracle.table()
    assert not oracle.ok


def test_a_table_names_its_cases_after_their_functions():
    table = Table("torch")

    @table("package", "package/file.py:1", RIGHT, "a reason", x64=True)
    def operation(random):
        return ()

    (made,) = table.cases
    assert made.name == "torch/package/operation"
    assert made.x64
    assert made.version == ""
