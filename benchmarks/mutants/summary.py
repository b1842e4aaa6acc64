"""Figures of many outcomes: rates of checkers, of kinds, and of halves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .outcome import OURS, Outcome

KILLS, ALARMS, CHECKS, NAMED, MARGIN = 0.95, 0.001, 2000, 0.90, 0.03  # issue's targets


@dataclass(frozen=True)
class Figure:
    """One rate with its target; without one it is there to be read."""

    case: str
    count: int
    of: int
    target: float | None = None
    at_most: bool = False

    @property
    def rate(self) -> float:
        return self.count / self.of if self.of else float("nan")

    @property
    def ok(self) -> bool:
        if self.target is None:
            return True
        return self.rate <= self.target if self.at_most else self.rate >= self.target

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "rate": self.rate if self.of else None, "ok": self.ok}


def figures(outcomes: list[Outcome]) -> list[Figure]:
    """What ours must reach, the halves apart."""
    mine = [o for o in outcomes if o.checker == OURS]
    mutants, right = [o for o in mine if o.kind], [o for o in mine if not o.kind]
    rows = []
    for half, is_out in (("tuned half", False), ("held-out half", True)):
        of_half = [o for o in mutants if o.held_out == is_out]
        rows += _kill_rates(half, of_half)
        rows += _alarms(half, [o for o in right if o.held_out == is_out])
        named = [o for o in of_half if o.diagnosed is not None]
        if named:
            told = sum(bool(o.diagnosed) for o in named)
            rows.append(Figure(f"diagnosis, {half}", told, len(named), NAMED))
    if right:
        alarms = sum(o.alarm or o.verdict == "raised" for o in right)
        rows.append(Figure("false alarms, all", alarms, len(right), ALARMS, True))
        unsure = sum(o.verdict == "could not tell" for o in right)
        rows.append(Figure("could not tell of right ones", unsure, len(right)))
    return rows


def _kill_rates(half: str, of_half: list[Outcome]) -> list[Figure]:
    """float64's rate has a fixed target; float32's is to be close to it."""
    rows, least = [], KILLS
    for dtype in ("float64", "float32"):
        found = [o for o in of_half if o.dtype == dtype]
        if not found:
            continue
        row = Figure(f"kills {dtype}, {half}", _alarm_count(found), len(found), least)
        least = row.rate - MARGIN
        rows.append(row)
    return rows


def _alarms(half: str, right: list[Outcome]) -> list[Figure]:
    if not right:
        return []
    alarms = sum(o.alarm or o.verdict == "raised" for o in right)
    return [Figure(f"false alarms, {half}", alarms, len(right), ALARMS, at_most=True)]


def _alarm_count(outcomes: Iterable[Outcome]) -> int:
    return sum(o.alarm for o in outcomes)


def checkers(outcomes: list[Outcome]) -> list[dict[str, Any]]:
    """Each checker beside the others: kills, false alarms, seconds."""
    rows = []
    for name in dict.fromkeys(column(o) for o in outcomes):
        mine = [o for o in outcomes if column(o) == name]
        mutants, right = [o for o in mine if o.kind], [o for o in mine if not o.kind]
        rows.append(
            {
                "checker": name,
                "killed": _alarm_count(mutants),
                "mutants": len(mutants),
                "false_alarms": _alarm_count(right),
                "controls": len(right),
                "mean_s": sum(o.seconds for o in mine) / len(mine),
                "median_s": sorted(o.seconds for o in mine)[len(mine) // 2],
                "max_s": max(o.seconds for o in mine),
            }
        )
    return sorted(rows, key=lambda row: order(row["checker"]))


def column(o: Outcome) -> str:
    """A checker's column; ours has one for each dtype."""
    short = {"float64": "f64", "float32": "f32"}
    return f"{o.checker} {short[o.dtype]}" if o.checker == OURS else o.checker


def order(name: str) -> tuple[bool, str]:
    return (not name.startswith(OURS), name)


def by_kind(outcomes: list[Outcome]) -> dict[str, dict[str, tuple[int, int]]]:
    """Killed and total, for each kind and checker."""
    table: dict[str, dict[str, tuple[int, int]]] = {}
    for o in outcomes:
        if o.kind is None:
            continue
        row = table.setdefault(o.kind, {})
        killed, total = row.get(column(o), (0, 0))
        row[column(o)] = (killed + o.alarm, total + 1)
    return table
