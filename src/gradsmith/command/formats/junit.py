"""A JUnit file, which most CI systems show: a test case for each operation."""

from __future__ import annotations

from datetime import UTC, datetime
from platform import node
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ..entries import Entry, Finished, Level


def junit(run: Finished) -> str:
    """Wrong is a failure, what could not run an error, "could not tell" is skipped."""
    cases = [_case(entry) for entry in run.entries]
    counts = {
        name: str(sum(case.find(tag) is not None for case in cases))
        for name, tag in (
            ("failures", "failure"), ("errors", "error"), ("skipped", "skipped"),
        )
    }  # fmt: skip
    shared = {"name": f"gradsmith {run.tool}", "tests": str(len(cases)), **counts}
    shared["time"] = f"{run.seconds:.3f}"
    when = datetime.now(UTC).replace(microsecond=0, tzinfo=None).isoformat()
    suite = Element("testsuite", {**shared, "timestamp": when, "hostname": node()})
    suite.extend(cases)
    root = Element("testsuites", shared)
    root.append(suite)
    indent(root)
    text = tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def _case(entry: Entry) -> Element:
    name = entry.name or "import"
    where = f" [{entry.framework}]" if entry.framework else ""
    classname = entry.file.removesuffix(".py").replace("/", ".") or "gradsmith"
    case = Element(
        "testcase",
        {
            "classname": classname.strip("."),
            "name": f"{name}{where}",
            "time": f"{entry.seconds:.3f}",
        },
    )
    text = f"{entry.spot}\n{entry.text}" if entry.spot else entry.text
    tag = _tag(entry)
    if tag == "system-out":
        SubElement(case, tag).text = text
        return case
    found = SubElement(case, tag, {"message": f"{entry.verdict}: {entry.remark}"})
    if tag != "skipped":
        found.set("type", entry.verdict)
    found.text = text
    return case


def _tag(entry: Entry) -> str:
    if not entry.is_run:
        return "error"
    if not entry.is_judged:
        return "skipped"
    return "failure" if entry.level is Level.ERROR else "system-out"
