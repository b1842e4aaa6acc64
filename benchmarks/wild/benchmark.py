"""What `gs.check` says of custom gradients that nobody here wrote."""

from __future__ import annotations

from benchmarks._measure import Progress
from benchmarks._peers import is_installed
from benchmarks._report import Options

from .cases import FRAMEWORKS
from .report import OracleReport, WildReport
from .running import Selection
from .running import run as outcomes


def run(options: Options) -> WildReport | OracleReport:
    selection = options.selection or Selection()
    report = (OracleReport if selection.oracle else WildReport)("wild", options)
    wanted = [name for name in FRAMEWORKS if selection.framework in (None, name)]
    report.skipped = [name for name in wanted if not is_installed(name)]
    rows = outcomes(selection, Progress("wild"))
    step = 12 if options.quick else 1
    report.outcomes = list(rows)[::step]
    return report
