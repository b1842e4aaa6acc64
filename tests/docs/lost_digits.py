"""The map on the landing page: python -m tests.docs.lost_digits docs/lost-digits."""

from __future__ import annotations

import sys
from math import log10
from pathlib import Path
from typing import Any

import gradsmith as gs
from tests.docs.softplus import softplus, textbook

LOW, HIGH, STEP = -100, 100, 2
DIGITS = log10(2**24)  # of float32
ROWS = (("log(1 + exp(x))", textbook), ("softplus(x)", softplus))
# Ink, none lost, all lost
COLOURS = {
    "light": ("#3d4450", (226, 236, 228), (176, 32, 48)),
    "dark": ("#c3cad6", (44, 62, 54), (255, 107, 107)),
}
LEFT, WIDTH, HEIGHT, GAP = 150, 450, 22, 6


def lost(op: Any) -> list[tuple[float, float]]:
    """The digits that value and gradient lose at most, in each piece of the domain."""
    found = []
    for low in range(LOW, HIGH, STEP):
        audit = gs.audit(op, domain=(low, low + STEP), points=400)
        found.append(tuple(_digits(part) for part in (audit.value, audit.gradient)))
    return found


def _digits(accuracy: Any) -> float:
    return min(log10(max(accuracy.max_ulp, 1.0)), DIGITS)


def drawn(maps: list[list[tuple[float, float]]], scheme: str) -> str:
    parts, y = [], 24
    for (name, _), cells in zip(ROWS, maps, strict=True):
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
    for x in (-100, -50, 0, 50, 100):
        at = LEFT + (x - LOW) / (HIGH - LOW) * WIDTH
        anchor = {LOW: "start", HIGH: "end"}.get(x, "middle")
        parts.append(_text(at, y + 10, f"x = {x}" if x == LOW else str(x), anchor))
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


def main(stem: str) -> None:
    maps = [lost(op) for _, op in ROWS]
    for scheme in COLOURS:
        path = Path(f"{stem}-{scheme}.svg")
        path.write_text(drawn(maps, scheme), encoding="utf-8")
        sys.stdout.write(f"{path}: {path.stat().st_size / 1000:.0f} kB\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
