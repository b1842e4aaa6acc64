"""Kernels under torch.compile: operations for which they pay are a node of the graph.

Inductor reads a row once for each of the passes that an operation makes over it, and
can't choose by rows; on a CPU it takes long for long formulas. Two operators of PyTorch
run all kernels, forward and back, and name a plan by a number. They are called while
AOTAutograd traces.

No memory of a graph may be given away, as a gradient that was made ahead is. On a GPU,
where that saves half of the time of a cross entropy, it is no memory of the graph: it
is an attribute of an empty tensor, the token, that the graph saves for the gradient. If
it is not there, since somebody copied the token or took the gradient twice, the forward
kernel runs again.
"""

from __future__ import annotations

from typing import Any

import torch

from ....core.caches import Latest, remember
from ....core.cotangent import Spec
from ....operations.fusing import is_on, runs_on_cpu, runs_on_gpu
from ....operations.parameters import Bound
from ..private import call_directly, is_any_autocast, is_for_cpp
from . import eager
from .fused import DTYPES, NAMES, run_backward, run_forward
from .launched import backward_of, forward_of
from .nodes import gone

# Elements from which on it pays: a softmax of 64 x 1024 in float32, forward and
# gradient, takes 123 us as kernels and 119 as Inductor's code; 128 x 1024 159 and 173.
SMALLEST = 1 << 16

_plans = Latest()  # by number
_forwards: dict[int, Any] = {}  # how they run, and their gradients, by number too
_backwards: dict[int, Any] = {}


def call(operation: Any, bound: Bound) -> Any:
    """Run an operation while a graph is traced, as kernels if it can be."""
    is_refused = is_any_autocast() or is_for_cpp()
    plan = None if is_refused else _plan_of(operation, bound)
    if plan is None:
        return eager.call(operation, bound)
    _plans[plan.number] = plan
    call_directly(_OPERATORS)
    return Node.apply(plan.number, operation, bound, *bound.leaves)


def _plan_of(operation: Any, bound: Bound) -> Any:
    """The plan of a call whose shapes are known and whose tensors are plain."""
    leaves, varies = bound.leaves, torch.is_grad_enabled()
    devices = {x.device for x in leaves}
    gpu = any(device.type == "cuda" for device in devices)
    is_there = runs_on_gpu() if gpu else runs_on_cpu()
    if not is_there or not is_on() or len(devices) > 1:
        return None
    if not (gpu and _is_for_gpu(operation, leaves)) and (
        not {device.type for device in devices} <= {*operation.fused.in_graph}
    ):
        return None
    for x in leaves:
        is_plain = x.layout is torch.strided and x.dtype in NAMES and not x.is_neg()
        if not is_plain or not all(type(n) is int for n in x.shape):
            return None
    if max(x.numel() for x in leaves) < SMALLEST:
        return None
    names: list[Any] = [NAMES[x.dtype] for x in leaves]
    pairs = zip(leaves, names, strict=True)
    specs = [Spec(tuple(x.shape), name) for x, name in pairs]
    wanted = [i for i, x in enumerate(leaves) if varies and x.requires_grad]
    ahead = gpu and CUDA_GRAPHS_ARE_TOLD
    plan = operation.fused.plan_of(
        bound.with_leaves(specs), wanted, gpu=gpu, ahead=ahead
    )
    if plan is None or plan.same is not None or not plan.forward.size:
        return None
    return plan if gpu or _is_shared(plan.forward) else None


def _is_shared(kernel: Any) -> bool:
    """Whether there are rows for the threads that Inductor's loops would run in.

    A thread with a kernel makes up for four: clip_by_norm of 128 x 1024, one row, takes
    145 us with its gradient, of which 87 are the calls, and 405 as Inductor's code.
    """
    return 4 * kernel.count >= min(torch.get_num_threads(), kernel.parts)


def _is_for_gpu(operation: Any, leaves: Any) -> bool:
    """Whether it is a kernel on a GPU, where Inductor is at the floor with most.

    What was fused by name is, and in 16 bits what takes Inductor longer than memory.
    """
    is_half = any(x.dtype in (torch.float16, torch.bfloat16) for x in leaves)
    return operation.fused.strict or (is_half and "cuda16" in operation.fused.in_graph)


class Node(torch.autograd.Function):
    """The value by a kernel, connected to the arguments by another."""

    @staticmethod
    def forward(ctx: Any, number: int, operation: Any, bound: Bound, *leaves: Any):
        plan = _find(number)
        ops = torch.ops.gradsmith
        run = ops.fused_ahead if plan.ahead else ops.fused
        y, *saved = run(list(leaves), number)
        ctx.number, ctx.operation, ctx.bound = number, operation, bound
        ctx.save_for_backward(*leaves, *([y] if plan.needs_y else []), *saved)
        return y

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> Any:
        n = len(ctx.bound.leaves)
        leaves, more = ctx.saved_tensors[:n], ctx.saved_tensors[n:]
        plan = _find(ctx.number)
        wanted = plan.wanted
        if torch.is_grad_enabled():
            found = _composed(ctx.operation, ctx.bound, leaves, wanted, dy)
        elif plan.passes_on:  # an operator must not return what it was given
            found = [dy] * len(wanted)
        else:
            ops = torch.ops.gradsmith
            run = ops.fused_ahead_gradient if plan.ahead else ops.fused_gradient
            found = run(dy, list(leaves), list(more), ctx.number)
        all_of_them = dict(zip(wanted, found, strict=True))
        return None, None, None, *(all_of_them.get(i) for i in range(n))


def _composed(
    operation: Any, bound: Bound, leaves: Any, wanted: Any, dy: Any
) -> tuple[Any, ...]:
    """The gradients, to be differentiated again."""
    xs = [x.view_as(x) for x in leaves]
    y = eager.call(operation, bound.with_leaves(xs))
    return torch.autograd.grad(y, [xs[i] for i in wanted], dy, create_graph=True)


# --- the operators -------------------------------------------------------------------

_library = torch.library.Library("gradsmith", "FRAGMENT")
_library.define("fused(Tensor[] xs, int number) -> Tensor[]")
_library.define(
    "fused_gradient(Tensor dy, Tensor[] xs, Tensor[] more, int number) -> Tensor[]"
)


def _find(number: int) -> Any:
    try:
        return _plans[number]
    except KeyError:
        raise gone("runs a kernel") from None


def forward(xs: list[torch.Tensor], number: int) -> list[torch.Tensor]:
    run = _forwards.get(number)
    if run is None:
        run = remember(_forwards, number, forward_of(_find(number), xs))
    made = run(xs)
    if made is not None:
        return made
    y, saved = run_forward(_find(number), xs)
    return [y, *(x for x in saved if x is not None)]


def _forward_fake(xs: list[torch.Tensor], number: int) -> list[torch.Tensor]:
    plan, x = _find(number), xs[0]
    y = x.new_empty(plan.y.shape, dtype=DTYPES[plan.y_dtype])
    if x.device.type == "cpu":
        size = plan.places[1]
        return [y, x.new_empty(size, dtype=torch.uint8)] if plan.small else [y]
    saved = [x.new_empty(s.shape, dtype=DTYPES[s.dtype.name]) for s in plan.saved]
    return [y, *saved]


def back(
    dy: torch.Tensor, xs: list[torch.Tensor], more: list[torch.Tensor], number: int
) -> list[torch.Tensor]:
    run = _backwards.get(number)
    if run is None:
        run = remember(_backwards, number, backward_of(_find(number), dy, xs))
    made = run(dy, xs, more)
    if made is not None:
        return made
    plan, y, saved = _find(number), None, more
    if plan.needs_y:
        y, *saved = more
    found = run_backward(plan, xs, y, saved, dy, True)
    return [found[i] for i in plan.wanted]


def _back_fake(
    dy: torch.Tensor, xs: list[torch.Tensor], more: list[torch.Tensor], number: int
) -> list[torch.Tensor]:
    wanted = _find(number).wanted
    return [xs[i].new_empty(xs[i].shape) for i in wanted]


def _forward_ahead(xs: list[torch.Tensor], number: int) -> list[torch.Tensor]:
    plan = _find(number)
    y, saved = run_forward(plan, xs)
    return [y, *saved[: plan.small], _token(xs[0], saved[plan.small :])]


def _token(x: torch.Tensor, made: Any) -> torch.Tensor:
    token: Any = x.new_empty(0, dtype=torch.uint8)
    token.gradsmith_made = made
    return token


def _forward_ahead_fake(xs: list[torch.Tensor], number: int) -> list[torch.Tensor]:
    small = _find(number).small
    return [*_forward_fake(xs, number)[: 1 + small], _token(xs[0], None)]


def _back_ahead(
    dy: torch.Tensor, xs: list[torch.Tensor], more: list[torch.Tensor], number: int
) -> list[torch.Tensor]:
    plan, y = _find(number), None
    if plan.needs_y:
        y, *more = more
    *small, token = more
    made = vars(token).pop("gradsmith_made", None)
    saved = run_forward(plan, xs)[1] if made is None else [*small, *made]
    found = run_backward(plan, xs, y, saved, dy, False)
    return [found[i] for i in plan.wanted]


# Replayed, nobody would make the token again.
CUDA_GRAPHS_ARE_TOLD = hasattr(torch.Tag, "cudagraph_unsafe")
if CUDA_GRAPHS_ARE_TOLD:
    tags = (torch.Tag.cudagraph_unsafe,)
    _library.define("fused_ahead(Tensor[] xs, int number) -> Tensor[]", tags=tags)
    _library.define(
        "fused_ahead_gradient(Tensor dy, Tensor[] xs, Tensor[] more, int number) "
        "-> Tensor[]",
        tags=tags,
    )
    kind = "CompositeExplicitAutograd"
    _library.impl("fused_ahead", _forward_ahead, kind)
    _library.impl("fused_ahead_gradient", _back_ahead, kind)
    torch.library.register_fake(
        "gradsmith::fused_ahead", _forward_ahead_fake, lib=_library
    )
    torch.library.register_fake(
        "gradsmith::fused_ahead_gradient", _back_fake, lib=_library
    )

_library.impl("fused", forward, "CompositeExplicitAutograd")
_library.impl("fused_gradient", back, "CompositeExplicitAutograd")
torch.library.register_fake("gradsmith::fused", _forward_fake, lib=_library)
torch.library.register_fake("gradsmith::fused_gradient", _back_fake, lib=_library)

# What Inductor's code calls in their place. It is kept on disk: the names stay.
_OPERATORS = {
    "torch.ops.gradsmith.fused.default": forward,
    "torch.ops.gradsmith.fused_gradient.default": back,
}
