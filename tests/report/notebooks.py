"""Results as they stand in a notebook, and pages such as notebooks have.

python -m tests.report.notebooks FOLDER takes pictures of them.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import gradsmith as gs
from gradsmith.tools.survival.result import Fate, Outcome, Survival
from tests.report import sample
from tests.report.browser import chromium, resized


def entropy(p):
    return -np.sum(p * np.log(p))


def network(x):
    for _ in range(3):
        x = np.tanh(x * 1.5)
    return np.sum(np.exp(x))


# How each kind of page looks, and says that it is dark: the beginning of its HTML. Its
# own rules for tables, lists and code are what ours have to stand up to.
_RULES = """<style>
  .black { background: #1e1e1e; color: #ccc; }
  .out table { border-collapse: separate; table-layout: fixed; font-size: 30px; }
  .out td, .out th { text-align: right; padding: 2em; border: 3px solid lime; }
  .out tbody tr:nth-child(odd) { background: #f5f5f5; }
  .out code { color: #d63384; background: #eee; padding: 1em; }
  .out p, .out ul, .out dd { margin: 2em; }
  .out dt { float: left; width: 20%; font-weight: 700; } /* as in JupyterLab */
  .out dd { float: left; width: 80%; }
</style>"""
PAGES = {
    "JupyterLab, light": '<html><body data-jp-theme-light="true">',
    "JupyterLab, dark": '<html><body data-jp-theme-light="false" class="black">',
    "VS Code, dark": '<html><body class="vscode-dark black">',
    "Colab, dark": '<html theme="dark"><body class="black">',
    "a page that says nothing": '<html><body class="black">',
}


@cache
def shown() -> dict[str, Any]:
    """A result of each kind."""
    x = np.array([0.5, -1.25, 2.0])
    survived = Survival("cube", "NumPy", "2.4", tuple(
        Outcome(f"transformation {fate}", fate, "words " * 9) for fate in Fate
    ), "with a note")  # fmt: skip
    with gs.override({np.tanh: lambda dy, y, x: dy}) as record:
        network(gs.Tensor(x))
    with gs.GradientTape() as tape:
        start = gs.Tensor(x)
        tape.watch(start)
        end = np.sum(sample.cube(np.tanh(start)) * gs.stop_gradient(np.exp(start)))
    return {
        "drawing": tape.draw(end),
        "right": gs.check(sample.cube, x),
        "wrong": gs.check(sample.twice_too_much, x),
        "audit": sample.audit(),
        "survival": survived,
        "both": gs.survival_table({"ours": survived, "theirs": survived}),
        "memory": gs.memory(network, x),
        "nan": gs.find_nan(entropy, np.array([0.5, 0.0])),
        "finite": gs.find_nan(entropy, np.array([0.5, 0.5])),
        "override": record,
        "program": gs.trace(gs.grad(network), x),
    }


def evil() -> dict[str, Any]:
    """Results in which every word is an attack."""
    words = sample.EVIL
    outcome = sample.evil()
    program = replace(gs.trace(np.sin, np.ones(3)), name=words, names=(words,))
    with gs.GradientTape() as tape:
        end = gs.Variable(1.0, name=words) * 2.0
    return {
        "drawing": tape.draw(end),
        "check": outcome,
        "audit": sample.audit(words, operation=words),
        "survival": Survival(words, words, words, (Outcome(words, Fate.WRONG, words),)),
        "nan": replace(shown()["nan"], function=words, explanation=words),
        "memory": replace(shown()["memory"], function=words, notes=(words,)),
        "program": program,
    }


def page(start: str, results: dict[str, Any]) -> str:
    """A page with results, between others' words."""
    outputs = [
        f'<div class="out">{each._repr_html_()}</div>' for each in results.values()
    ]
    around = (
        '<div class="out" id="others"><p>p</p><table><tr><td>1</td></tr></table>'
        "<pre><code>x</code></pre><ul><li>li</li></ul><dl><dt>a</dt><dd>b</dd></dl>"
        '<svg class="plot" width="20" height="20"><path d="M0 0L9 9"/></svg></div>'
    )
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    html, _, body = start.partition("<body")
    return (
        f"<!doctype html>{html}<head>{head}{_RULES}</head><body{body}"
        f"{around}{''.join(outputs)}</body></html>"
    )


def main(folder: str) -> None:
    with tempfile.TemporaryDirectory() as profile, chromium(Path(profile)) as driver:
        for name, start in PAGES.items():
            file = Path(folder, name.replace(", ", "-").replace(" ", "-"))
            file.with_suffix(".html").write_text(page(start, shown()), encoding="utf-8")
            driver.get(file.with_suffix(".html").absolute().as_uri())
            for width in (360, 1000):
                resized(driver, width)
                script = "return document.documentElement.scrollHeight"
                resized(driver, width, driver.execute_script(script))
                driver.save_screenshot(f"{file}-{width}.png")


if __name__ == "__main__":
    main(*sys.argv[1:])
