"""Operations with kernels: the plans that they have, and when these are used."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from typing import Any

from ..core import hooks
from ..core.arrays import FRAMEWORKS, common_framework
from ..core.cotangent import Spec
from ..core.errors import GradsmithError, UnsupportedOperationError
from .parameters import Bound

SMALLEST = 1 << 9  # elements
SMALL = 1 << 14  # elements: a plan takes as long as composing these a hundred times
MOST_SMALL = 32  # plans of one operation for small arrays
MOST_PLANS = 256  # and for others: shapes that change with every call are not kept

# The part `program` makes plans. It is imported at the first of them.
PLANNERS: list[Callable[[], Any]] = []

_is_off = os.environ.get("GRADSMITH_KERNELS", "").lower() in ("off", "0", "false")
_on: ContextVar[bool] = ContextVar("kernels", default=not _is_off)


def is_on() -> bool:
    """Whether kernels are used: not where somebody looks at bodies and rules."""
    return _on.get() and not (hooks.BODY.wrappers or hooks.RULE.wrappers)


@contextmanager
def kernels(on: bool = True) -> Iterator[None]:
    """Turn fused kernels on or off within a `with` block.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> x = np.linspace(-1.0, 1.0, 5)
    >>> with gs.kernels(False):
    ...     gs.ops.silu(x).round(3)
    array([-0.269, -0.189,  0.   ,  0.311,  0.731])

    The environment variable GRADSMITH_KERNELS=off turns them off for a process.

    Raises
    ------
    GradsmithError
        If it is neither True nor False.
    """
    if not isinstance(on, bool):  # "off" would turn them on
        raise GradsmithError(f"gs.kernels takes True or False, not {on!r}")
    token = _on.set(on)
    try:
        yield
    finally:
        _on.reset(token)


@cache
def runs_on_cpu() -> bool:
    """Whether LLVM is there, by the extra `kernels`."""
    return find_spec("llvmlite") is not None


@cache
def runs_on_gpu() -> bool:
    """Whether Triton is there, which comes with PyTorch for CUDA."""
    return find_spec("triton") is not None


def fuse(operation: Any) -> Any:
    """Return the operation, which now runs as fused kernels.

    Body and gradient become one loop each, on arrays of NumPy, eager tensors of PyTorch
    and TensorFlow, and in JAX on a CPU; in PyTorch and JAX on a GPU, one Triton kernel
    each.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> import gradsmith.numpy as gnp
    >>> @gs.custom_gradient
    ... def double(x):
    ...     y = gnp.exp(x) * 2
    ...     return y, lambda dy: dy * y
    >>> gs.grad(lambda x: np.sum(gs.fuse(double)(x)))(np.zeros(3))
    array([2., 2., 2.])

    A call that can't be one kernel raises `gs.UnsupportedOperationError`, which names
    the function and the line. Under compilers and `vmap`, and for derivatives beyond
    the first, the operation runs as you wrote it. Globals that the body reads have the
    values of the first call.

    Raises
    ------
    GradsmithError
        If it is not an operation, or llvmlite is not installed.
    UnsupportedOperationError
        When it is called, if the call can't be one kernel.
    """
    if not callable(getattr(operation, "vjp", None)):
        raise GradsmithError(
            f"gs.fuse takes an operation (gs.custom_gradient, gs.operation), not "
            f"{operation!r}"
        )
    if not (runs_on_cpu() or runs_on_gpu()):
        raise GradsmithError(
            "gs.fuse needs llvmlite, which is not installed\n"
            '  what to do: pip install "gradsmith[kernels]"'
        )
    operation.fused = Fused(operation, strict=True)
    return operation


def fuse_if_possible(operation: Any, *, in_graph: Sequence[str] = ()) -> None:
    """Let an operation run as kernels where it can, `in_graph` as in `Fused`."""
    if operation.fused is None:
        operation.fused = Fused(operation, strict=False, in_graph=in_graph)


class Fused:
    """The plans of an operation, by the specs of a call.

    A call that can't be fused raises if `strict`, else it has no plan. `in_graph`
    names the devices for which a compiler may call kernels: it would make several
    loops of whole rows, and on a CPU slow ones of long formulas.
    """

    __slots__ = ("_plans", "_small", "again", "in_graph", "operation", "strict")

    def __init__(
        self, operation: Any, *, strict: bool, in_graph: Sequence[str] = ()
    ) -> None:
        self.operation = operation
        self.strict = strict
        self.in_graph = in_graph
        self._plans: dict[Any, Any] = {}
        self._small: dict[Any, Any] = {}
        # Makes the latest call again if the arguments are like those it was made with,
        # else it returns NotImplemented: for a framework to set.
        self.again: Callable[[tuple[Any, ...]], Any] = never_again

    def plan(
        self,
        key: Any,
        describe: Callable[[], tuple[Any, ...]],
        size: int,
        smallest: int = SMALLEST,
    ) -> Any:
        """The plan for a key, None if there is none.

        `describe` gives what `planned` is given: the call with specs for arrays, the
        arrays that have gradients, and for what it is. Unless it is asked for,
        the smallest arrays have none, and small ones of many shapes: what a call is
        depends on its shapes, and on whether they are among the first, but not on how
        often it was made. Else the last digit would change from one call to the next.
        """
        plans = self._plans
        if size < SMALL and not self.strict:
            if size < smallest:
                return None
            plans = self._small
        found = plans.get(key, _NEW)
        if found is _NEW:
            if plans is self._small:
                if len(plans) >= MOST_SMALL:
                    return None
            elif len(plans) >= MOST_PLANS:
                plans.clear()
            found = plans[key] = self.planned(*describe())
        return found

    def plan_of(
        self,
        bound: Bound,
        wanted: Sequence[int] = (),
        *,
        gpu: bool = False,
        ahead: bool = False,
        smallest: int = SMALLEST,
    ) -> Any:
        """The plan of a bound call, None if there is none.

        Its leaves are arrays or specs; those wanted have gradients. `gpu` and `ahead`
        are as in `planned`.
        """
        if not bound.places:
            return None  # there is no array, or one in a tree
        key, leaves, size = [*bound.values], bound.leaves, 0
        for k, i in enumerate(bound.places):
            x = leaves[k]
            key[i] = (x.dtype, x.shape, k in wanted)
            size = max(size, x.size)
        types = tuple(map(type, key))  # 1 is True, and 1.0; and 0.0 is -0.0
        types += tuple(repr(x) for x in bound.values if type(x) is float and x == 0)
        try:
            return self.plan(
                (types, *key, gpu, ahead),
                lambda: (bound, wanted, gpu, ahead),
                size,
                smallest,
            )
        except TypeError:  # what is no key
            return None

    def kernels(self, bound: Bound) -> Any:
        """The plan for a call, with gradients for all that can have one."""
        framework = FRAMEWORKS[common_framework(bound.leaves, "kernels")]
        names: list[Any] = [framework.arrays.dtype_name(x) for x in bound.leaves]
        pairs = zip(bound.leaves, names, strict=True)
        specs = [Spec(tuple(x.shape), name) for x, name in pairs]
        wanted = [i for i, name in enumerate(names) if "float" in name]
        found = Fused(self.operation, strict=True)
        ahead = getattr(framework.call, "GRADIENTS_AHEAD", False)
        on_gpu = getattr(framework.call, "is_on_gpu", None)
        gpu = on_gpu is not None and on_gpu(bound.leaves)
        plan = found.planned(bound.with_leaves(specs), wanted, gpu, ahead)
        refusal = getattr(framework.call, "refusal", None)
        note = "" if refusal is None else refusal(plan, bound.leaves)
        return replace(plan, note=note)

    def forget(self) -> None:
        """Another rule was given."""
        self._plans.clear()
        self._small.clear()
        self.again = never_again

    def planned(
        self,
        bound: Bound,
        wanted: Sequence[int],
        gpu: bool = False,
        ahead: bool = False,
    ) -> Any:
        """A new plan, for a CPU or a GPU.

        If `ahead`, the forward pass may make gradients in memory that is given away.
        """
        try:
            return PLANNERS[0]()(self.operation, bound, wanted, gpu=gpu, ahead=ahead)
        except UnsupportedOperationError as error:
            if self.strict:
                error.add_note(f"raised by fusing operation {self.operation.name!r}")
                raise
        except Exception:
            # Whatever is wrong with this call, the composed form says it better.
            if self.strict:
                raise
        return None


def made_again(operation: Any, *args: Any) -> Any:
    """The latest call of an operation made again, if these arguments are like its own.

    Else NotImplemented. What was found out about the arguments then need not be looked
    at again, but for their values, which are others.
    """
    if operation.fused is None or hooks.CALL.wrappers:
        return NotImplemented
    return operation.fused.again(args)


def never_again(args: tuple[Any, ...]) -> Any:
    return NotImplemented


_NEW: Any = object()
