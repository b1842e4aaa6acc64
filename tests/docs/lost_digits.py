"""The maps of the README and of the landing page: `make picture`.

Digits of float32 that value and gradient lose at most, in pieces of the domain.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from math import log10
from pathlib import Path
from typing import Any

import numpy as np
import torch

import gradsmith as gs
from tests.docs.softplus import softplus, textbook

DOCS = Path(__file__).parents[2] / "docs"
# The functions from minus to plus a number
MAPS = {
    "lost-digits": (100, {"log(1 + exp(x))": textbook, "softplus(x)": softplus}),
    "tanh": (20, {"torch.tanh": torch.tanh, "np.tanh, by Gradsmith": np.tanh}),
}
PIECES = 100
DIGITS = log10(2**24)  # of float32
# Ink, none lost, all lost
COLOURS = {
    "light": ("#3d4450", (226, 236, 228), (176, 32, 48)),
    "dark": ("#c3cad6", (44, 62, 54), (255, 107, 107)),
}
LEFT, WIDTH, HEIGHT, GAP = 150, 450, 22, 6


def lost(op: Any, far: float) -> list[tuple[float, float]]:
    """The digits that value and gradient lose, piece by piece."""
    found, ends = [], np.linspace(-far, far, PIECES + 1)
    for domain in pairwise(ends):
        audit = gs.audit(op, domain=domain, points=400)
        found.append((_digits(audit.value), _digits(audit.gradient)))
    return found


def _digits(accuracy: Any) -> float:
    return min(log10(max(accuracy.max_ulp, 1.0)), DIGITS)


def drawn(far: int, rows: dict[str, list[tuple[float, float]]], scheme: str) -> str:
    parts, y = [], 24
    for name, cells in rows.items():
        parts.append(_text(0, y - 8, name, "start", "name"))
        for i, what in enumerate(("value", "gradient")):
            parts.append(_text(LEFT - 8, y + HEIGHT - 7, what, "end"))
            each = WIDTH / len(cells)
            for j, cell in enumerate(cells):
                place = LEFT + j * each, y, each + 0.3, HEIGHT
                parts.append(_cell(*place, cell[i] / DIGITS, scheme))
            y += HEIGHT + GAP
        y += 24
    y -= 24
    for x in (-far, -far // 2, 0, far // 2, far):
        at = LEFT + (x + far) / (2 * far) * WIDTH
        anchor = {-far: "start", far: "end"}.get(x, "middle")
        parts.append(_text(at, y + 10, f"x = {x}" if x == -far else str(x), anchor))
    y += 36
    steps = range(8)
    parts += [_cell(LEFT + k * 24, y - 11, 24, 12, k / 7, scheme) for k in steps]
    parts.append(_text(LEFT - 8, y, "digits lost: 0", "end"))
    parts.append(_text(LEFT + 8 * 24 + 8, y, "all 7 of float32", "start"))
    style = (
        f"text {{ font: 13px sans-serif; fill: {COLOURS[scheme][0]} }} "
        ".name { font: 13px monospace }"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH} {y + 8}" '
        f'width="{LEFT + WIDTH}" height="{y + 8}" shape-rendering="crispEdges">'
        f"<style>{style}</style>" + "".join(parts) + "</svg>\n"
    )


def _cell(
    x: float, y: float, width: float, height: float, share: float, scheme: str
) -> str:
    _, none, all_lost = COLOURS[scheme]
    pairs = zip(none, all_lost, strict=True)
    colour = ",".join(str(round(a + (b - a) * share)) for a, b in pairs)
    return (
        f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}" '
        f'fill="rgb({colour})"/>'
    )


def _text(x: float, y: float, words: str, anchor: str, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:.0f}" y="{y}" text-anchor="{anchor}">{words}</text>'


def main() -> None:
    for stem, (far, ops) in MAPS.items():
        rows = {name: lost(op, far) for name, op in ops.items()}
        for scheme in COLOURS:
            path = DOCS / f"{stem}-{scheme}.svg"
            path.write_text(drawn(far, rows, scheme), encoding="utf-8")
            sys.stdout.write(f"{path.name}: {path.stat().st_size / 1000:.0f} kB\n")


if __name__ == "__main__":
    main()
