"""Run the examples and show what they print, with the verdict on each gradient.

python -m examples          # NumPy alone
python -m examples --all    # and those for which the frameworks are installed
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from textwrap import wrap
from types import ModuleType

import gradsmith as gs

NAMES = [
    "wrong_gradient",
    "cured_nan",
    "square",
    "leaky_relu",
    "piecewise",
    "two_outputs",
    "watched_constant",
    "stable_softmax",
    "clipped_loss",
    "cubic_layer",
    "linear_model",
    "one_term",
]
WITH_FRAMEWORKS = ["five_frameworks", "sparse_solve", "guided_backprop"]
WIDTH = 79

# TensorFlow writes of its own matters to the terminal when it is imported.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")


def verdicts(example: ModuleType) -> Iterator[str]:
    for value in vars(example).values():
        if isinstance(value, gs.Operation) and value.__module__ == example.__name__:
            found = gs.check(value)
            yield f"{'✓' if found.ok else '✗'} {found.verdict}: {found.remark}"


def show(number: int, name: str) -> None:
    example = import_module(f"examples.{name}")
    title = example.__doc__.partition("\n")[0].rstrip(".")
    place = f"examples/{name}.py"
    print(f"\n{bold(f'{number:2}  {title}')}{place:>{WIDTH - 4 - len(title)}}")
    for line in (*example.report(), *verdicts(example)):
        for part in wrap(line, WIDTH - 4, subsequent_indent=" " * hang(line)):
            print(f"    {coloured(part)}", flush=True)


def hang(line: str) -> int:
    """The indent of what does not fit into a line: that of its second column."""
    _, gap, words = line.strip().partition("   ")
    return line.index(words.strip()) if gap else 2


def bold(words: str) -> str:
    return f"\033[1m{words}\033[0m" if sys.stdout.isatty() else words


def coloured(line: str) -> str:
    colour = {"✓": 32, "✗": 31}.get(line[:1])
    return f"\033[{colour}m{line}\033[0m" if colour and sys.stdout.isatty() else line


def main() -> None:
    names = NAMES + (WITH_FRAMEWORKS if "--all" in sys.argv[1:] else [])
    print("Gradsmith: write an operation with its gradient once.")
    for number, name in enumerate(names, start=1):
        show(number, name)
    print(f"\nAll {len(names)} examples ran. Copy one, and check yours:")
    print("    gradsmith check your_file.py")


if __name__ == "__main__":
    main()
