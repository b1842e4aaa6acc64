"""Everything that could go wrong, tried at random: counts, failures and their seeds."""

from __future__ import annotations

from dataclasses import replace

from benchmarks._measure import Progress
from benchmarks._report import Options

from .parts import QUICK, Selection
from .report import TortureReport
from .running import outcomes


def run(options: Options) -> TortureReport:
    selection = options.selection or Selection()
    if options.quick:
        asked = {"seed": selection.seed, "parts": selection.parts}
        selection = replace(QUICK, **asked)
    report = TortureReport("torture", options, selection)
    progress = Progress("torture")
    for part in selection.parts:
        report.outcomes += outcomes(part, selection, progress)
    return report
