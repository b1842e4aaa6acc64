"""NumPy functions on tensors: at once if they are plain, else as a node of a graph.

The node is one operator of PyTorch for all of them, which names a function by a number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import torch

from ....core.caches import Latest
from ....core.cotangent import Spec
from ....core.errors import GradientContractError, UnsupportedOperationError
from ..private import has_forward_level, is_in_mode, is_transformed
from .levels import levels_of
from .nodes import gone
from .specs import is_numpy_dtype, native_dtype


class _Hosted(NamedTuple):
    """A NumPy function that a graph calls."""

    fn: Callable[..., Sequence[Any]]
    ranks: list[int]
    dtypes: list[torch.dtype]
    name: str


_hosted = Latest()  # by number
_numbers = count()


def host(
    fn: Callable[..., Sequence[Any]],
    arrays: Sequence[Any],
    specs: Sequence[Spec],
    name: str,
) -> list[torch.Tensor]:
    """Run a function of NumPy arrays on tensors. What it returns has no derivative.

    Asking for one raises.
    """
    detached = [x.detach() for x in arrays]
    if all(type(x) is torch.Tensor for x in detached) and not is_transformed():
        results = _run(fn, detached, name)
    else:
        results = _as_node(fn, detached, specs, name)
    if not any(map(_is_differentiated, arrays)):
        return list(results)
    return [Opaque.apply(name, y, *arrays) for y in results]


def _as_node(
    fn: Any, tensors: list[torch.Tensor], specs: Sequence[Spec], name: str
) -> Sequence[torch.Tensor]:
    number, sizes = next(_numbers), [n for spec in specs for n in spec.shape]
    ranks = [len(spec.shape) for spec in specs]
    _hosted[number] = _Hosted(fn, ranks, [native_dtype(s) for s in specs], name)
    try:
        return torch.ops.gradsmith.host(tensors, number, sizes)
    finally:
        if not is_in_mode():  # it was called, and is in no graph
            del _hosted[number]


def _is_differentiated(x: torch.Tensor) -> bool:
    if is_transformed() or has_forward_level():
        return bool(levels_of(x))
    return torch.is_grad_enabled() and x.requires_grad


def _run(
    fn: Callable[..., Sequence[Any]], tensors: Sequence[torch.Tensor], name: str
) -> list[torch.Tensor]:
    device = tensors[0].device if tensors else torch.device("cpu")
    return [_as_tensor(y, device) for y in fn(*(_as_array(x, name) for x in tensors))]


def _as_array(x: torch.Tensor, name: str) -> np.ndarray:
    if not is_numpy_dtype(x.dtype):
        raise UnsupportedOperationError(
            f"operation {name!r} runs in NumPy, which has no {x.dtype}\n"
            "  what to do: convert the tensor first: x.float()"
        )
    return x.resolve_conj().resolve_neg().cpu().numpy()


def _as_tensor(y: Any, device: torch.device) -> torch.Tensor:
    array = np.ascontiguousarray(y).reshape(y.shape)
    if not array.flags.writeable:
        array = array.copy()
    return torch.from_numpy(array).to(device)


# --- as a node of a graph ------------------------------------------------------------

_library = torch.library.Library("gradsmith", "DEF")
_library.define("host(Tensor[] xs, int number, SymInt[] sizes) -> Tensor[]")


def _find(number: int) -> _Hosted:
    try:
        return _hosted[number]
    except KeyError:
        raise gone("calls a NumPy function") from None


def _kernel(xs: list[torch.Tensor], number: int, sizes: Any) -> list[torch.Tensor]:
    hosted, rest = _find(number), iter(sizes)
    ys = _run(hosted.fn, xs, hosted.name)
    for y, rank in zip(ys, hosted.ranks, strict=True):
        expected = tuple(next(rest) for _ in range(rank))
        if y.shape != expected:
            raise GradientContractError(
                f"operation {hosted.name!r} returned another shape than expected\n"
                f"  expected: {expected}, found in trial runs at other sizes, or by "
                f"spec=\n  got: {tuple(y.shape)}\n"
                "  what to do: give the shape (gs.python_op(spec=...)), or compile for "
                "each size by itself: torch.compile(dynamic=False)"
            )
    return ys


def _fake(xs: list[torch.Tensor], number: int, sizes: Any) -> list[torch.Tensor]:
    hosted, rest = _find(number), iter(sizes)
    device = xs[0].device if xs else torch.device("cpu")
    return [
        torch.empty([next(rest) for _ in range(rank)], dtype=dtype, device=device)
        for rank, dtype in zip(hosted.ranks, hosted.dtypes, strict=True)
    ]


def _batched(info: Any, in_dims: Any, xs: Any, number: int, sizes: Any) -> Any:
    """One call for each example, since a NumPy function knows nothing of batches."""
    dims = in_dims[0]
    if info.batch_size == 0:
        ys = _fake(xs, number, sizes)
        return [y.expand(0, *y.shape) for y in ys], [0] * len(ys)
    calls = []
    for i in range(info.batch_size):
        one = [
            x if d is None else x.select(d, i) for x, d in zip(xs, dims, strict=True)
        ]
        calls.append(torch.ops.gradsmith.host(one, number, sizes))
    ys = [torch.stack(column) for column in zip(*calls, strict=True)]
    return ys, [0] * len(ys)


_library.impl("host", _kernel, "CompositeExplicitAutograd")
torch.library.register_fake("gradsmith::host", _fake, lib=_library)
torch.library.register_vmap("gradsmith::host", _batched, lib=_library)


class Opaque(torch.autograd.Function):
    """A result of NumPy as it is, connected to a derivative that there is not."""

    generate_vmap_rule = True

    @staticmethod
    def forward(name: str, y: torch.Tensor, *xs: torch.Tensor) -> torch.Tensor:
        return y.detach()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.name = inputs[0]
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        raise _no_derivative(ctx.name)

    @staticmethod
    def jvp(ctx: Any, *dxs: Any) -> Any:
        raise _no_derivative(ctx.name)


def _no_derivative(name: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"a derivative of what operation {name!r} computed in NumPy was requested, "
        "which PyTorch can't trace\n"
        "  what to do: for second derivatives write the gradient with gradsmith.numpy, "
        "or as an operation with a gradient of its own"
    )
