"""The options of some benchmarks: what is looked at, and how."""

from __future__ import annotations

import argparse
from typing import Any

NAMES = ["half", "framework", "kind", "operation", "seed", "jobs", "every", "results"]
TORTURE = ("part", "programs", "program", "trial", "hour")
WILD = ("framework", "results", "only", "oracle", "limit")


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
    group.add_argument("--seed", type=int, help="of all that is random (torture too)")
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
    group = parser.add_argument_group(
        "wild (also --framework and --results), adoption (--only)"
    )
    group.add_argument(
        "--only", metavar="TEXT", help="cases with this in their name (gradbench too)"
    )
    group.add_argument(
        "--oracle",
        action="store_true",
        default=None,
        help="measure the truth again and compare it with what is written down",
    )
    group.add_argument(
        "--limit", type=float, metavar="S", help="seconds until a check is ended (60)"
    )


def add_torture(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("torture")
    group.add_argument("--part", action="append", help="this part alone: programs")
    group.add_argument("--programs", type=int, help="how many (2000)")
    group.add_argument("--program", type=int, help="the one of that number")
    group.add_argument("--trial", help="the one of that name, of --part")
    group.add_argument(
        "--hour", action="store_true", default=None, help="20,000 programs, all of it"
    )


def selection(parser: argparse.ArgumentParser, arguments: Any) -> Any:
    """What was asked for; None if nothing was."""
    names = dict.fromkeys([*NAMES, *TORTURE, *WILD])
    given = {name: getattr(arguments, name) for name in names}
    given = {name: value for name, value in given.items() if value is not None}
    if not given:
        return None
    if arguments.name in ("ops", "fuse") and given.keys() <= {"framework", "operation"}:
        return _of_ops(parser, given)
    if arguments.name == "gradbench" and given.keys() == {"only"}:
        return given
    if arguments.name == "torture" and given.keys() <= {"seed", *TORTURE}:
        return _of_torture(parser, given)
    if arguments.name == "wild" and given.keys() <= set(WILD):
        return _of_wild(parser, given)
    if arguments.name == "adoption" and given.keys() == {"only"}:
        return given
    if arguments.name != "mutants" or not given.keys() <= set(NAMES):
        parser.error(f"--{next(iter(given))} is not for {arguments.name}")
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


def _of_torture(parser: argparse.ArgumentParser, given: dict[str, Any]) -> Any:
    from dataclasses import replace

    from benchmarks.torture.parts import HOUR, PARTS, Selection

    whole = HOUR if given.pop("hour", False) else Selection()
    if "program" in given:
        given.setdefault("part", ["programs"])
    parts = tuple(given.pop("part", PARTS))
    for part in parts:
        if part not in PARTS:
            parser.error(f"--part {part!r} is none of {', '.join(PARTS)}")
    if "trial" in given and len(parts) != 1:
        parser.error("--trial needs one --part")
    return replace(whole, parts=parts, **given)


def _of_wild(parser: argparse.ArgumentParser, given: dict[str, Any]) -> Any:
    from benchmarks.wild.cases import FRAMEWORKS
    from benchmarks.wild.running import Selection

    if given.get("framework", FRAMEWORKS[0]) not in FRAMEWORKS:
        known = ", ".join(FRAMEWORKS)
        parser.error(f"--framework {given['framework']!r} is none of {known}")
    return Selection(**given)
