"""SARIF 2.1.0, the format of code scanning: rules, and results with their places."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ... import __version__
from ..entries import Entry, Finished, Level, Remark, Spot

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
SITE = "https://gradsmith.github.io/gradsmith/"
ROOT = "%SRCROOT%"  # whoever reads the file knows where the repository is

_MEANINGS = {
    "check": "A gradient that its author wrote, compared with differences of the "
    "values, and held to what every gradient promises.",
    "audit": "Values and gradients in floating point, compared with certified ones.",
}
_HELP = {  # which code scanning demands
    "check": "The message names the mistake, the elements that it concerns, and the "
    "repair.",
    "audit": "The message names the inputs for which digits are lost, and why.",
}


def sarif(run: Finished) -> str:
    found = [*_results(run)]
    levels = {each["ruleId"]: each["level"] for each in found[::-1]}
    for each in found:
        each["ruleIndex"] = [*levels].index(each["ruleId"])
    document = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": f"gradsmith {run.tool}",
                        "version": __version__,
                        "informationUri": SITE,
                        "rules": [_rule(*each, run.tool) for each in levels.items()],
                    }
                },
                "automationDetails": {"id": f"gradsmith/{run.tool}/"},
                "columnKind": "unicodeCodePoints",
                "results": found,
            }
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _rule(name: str, level: str, tool: str) -> dict[str, Any]:
    what = name.partition("/")[2].replace("-", " ")
    subject = "Custom gradient" if tool == "check" else "Accuracy"
    page = f"{SITE}{tool}.html"
    return {
        "id": name,
        "name": "".join(word.capitalize() for word in what.split()),
        "shortDescription": {"text": f"{subject}: {what}"},
        "fullDescription": {"text": _MEANINGS[tool]},
        "help": {"text": f"{_HELP[tool]} More: {page}"},
        "helpUri": page,
        "defaultConfiguration": {"level": level},
    }


def _results(run: Finished) -> Iterator[dict[str, Any]]:
    """One for each remark; those of operations that are fine are none."""
    seen = Counter[str]()
    for entry in run.entries:
        if entry.level is Level.FINE:
            continue
        for remark in entry.remarks:
            rule = f"{run.tool}/{_slug(remark.rule)}"
            identity = "\n".join((rule, entry.label, entry.framework))
            seen[identity] += 1
            yield _result(rule, entry, remark, f"{identity}\n{seen[identity]}")


def _result(rule: str, entry: Entry, remark: Remark, identity: str) -> dict[str, Any]:
    where = f" in {entry.framework}" if entry.framework else ""
    found: dict[str, Any] = {
        "ruleId": rule,
        "level": entry.level.value,
        "message": {"text": f"{entry.label}{where}: {entry.verdict}\n{remark.text}"},
        # Not the line, which changes with whatever stands above it
        "partialFingerprints": {
            "gradsmith/v1": sha256(identity.encode()).hexdigest()[:32]
        },
    }
    spot = remark.spot or entry.spot
    return {**found, "locations": [_location(spot, entry)] if spot else []}


def _location(spot: Spot, entry: Entry) -> dict[str, Any]:
    artifact = {"uri": quote(spot.path), "uriBaseId": ROOT}
    if not spot.is_relative:
        artifact = {"uri": Path(spot.path).as_uri()}
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": artifact,
            "region": {"startLine": spot.line, "startColumn": spot.column},
        }
    }
    if entry.name:
        named = {"fullyQualifiedName": entry.label, "kind": "function"}
        location["logicalLocations"] = [named]
    return location


def _slug(words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")
