"""The command line: `python -m benchmarks NAME [--json] [--check] [--quick]`.

`survival` and `accuracy` also take `--markdown`, and `--update FILE` for the tables in
documents; `mutants` and `torture` take what part of them is asked for. `--record` keeps
the figures that documents quote.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from benchmarks import figures
from benchmarks._documents import update
from benchmarks._peers import PEERS
from benchmarks._report import Options, Report
from benchmarks._selection import add_selection, add_torture, selection

# Name on the command line: module, and what it measures.
BENCHMARKS = {
    "overhead": ("overhead", "time per operation in a chain of 100 on 10 elements"),
    "lse": ("lse", "logsumexp and a chain of operations on large arrays; memory"),
    "import": ("import_time", "time to import the package"),
    "wrap": ("wrap", "an operation of ours beside each framework's own mechanism"),
    "survival": ("survival", "where each framework honours or drops a rule"),
    "ops": ("ops.benchmark", "every operation of gradsmith.ops, compiled, and NaN"),
    "fuse": ("fuse", "fused kernels: eager PyTorch, the engine, JAX, a first one"),
    "check": ("check", "time and memory of gs.check, on small and large inputs"),
    "accuracy": ("accuracy.report", "right digits of values and gradients in float32"),
    "checkpoint": ("checkpoint", "1,000 steps with 20 stored states; time and memory"),
    "gradbench": ("gradbench.benchmark", "GradBench's problems, as users write them"),
    "gpu": ("gpu", "fused kernels on a GPU, beside the time of a copy"),
    "audit": ("audit", "certified points a second; all numbers of 16 and 32 bits"),
    "mutants": ("mutants.benchmark", "wrong gradients found, right ones rejected"),
    "torture": ("torture.benchmark", "random programs, aliasing, kills, leaks"),
    "wild": ("wild.benchmark", "custom gradients of public packages, right and wrong"),
    "adoption": ("adoption", "pytest --gradsmith on the suites of public packages"),
}
APART = ("wild", "adoption", "gpu")  # need an environment or machine of their own
WITH_TABLES = ("survival", "accuracy")  # which stand in documents


def parser() -> argparse.ArgumentParser:
    names = "\n".join(f"  {name:12}{what}" for name, (_, what) in BENCHMARKS.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure Gradsmith beside the installed peers, in one run.",
        epilog=f"benchmarks:\n{names}\n  {'all':12}all but {' and '.join(APART)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="?", choices=[*BENCHMARKS, "all"], metavar="NAME")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument(
        "--check", action="store_true", help="exit with 1 if a target is missed"
    )
    parser.add_argument(
        "--quick", action="store_true", help="try it out: the figures mean nothing"
    )
    parser.add_argument(
        "--markdown", action="store_true", help="its tables in Markdown"
    )
    parser.add_argument(
        "--update",
        action="append",
        metavar="FILE",
        help="put its tables between the marks in a document",
    )
    parser.add_argument(
        "--record",
        action="store_true",
        help=f"put its figures into all documents: {', '.join(figures.RECORDED)}",
    )
    parser.add_argument(
        "--peers",
        type=_peers,
        default=tuple(PEERS),
        metavar="A,B",
        help=f"measure beside these alone, of {', '.join(PEERS)} (or none)",
    )
    add_selection(parser)
    add_torture(parser)
    return parser


def _peers(text: str) -> tuple[str, ...]:
    names = tuple(name for name in text.split(",") if name not in ("", "none"))
    for name in names:
        if name not in PEERS:
            raise argparse.ArgumentTypeError(
                f"{name!r} is none of {', '.join(PEERS)}, none"
            )
    return names


def main(argv: list[str] | None = None) -> int:
    command = parser()
    arguments = command.parse_args(argv)
    if arguments.name is None:
        command.print_help()
        return 0
    tables = arguments.markdown or arguments.update
    if tables and arguments.name not in WITH_TABLES:
        command.error(f"--markdown and --update are for {' and '.join(WITH_TABLES)}")
    if arguments.record and (arguments.quick or arguments.name not in figures.RECORDED):
        command.error(f"--record is for {', '.join(figures.RECORDED)}, not quick")
    names = [arguments.name]
    if arguments.name == "all":
        names = [name for name in BENCHMARKS if name not in APART]
    options = Options(arguments.quick, arguments.peers, selection(command, arguments))
    reports = []
    for name in names:
        report = import_module(f"benchmarks.{BENCHMARKS[name][0]}").run(options)
        reports.append(report)
        if arguments.record:
            figures.record(report)
        if tables:
            _as_markdown(report, arguments.update or ())
        elif not arguments.json:
            print(report.table(), flush=True)
    if arguments.json and not tables:
        print(json.dumps(_as_json(arguments.name, reports), indent=2))
    return 1 if arguments.check and not all(report.ok for report in reports) else 0


def _as_markdown(report: Any, paths: Iterable[str]) -> None:
    content = report.markdown()
    update(paths, content, report.name)
    if not paths:
        print(content)
    figures.write()  # the totals of tables


def _as_json(name: str, reports: list[Report]) -> dict[str, object]:
    if name != "all":
        return reports[0].as_dict()
    rows = [
        {"benchmark": report.name, **row}
        for report in reports
        for row in report.as_dict()["rows"]
    ]
    skipped = {
        entry["peer"]: entry for r in reports for entry in r.as_dict()["skipped"]
    }
    return {
        **reports[0].as_dict(),
        "name": name,
        "rows": rows,
        "skipped": list(skipped.values()),
    }


if __name__ == "__main__":
    sys.exit(main())
