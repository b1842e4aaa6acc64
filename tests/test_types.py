"""What an editor knows of a decorated function: its arguments and its result."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytest.importorskip("pyright", reason="pyright reads the types: pip install pyright")

DEFINITIONS = """
from collections.abc import Callable
import gradsmith as gs


class Array:
    def __mul__(self, other: float) -> "Array": ...


Grad = Callable[..., Array]


@gs.custom_gradient
def closure(x: Array, axis: int = -1) -> tuple[Array, Grad]:
    return x, lambda dy: dy


@gs.custom_gradient(surrogate="straight-through")
def options(x: Array) -> tuple[Array, Grad]:
    return x, lambda dy: dy


@gs.custom_gradient
def inferred(x: float, n: int):
    return x * 2, lambda dy: 2 * dy


@gs.custom_gradient
def bare(x, axis=-1):
    def grad(dy):
        return dy

    return x, grad


@gs.custom_gradient
def several(x: Array) -> tuple[Array, int, Grad]:
    return x, 3, lambda dy, _: dy


@gs.operation
def ruled(x: Array, scale: float = 1.0) -> Array:
    return x * scale


@ruled.vjp
def rule(dy: Array, y: Array, x: Array, scale: float) -> Array:
    return dy * scale


@gs.operation(linear=False)
def clipped(x: Array) -> Array:
    return x


@gs.python_op
def solver(x: Array, steps: int) -> Array:
    return x


@gs.python_op(spec=None)
def told(x: Array) -> Array:
    return x


@gs.checkpoint
def block(x: Array, wide: bool = False) -> Array:
    return x


@gs.checkpoint(verify=True)
def verified(x: Array) -> Array:
    return x


class Model:
    @gs.operation
    def layer(self, x: Array, name: str) -> float:
        return 0.0


def loss(x: Array, y: Array) -> float:
    return 0.0


x = Array()
"""
REVEALED = {
    "closure": "Operation[(x: Array, axis: int = -1), Array]",
    "closure(x, axis=0)": "Array",
    "options": "Operation[(x: Array), Array]",
    "inferred": "Operation[(x: float, n: int), float]",
    "bare": "Operation[(x: Unknown, axis: int = -1), Unknown]",
    "several(x)": "tuple[Array, int]",
    "ruled": "Operation[(x: Array, scale: float = 1), Array]",
    "rule": "(dy: Array, y: Array, x: Array, scale: float) -> Array",
    "clipped": "Operation[(x: Array), Array]",
    "solver": "PythonOperation[(x: Array, steps: int), Array]",
    "told(x)": "Array",
    "block": "(x: Array, wide: bool = False) -> Array",
    "verified": "(x: Array) -> Array",
    "gs.with_gradient(loss, rule)": "Operation[(x: Array, y: Array), float]",
    "gs.python_op(ruled)": "PythonOperation[(x: Array, scale: float = 1), Array]",
    "Model().layer": "(x: Array, name: str) -> float",
    "Model.layer": "Operation[(self: Model, x: Array, name: str), float]",
    "gs.grad(loss)": "(x: Array, y: Array) -> Any",
    "gs.value_and_grad(loss)": "(x: Array, y: Array) -> tuple[Any, Any]",
    "gs.jacfwd(loss)": "(x: Array, y: Array) -> Any",
    "gs.check(ruled, x)": "CheckReport",
    "gs.audit(ruled)": "Audit",
    "gs.find_nan(ruled, x)": "NanReport",
    "gs.memory(ruled, x)": "MemoryReport",
    "gs.survives(ruled, x)": "Survival",
    "gs.override(loss, {})": "Override",
    "gs.numpy": 'Module("..numpy")',
}
REFUSED = {
    "closure(x, axes=0)": 'No parameter named "axes"',
    "ruled('words')": 'cannot be assigned to parameter "x" of type "Array"',
    "solver(x)": 'Argument missing for parameter "steps"',
    "gs.grad(loss)(x)": 'Argument missing for parameter "y"',
}


@pytest.fixture(scope="module")
def messages(tmp_path_factory):
    """What pyright says, by the line that it says it of."""
    lines = [*(f"reveal_type({code})" for code in REVEALED), *REFUSED]
    file = tmp_path_factory.mktemp("types") / "user.py"
    file.write_text("\n".join([DEFINITIONS, *lines]))
    command = [sys.executable, "-m", "pyright", "--outputjson"]
    found = subprocess.run(
        [*command, "--pythonpath", sys.executable, str(file)],
        capture_output=True,
        text=True,
        cwd=file.parent,
    )
    said = json.loads(found.stdout)["generalDiagnostics"]
    source = file.read_text().splitlines()
    return {source[m["range"]["start"]["line"]]: m["message"] for m in said}


@pytest.mark.parametrize("code", REVEALED)
def test_the_type_is_kept(messages, code):
    said = messages[f"reveal_type({code})"]
    assert said.partition('" is ')[2].strip('"') == REVEALED[code].strip('"')


@pytest.mark.parametrize("code", REFUSED)
def test_a_wrong_call_is_seen(messages, code):
    assert REFUSED[code] in messages[code]


def test_nothing_else_is_said(messages):
    assert set(messages) == {*(f"reveal_type({code})" for code in REVEALED), *REFUSED}
