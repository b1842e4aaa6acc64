"""What JAX's equations are: their names, their lines, and the code inside of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr

from ....core.places import Place, is_users, place_at
from ..private import frames_of, traced_back

_SELECTS = {"select_n", "max", "min", "clamp"}
_ELEMENTWISE = {
    "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "cbrt",
    "convert_element_type", "cos", "cosh", "div", "erf", "erf_inv", "erfc", "exp",
    "exp2", "expm1", "integer_pow", "lgamma", "log", "log1p", "logistic", "mul", "neg",
    "pow", "rem", "rsqrt", "select_n", "sin", "sinh", "sqrt", "square", "sub", "tan",
    "tanh",
}  # fmt: skip
_CUSTOM = {"custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"}
_CALLS = {
    "checkpoint", "closed_call", "core_call", "custom_lin", "jit", "pjit", "remat",
    "remat2", *_CUSTOM,
}  # fmt: skip
# Operations of ours, and what calls back into Python
_OURS = {"gradsmith_call", "gradsmith_linear", "pure_callback", "io_callback"}
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


@dataclass(frozen=True)
class Kind:
    """What an equation is: y[i] of x[i] alone, a choice, with a rule of its own."""

    elementwise: bool = False
    selects: bool = False
    custom: bool = False


def kind_of_name(name: str) -> Kind:
    custom = name in _CUSTOM or name in _OURS
    return Kind(name in _ELEMENTWISE, name in _SELECTS, custom)


def name_of(eqn: Any) -> str:
    """How the user knows an operation: one with its own rule by its function's name."""
    code = eqn.params.get("call_jaxpr")
    if eqn.primitive.name in _CUSTOM and code is not None:
        name = getattr(code.jaxpr.debug_info, "func_name", None)
        return (name or eqn.primitive.name).rpartition(".")[2]
    if eqn.primitive.name == "gradsmith_call":
        return f"operation {eqn.params['custom'].name!r}"
    return eqn.primitive.name


def inner_code(eqn: Any, ins: Sequence[Any]) -> Any:
    """The code that an equation calls, with its constants; None if it has none."""
    if eqn.primitive.name == "gradsmith_call":
        return jax.make_jaxpr(eqn.params["custom"].run)(*ins)
    if eqn.primitive.name not in _CALLS:
        return None
    code = eqn.params.get("jaxpr", eqn.params.get("call_jaxpr"))
    if code is None or hasattr(code, "consts"):
        return code
    return ClosedJaxpr(code, ())  # of remat


def run_of(eqn: Any) -> Callable[..., Sequence[Any]]:
    """The function that an equation calls."""
    bound = eqn.primitive.get_bind_params(eqn.params)
    subfuns, params = bound if isinstance(bound, tuple) else ((), bound)

    def run(*ins: Any) -> Sequence[Any]:
        with eqn.ctx.manager:
            outs = eqn.primitive.bind(*subfuns, *ins, **params)
        return outs if eqn.primitive.multiple_results else [outs]

    return run


def evaluated(
    code: ClosedJaxpr, args: Sequence[Any], each: Callable[[Any, list[Any]], Any]
) -> list[Any]:
    """The outputs of code, of which `each(equation, inputs)` runs every equation."""
    jaxpr = code.jaxpr
    variables = [*jaxpr.constvars, *jaxpr.invars]
    values = dict(zip(variables, [*code.consts, *args], strict=True))
    read: Callable[[Any], Any] = lambda v: v.val if hasattr(v, "val") else values[v]
    for eqn in jaxpr.eqns:
        outs = each(eqn, [read(v) for v in eqn.invars])
        values.update(zip(eqn.outvars, outs, strict=True))
    return [read(v) for v in jaxpr.outvars]


def place_of(eqn: Any) -> Place | None:
    """The line of the user's code that an equation comes from."""
    frames = _frames(eqn.source_info.traceback)
    return next((place for _, place in frames if place is not None), None)


def place_within(eqn: Any) -> Place | None:
    """The same, only if we called that code: a line of a rule."""
    return _within(eqn.source_info.traceback)


def _within(traceback: Any) -> Place | None:
    for file, place in _frames(traceback):
        if file.startswith(_HERE):
            return None
        if place is not None:
            return place
    return None


def _frames(traceback: Any) -> Iterator[tuple[str, Place | None]]:
    for file, line, function in frames_of(traceback):
        yield file, place_at(file, line, function) if is_users(file) else None


def lines_of_rules() -> Any:
    """A context in which equations of a rule are known by the lines of the rule.

    JAX says of all that is computed on the way back that it is from the line forward,
    which we called.
    """
    return traced_back(lambda traceback: _within(traceback) is not None)
