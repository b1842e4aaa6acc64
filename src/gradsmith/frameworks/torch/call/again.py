"""Calls of a kernel like one that was made before, as straight-line code.

One guard tells that the tensors are of the same kind and that nothing unusual is going
on, in place of all questions. What is left to do is written as Python code for this one
plan: memory, addresses, the kernel, the node. silu of 1000 numbers, forward and
gradient: 15 us; 21 with all questions, 13 by a node that does nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import copysign
from typing import Any
from weakref import WeakSet

import torch
from torch.autograd import forward_ad

from ....operations.fusing import is_on, never_again
from ..private import guard_of, keeps_graph, saved_tensors_hooks, skip
from .eager_call import changed_in_place
from .fused import DTYPES, is_repeated

MADE: WeakSet[Any] = WeakSet()  # functions that Dynamo must not compile by themselves
_KNOWN = {
    "copysign": copysign,
    "changed_in_place": changed_in_place,
    "empty_like": torch.empty_like,
    "empty": torch.empty_strided,
    "forward_ad": forward_ad,
    "is_grad_enabled": torch.is_grad_enabled,
    "is_on": is_on,
    "keeps_graph": keeps_graph,
    "saved_tensors_hooks": saved_tensors_hooks,
}


class Again:
    """A call that was made, to be made again: `call(args)` and `backward`.

    `call` returns NotImplemented if something is different, and if the kernel would
    read out of bounds. `backward(ctx, run, dy)` leaves what is different to
    `otherwise`, which is also what it is at first.
    """

    __slots__ = ("_backward", "backward", "call", "is_plain", "otherwise", "plan")

    def __init__(
        self,
        plan: Any,
        args: tuple[Any, ...],
        leaves: list[Any],
        with_grad: bool,
        apply: Any,
        otherwise: Any,
    ) -> None:
        self.plan = plan
        self.backward = self.otherwise = otherwise
        self._backward: dict[bool, Any] = {}
        n = len(leaves)
        self.is_plain = (
            plan.forward.is_small
            and plan.forward.size > 0
            and plan.same is None
            and not plan.passes_on
            and all(x is y for x, y in zip(args, leaves, strict=False))
            and all(x.is_cpu and x.is_contiguous() for x in leaves)
        )
        self.call = never_again
        if self.is_plain:
            self.call = function_of(
                _forward(plan, args, n, with_grad),
                guard=guard_of(leaves),
                launch=plan.forward.launcher(_block_of_outputs(plan, n)),
                dtype=DTYPES[plan.written_dtype],
                total=DTYPES[plan.y_dtype],
                static=[*args[n:]],
                types=[*map(type, args[n:])],
                apply=apply,
                again=self,
            )

    def prepare(self, dy: Any, leaves: Sequence[Any]) -> None:
        """Let `backward` be what upstream gradients like this one need."""
        if not self.is_plain or dy.requires_grad:
            return
        is_scalar = is_repeated(dy)
        found = self._backward.get(is_scalar)
        if found is None:
            kernel = self.plan.backward("scalar" if is_scalar else "full")
            if not (is_scalar or dy.is_contiguous()) or not kernel.is_small:
                return
            found = self._backward[is_scalar] = function_of(
                _backward(self.plan),
                guard=guard_of([dy, *leaves]),
                launch=kernel.launcher(_block_of_inputs(self.plan)),
                out_of_bounds=kernel.out_of_bounds,
                otherwise=self.otherwise,
            )
        self.backward = found


def again_of(
    plan: Any, args: tuple[Any, ...], leaves: list[Any], with_grad: bool, *ways: Any
) -> Again:
    """What makes calls like this one again; `ways` are `apply` and `otherwise`."""
    of_each = [(x.__class__, x.requires_grad, x.is_contiguous()) for x in leaves]
    # A tensor behind numbers is not held here
    static = [x for x in args[len(leaves) :] if not isinstance(x, torch.Tensor)]
    key = *of_each, with_grad, *map(repr, static)
    found = plan.calls.get(key)
    if found is None:
        found = plan.calls[key] = Again(plan, args, leaves, with_grad, *ways)
    return found


def function_of(lines: list[str], **known: Any) -> Any:
    """The function `call` of these lines, the first of which is its head."""
    names = {**_KNOWN, **known}
    code = compile("\n    ".join(lines), "<gradsmith: a call made again>", "exec")
    exec(code, names)
    call = names["call"]
    skip(call)
    MADE.add(call)
    return call


def _forward(plan: Any, args: Any, n: int, with_grad: bool) -> list[str]:
    count, rest = len(args), args[n:]
    xs = [f"x{i}" for i in range(n)]
    static = ["*given"] if count > n else []
    # 0.0 == -0.0
    zeros = [
        (k, copysign(1, x)) for k, x in enumerate(rest) if type(x) is float and x == 0
    ]
    lines = [
        "def call(args):",
        f"if len(args) != {count}: return NotImplemented",
        f"{', '.join([*xs, *static])}{'' if count > 1 else ','} = args",
        f"if not guard({', '.join(xs)}) or is_grad_enabled() is not {with_grad}"
        " or forward_ad._current_level >= 0 or not is_on()"
        f"{' or saved_tensors_hooks(True) is not None' if with_grad else ''}"
        f"{' or [*map(type, given)] != types or given != static' if static else ''}"
        f"{''.join(f' or copysign(1, given[{k}]) != {s}' for k, s in zeros)}"
        ": return NotImplemented",
    ]
    y = plan.parts or plan.y
    if plan.is_like_first:
        lines.append("y = empty_like(x0)")
    else:
        lines.append(
            f"y = empty({tuple(y.shape)}, {strides_of(y.shape)}, dtype=dtype, "
            "device='cpu')"
        )
    made = [f"g{i}" for i in plan.wanted] if plan.ahead else []
    lines += [f"{g} = empty_like({g.replace('g', 'x')})" for g in made]
    given = [f"{x}.data_ptr()" for x in [*xs, "y", *made]]
    if plan.small:
        lines.append(f"s = bytearray({plan.places[1]})")
        given.append("s")
    lines.append(f"if launch({', '.join(given)}): return NotImplemented")
    if plan.parts is not None:
        is_same = plan.written_dtype == plan.y_dtype
        lines.append("y = y.sum()" if is_same else "y = y.sum().to(total)")
    if not plan.wanted:
        return [*lines, "return y"]
    leaves = "args" if not static else as_tuple(xs)
    run = [
        "again",
        "args",
        leaves,
        "y" if plan.needs_y else "None",
        as_tuple(["s" if plan.small else "None", *made]),
        " + ".join(f"{x}._version" for x in xs),  # that of y is 0
        "y.detach()" if plan.needs_y else "y",
    ]
    return [*lines, f"return apply([{', '.join(run)}], {', '.join(xs)})"]


def _backward(plan: Any) -> list[str]:
    n = len(plan.forward.program.inputs)
    xs = [f"x{i}" for i in range(n)]
    made = [f"g{i}" for i in plan.wanted] if plan.ahead else []
    held = [*xs, "y"] if plan.needs_y else xs
    lines = [
        "def call(ctx, run, dy):",
        f"_, _, {as_tuple(xs)}, y, {as_tuple(['s', *made])}, version = run",
        f"if not guard({', '.join(['dy', *xs])}) or is_grad_enabled(): "
        "return otherwise(ctx, run, dy)",
        f"if {' + '.join(f'{x}._version' for x in held)} != version: "
        "raise changed_in_place()",
        "keeps = keeps_graph()",
    ]
    for i in plan.wanted:
        fresh = f"empty_like(x{i})"
        lines.append(f"d{i} = {f'{fresh} if keeps else g{i}' if made else fresh}")
    of = {"dy": ["dy"], "x": xs, "y": ["y"], "saved": ["s"] * plan.small + made}
    arrays = [of[name][i] for name, i in plan.sources] + [f"d{i}" for i in plan.wanted]
    given = [f"{x}.data_ptr()" for x in arrays if x != "s"]
    given += ["s"] if "s" in arrays else []
    found = [f"d{i}" if i in plan.wanted else "None" for i in range(n)]
    return [
        *lines,
        f"if launch({', '.join(given)}): raise out_of_bounds()",
        "if not keeps: ctx.run = None",
        f"return None, {', '.join(found)}",
    ]


def _block_of_outputs(plan: Any, n: int) -> dict[int, int]:
    """Where in one block each of what is saved starts, by its number for the kernel."""
    return {n + 1 + k: start for k, start in enumerate(plan.places[0])}


def _block_of_inputs(plan: Any) -> dict[int, int]:
    return {
        k: plan.places[0][i]
        for k, (name, i) in enumerate(plan.sources)
        if name == "saved" and i < plan.small
    }


def as_tuple(names: list[str]) -> str:
    return f"({', '.join(names)},)"


def strides_of(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))
