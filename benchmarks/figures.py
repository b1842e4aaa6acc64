"""Figures in documents: each is recorded once, in docs/figures.json, and quoted.

`python -m benchmarks NAME --record` records the figures of a benchmark and rewrites
every place that quotes them; `python -m benchmarks.figures` only rewrites. A place is
what stands between two marks, in the README or anywhere in docs/.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from benchmarks._documents import region, update
from benchmarks._report import Report, Row

ROOT = Path(__file__).parent.parent
FILE = ROOT / "docs" / "figures.json"
SURVIVAL = ROOT / "docs" / "survival.md"  # whose tables are their own record
TIMES = "\N{MULTIPLICATION SIGN}"
RECORDED = ("overhead", "lse", "gradbench", "import", "wrap", "checkpoint", "mutants")


def record(report: Any) -> None:
    """What the report has; checkers that were not run keep their figures."""
    recorded = json.loads(FILE.read_text(encoding="utf-8"))
    if isinstance(report, Report):
        recorded[report.name] = _rows(report)
    else:
        recorded[report.name] |= _checkers(report)
    FILE.write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")
    write()


def _rows(report: Report) -> list[dict[str, Any]]:
    """With more digits than are shown, and not all."""
    return [
        {field.name: _shown(getattr(row, field.name)) for field in fields(Row)}
        for row in report.rows
    ]


def _shown(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _checkers(report: Any) -> dict[str, list[int]]:
    counted = ("killed", "mutants", "false_alarms", "controls")
    rows = report.as_dict()["checkers"]
    return {row["checker"]: [row[name] for name in counted] for row in rows}


# --- what is quoted ------------------------------------------------------------------


def write() -> None:
    for path, name in places():
        update([str(path)], TEXTS[name](), name)


def places() -> Iterator[tuple[Path, str]]:
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        text = path.read_text(encoding="utf-8")
        yield from ((path, name) for name in TEXTS if region(text, name) is not None)


def _recorded(name: str) -> Any:
    return json.loads(FILE.read_text(encoding="utf-8"))[name]


def table(name: str) -> str:
    """The rows of a benchmark in Markdown."""
    lines = ["| case | ours | | | ratio | target |", "|---|---|---|---|---|---|"]
    for row in (Row(**entry) for entry in _recorded(name)):
        target = "" if row.target is None else f"≤ {row.target:g}"
        cells = (
            row.case,
            f"{row.ours:.4g} {row.unit}".strip(),
            row.peer_name,
            f"{row.peer:.4g} {row.unit}".strip(),
            f"{row.ratio:.3f}",
            target if row.ok else f"{target} (missed)",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


# Columns of the table of programs: heading, contender, peer
PROGRAMS = (
    ("the tape", "the tape", ""),
    ("/ PyTorch", "the tape", "PyTorch"),
    ("/ autograd", "the tape", "autograd"),
    ("as Python / PyTorch", "the tape as Python", "PyTorch"),
    ("gs.compile", "gs.compile", ""),
    ("/ PyTorch", "gs.compile", "PyTorch"),
    ("/ JAX", "gs.compile", "JAX"),
)


def programs() -> str:
    """Times and ratios of GradBench's problems, a line for each size."""
    found: dict[str, dict[tuple[str, str], Row]] = {}
    for row in (Row(**entry) for entry in _recorded("gradbench")):
        program, _, ours = row.case.rpartition(", ")
        cells = found.setdefault(program, {})
        cells[ours, row.peer_name] = cells[ours, ""] = row
    head = [f"| problem | {' | '.join(name for name, *_ in PROGRAMS)} |"]
    head.append("|---" * (len(PROGRAMS) + 1) + "|")
    lines = []
    for program, cells in found.items():
        name, comma, size = program.partition(", ")
        shown = [
            _program_cell(cells.get((ours, peer)), peer) for _, ours, peer in PROGRAMS
        ]
        lines.append(f"| {' | '.join([f'`{name}`{comma}{size}', *shown])} |")
    return "\n".join([*head, *lines])


def _program_cell(row: Row | None, peer: str) -> str:
    if row is None:
        return ""
    if not peer:
        us = row.ours
        return f"{us / 1000:,.1f} ms" if us > 9999 else f"{us:,.{us < 9.95:d}f} us"
    return f"{row.ratio:.2f}" if row.ok else f"{row.ratio:.2f} (missed)"


def _ratio(name: str, case: str, peer: str) -> str:
    [row] = [r for r in _recorded(name) if (r["case"], r["peer_name"]) == (case, peer)]
    ratio = row["ours"] / row["peer"]
    return f"{ratio:{'.2f' if ratio > 0.1 else '.2g'}} {TIMES}"


def speed() -> str:
    """The three that a reader asks for first."""
    tape, lse = "gs.GradientTape, per operation", "gradient of logsumexp, n = 1e+07"
    return f"""\
| Gradsmith's engine on NumPy arrays, compiled as in its wheels | time of ours |
|---|---|
| an operation on ten elements, forward and gradient | {
        ", ".join(
            f"{_ratio('overhead', tape, peer)} {title}"
            for peer, title in (
                ("PyTorch", "PyTorch eager"),
                ("autograd", "autograd"),
                ("TensorFlow", "TensorFlow's tape"),
                ("JAX", "JAX without jit"),
            )
        )
    } |
| the gradient of logsumexp of 10⁷ numbers | {
        _ratio("lse", lse, "NumPy by hand")
    } NumPy by hand, {_ratio("lse", lse, "autograd")} autograd |
| `import gradsmith` | {
        _ratio("import", "import gradsmith", "import numpy")
    } `import numpy` |"""


# Columns of the benchmark, and how the checkers are called
PEERS = {
    "torch gradcheck": "`torch.autograd.gradcheck`",
    "torch fast_mode": "the same, `fast_mode=True`",
    "torch gradgradcheck": "`torch.autograd.gradgradcheck`",
    "jax check_grads f64": "`jax.test_util.check_grads`, order 2, float64",
    "jax check_grads f32": "the same, float32",
    "tf f64": "`tf.test.compute_gradient`, float64",
    "tf f32": "the same, float32",
    "HIPS check_grads": "autograd's `check_grads`",
}


def mutants() -> str:
    """What ours found, in one sentence."""
    killed, wrong, alarms, right = _ours()
    none = "none" if not alarms else f"{alarms:,}"
    return (
        f"`gs.check` finds {killed:,} of {wrong:,} wrong gradients, and rejects {none} "
        f"of {right:,} right ones."
    )


def _ours() -> list[int]:
    rows = [row for name, row in _recorded("mutants").items() if name not in PEERS]
    return [sum(column) for column in zip(*rows, strict=True)]


def checkers() -> str:
    """The peers' checkers, each on its own framework's share."""
    return _compared(_peer(name, title) for name, title in PEERS.items())


def best_peers() -> str:
    """Ours and the checkers that the frameworks bring."""
    killed, wrong, alarms, right = _ours()
    ours = (
        f"| **`gs.check`** | **{_share(killed, wrong)}** | **{alarms} of {right:,}** |"
    )
    best = ("jax check_grads f64", "tf f64", "torch gradcheck")
    return _compared(
        [ours, *(_peer(name, PEERS[name].partition(",")[0]) for name in best)]
    )


def _compared(rows: Iterable[str]) -> str:
    head = [
        "| checker | wrong gradients found | right ones rejected |",
        "|---|---|---|",
    ]
    return "\n".join([*head, *rows])


def _peer(name: str, title: str) -> str:
    killed, wrong, alarms, right = _recorded("mutants")[name]
    return f"| {title} | {_share(killed, wrong)} | {alarms} of {right} |"


def _share(count: int, of: int) -> str:
    percent = 100 * count / of
    return f"{count:,} of {of:,} ({percent:{'.3g' if percent > 99 else '.0f'}} %)"


# --- survival ------------------------------------------------------------------------

FATES = ("honoured", "dropped", "refused", "unclear")


def survival() -> str:
    """The totals of the tables of docs/survival.md."""
    lines = ["| | ours: honoured | the framework's own |", "|---|---|---|"]
    text = region(SURVIVAL.read_text(encoding="utf-8"), "survival") or ""
    for title, *rows in _tables(text):
        ours, *others = _totals(rows)
        theirs = "; ".join(f"`{name}` {_counted(fates)}" for name, fates in others)
        count = f"{ours[1]['honoured']} of {ours[1].total()}"
        lines.append(f"| {title} | {count} | {theirs} |")
    return "\n".join(lines)


def _tables(text: str) -> Iterator[list[str]]:
    """A title, the names of the columns, and the rows of each."""
    for part in re.split(r"^\*\*(?=\w)", text, flags=re.M)[1:]:
        title, _, rest = part.partition("**")
        yield [
            title,
            *(line for line in rest.strip().splitlines() if "---" not in line),
        ]


def _totals(rows: list[str]) -> list[tuple[str, Counter[str]]]:
    header, *body = ([c.strip() for c in row.strip("|").split("|")] for row in rows)
    columns = zip(*body, strict=True)
    return [
        (name, Counter(cell.split()[1] for cell in column if cell))
        for name, column in list(zip(header, columns, strict=True))[1:]
    ]


def _counted(fates: Counter[str]) -> str:
    return ", ".join(f"{fates[fate]} {fate}" for fate in FATES if fates[fate])


TEXTS: dict[str, Callable[[], str]] = {
    **{name: lambda name=name: table(name) for name in RECORDED if name != "mutants"},
    "gradbench": programs,
    "speed": speed,
    "mutants": mutants,
    "checkers": checkers,
    "best-checkers": best_peers,
    "survival-totals": survival,
}

if __name__ == "__main__":
    write()
