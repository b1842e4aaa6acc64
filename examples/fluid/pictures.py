"""PNG pictures and an SVG curve, with nothing but the standard library."""

from __future__ import annotations

import struct
import zlib

import numpy as np

INK = np.array([24, 78, 119])  # what a dye of 1 looks like, on white


def png(path, grids, scale=4, gap=3):
    """Write grids of values from 0 to 1 side by side."""
    white = np.zeros((len(grids[0]), gap))
    row = np.concatenate(
        [part for grid in grids for part in (grid, white)][:-1], axis=1
    )
    row = np.clip(row, 0, 1).repeat(scale, axis=0).repeat(scale, axis=1)
    pixels = (255 - row[..., None] * (255 - INK)).astype(np.uint8)
    height, width, _ = pixels.shape
    lines = np.concatenate(
        [np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], 1
    )
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = (
        (b"IHDR", header),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
        (b"IEND", b""),
    )
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*c) for c in chunks))


def _chunk(kind, data):
    check = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)


def curve(path, losses, title):
    """Write a curve on a logarithmic axis."""
    width, height, left, top = 560, 260, 64, 34
    y = np.log10(losses)
    low, high = np.floor(2 * y.min()) / 2, np.ceil(2 * y.max()) / 2
    xs = left + np.arange(len(y)) * (width - left - 16) / max(len(y) - 1, 1)
    ys = top + (high - y) / (high - low) * (height - top - 36)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(xs, ys, strict=True))
    marks = []
    for value in np.arange(low, high + 0.1, 0.5):
        at = top + (high - value) / (high - low) * (height - top - 36)
        marks.append(
            f'<line x1="{left}" x2="{width - 16}" y1="{at:.1f}" y2="{at:.1f}" '
            f'stroke="#ddd"/><text x="{left - 8}" y="{at + 4:.1f}" '
            f'text-anchor="end">{10**value:.2g}</text>'
        )
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="12" role="img"><title>{title}</title>'
        f'<rect width="{width}" height="{height}" fill="#fff"/>'
        f'<text x="{left}" y="20" font-weight="bold">{title}</text>{"".join(marks)}'
        f'<polyline points="{points}" fill="none" stroke="#184e77" stroke-width="2"/>'
        f'<text x="{(left + width) / 2}" y="{height - 8}" text-anchor="middle">'
        f"rounds of Adam (to {len(y) - 1})</text></svg>\n"
    )
