"""Calls a drawn operation and compares value and gradients with the formula."""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith.core.errors import first_line

from ..modes import Mode, numpy
from ..outcome import Outcome
from .drawn import STRUCTURES, Drawn, arrays, defined, filled, parts

PART = "signatures"
FORMS = ("closure", "closure", "rule", "python")


def judge(name: str, mode: Mode, seed: int, number: int) -> Outcome:
    rng = random.Random(f"{seed}:{number}")
    drawn = Drawn(rng)
    structure, form = rng.choice(STRUCTURES), rng.choice(FORMS)
    structure = "tuple" if structure == "several" and form != "closure" else structure
    by_name = rng.random() < 0.4
    text = f"{form}, returns {structure}, by name {by_name}\ndef op{drawn.source()}\n"
    text += f"op(*{drawn.args}, **{drawn.kwargs})"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wrong = _compare(
                mode, drawn, defined(drawn, structure, form, by_name), structure
            )
    except gs.GradsmithError as error:
        return Outcome(PART, name, "refused", first_line(error)[:160], text)
    except Exception as error:
        cause = f"{mode.name}: {first_line(error)[:160]}"
        return Outcome(PART, name, "crash", cause, text)
    if wrong:
        return Outcome(PART, name, "wrong", f"{mode.name}: {wrong}", text)
    return Outcome(PART, name, "right", checks=(form,))


def _compare(mode: Mode, drawn: Drawn, op: Any, structure: str) -> str:
    dtype = np.float32 if mode.name == "mlx" or drawn.rng.random() < 0.3 else np.float64
    plain = arrays(drawn, dtype)

    def loss(*xs: Any) -> Any:
        placed = {id(leaf): x for leaf, x in zip(drawn.leaves, xs, strict=True)}
        y = op(*filled(drawn.args, placed), **filled(drawn.kwargs, placed))
        a, b = parts(structure, y)
        return 3.0 * b if a is None else 3.0 * b + gnp.sum(a)

    value, pull = mode.vjp(loss, *(mode.array(x) for x in plain))
    factor, squares = drawn.factor, [np.sum(x * x) for x in _in_order(drawn, plain)]
    both = structure != "b"
    expected = 3.0 * factor * sum((i + 1) * s for i, s in enumerate(squares))
    expected += factor * squares[0] * both
    if not np.allclose(numpy(value), expected, rtol=1e-4):
        return "the value is not the formula's"
    found = pull(mode.array(np.asarray(1.0, numpy(value).dtype)))
    places = {id(leaf): i for i, leaf in enumerate(_leaves_in_order(drawn))}
    for leaf, x, dx in zip(drawn.leaves, plain, found, strict=True):
        i = places[id(leaf)]
        right = 2 * factor * x * (3.0 * (i + 1) + (both and i == 0))
        if numpy(dx).shape != x.shape or not np.allclose(numpy(dx), right, rtol=1e-4):
            return "a gradient is not the formula's"
        if numpy(dx).dtype != x.dtype:
            return "a gradient has another dtype"
    return ""


def _leaves_in_order(drawn: Drawn) -> list[Any]:
    """As the body sees them: by the order of the signature."""
    from .drawn import ordered

    scope: dict[str, Any] = {"run": lambda arguments, factor: ordered(arguments)}
    head, _, result = drawn.source().partition(": ")
    exec(f"def op{head}:\n    return run(*{result})", scope)
    return scope["op"](*drawn.args, **drawn.kwargs)


def _in_order(drawn: Drawn, plain: list[np.ndarray]) -> list[np.ndarray]:
    placed = {id(leaf): x for leaf, x in zip(drawn.leaves, plain, strict=True)}
    return [placed[id(leaf)] for leaf in _leaves_in_order(drawn)]
