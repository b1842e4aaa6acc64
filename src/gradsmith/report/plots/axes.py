"""The plots of results by Matplotlib, from the same data as those in SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite, isinf, nan
from textwrap import fill
from typing import Any

from ...core.errors import GradsmithError
from ..figures import number
from ..result import Figure
from . import LIMIT, beyond, interrupted, middle
from .scales import log_for, symlog_for

WRONG = "tab:red"
NAMED = 12  # elements that have room for their names
LINE = 66  # letters of a line above a plot


def plot(
    figures: Sequence[Figure], ax: Any, *, title: str, remark: str = "", **options: Any
) -> Any:
    """Draw figures of one kind on Matplotlib's axes, new ones if there are none."""
    if ax is None:
        ax = _new_axes()
    _PLOTS[figures[0].plot](ax, [figure.data for figure in figures], **options)
    ax.set_title(
        "\n".join(filter(None, (title, fill(remark, LINE)))), fontsize="medium"
    )
    return ax


def _new_axes() -> Any:
    try:
        from matplotlib import pyplot as plt
    except ModuleNotFoundError as error:
        raise GradsmithError(
            "plots need Matplotlib, which is not installed\n"
            '  what to do: pip install "gradsmith[plot]"'
        ) from error
    return plt.subplots(layout="constrained")[1]


def _ulp(ax: Any, parts: list[dict[str, Any]], *, max_ulp: float = LIMIT) -> None:
    """Errors in ULP against the input: the largest, and dashed the mean."""
    curves = [interrupted(part["accuracy"]["curve"], part["inputs"]) for part in parts]
    every = [y for _, most, _ in curves for y in most]
    up = log_for([*every, 10.0, max_ulp], low=-1, high=1, floor=-1)
    bottom = 10.0**up.low
    top = (
        10.0 ** (up.high + 0.08 * (up.high - up.low)) if up.infinite else 10.0**up.high
    )
    for i, (part, (xs, most, mean)) in enumerate(zip(parts, curves, strict=True)):
        style: Any = {"color": f"C{i}", "linewidth": 1.5}
        ax.plot(xs, _within(most, bottom, top), label=part["what"], **style)
        ax.plot(xs, _within(mean, bottom, top), **style | {"linestyle": ":"})
        lost = [x for x, y in zip(xs, most, strict=True) if isinf(y)]
        ax.plot(lost, [top] * len(lost), "^", color=f"C{i}", markersize=3)
        off = [y > max_ulp for y in most]
        band: Any = {"color": WRONG, "alpha": 0.1, "linewidth": 0}
        ax.fill_between(xs, bottom, top, where=off, step="mid", **band)
    ax.axhline(max_ulp, color=WRONG, linestyle="--", label=f"{max_ulp:g} ULP")
    across = symlog_for(parts[0]["inputs"])
    room = 0.04 * (across.high - across.low)
    ax.set_xscale("symlog", linthresh=10.0**across.low, linscale=max(room, 0.2))
    ends = [x for xs, _, _ in curves for x in xs]
    low, high = min(ends), max(ends)
    ticks = [(x, label) for x, label in across.ticks if low <= x <= high]
    ax.set(xlim=(low, high), xlabel="input", ylabel="error in ULP")
    ax.set_yscale("log")
    ax.set_ylim(bottom, top)
    _name_ticks(ax.set_xticks, ticks)
    _name_ticks(ax.set_yticks, [(min(y, top), label) for y, label in up.ticks])
    ax.minorticks_off()
    ax.grid(alpha=0.3)
    ax.legend(fontsize="small")


def _within(ys: list[float], low: float, high: float) -> list[float]:
    return [min(max(y, low), high) if y == y else nan for y in ys]


def _name_ticks(set_ticks: Callable[..., Any], ticks: list[tuple[float, str]]) -> None:
    set_ticks([place for place, _ in ticks], [label for _, label in ticks])


def _gradient(ax: Any, parts: list[dict[str, Any]]) -> None:
    """The gradient by the rule and by differences, and where they disagree."""
    (data,) = parts
    slopes, analytic = middle(data), [*map(number, data["analytic"])]
    is_curve = data["kind"] == "curve"
    xs = [*map(number, data["x"])] if is_curve else [*range(len(analytic))]
    off = [
        i
        for i, (gap, error) in enumerate(zip(data["gap"], data["error"], strict=True))
        if not data["note"] and not number(gap) <= number(error)
    ]
    ax.plot(xs, slopes, "o", color="C1", alpha=0.6, label="by differences")
    style = "-" if is_curve else "_"
    ax.plot(xs, analytic, style, color="C0", markersize=9, label="by the rule")
    # What is no number has no place of its own
    shown = [analytic[i] if isfinite(analytic[i]) else slopes[i] for i in off]
    ends = [slopes[i] if isfinite(slopes[i]) else shown[k] for k, i in enumerate(off)]
    if off:
        places = [xs[i] for i in off]
        ax.vlines(places, ends, shown, color=WRONG, alpha=0.4, linewidth=1)
        ax.plot(places, shown, "x", color=WRONG, label="off")
    if not is_curve:
        named = off[:NAMED] if off else [*range(len(xs))][:: len(xs) // NAMED + 1]
        ax.set_xticks(named, [data["place"][i] for i in named], rotation=60, ha="right")
    across = data["argument"] if is_curve else "element"
    ax.set(xlabel=across, ylabel="gradient")
    ax.grid(alpha=0.3)
    ax.legend(fontsize="small", title=beyond(data), title_fontsize="small")


def _memory(ax: Any, parts: list[dict[str, Any]]) -> None:
    rows = parts[0]["rows"]
    names, sizes = [row["label"] for row in rows], [row["nbytes"] for row in rows]
    bars = ax.barh(names, sizes, height=0.7)
    ax.bar_label(bars, [row["size"] for row in rows], padding=3, fontsize="small")
    ax.set_ylim(max(len(rows), 4) - 0.5, -0.5)  # the largest first
    ax.margins(x=0.15)
    ax.set(xlabel="kept for the gradient, bytes")


_PLOTS = {"ulp": _ulp, "gradient": _gradient, "memory": _memory}
