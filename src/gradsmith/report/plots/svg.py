"""Elements of SVG as escaped text, and the frame of a plot."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from ..figures import number

WIDTH, HEIGHT = 440, 244  # units of the drawing; text of 11 is legible at 328 px
LEFT, RIGHT, TOP, BOTTOM = 50, 10, 24, 38


def tag(name: str, *inside: str, **attributes: Any) -> str:
    """An element. Its text is escaped by `words`; attributes are escaped here.

    >>> tag("text", words("a < b"), x=1.5, class_="tick")
    '<text x="1.5" class="tick">a &lt; b</text>'
    """
    pairs = [(key.rstrip("_").replace("_", "-"), v) for key, v in attributes.items()]
    head = "".join(f' {key}="{escape(_value(v))}"' for key, v in pairs)
    return f"<{name}{head}>{''.join(inside)}</{name}>"


def words(text: Any) -> str:
    return escape(str(text))


def _value(x: Any) -> str:
    return f"{x:.1f}".removesuffix(".0") if isinstance(x, float) else str(x)


def image(title: str, description: str, *inside: str, height: int = HEIGHT) -> str:
    """A drawing with its words for those who don't see it."""
    return tag(
        "svg",
        tag("title", words(title)),
        *inside,
        xmlns="http://www.w3.org/2000/svg",
        role="img",
        viewBox=f"0 0 {WIDTH} {height}",
        aria_label=f"{title}. {description}",
        class_="plot",
    )


@dataclass(frozen=True)
class Frame:
    """The area of a plot, with a scale in each direction."""

    across: Any
    up: Any

    def x(self, value: Any) -> float:
        return LEFT + self.across(number(value)) * (WIDTH - LEFT - RIGHT)

    def y(self, value: Any) -> float:
        return HEIGHT - BOTTOM - self.up(number(value)) * (HEIGHT - TOP - BOTTOM)

    def axes(self, across: str, up: str) -> str:
        """Grid, ticks and what the axes are about."""
        bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
        parts = []
        for value, label in self.across.ticks:
            x = self.x(value)
            parts.append(tag("path", d=f"M{x:.1f} {TOP}V{bottom}", class_="grid"))
            parts.append(_tick(label, x, bottom + 14, "middle"))
        for value, label in self.up.ticks:
            y = self.y(value)
            parts.append(tag("path", d=f"M{LEFT} {y:.1f}H{right}", class_="grid"))
            parts.append(_tick(label, LEFT - 6, y + 4, "end"))
        middle = (LEFT + right) / 2
        parts.append(_tick(across, middle, HEIGHT - 6, "middle", "axis"))
        parts.append(_tick(up, 4, 13, "start", "axis"))
        return tag("g", *parts)

    def line(self, xs: Sequence[Any], ys: Sequence[Any], class_: str) -> str:
        """A line through the points; one that is no number interrupts it."""
        parts, pen = [], "M"
        for x, y in zip(xs, ys, strict=True):
            if _is_nan(x, y):
                pen = "M"
                continue
            parts.append(f"{pen}{self.x(x):.1f} {self.y(y):.1f}")
            pen = "L"
        return tag("path", d="".join(parts), class_=class_) if parts else ""

    def area(self, xs: Sequence[Any], ys: Sequence[Any], class_: str) -> str:
        """What is under a line."""
        pairs = [(x, y) for x, y in zip(xs, ys, strict=True) if not _is_nan(x, y)]
        if not pairs:
            return ""
        bottom = HEIGHT - BOTTOM
        top = "".join(f"L{self.x(x):.1f} {self.y(y):.1f}" for x, y in pairs)
        first, last = self.x(pairs[0][0]), self.x(pairs[-1][0])
        path = f"M{first:.1f} {bottom}{top}L{last:.1f} {bottom}Z"
        return tag("path", d=path, class_=class_)

    def dots(
        self, points: Iterable[tuple[Any, Any]], class_: str, r: float = 2.2
    ) -> str:
        """Dots as one path of short strokes with round ends."""
        shown = [(x, y) for x, y in points if not _is_nan(x, y)]
        path = "".join(f"M{self.x(x):.1f} {self.y(y):.1f}h0" for x, y in shown)
        if not path:
            return ""
        return tag("path", d=path, class_=f"dots {class_}", stroke_width=2 * r)


def _is_nan(*values: Any) -> bool:
    return any(math.isnan(number(value)) for value in values)


def _tick(text: str, x: float, y: float, anchor: str, class_: str = "tick") -> str:
    return tag("text", words(text), x=x, y=y, text_anchor=anchor, class_=class_)
