"""Values and gradients of ours and of the peers, each by its own autodiff, eager."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from benchmarks._peers import load

Result = tuple[Any, list[Any]]  # the value, and the gradients of all arguments


def ours(fn: Callable[..., Any], xs: Sequence[Any], dy: Any) -> Result:
    import gradsmith as gs

    with np.errstate(all="ignore"):
        y, pull = gs.vjp(fn, *xs)
        dxs = pull(np.ones(y.shape, y.dtype) if dy is None else dy.astype(y.dtype))
    dxs = dxs if isinstance(dxs, tuple) else (dxs,)
    return np.asarray(y), [np.asarray(dx) for dx in dxs]


def of_peer(path: str, xs: Sequence[Any], dy: Any, *, lines: bool) -> Result:
    """The function of a dotted name: `torch.special.erf`, `jax.nn.softmax`."""
    peer, _, name = path.partition(".")
    fn = found(path)
    options: dict[str, Any] = (
        {"dim" if peer == "torch" else "axis": -1} if lines else {}
    )
    del name
    return _RUNS[peer](lambda *xs: fn(*xs, **options), xs, dy)


def found(path: str) -> Any:
    peer, _, name = path.partition(".")
    module = load(peer)
    if peer == "jax":
        load("jax.scipy.special")
    return reduce(getattr, name.split("."), module)


def _torch(fn: Any, xs: Sequence[Any], dy: Any) -> Result:
    torch = load("torch")
    tensors = [torch.tensor(x, requires_grad=True) for x in xs]
    y = fn(*tensors)
    dy = torch.ones_like(y) if dy is None else torch.tensor(dy)
    dxs = torch.autograd.grad(y, tensors, dy)
    return y.detach().numpy(), [dx.numpy() for dx in dxs]


def _jax(fn: Any, xs: Sequence[Any], dy: Any) -> Result:
    jax = load("jax")
    y, pull = jax.vjp(fn, *[jax.numpy.asarray(x) for x in xs])
    dxs = pull(jax.numpy.ones_like(y) if dy is None else jax.numpy.asarray(dy))
    return np.asarray(y), [np.asarray(dx) for dx in dxs]


def _tensorflow(fn: Any, xs: Sequence[Any], dy: Any) -> Result:
    tf = load("tensorflow")
    tensors = [tf.constant(x) for x in xs]
    with tf.GradientTape() as tape:
        for x in tensors:
            tape.watch(x)
        y = fn(*tensors)
    dy = None if dy is None else tf.constant(dy)
    dxs = tape.gradient(y, tensors, output_gradients=dy)
    return y.numpy(), [dx.numpy() for dx in dxs]


_RUNS: dict[str, Callable[..., Result]] = {
    "torch": _torch,
    "jax": _jax,
    "tensorflow": _tensorflow,
}
