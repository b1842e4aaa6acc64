"""The options of `mutants` and of `ops`: what part is looked at, and how."""

from __future__ import annotations

import argparse
from typing import Any

NAMES = ["half", "framework", "kind", "operation", "seed", "jobs", "every", "results"]


def add_selection(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("mutants (and ops: --framework, --operation)")
    group.add_argument(
        "--half",
        choices=("tuned", "held-out", "both"),
        help="which operations (tune with --half tuned alone)",
    )
    group.add_argument("--framework", help="numpy (the engine), torch, jax, tensorflow")
    group.add_argument("--kind", help="one kind of wrong gradient: 'factor 2'")
    group.add_argument("--operation", help="one operation: softmax")
    group.add_argument("--seed", type=int, help="of the inputs and of the checker")
    group.add_argument("--jobs", type=int, help="processes (2)")
    group.add_argument(
        "--every",
        action="store_true",
        default=None,
        help="each wrong gradient in every framework, not in one in turn",
    )
    group.add_argument(
        "--results",
        metavar="FILE",
        help="write each outcome to it as it comes, and skip those it has",
    )


def selection(parser: argparse.ArgumentParser, arguments: Any) -> Any:
    """What was asked for; None if nothing was."""
    given = {name: getattr(arguments, name) for name in NAMES}
    given = {name: value for name, value in given.items() if value is not None}
    if not given:
        return None
    if arguments.name == "ops" and given.keys() <= {"framework", "operation"}:
        return _of_ops(parser, given)
    if arguments.name != "mutants":
        parser.error(f"--{next(iter(given))} is for mutants")
    from benchmarks.mutants.kind import FRAMEWORKS
    from benchmarks.mutants.kinds import KINDS
    from benchmarks.mutants.operations import OPERATIONS
    from benchmarks.mutants.running import Selection

    choices = {"framework": FRAMEWORKS, "kind": KINDS, "operation": OPERATIONS}
    for name, known in choices.items():
        if name in given and given[name] not in known:
            parser.error(f"--{name} {given[name]!r} is none of {', '.join(known)}")
    return Selection(**given)


def _of_ops(parser: argparse.ArgumentParser, given: dict[str, Any]) -> Any:
    from benchmarks.ops.benchmark import CASES
    from benchmarks.ops.native import FRAMEWORKS

    choices = {
        "framework": [framework.name for framework in FRAMEWORKS],
        "operation": [case.name for case in CASES],
    }
    for name, value in given.items():
        if value not in choices[name]:
            known = ", ".join(choices[name])
            parser.error(f"--{name} {value!r} is none of {known}")
    return given
