"""Where operations are tried: each framework, eager and compiled, behind one face.

`vjp(fun, *xs)` runs the function and returns its output and a function from a cotangent
to those of the arguments, which runs later: what happens between is up to the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from benchmarks._peers import is_installed, load


@dataclass(frozen=True)
class Mode:
    """A framework, eager or compiled."""

    name: str
    framework: str
    array: Callable[[Any], Any]  # from NumPy's
    vjp_of: Callable[..., tuple[Any, Callable[..., Any]]]  # of what is compiled
    change: Callable[[Any], None] | None = None  # in place, if arrays can be changed
    compiled: Callable[[Any], Any] = lambda fun: fun

    def vjp(self, fun: Any, *xs: Any) -> tuple[Any, Callable[..., Any]]:
        return self.vjp_of(self.compiled(fun), *xs)


def numpy(x: Any) -> np.ndarray:
    """Any framework's array as NumPy's."""
    if hasattr(x, "detach"):
        x = x.detach()
    return np.array(x)


def _fill(x: Any) -> None:
    x[...] = 7.0


def _engine(fun: Any, *xs: Any) -> Any:
    import gradsmith as gs

    return gs.vjp(fun, *xs)


def _engine_tape(fun: Any, *xs: Any) -> Any:
    import gradsmith as gs

    with gs.GradientTape(persistent=True) as tape:
        xs = tuple(gs.constant(x) for x in xs)
        tape.watch(xs)
        y = fun(*xs)
    return y, lambda dy: tape.gradient(y, xs, dy, unconnected_gradients="zero")


def _torch_mode(name: str, wrap: Callable[[Any], Any]) -> Mode:
    torch = load("torch")

    def vjp(fun: Any, *xs: Any) -> Any:
        y = fun(*xs)
        # A compiled graph gives its memory away: it can be walked once
        options = {"materialize_grads": True, "retain_graph": name == "torch"}
        return y, lambda dy: torch.autograd.grad(y, xs, dy, **options)

    def change(x: Any) -> None:
        with torch.no_grad():
            x.fill_(7.0)

    def array(x: Any) -> Any:
        made = torch.tensor(x)
        return made.requires_grad_() if made.is_floating_point() else made

    return Mode(name, "torch", array, vjp, change, wrap)


def _jax_mode(name: str, wrap: Callable[[Any], Any]) -> Mode:
    jax = load("jax")
    jax.config.update("jax_enable_x64", True)
    return Mode(name, "jax", jax.numpy.array, jax.vjp, compiled=wrap)


def _tensorflow_mode(name: str, wrap: Callable[[Any], Any]) -> Mode:
    tf = load("tensorflow")

    def vjp(fun: Any, *xs: Any) -> Any:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(xs)
            y = fun(*xs)
        zero = tf.UnconnectedGradients.ZERO
        return y, lambda dy: tape.gradient(y, xs, dy, unconnected_gradients=zero)

    return Mode(name, "tensorflow", tf.constant, vjp, compiled=wrap)


def _mlx_mode() -> Mode:
    mx = load("mlx.core")

    def vjp(fun: Any, *xs: Any) -> Any:
        y = fun(*xs)

        def several(*xs: Any) -> Any:
            found = fun(*xs)
            return list(found) if isinstance(found, tuple | list) else [found]

        def pull(dy: Any) -> Any:
            dys = list(dy) if isinstance(dy, tuple | list) else [dy]
            return mx.vjp(several, list(xs), dys)[1]

        return y, pull

    # Its vjp runs the function when the cotangent is there: nothing lies in between
    return Mode("mlx", "mlx", lambda x: mx.array(np.asarray(x, np.float32)), vjp)


def _engine_modes() -> list[Mode]:
    return [
        Mode("numpy", "numpy", np.array, _engine, _fill),
        Mode("numpy tape", "numpy", np.array, _engine_tape, _fill),
    ]


def _torch_modes() -> list[Mode]:
    torch = load("torch")
    compiled = _torch_mode(
        "torch compile", lambda fun: torch.compile(fun, backend="aot_eager")
    )
    return [_torch_mode("torch", lambda fun: fun), compiled]


def _jax_modes() -> list[Mode]:
    jit = load("jax").jit
    return [_jax_mode("jax", lambda fun: fun), _jax_mode("jax jit", jit)]


def _tensorflow_modes() -> list[Mode]:
    function = load("tensorflow").function
    graph = _tensorflow_mode("tensorflow function", function)
    return [_tensorflow_mode("tensorflow", lambda fun: fun), graph]


BUILDERS: dict[str, Callable[[], list[Mode]]] = {
    "numpy": _engine_modes,
    "torch": _torch_modes,
    "jax": _jax_modes,
    "tensorflow": _tensorflow_modes,
    "mlx": lambda: [_mlx_mode()],
}
NAMES = ("numpy", "numpy tape", "torch", "torch compile", "jax", "jax jit")
NAMES += ("tensorflow", "tensorflow function", "mlx")


def installed() -> list[str]:
    """The names of all modes whose framework is installed, none imported."""
    return [name for name in NAMES if is_installed(name.split()[0])]


@cache
def mode(name: str) -> Mode:
    found = BUILDERS[name.split()[0]]()
    return next(mode for mode in found if mode.name == name)
