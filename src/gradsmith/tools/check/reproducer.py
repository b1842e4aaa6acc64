"""A script that shows a wrong gradient without us: the rule beside a difference.

It is for an issue report: a few lines of the operation's own framework, at one small
input, for one element of one argument.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from keyword import iskeyword
from typing import Any

import numpy as np

from ...core import trees
from ...operations.info import is_floating
from .inline import bound, inlined
from .numerics import random_signed
from .problem import Linearization, Problem, floating
from .sizes import cropped, lengths_of

FEW = 24  # elements of all arrays together
MANY = 64  # elements that are tried
LARGE = 10**4
SHORT = 3
DRAWS = 3  # of upstream gradients: one may be symmetric by chance
CLEAR = 1e-3  # a relative error that one plain difference shows
# Names that the script has for itself
TAKEN = {"loss", "y", "weights", "step", "move", "up", "down", "rule", "difference"}
STEPS = {"float64": 1e-6, "float32": 2.0**-8}


def reproducer(
    problem: Problem, argument: str | None, *, misfit: bool = False
) -> str | None:
    """The script for an argument; None if a few plain lines can't show it.

    With `misfit` it shows the shape of a gradient that does not fit its argument.
    """
    for made in (_small, _drawn):
        try:
            simple = made(problem if misfit else problem.in_dtype("float64"))
            shown = simple and _shown(simple, argument, misfit)
        except Exception:  # the operation's own, at inputs that are not the given ones
            continue
        if shown:
            return re.sub(r"\n{3,}", "\n\n", "\n".join(shown))
    return None


def _small(problem: Problem) -> Problem | None:
    """The problem itself if it is small, or with the first elements alone."""
    if sum(x.size for x in _arrays(problem)) <= FEW:
        return _in_few_digits(problem)
    shorter = cropped(problem, {n: min(n, SHORT) for n in lengths_of(problem)})
    few = sum(x.size for x in _arrays(shorter)) <= FEW
    return _in_few_digits(shorter) if few else None


class _Drawn(np.ndarray):
    """Random numbers, which the script draws too."""

    source = ""


def _drawn(problem: Problem) -> Problem | None:
    """Random numbers of the same range in place of large arrays."""

    def leaf(x: Any) -> Any:
        if not isinstance(x, np.ndarray) or x.size <= FEW or not is_floating(x):
            return x
        low, high = (float(f"{end:.2g}") for end in (x.min(), x.max()))
        made = np.random.default_rng(0).uniform(low, high, x.shape).astype(x.dtype)
        new: Any = made.view(_Drawn)
        new.source = (
            f"np.random.default_rng(0).uniform({low}, {high}, {x.shape})"
            f".astype(np.{x.dtype.name})"
        )
        return new

    rounded = _in_few_digits(problem)
    return replace(rounded, inputs=trees.map(leaf, rounded.inputs))


def _in_few_digits(problem: Problem) -> Problem:
    """For people to read."""

    def leaf(x: Any) -> Any:
        if not isinstance(x, np.ndarray) or not is_floating(x) or np.iscomplexobj(x):
            return x
        few = [float(f"{value:.4g}") for value in x.ravel()]
        return np.reshape(few, x.shape).astype(problem.dtypes[0])

    return replace(problem, inputs=trees.map(leaf, problem.inputs))


def _arrays(problem: Problem) -> list[np.ndarray]:
    return [x for x in trees.leaves(problem.inputs) if isinstance(x, np.ndarray)]


def _shown(problem: Problem, argument: str | None, misfit: bool) -> list[str] | None:
    """The script, if its two numbers differ."""
    script = problem.calculus.REPRODUCER
    place = _place_of_operation(problem.info.call, script.array)
    step = STEPS.get(problem.dtypes[0])
    if problem.info.captured or place is None or step is None:
        return None  # what is captured is not among the arguments of the call
    imports, operation = place
    header = ["import numpy as np", *script.imports]
    imports = [line for line in imports if line not in header]
    own = TAKEN | bound(line.format(x="x") for line in script.gradient)
    given = bound([*header, *imports])
    own_names = {name: f"{name}_" if name in given else name for name in own}
    names = _variables(problem, given.union(own, own_names.values()))
    k = problem.perturbed.index(argument) if argument in problem.perturbed else 0
    path = _first_output(problem)
    if path is None:
        return None
    random = np.random.default_rng(0)
    (ys, dtype), found = problem.computed(), problem.linearize(problem.xs)
    for _ in range(DRAWS if ys[0].size <= FEW else 1):  # many are drawn alike
        us = [0 * y for y in ys]
        us[0] = _upstream(random, ys[0].shape, dtype)
        index = () if misfit else _worst(problem, found, us, k, step)
        if index is not None:
            break
    else:
        return None
    name = names[problem.perturbed[k]]
    call = _call(problem, names, name)
    where = f"[{', '.join(map(str, index))}]" if index else "[()]"
    tail = [
        f"step = np.zeros_like({name})",
        f"step{where} = {step!r}",
        f"up, down = (loss({script.array}({name} + move)) for move in (step, -step))",
        f"difference = (float(up) - float(down)) / {2 * step!r}",
        f'print("rule:", float(rule{where}), " difference:", difference)',
    ]
    if misfit:
        tail = [
            f'print("gradient:", tuple(rule.shape), " argument:", {name}.shape)',
        ]
    shown = [
        f"weights = {_literal(us[0])}",
        "",
        f"def loss({name}):",
        f"    y = \0({call}){path}",
        f"    return {script.total}({script.array}(weights) * y)",
        "",
        *(line.format(x=name) for line in script.gradient),
        *tail,
    ]
    # An operation `loss` keeps its name, and the function of that name gets another.
    text = re.sub(r"\w+", lambda m: own_names.get(m[0], m[0]), "\n".join(shown))
    shown = text.replace("\0", operation).split("\n")
    return [*header, *imports, "", *_assignments(problem, names), *shown]


def _upstream(
    random: np.random.Generator, shape: tuple[int, ...], dtype: str
) -> np.ndarray:
    """Few are written down, many are drawn."""
    if np.prod(shape) <= FEW:
        return random_signed(random, shape).astype(dtype)
    made: Any = np.random.default_rng(1).uniform(0.5, 1.5, shape).astype(dtype)
    made = made.view(_Drawn)
    made.source = (
        f"np.random.default_rng(1).uniform(0.5, 1.5, {shape}).astype(np.{dtype})"
    )
    return made


def _worst(
    problem: Problem,
    found: Linearization,
    us: Sequence[np.ndarray],
    k: int,
    step: float,
) -> tuple[int, ...] | None:
    """The element for which rule and difference differ most."""
    x, g = problem.xs[k], found.pull(us)[k]
    if np.iscomplexobj(x):
        return None
    g = np.zeros_like(x) if g is None else np.asarray(g)
    count = MANY if x.size < LARGE else 1  # each takes two passes over all elements
    flat = range(0, x.size, -(-x.size // count))
    tried = [np.unravel_index(i, x.shape) for i in flat]
    slopes = np.array([_difference(problem, us, k, i, step) for i in tried])
    rule = np.array([g[i] for i in tried])
    gap = np.abs(slopes - rule)
    gap[np.isfinite(slopes) & ~np.isfinite(rule)] = np.inf  # NaN by the rule alone
    gap[np.isnan(gap)] = 0.0
    j = int(np.argmax(gap))
    size = max(float(np.abs(rule[j])), float(np.max(np.abs(slopes), initial=0.0)))
    clear = gap[j] == np.inf or gap[j] > CLEAR * size
    return tuple(map(int, tried[j])) if clear else None


def _difference(
    problem: Problem, us: Sequence[np.ndarray], k: int, index: Any, step: float
) -> float:
    ends = []
    for side in (step, -step):
        xs = [np.array(x) for x in problem.xs]
        xs[k][index] += side
        pairs = zip(us, problem.value(xs), strict=True)
        ends.append(sum(float(np.sum(u * y)) for u, y in pairs))
    return (ends[0] - ends[1]) / (2 * step)


# --- the parts of the script


def _place_of_operation(op: Any, array: str) -> tuple[list[str], str] | None:
    """How to import or define an operation, and what to call it then."""
    owner = getattr(op, "__self__", None)
    holder = owner if isinstance(owner, type) else op
    module = getattr(holder, "__module__", None) or ""
    name = getattr(holder, "__qualname__", None) or getattr(holder, "__name__", None)
    if not name:
        return None
    suffix = f".{op.__name__}" if holder is owner else ""
    try:
        same = reduce(getattr, name.split("."), sys.modules[module]) is holder
    except (AttributeError, KeyError):
        same = False
    short = name.rpartition(".")[2]
    if module == "__main__" or not same:
        if (found := inlined(holder, array)) is not None:
            lines, word = found
            return ["", *lines], word + suffix
        word = short if short.isidentifier() else "op"
        return [f"# {word} is the operation that was checked"], word + suffix
    top = name.partition(".")[0]
    return [f"from {module} import {top}"], name + suffix


def _variables(problem: Problem, taken: set[str]) -> dict[str, str]:
    """A variable for each floating-point array, by its name in reports."""
    words: dict[str, str] = {}
    for i, name in enumerate(problem.names):
        word = name if name.isidentifier() and not iskeyword(name) else f"x{i}"
        while word in taken or word in words.values():
            word += "_"
        words[name] = word
    return words


def _assignments(problem: Problem, names: dict[str, str]) -> Iterator[str]:
    arrays = [x for x in _arrays(problem) if is_floating(x)]
    for name, x in zip(problem.names, arrays, strict=True):
        yield f"{names[name]} = {_literal(x)}"


def _literal(x: np.ndarray) -> str:
    if isinstance(x, _Drawn):
        return x.source
    return f"np.array({x.tolist()!r}, np.{x.dtype.name})"


def _call(problem: Problem, names: dict[str, str], moving: str) -> str:
    """The arguments of the call, as source."""
    array, order = problem.calculus.REPRODUCER.array, iter(problem.names)

    def leaf(x: Any) -> Any:
        if not isinstance(x, np.ndarray):
            return x
        if not is_floating(x):
            return _Source(f"{array}({_literal(x)})")
        name = names[next(order)]
        return _Source(name if name == moving else f"{array}({name})")

    args, kwargs = trees.map(leaf, problem.inputs)
    words = [*map(repr, args), *(f"{key}={value!r}" for key, value in kwargs.items())]
    return ", ".join(words)


class _Source(str):
    """Source code, which stands for itself in a repr."""

    def __repr__(self) -> str:
        return str(self)


def _first_output(problem: Problem) -> str | None:
    """How to take the first output with a gradient from what the operation returns."""
    with problem.precision():
        args, kwargs = problem.native_inputs()
        found = problem.call(*args, **kwargs)
    if not isinstance(found, tuple | list):
        return "" if len(floating(found)) == 1 else None
    first = next((i for i, y in enumerate(found) if is_floating(y)), None)
    return None if first is None else f"[{first}]"
