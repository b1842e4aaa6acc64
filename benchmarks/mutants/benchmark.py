"""How many wrong gradients each checker finds, and how many right ones it rejects."""

from __future__ import annotations

from dataclasses import replace

import gradsmith as gs
from benchmarks._measure import Progress
from benchmarks._peers import is_installed
from benchmarks._report import Options

from .kind import FRAMEWORKS
from .report import MutantReport
from .running import Selection
from .running import run as outcomes


def run(options: Options) -> MutantReport:
    report = MutantReport("mutants", options)
    asked = options.selection or Selection()
    wanted = [name for name in FRAMEWORKS if asked.framework in (None, name)]
    report.skipped = [name for name in wanted if not is_installed(name)]
    peers = tuple(name for name in options.peers if is_installed(name))
    has_check = hasattr(gs, "check")
    if not has_check:
        report.notes.append("this Gradsmith has no gs.check: the peers alone")
    selection = replace(asked, quick=options.quick, peers=peers, ours=has_check)
    report.outcomes = list(outcomes(selection, Progress("mutants")))
    return report
