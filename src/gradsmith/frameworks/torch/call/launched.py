"""A plan's kernels in one thread of a CPU, as a graph calls them.

A graph knows the shapes and dtypes of its tensors. What depends on them is found out at
the first call, and written as straight-line code: memory, addresses, the kernel. With
this, norm of 128 x 1024, forward and gradient under `torch.compile`, takes 150 us; 213
by operators that find it out each time, 137 as PyTorch's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ....core.pool import FRESH
from ..private import empty_on_cpu, guard_of
from .again import as_tuple, function_of, strides_of
from .fused import DTYPES

Run = Callable[..., list[torch.Tensor] | None]


def forward_of(plan: Any, xs: Sequence[torch.Tensor]) -> Run:
    """A function of tensors like these: the value and what is saved, or None."""
    if not _is_plain(plan, xs):
        return _other
    y = plan.parts or plan.y
    names = [f"x{i}" for i in range(len(xs))]
    lines = [
        "def call(xs):",
        f"{as_tuple(names)} = xs",
        f"if not (guard({', '.join(names)}) or fits(xs))"
        f"{_if_alone(plan.forward)}: return None",
        f"y = empty({tuple(y.shape)}, {strides_of(y.shape)}, dtype)",
    ]
    given = [f"{x}.data_ptr()" for x in (*names, "y")]
    if plan.small:
        starts, size = plan.places
        lines += [f"s = empty({(size,)}, (1,), uint8)", "at = s.data_ptr()"]
        given += [f"at + {start}" for start in starts]
    lines.append(f"if launch({', '.join(given)}): raise out_of_bounds()")
    if plan.parts is not None:
        lines.append("y = y.sum().to(total)")
    return function_of(
        [*lines, f"return [y{', s' if plan.small else ''}]"],
        **_known(plan, plan.forward, xs, xs),
        dtype=DTYPES[plan.written_dtype],
        total=DTYPES[plan.y_dtype],
    )


def backward_of(plan: Any, dy: torch.Tensor, xs: Sequence[torch.Tensor]) -> Run:
    """A function of dy, xs and what else was kept: the gradients, or None."""
    if not _is_plain(plan, xs):
        return _other
    kernel, starts = plan.backward(), plan.places[0]
    names = [f"x{i}" for i in range(len(xs))]
    of = {"dy": ["dy"], "x": names, "y": ["more[0]"]}
    # What saved-tensor hooks return may have other strides
    of_y = " or not more[0].is_contiguous()" if plan.needs_y else ""
    lines = [
        "def call(dy, xs, more):",
        f"{as_tuple(names)} = xs",
        f"if not (guard(dy, {', '.join(names)}) or fits(xs) and dy.is_contiguous())"
        f"{of_y}{_if_alone(kernel)}: return None",
    ]
    given = []
    if plan.small:
        lines.append("at = more[-1].data_ptr()")
    for name, i in plan.sources:
        saved = name == "saved"
        given.append(f"at + {starts[i]}" if saved else f"{of[name][i]}.data_ptr()")
    for i in plan.wanted:
        shape, dtype = tuple(xs[i].shape), f"x{i}.dtype"
        lines.append(f"d{i} = empty({shape}, {strides_of(shape)}, {dtype})")
        given.append(f"d{i}.data_ptr()")
    return function_of(
        [
            *lines,
            f"if launch({', '.join(given)}): raise out_of_bounds()",
            f"return [{', '.join(f'd{i}' for i in plan.wanted)}]",
        ],
        **_known(plan, kernel, [dy, *xs], xs),
    )


def _other(*_: Any) -> None:
    """What a call is that needs all questions."""


def _is_plain(plan: Any, xs: Sequence[torch.Tensor]) -> bool:
    """Whether memory that is asked for as usual is all that a call needs."""
    return (
        not plan.ahead
        and plan.same is None
        and plan.forward.size > 0
        and all(x.is_cpu and x.nbytes < FRESH for x in xs)
    )


def _if_alone(kernel: Any) -> str:
    return "" if kernel.is_small else " or threads() > 1"


def _known(plan: Any, kernel: Any, guarded: Any, xs: Any) -> dict[str, Any]:
    dtypes = [DTYPES[name] for name in plan.forward.storage]
    inputs = plan.forward.program.inputs
    of_each = [(v.shape, dtype) for v, dtype in zip(inputs, dtypes, strict=False)]

    def fits(xs: Sequence[torch.Tensor]) -> bool:
        return all(
            x.shape == shape and x.dtype is dtype and x.is_contiguous() and x.is_cpu
            for x, (shape, dtype) in zip(xs, of_each, strict=True)
        )

    is_like = fits(xs) and all(x.is_contiguous() for x in guarded)
    return {
        "empty": empty_on_cpu,
        "fits": fits,
        # Another call of the graph, or another graph, may have its tensors otherwise
        "guard": guard_of(guarded) if is_like else lambda *_: False,
        "launch": kernel.launch,
        "out_of_bounds": kernel.out_of_bounds,
        "threads": torch.get_num_threads,
        "uint8": torch.uint8,
    }
