import json
from io import StringIO

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

import gradsmith as gs
from gradsmith.command.audit_display import show
from gradsmith.command.audited import Audited
from gradsmith.command.command import gradsmith

OPS = """
import numpy as np
import gradsmith as gs

@gs.custom_gradient
def square(x):
    return x * x, lambda dy: 2 * x * dy

@gs.custom_gradient
def slope(x):
    y = np.tanh(x)
    return y, lambda dy: dy * (1 - y * y)

@gs.custom_gradient
def broken(x):
    raise ValueError("nothing works")
"""
FEW = ("--points", "300", "--domain", "-9", "9")


@pytest.fixture
def ops(tmp_path, monkeypatch):
    file = tmp_path / "audited_ops.py"
    file.write_text(OPS)
    monkeypatch.chdir(tmp_path)
    return "audited_ops.py"


def run(*args):
    return CliRunner().invoke(gradsmith, ["audit", *args])


def test_the_status_is_by_the_limit(ops):
    assert run(f"{ops}:square", *FEW).exit_code == 0
    far = run(f"{ops}:slope", *FEW)
    assert far.exit_code == 1
    assert "beyond 4 ULP" in far.output
    assert run(f"{ops}:slope", *FEW, "--max-ulp", "1e9").exit_code == 0
    assert run(f"{ops}:square", *FEW, "--max-ulp", "0.1").exit_code == 1


def test_what_cannot_run_is_no_verdict(ops):
    found = run(f"{ops}:broken", *FEW)
    assert found.exit_code == 3
    assert "nothing works" in found.output
    assert run(f"{ops}:missing", *FEW).exit_code == 3
    assert "there is no 'numpy:missing'" in run("numpy:missing", *FEW).output
    assert run("nowhere.py", *FEW).exit_code == 2


def test_all_operations_of_a_file_are_found(ops):
    found = run(ops, *FEW)
    assert found.exit_code == 1
    assert "1 within 4 ULP, 1 beyond 4 ULP, 1 could not be judged" in found.output
    some = run(ops, *FEW, "-k", "squ")
    assert some.exit_code == 0
    assert "slope" not in some.output


@pytest.mark.parametrize("name", ["numpy:exp", "torch:exp", "torch.nn.functional:silu"])
def test_functions_by_name(name):
    found = run(name, "--points", "200", "--domain", "0.5", "1")
    assert found.exit_code == 0, found.output
    assert ("NumPy" if "numpy" in name else "PyTorch") in found.output


def test_json(ops):
    found = run(f"{ops}:slope", *FEW, "--json")
    document = json.loads(found.stdout)
    assert document["exit_status"] == found.exit_code == 1
    assert document["max_ulp"] == 4
    (result,) = document["results"]
    assert result["report"]["gradient"]["max_ulp"] > 4
    assert result["report"]["gradient"]["regions"]


def test_json_in_a_file_leaves_the_table(ops, tmp_path):
    found = run(f"{ops}:square", *FEW, "--json", "found.json")
    assert "within 4 ULP" in found.output
    assert json.loads((tmp_path / "found.json").read_text())["exit_status"] == 0


def test_a_page(ops, tmp_path):
    found = run(f"{ops}:square", *FEW, "--html", "page.html")
    assert "the page is page.html" in found.output
    assert "Accuracy of" in (tmp_path / "page.html").read_text()
    assert "there is no folder" in run(f"{ops}:square", "--html", "no/p.html").output


def test_all_numbers_are_kept_in_a_file(ops, tmp_path):
    options = ("--exhaustive", "--domain", "0.5", "0.5001", "--jobs", "1")
    first = run(f"{ops}:square", *options, "--resume", "kept.jsonl")
    assert first.exit_code == 0, first.output
    assert "proven" in first.output
    lines = (tmp_path / "kept.jsonl").read_text().splitlines()
    again = run(f"{ops}:square", *options, "--resume", "kept.jsonl")
    assert again.exit_code == 0
    assert (tmp_path / "kept.jsonl").read_text().splitlines() == lines


def test_a_cluster_that_is_not_there():
    pytest.importorskip("distributed")
    found = run("numpy:exp", *FEW, "--dask", "nonsense://1")
    assert found.exit_code == 2
    assert "no cluster found at nonsense://1" in found.output


@pytest.mark.filterwarnings("default")  # Dask's own
def test_a_cluster(ops):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        found = run(
            "numpy:square", "--exhaustive", "--domain", "0.5", "0.5001",
            "--dask", cluster.scheduler_address,
        )  # fmt: skip
    assert found.exit_code == 0, found.output


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_fits(width):
    results = [
        Audited("some/long/path/to/ops.py:function", gs.audit(np.tanh, points=100)),
        Audited("ops.py:broken", message="raised ValueError: nothing works"),
    ]
    console = Console(width=width, record=True, force_terminal=True, file=StringIO())
    show(results, 4, "1 of each", console)
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= width
    assert ("framework" in lines[0]) == (width > 100)


WILD = """
import os, time
import numpy as np
import gradsmith as gs

@gs.custom_gradient
def hangs(x):
    while np.size(x) > 1 and x.dtype != object:
        time.sleep(0.1)
    return x * x, lambda dy: 2 * x * dy

@gs.custom_gradient
def slower(x):
    if np.size(x) and np.max(x) > 8:
        time.sleep(600)
    return x * x, lambda dy: 2 * x * dy

@gs.custom_gradient
def crashes(x):
    os.abort()

@gs.custom_gradient
def changes(x):
    np.multiply = np.add = np.isfinite = None
    print("\\x1b[31m")
    raise ValueError("\\x1b[31mred")

@gs.custom_gradient
def square(x):
    return x * x, lambda dy: 2 * x * dy
"""


def test_audits_are_isolated_and_limited(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wild.py").write_text(WILD)
    (tmp_path / "exits.py").write_text(OPS + "raise SystemExit(0)\n")
    found = run("wild.py", "exits.py", *FEW, "--time-limit", "6", "--json", "all.json")
    assert found.exit_code == 3, found.output
    document = json.loads((tmp_path / "all.json").read_text())
    messages = {row["target"]: row["message"] for row in document["results"]}
    assert "took longer than 6 s" in messages["wild.py:hangs"]
    assert "took longer than 6 s" in messages["wild.py:slower"]
    assert "crashed (SIGABRT)" in messages["wild.py:crashes"]
    assert messages["wild.py:changes"] == "raised ValueError: \\x1b[31mred"
    assert messages["wild.py:square"] == ""
    assert messages["exits.py"] == "raised SystemExit: 0"
    assert "\x1b" not in found.output
    assert "1 within 4 ULP, 5 could not be judged" in found.output


@pytest.mark.parametrize("options", [{"points": 200}, {"dtype": "float16"}])
def test_an_audit_comes_back_from_its_data(options):
    report = gs.audit(lambda x: np.log1p(-x), **options)
    data = json.loads(report.to_json())
    again = type(report).from_dict(data)
    assert again.to_json() == report.to_json()
    assert str(again) == str(report)
