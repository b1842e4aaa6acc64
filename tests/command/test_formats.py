"""What other programs read: GitHub's commands, JUnit, SARIF, Markdown and the badge."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gradsmith.command.entries import Entry, Finished, Level, Remark, Spot
from gradsmith.command.formats import FORMATS
from gradsmith.command.formats.badge import drawn, words_of
from gradsmith.command.formats.github import escaped, of_property
from gradsmith.report.terminal import clean
from tests.command.test_audit import FEW
from tests.command.test_audit import OPS as AUDITED
from tests.command.test_report import run

OPS = """\
import numpy as np
import gradsmith as gs


@gs.custom_gradient
def right(x):
    return x**2, lambda dy: 2 * x * dy


class Held:
    @gs.custom_gradient
    def wrong(self, x):
        return x**2, lambda dy: 3 * x * dy


@gs.custom_gradient
def limited(x):
    y = np.sqrt(np.sum(x * x))
    return y, lambda dy: dy * x / y


@gs.custom_gradient
def surrogate(x):
    return np.round(x), lambda dy: dy


@gs.custom_gradient(surrogate="straight through")
def declared(x):
    return np.round(x), lambda dy: dy


@gs.custom_gradient
def unclear(x):
    mask = np.random.default_rng().uniform(size=x.shape)
    return mask * x, lambda dy: mask * dy


@gs.custom_gradient
def broken(x):
    raise ValueError("100 %: nothing, really\\nnothing | works <b>")
"""
LINES = OPS.splitlines()


def line(text: str) -> int:
    """Where the decorator of a definition is."""
    return next(i for i, each in enumerate(LINES, 1) if text in each) - 1


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """One run in every format, in a folder with a space in its name."""
    patch = pytest.MonkeyPatch()
    folder = tmp_path_factory.mktemp("a project")
    (folder / "my ops").mkdir()
    (folder / "my ops" / "some_ops.py").write_text(OPS, encoding="utf-8")
    patch.chdir(folder)
    patch.setenv("GITHUB_STEP_SUMMARY", str(folder / "summary.md"))
    patch.delenv("GITHUB_WORKSPACE", raising=False)
    (folder / "summary.md").write_text("before\n")
    files = {name: f"{folder}/out.{name}" for name in FORMATS}
    files["markdown"] = f"{folder}/summary.md"
    words = [f"--format={name}={file}" for name, file in files.items()]
    found = run("check", "my ops", "--quick", *words)
    patch.undo()
    assert found.exit_code == 1, found.output
    assert "1 wrong" in found.stdout  # the table too, since all formats have files
    return {name: Path(file).read_text("utf-8") for name, file in files.items()}


# --- GitHub

COMMAND = re.compile(r"::(error|warning|notice) (.*?)::(.*)")


def commands(text: str):
    for each in text.splitlines():
        level, properties, message = COMMAND.fullmatch(each).groups()
        pairs = dict(pair.split("=", 1) for pair in properties.split(","))
        yield level, {k: unquote(v) for k, v in pairs.items()}, unquote(message)


def test_annotations_stand_at_the_lines_of_the_rules(outputs):
    *found, (level, _, total) = commands(outputs["github"])
    where = {p["title"].partition(":")[2]: (kind, p) for kind, p, _ in found}
    wrong, p = where["Held.wrong: wrong (NumPy)"]
    assert wrong == "error"
    assert p["file"] == "my ops/some_ops.py"
    assert int(p["line"]) == line("def wrong")
    assert p["col"] == "5"
    for name in ("limited: right, with limits (NumPy)", "surrogate: surrogate (NumPy)"):
        assert where[name][0] == "warning"
        assert int(where[name][1]["line"]) == line(f"def {name.partition(':')[0]}")
    assert where["unclear: could not tell (NumPy)"][0] == "warning"
    # What raised is more to the point than the definition
    assert int(where["broken: could not run"][1]["line"]) == line("raise") + 1
    assert len(found) == 5  # of those that are right, and as declared, none
    assert level == "notice"
    assert "1 wrong" in total


def test_a_message_is_one_line_and_nothing_is_lost(outputs):
    words = {p["title"]: message for _, p, message in commands(outputs["github"])}
    (broken,) = [said for title, said in words.items() if "broken" in title]
    assert "100 %: nothing, really\nnothing | works <b>" in broken
    (wrong,) = [said for title, said in words.items() if "Held.wrong" in title]
    assert "3/2 times the derivative" in wrong
    assert "repair: " in wrong


@given(st.text())
def test_escapes_can_be_undone(words):
    assert "\n" not in escaped(words)
    assert "\r" not in escaped(words)
    assert not {",", ":", "\n"} & {*of_property(words)}
    back = of_property(words)
    for code, each in (("%3A", ":"), ("%2C", ","), ("%0D", "\r"), ("%0A", "\n")):
        back = back.replace(code, each)
    assert back.replace("%25", "%") == words


def test_strict_makes_errors_of_limits(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("ops.py").write_text(OPS)
    words = ("check", "ops.py", "--quick", "--format", "github", "-k", "surr")
    assert run(*words).stdout.startswith("::warning file=ops.py")
    found = run(*words, "--strict")
    assert found.exit_code == 1
    assert found.stdout.startswith("::error file=ops.py")


def test_paths_are_those_of_the_repository(tmp_path, monkeypatch):
    (tmp_path / "part").mkdir()
    monkeypatch.chdir(tmp_path / "part")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    Path("ops.py").write_text(OPS)
    found = run("check", "ops.py:surrogate", "--quick", "--format", "github")
    assert "file=part/ops.py," in found.stdout


# --- JUnit, by the schema of Jenkins' xUnit plugin (xunit2 of pytest)

ATTRIBUTES = {
    "testsuites": {"name", "time", "tests", "failures", "errors", "skipped"},
    "testsuite": {
        *("name", "tests", "failures", "errors", "skipped", "time", "timestamp"),
        *("hostname", "id", "package"),
    },
    "testcase": {"name", "classname", "time"},
    "failure": {"message", "type"},
    "error": {"message", "type"},
    "skipped": {"message"},
    "system-out": set(),
}
CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"testcase"},
    "testcase": {"failure", "error", "skipped", "system-out"},
}


def require_junit(text: str) -> ElementTree.Element:
    root = ElementTree.fromstring(text.encode())
    for element in root.iter():
        assert set(element.attrib) <= ATTRIBUTES[element.tag]
        allowed = CHILDREN.get(element.tag, set())
        assert {child.tag for child in element} <= allowed
        if element.tag == "testcase":
            assert set(element.attrib) == ATTRIBUTES["testcase"]
            assert float(element.attrib["time"]) >= 0
        if element.tag == "testsuite":
            assert re.fullmatch(
                r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", element.attrib["timestamp"]
            )
        for tag, count in (
            ("failure", "failures"), ("error", "errors"), ("skipped", "skipped"),
        ):  # fmt: skip
            if element.tag == "testsuite":
                said = int(element.attrib[count])
                assert said == len(element.findall(f"testcase/{tag}"))
    return root


def test_a_test_case_for_each_operation(outputs):
    root = require_junit(outputs["junit"])
    found = {
        case.attrib["name"]: [child.tag for child in case]
        for case in root.iter("testcase")
    }
    assert found == {
        "right [NumPy]": ["system-out"],
        "Held.wrong [NumPy]": ["failure"],
        "limited [NumPy]": ["system-out"],
        "surrogate [NumPy]": ["system-out"],
        "declared [NumPy]": ["system-out"],
        "unclear [NumPy]": ["skipped"],
        "broken": ["error"],
    }
    wrong = next(root.iter("failure"))
    assert wrong.text.startswith(f"my ops/some_ops.py:{line('def wrong')}\n")
    assert "to reproduce it" in wrong.text
    (suite,) = root
    assert suite.attrib["tests"] == "7"


# --- SARIF 2.1.0: what of its schema is used, and nothing else. A key that is added
# has to be looked up there: strings are patterns, ? marks what may be missing.

WORDS, SITE = r"(?s).+", r"https://\S+"
LEVEL = "error|warning"
TEXT = {"text": WORDS}
RULE = {
    "id": r"(check|audit)/[a-z0-9-]+",
    "name": r"[A-Z]\w*",
    "shortDescription": TEXT,
    "fullDescription": TEXT,
    "help": TEXT,
    "helpUri": SITE,
    "defaultConfiguration": {"level": LEVEL},
}
LOCATION = {
    "physicalLocation": {
        "artifactLocation": {
            "uri": r"(file:///)?[\w.~%-][\w./~%-]*",
            "uriBaseId?": "%SRCROOT%",
        },
        "region": {"startLine": 1, "startColumn": 1},  # or more
    },
    "logicalLocations?": [{"fullyQualifiedName": WORDS, "kind": "function"}],
}
RESULT = {
    "ruleId": RULE["id"],
    "ruleIndex": 0,
    "level": LEVEL,
    "message": TEXT,
    "partialFingerprints": {"gradsmith/v1": "[0-9a-f]{32}"},
    "locations": [LOCATION],
}
DRIVER = {
    "name": "gradsmith (check|audit)",
    "version": r"\d+\.\d+\.\d+\S*",
    "informationUri": SITE,
    "rules": [RULE],
}
SARIF = {
    "$schema": r"https://json\.schemastore\.org/sarif-2\.1\.0\.json",
    "version": r"2\.1\.0",
    "runs": [
        {
            "tool": {"driver": DRIVER},
            "automationDetails": {"id": "gradsmith/(check|audit)/"},
            "columnKind": "unicodeCodePoints",
            "results": [RESULT],
        }
    ],
}


def require_shape(value, shape, path="") -> None:
    if isinstance(shape, dict):
        assert isinstance(value, dict), path
        names = {name.rstrip("?"): part for name, part in shape.items()}
        assert set(value) <= set(names), path
        assert {each for each in shape if not each.endswith("?")} <= set(value), path
        for name, part in value.items():
            require_shape(part, names[name], f"{path}/{name}")
    elif isinstance(shape, list):
        assert isinstance(value, list), path
        for i, part in enumerate(value):
            require_shape(part, shape[0], f"{path}/{i}")
    elif isinstance(shape, int):
        assert type(value) is int, path
        assert value >= shape, path
    else:
        assert isinstance(value, str), path
        assert re.fullmatch(shape, value), (path, value)


def require_sarif(document) -> list:
    require_shape(document, SARIF)
    (found,) = document["runs"]
    driver = found["tool"]["driver"]
    names = [rule["id"] for rule in driver["rules"]]
    assert len(names) == len({*names})
    prints = [r["partialFingerprints"]["gradsmith/v1"] for r in found["results"]]
    assert len(prints) == len({*prints})
    for result in found["results"]:
        assert result["ruleId"] == names[result["ruleIndex"]]
        for location in result["locations"]:
            artifact = location["physicalLocation"]["artifactLocation"]
            is_relative = not artifact["uri"].startswith("file:///")
            assert is_relative == (artifact.get("uriBaseId") == "%SRCROOT%")
    return found["results"]


def test_sarif_has_rules_places_and_levels(outputs):
    results = require_sarif(json.loads(outputs["sarif"]))
    (wrong,) = [r for r in results if r["level"] == "error"]
    assert wrong["ruleId"] == "check/first-order"
    where = wrong["locations"][0]["physicalLocation"]
    assert where["artifactLocation"]["uri"] == "my%20ops/some_ops.py"
    assert where["region"] == {"startLine": line("def wrong"), "startColumn": 5}
    named = {r["ruleId"]: r["level"] for r in results}
    assert named == {
        "check/first-order": "error",
        "check/limit": "warning",
        "check/surrogate": "warning",
        "check/could-not-tell": "warning",
        "check/could-not-run": "warning",
    }


def test_fingerprints_do_not_change_with_the_lines_above(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = []
    for above in ("", "# a line\n\n"):
        Path("ops.py").write_text(above + OPS)
        words = ("check", "ops.py", "--quick", "-k", "surr", "--format", "sarif")
        (result,) = require_sarif(json.loads(run(*words).stdout))
        region = result["locations"][0]["physicalLocation"]["region"]
        found.append((result["partialFingerprints"], region["startLine"]))
    assert found[0][0] == found[1][0]
    assert found[0][1] + 2 == found[1][1]


# --- Markdown


def test_a_summary_for_github(outputs):
    text = outputs["markdown"]
    assert text.startswith("before\n### gradsmith check: 1 right; ")  # appended
    rows = [each for each in text.splitlines() if each.startswith("| ")]
    assert len(rows) == 8
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 6 for row in rows)
    assert text.count("<details>") == text.count("</details>") == 5
    said = "| ✗ wrong | `my ops/some_ops.py:Held.wrong` (line"
    assert said in text


# --- the badge


def test_the_badge_says_how_many_of_each(outputs, tmp_path, monkeypatch):
    root = ElementTree.fromstring(outputs["badge"])
    assert root.attrib["aria-label"].startswith("gradients: 1 right, 1 as declared")
    assert "#c22b26" in outputs["badge"]
    monkeypatch.chdir(tmp_path)
    Path("all.json").write_text(outputs["json"], encoding="utf-8")
    assert run("badge", "all.json", "-o", "b.svg").exit_code == 0
    assert Path("b.svg").read_text(encoding="utf-8") == outputs["badge"]
    Path("other.json").write_text("[1, 2]")
    assert run("badge", "other.json").exit_code == 2


@pytest.mark.parametrize(
    ("levels", "colour"),
    [("FF", "#2a7d2e"), ("FW", "#8a6500"), ("WE", "#c22b26"), ("", "#5f6368")],
)
def test_the_colour_is_that_of_the_worst(levels, colour):
    known = {"F": Level.FINE, "W": Level.WARNING, "E": Level.ERROR}
    entries = tuple(replace(ENTRY, level=known[each]) for each in levels)
    run = Finished("check", "gradients", entries, {}, "", 0.0, {}, print)
    assert colour in FORMATS["badge"](run)


@given(st.text())
@example("\ufffe\uffff")  # which are no characters in XML
def test_a_badge_is_xml_whatever_it_says(words):
    image = drawn("gradients", clean(words), "#000")
    root = ElementTree.fromstring(image)
    assert root.attrib["role"] == "img"
    assert not [
        each for each in root.iter() if "id" in each.attrib
    ]  # several on a page


def test_words_of_a_badge():
    assert words_of({"right": 12}) == "12 right"


# --- any words

ENTRY = Entry(
    *("a.py:f", "a.py", "f", "NumPy", "wrong", "✗", Level.ERROR, True, True),
    *("remark", "text", 1.0, Spot("a.py", 3, 1), (Remark("first order", "x", None),)),
)


@given(st.text())
@example("\ufffe\uffff")
def test_any_words_make_valid_documents(words):
    words = clean(words)  # as those of workers are
    entry = replace(
        ENTRY,
        label=words or "x",
        remark=words,
        text=words,
        remarks=(Remark("first order", words or "x", Spot("/out side/a.py")),),
    )
    run = Finished("check", "gradients", (entry,), {}, words, 0.0, {}, print)
    require_junit(FORMATS["junit"](run))
    require_sarif(json.loads(FORMATS["sarif"](run)))
    assert len([*commands(FORMATS["github"](run))]) == 2


# --- what goes where


def test_two_documents_do_not_share_standard_output(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("ops.py").write_text(OPS)
    found = run("check", "ops.py", "--format", "sarif", "--json")
    assert found.exit_code == 2
    assert "give one of them a file" in found.output
    found = run("check", "ops.py", "--format", "sarfi")
    assert found.exit_code == 2
    assert "'sarfi' is none of text, json" in found.output
    found = run("check", "ops.py", "--format", "sarif=no/such/file")
    assert found.exit_code == 2


def test_text_and_annotations_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("ops.py").write_text(OPS)
    words = ("--format", "text", "--format", "github", "--format", "text=table.txt")
    found = run("check", "ops.py", "--quick", "-k", "right", *words)
    assert found.exit_code == 0
    table, commands = found.stdout.split("::notice")
    assert Path("table.txt").read_text(encoding="utf-8") == table
    assert "1 right in" in commands


# --- the audit


def test_an_audit_in_all_formats(tmp_path, monkeypatch):
    pytest.importorskip("flint")
    monkeypatch.chdir(tmp_path)
    Path("ops.py").write_text(AUDITED)
    words = [f"--format={name}=out.{name}" for name in FORMATS]
    found = run("audit", "ops.py", *FEW, "--max-ulp", "8", *words)
    assert found.exit_code == 1, found.output
    text = {name: Path(f"out.{name}").read_text("utf-8") for name in FORMATS}
    *said, (_, _, total) = commands(text["github"])
    kinds = {p["title"]: (kind, int(p["line"])) for kind, p, _ in said}
    # The line in which the digits are lost
    assert kinds == {
        "ops.py:slope: beyond 8 ULP (NumPy)": ("error", 12),
        "ops.py:broken: could not be judged": ("warning", 14),
    }
    assert total.startswith("1 within 8 ULP, 1 beyond 8 ULP, 1 could not be judged")
    cases = {
        case.attrib["name"]: case[0].tag
        for case in require_junit(text["junit"]).iter("testcase")
    }
    assert cases == {
        "square [NumPy]": "system-out",
        "slope [NumPy]": "failure",
        "broken": "error",
    }
    results = require_sarif(json.loads(text["sarif"]))
    assert {r["level"] for r in results} == {"error", "warning"}
    assert "accuracy: 1 within 8 ULP, 1 beyond 8 ULP" in text["badge"]
    assert "| ✗ beyond 8 ULP | `ops.py:slope`" in text["markdown"]
    data = json.loads(text["json"])
    assert data["max_ulp"] == 8
    assert data["summary"]["level"] == "error"
    assert run("audit", "ops.py:slope", *FEW, "--max-ulp", "1e9").exit_code == 0
