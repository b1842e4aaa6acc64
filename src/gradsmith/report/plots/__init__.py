"""The plots of results, as SVG: each from data that may have been through JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from textwrap import shorten
from typing import Any

from ..figures import number, seconds, ulps
from ..result import Figure
from ..styles import drawing_style
from .graph import graph_plot
from .scales import linear_for, log_for, symlog_for
from .svg import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Frame, image, tag, words

LIMIT = 4.0  # ULP
ROOM = 50  # letters beside which there is no room in a drawing
MARKS = 4  # arguments that have colours of their own


def ulp_plot(data: dict[str, Any]) -> str:
    """Error in ULP against the input, logarithmic on both sides of zero.

    `what` is "value" or "gradient"; the axis is that of all `inputs`, to be compared.
    """
    what, accuracy, inputs = data["what"], data["accuracy"], data["inputs"]
    xs, most, mean = interrupted(accuracy["curve"], inputs)
    up = log_for([*most, 10.0], low=-1, high=1, floor=-1)
    frame = Frame(symlog_for(inputs), up)
    beyond = [(x, y) for x, y in zip(xs, most, strict=True) if number(y) > LIMIT]
    y = frame.y(LIMIT)
    limit = tag("path", d=f"M{LEFT} {y:.1f}H{WIDTH - RIGHT}", class_="limit")
    label = tag("text", "4 ULP", x=WIDTH - RIGHT, y=y - 4, text_anchor="end",
                class_="limit-word")  # fmt: skip
    return image(
        f"Error of the {what} in ULP against the input",
        f"{data['dtype']}; largest error {ulps(accuracy['max_ulp'])}, mean "
        f"{ulps(accuracy['mean_ulp'])}. Logarithmic axes, the input on both sides of "
        f"zero. {len(beyond)} of {len(xs) - 1} groups of inputs are beyond 4 ULP.",
        *[_band(frame, region) for region in accuracy.get("regions") or []],
        frame.axes("input", f"ULP, {what}"),
        frame.area(xs, most, "area"),
        frame.line(xs, mean, "line mean"),
        frame.line(xs, most, "line"),
        frame.dots(beyond, "bad"),
        limit,
        label,
    )


def interrupted(curve: dict[str, Any], inputs: Iterable[Any]) -> list[list[float]]:
    """The columns of a curve at the inputs to be shown, interrupted at zero."""
    shown = set(inputs)
    columns = zip(curve["x"], curve["max_ulp"], curve["mean_ulp"], strict=True)
    rows = [row for row in columns if row[0] in shown]
    after = next((i for i, row in enumerate(rows) if number(row[0]) >= 0), 0)
    rows.insert(after, (0.0, math.nan, math.nan))
    return [[number(x) for x in column] for column in zip(*rows, strict=True)]


def _band(frame: Frame, region: dict[str, Any]) -> str:
    """Where a region is, behind everything else."""
    low, high = frame.x(region["low"]), frame.x(region["high"])
    if not low <= high:
        return ""
    return tag("rect", x=low - 1, y=TOP, width=high - low + 2,
               height=HEIGHT - TOP - BOTTOM, class_="band")  # fmt: skip


# --- gradient against differences


def gradient_plot(samples: dict[str, Any]) -> str:
    """The gradient by the rule and by differences."""
    if samples["kind"] == "curve":
        return _curve(samples)
    return _scatter(samples)


def middle(samples: dict[str, Any]) -> list[float]:
    pairs = zip(samples["low"], samples["high"], strict=True)
    return [(number(a) + number(b)) / 2 for a, b in pairs]


def _curve(samples: dict[str, Any]) -> str:
    xs, analytic, slopes = samples["x"], samples["analytic"], middle(samples)
    frame = Frame(linear_for(xs), linear_for([*analytic, *slopes]))
    given = [x for x, own in zip(xs, samples["given"], strict=True) if own]
    return image(
        "Gradient by the rule and by differences, against the input",
        f"{beyond(samples)}. {len(given)} of the {len(xs)} inputs are those that were "
        "checked, the others lie between them.",
        frame.axes(samples["argument"], "gradient"),
        frame.dots(zip(xs, slopes, strict=True), "other", 3.4),
        frame.line(xs, analytic, "line"),
        *[_rug(frame, x) for x in given],
    )


def _rug(frame: Frame, x: Any) -> str:
    path = f"M{frame.x(x):.1f} {HEIGHT - BOTTOM}v-6"
    return tag("path", d=path, class_="rug")


def _scatter(samples: dict[str, Any]) -> str:
    slopes, analytic = middle(samples), samples["analytic"]
    scale = linear_for([*slopes, *analytic])
    frame = Frame(scale, scale)
    ends = [scale.low, scale.high]
    names = list(dict.fromkeys(samples["argument"]))
    rows = list(zip(samples["argument"], slopes, analytic, strict=True))
    return image(
        "Gradient by the rule against differences, one dot for each element",
        f"{beyond(samples)}. Right ones lie on the diagonal.",
        frame.axes("by differences", "by the rule"),
        frame.line(ends, ends, "diagonal"),
        *[
            frame.dots([(x, y) for n, x, y in rows if n == each], f"m{i % MARKS}", 3)
            for i, each in enumerate(names)
        ],
    )


def deviation_plot(samples: dict[str, Any]) -> str:
    """How far they are apart, over what the differences can't tell."""
    gap, error = samples["gap"], samples["error"]
    is_curve = samples["kind"] == "curve"
    xs = samples["x"] if is_curve else list(range(1, len(gap) + 1))
    pairs = list(zip(xs, gap, error, strict=True))
    across_is = samples["argument"] if is_curve else "element"
    frame = Frame(linear_for(xs), log_for([*gap, *error], low=-16, high=0, floor=-17))
    return image(
        "Deviation of the rule from differences",
        f"{beyond(samples)}. Relative, logarithmic; the shaded area is what the "
        "differences can't tell.",
        frame.axes(across_is, "relative deviation"),
        frame.area(xs, error, "area"),
        frame.line(xs, error, "line mean"),
        frame.dots([(x, g) for x, g, e in pairs if number(g) <= number(e)], "good"),
        frame.dots([(x, _shown(g)) for x, g, e in pairs if not number(g) <= number(e)],
                   "bad", 3),
    )  # fmt: skip


def _shown(x: Any) -> float:
    """One that is no number is as far off as can be."""
    return math.inf if math.isnan(number(x)) else number(x)


def beyond(samples: dict[str, Any]) -> str:
    n, many = samples["beyond"], len(samples["gap"])
    if samples["note"]:  # it is no derivative, and says so
        return samples["note"]
    if not n:
        return f"The rule agrees with the differences at all {many} points"
    return f"The rule is off at {n} of {many} points"


# --- bars


def time_plot(timing: dict[str, Any]) -> str:
    """Two bars for each size: the rule, and autodiff of the body."""
    bars = [
        (row["inputs"], kind, row[kind], seconds(row[kind]))
        for row in timing["rows"]
        for kind in ("rule", "autodiff")
        if row[kind] is not None
    ]
    return _bars("Time of value and gradient", bars, indent=62)


def memory_plot(memory: dict[str, Any]) -> str:
    """A bar for each line of code: what it keeps."""
    bars = [(row["label"], "", row["nbytes"], row["size"]) for row in memory["rows"]]
    return _bars("What a gradient keeps alive", bars)


def _bars(
    title: str, bars: list[tuple[str, str, float, str]], *, indent: int = 0
) -> str:
    """Bars with their figures: of each what it is about, its kind, and how long."""
    longest = max((length for _, _, length, _ in bars), default=1) or 1
    parts, y, said = [], 0, None
    for label, kind, length, figure in bars:
        if label != said:
            y += 18
            said = label
            short = shorten(label, ROOM, placeholder=" ...")
            parts.append(tag("text", words(short), x=0, y=y - 3, class_="axis"))
        width = max(2.0, (WIDTH - 88 - indent) * length / longest)
        parts.append(tag("text", kind, x=0, y=y + 13, class_="tick") if kind else "")
        parts.append(tag("rect", x=indent, y=y + 3, width=width, height=13, rx=2,
                         class_=f"bar {kind or 'rule'}"))  # fmt: skip
        parts.append(
            tag("text", words(figure), x=indent + 6 + width, y=y + 13, class_="figure")
        )
        y += 20
    spoken = "; ".join(
        f"{kind} {figure} for {label}" for label, kind, _, figure in bars
    )
    return image(title, spoken, *parts, height=y + 6)


# --- all of them

_PLOTS: dict[str, Callable[[dict[str, Any]], str]] = {
    "ulp": ulp_plot,
    "gradient": gradient_plot,
    "deviation": deviation_plot,
    "time": time_plot,
    "memory": memory_plot,
    "graph": graph_plot,
}


def draw(figure: Figure) -> str:
    """A figure as SVG, for a page that has our style."""
    return _PLOTS[figure.plot](figure.data)


def svg_file(figure: Figure) -> str:
    """A figure as the text of an SVG file."""
    head, end, rest = draw(figure).partition(">")
    head = head.replace('class="plot', 'class="gradsmith plot')
    return f"{head}{end}<style>{drawing_style()}</style>{rest}"
