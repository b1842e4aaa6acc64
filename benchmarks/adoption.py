"""`pytest --gradsmith` on the test suites of public packages, as they are.

Each suite runs without and with the plugin, in this environment. No test may change its
outcome, and processor time may grow by half at most. The verdicts are part of the
report; whether they are right was decided by reading the rules: see docs/wild.md.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urljoin
from urllib.request import urlopen
from xml.etree import ElementTree

from benchmarks._measure import Progress
from benchmarks._report import Options, Report, Row

TARGET = 1.5
LIMIT = 900  # seconds of a suite


@dataclass(frozen=True)
class Suite:
    """Test files of a package's source distribution."""

    package: str
    version: str
    framework: str
    files: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)


SUITES = (
    Suite("norse", "1.1.0", "torch", ("norse/torch/functional/test",)),
    Suite("linear-operator", "0.6.1", "torch", ("test/functions", "test/utils")),
    Suite(
        "rlax", "0.1.9", "jax",
        ("rlax/_src/clipping_test.py", "rlax/_src/nonlinear_bellman_test.py"),
    ),
    Suite(
        "optax", "0.2.8", "jax",
        ("optax/projections", "optax/losses/_classification_test.py"),
    ),
    Suite("distrax", "0.1.9", "jax", ("distrax/_src/utils/math_test.py",)),
    Suite(
        "dm-sonnet", "2.0.2", "tensorflow",
        (
            "sonnet/src/leaky_clip_by_value_test.py",
            "sonnet/src/scale_gradient_test.py", "sonnet/src/embed_test.py",
        ),
    ),
    Suite(
        "larq", "0.14.0", "tensorflow",
        ("larq/quantizers_test.py", "larq/math_test.py", "larq/activations_test.py"),
        {"TF_USE_LEGACY_KERAS": "1"},
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """One run of a suite: what became of each test, processor seconds, verdicts."""

    tests: dict[str, str]
    seconds: float
    found: dict[str, Any] = field(default_factory=dict)


def run(options: Options) -> Report:
    report, progress = Report("adoption", options), Progress("adoption")
    only = (options.selection or {}).get("only", "")
    wanted = [suite for suite in SUITES if only in suite.package]
    for suite in wanted[:1] if options.quick else wanted:
        with TemporaryDirectory() as folder:
            progress(suite.package)
            root = _source(suite, Path(folder))
            without, given = (_outcome(suite, root, each) for each in (False, True))
        _add(report, suite, without, given)
    return report


def _add(report: Report, suite: Suite, without: Outcome, given: Outcome) -> None:
    name = f"{suite.package} {suite.version}"
    tests = {**without.tests, **given.tests}
    changed = [t for t in tests if without.tests.get(t) != given.tests.get(t)]
    report.rows.append(
        Row(
            f"{name}: {len(without.tests)} tests with the plugin", given.seconds,
            without.seconds, "without", TARGET, "s",
        )
    )  # fmt: skip
    report.refused += [f"{name}: another outcome of {test}" for test in changed]
    named: dict[str, list[str]] = {}
    for row in given.found["operations"]:
        named.setdefault(row["verdict"], []).append(row["operation"])
    for verdict, operations in named.items():
        report.notes.append(f"{name}: {verdict}: {', '.join(operations)}")


def _source(suite: Suite, folder: Path) -> Path:
    """The source distribution, unpacked."""
    index = f"https://pypi.org/simple/{suite.package}/"
    with urlopen(index) as page:
        links = re.findall('href="([^"#]+)', page.read().decode())
    (link,) = [each for each in links if each.endswith(f"-{suite.version}.tar.gz")]
    with (
        urlopen(urljoin(index, link)) as stream,
        tarfile.open(fileobj=stream, mode="r|gz") as archive,
    ):
        archive.extractall(folder, filter="data")
    (root,) = folder.iterdir()
    return root


def _outcome(suite: Suite, root: Path, with_plugin: bool) -> Outcome:
    results, found = root.parent / "tests.xml", root.parent / "found.json"
    options = ["--gradsmith", f"--gradsmith-json={found}"] if with_plugin else []
    before = _processor_seconds()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
         f"--junitxml={results}", *options, *suite.files],
        cwd=root, env={**os.environ, **suite.environment}, capture_output=True,
        text=True, timeout=LIMIT, check=False,
    )  # fmt: skip
    seconds = _processor_seconds() - before
    if not results.exists():
        raise RuntimeError(done.stdout + done.stderr)
    verdicts = json.loads(found.read_text()) if with_plugin else {}
    return Outcome(_tests(results), seconds, verdicts)


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _tests(results: Path) -> dict[str, str]:
    """What became of each test, by its name."""
    return {
        f"{case.get('classname')}.{case.get('name')}": next(
            (each.tag for each in case if each.tag in ("failure", "error", "skipped")),
            "passed",
        )
        for case in ElementTree.parse(results).iter("testcase")
    }
