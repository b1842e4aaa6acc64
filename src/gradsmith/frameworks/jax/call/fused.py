"""Operations that run as kernels: foreign functions of XLA on a CPU, Triton's on a GPU.

Value and gradient are primitives that have their composed form too. A primitive becomes
a call of the kernel where it runs, or is lowered for one device; what JAX maps,
differentiates again, shards or exports is composed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer

from ....core.caches import remember
from ....operations import fusing
from ..private import naming, traced
from . import gpu as on_gpu
from .custom import Custom
from .linear import LinearMap
from .plan import Plan
from .rules import BoundCall
from .specs import as_array, derivative, still, symbolic, tangent_type

_DTYPES = {
    "float16", "bfloat16", "float32", "float64", "bool", "int8", "int16", "int32",
    "int64",
}  # fmt: skip


def plan_of(
    operation: Any,
    bound: Any,
    y: Any = None,
    wanted: Sequence[int] = (),
    platform: str = "",
) -> Any:
    """The kernels of a call whose arrays are specs, or None if it is composed.

    `platform` is where the arrays are, if that is known, else where JAX puts them. `y`
    is the type of the value where XLA compiles. Small arrays and arithmetic of elements
    are composed there, unless they were fused by name: XLA makes one loop of them and
    all that is around them. On a CPU its own exp and log take so long that a kernel
    wins also where XLA would have made one loop of more (by 1.05 to 1.8); on a GPU all
    loops take the time of memory, and those over rows are fewer in a kernel.
    """
    if operation.fused is None or not fusing.is_on():
        return None
    platform = platform or _platform()
    gpu, is_compiled = platform == "cuda", y is not None
    is_asked = operation.fused.strict
    if platform not in ("cpu", "cuda"):
        return None
    if not (on_gpu.is_installed() if gpu else fusing.runs_on_cpu()):
        return None
    for spec in bound.leaves:
        name = getattr(spec.dtype, "name", "")
        if name not in _DTYPES or not all(type(n) is int for n in spec.shape):
            return None
    # Triton takes half a second for a kernel
    if (is_compiled or gpu) and not is_asked and _size(bound) < fusing.SMALL:
        return None
    # XLA copies what is written over if somebody needs it. Where nothing compiles, it
    # would do that for every gradient.
    plan = operation.fused.plan_of(bound, wanted, gpu=gpu, ahead=is_compiled)
    if plan is None or not plan.forward.size or not _is_held(plan):
        return None
    if gpu and on_gpu.refusal():
        return None
    if not is_compiled:
        return plan
    is_alike = y.shape == plan.y.shape and y.dtype.name == plan.y_dtype
    is_worth_it = plan.reduces if gpu else plan.is_worth_a_call
    return plan if is_alike and (is_asked or is_worth_it) else None


def _size(bound: Any) -> int:
    return max(x.size for x in bound.leaves)


def _is_held(plan: Any) -> bool:
    """Whether JAX has arrays of all dtypes: without its 64-bit mode some are narrower
    than what a kernel writes, or than the constants that it reads.
    """
    held = [*plan.saved]
    if plan.gpu:
        kernels = [plan.forward, *([plan.backward()] if plan.wanted else [])]
        held += [x for each in kernels for x in each.nest.constants]
    return all(jax.dtypes.canonicalize_dtype(x.dtype) == x.dtype for x in held)


def refusal(plan: Any, arrays: Sequence[Any]) -> str:
    """Why JAX can't run it where these arrays are, if so."""
    platform = _platform_of(arrays) or _platform()
    if platform == "cuda":
        why = on_gpu.refusal()
    elif platform == "cpu":
        why = "" if _target(plan.forward) else _refused[0]
    else:
        why = "there are kernels for CPUs and for GPUs of NVIDIA's"
    return why and f"JAX composes it: {why}"


def is_on_gpu(arrays: Sequence[Any]) -> bool:
    """Whether arrays, concrete or traced, are on a GPU that kernels are for."""
    return (_platform_of(arrays) or _platform()) == "cuda"


class Foreign:
    """A kernel as a function of some of its inputs; `run` is the composed form.

    The first result is the sum of `parts`, if there are any.
    """

    __slots__ = ("kernel", "outs", "platform", "run", "takes", "total")

    def __init__(
        self,
        kernel: Any,
        outs: Sequence[Any],
        run: Callable[..., Sequence[Any]],
        takes: Sequence[int] | None = None,
        *,
        gpu: bool,
        parts: Any = None,
    ) -> None:
        self.kernel, self.run, self.takes = kernel, run, takes
        self.platform = "cuda" if gpu else "cpu"
        self.total = None if parts is None else outs[0].dtype
        self.outs = [jax.ShapeDtypeStruct(y.shape, y.dtype) for y in outs]
        if parts is not None:
            self.outs[0] = jax.ShapeDtypeStruct(parts.shape, parts.dtype)

    def __call__(self, *inputs: Any) -> Sequence[Any]:
        """The call, as traced code."""
        if not _is_known(self.kernel, self.platform):
            return self.run(*inputs)
        call = _traced_call(self.kernel, self.outs, self.platform, in_place=True)
        return _added(call(*self._taken(inputs)), self.total)

    def at_once(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """Run on concrete arrays."""
        is_here = _platform_of(inputs) == self.platform
        if not is_here or not _is_known(self.kernel, self.platform):
            return self.run(*inputs)
        ys = _called(self.kernel, self.outs, self._taken(inputs), self.platform)
        return _added(ys, self.total)

    def _taken(self, inputs: Sequence[Any]) -> Sequence[Any]:
        return inputs if self.takes is None else [inputs[i] for i in self.takes]


def _added(ys: Sequence[Any], total: Any) -> Sequence[Any]:
    """Results of which the first are parts, if their total has a dtype."""
    return ys if total is None else [jnp.sum(ys[0]).astype(total), *ys[1:]]


def _platform() -> str:
    """What JAX compiles for, if it is not told: "cpu", "cuda", or others."""
    backend = jax.default_backend()
    return _of_device(jax.local_devices()[0]) if backend == "gpu" else backend


def _of_device(device: Any) -> str:
    if device.platform != "gpu":
        return device.platform
    capability = str(getattr(device, "compute_capability", ""))  # of AMD's: gfx942
    return "cuda" if capability.replace(".", "").isdigit() else "rocm"


def _platform_of(arrays: Sequence[Any]) -> str:
    """Where they are, if they are concrete, on one platform, and each on one device."""
    found = set()
    for x in arrays:
        if not isinstance(x, jax.Array) or isinstance(x, Tracer):
            return ""
        devices = x.devices()
        if len(devices) > 1:
            return ""
        found.add(_of_device(next(iter(devices))))
    return found.pop() if len(found) == 1 else ""


_registered: dict[int, str] = {}  # names, by address
_refused: list[str] = []  # what XLA said when it refused a kernel
_calls: dict[Any, Any] = {}  # compiled, by the kernel and shapes


def _is_known(kernel: Any, platform: str) -> bool:
    """Whether XLA takes a kernel that a plan has."""
    return platform == "cuda" or bool(_target(kernel))


def _target(kernel: Any) -> str:
    """The name by which XLA knows a kernel; empty if it takes none of this version."""
    if _refused:
        return ""
    name, address = kernel.for_xla
    if address not in _registered:
        try:
            code = jax.ffi.pycapsule(ctypes.c_void_p(address))
            jax.ffi.register_ffi_target(name, code, platform="cpu")
        except Exception as error:
            _refused.append(str(error))
            return ""
        _registered[address] = name
    return name


def _traced_call(
    kernel: Any, outs: Sequence[Any], platform: str, *, in_place: bool
) -> Callable[..., Sequence[Any]]:
    """A kernel as a function of traced arrays."""
    if platform == "cuda":
        return lambda *xs: on_gpu.call(kernel, outs, xs, in_place=in_place)
    aliases = dict(kernel.in_place) if in_place else {}
    return jax.ffi.ffi_call(_target(kernel), outs, input_output_aliases=aliases)


def _called(
    kernel: Any, outs: Sequence[Any], inputs: Sequence[Any], platform: str
) -> Sequence[Any]:
    """What a kernel computes of concrete arrays."""
    # A kernel of elements is the same for all shapes of one size
    what = kernel.on_gpu if platform == "cuda" else _target(kernel)
    key = what, *((y.shape, y.dtype) for y in outs)
    call = _calls.get(key)
    if call is None:
        native = _traced_call(kernel, outs, platform, in_place=False)
        call = remember(_calls, key, jax.jit(native))
    return call(*inputs)


class Ran:
    """A call of concrete arrays that ran as a kernel, and its gradient by one.

    It is used like `Rules`. What is traced goes through the composed form.
    """

    can_pull, can_push = True, False

    def __init__(
        self,
        call: BoundCall,
        leaves: Sequence[Any],
        wanted: Sequence[int],
        plan: Any,
        platform: str,
    ) -> None:
        self.call, self.leaves, self.plan = call, leaves, plan
        self.wanted, self.moving, self.platform = wanted, (0,), platform
        shape = (plan.parts or plan.y).shape
        y = jax.ShapeDtypeStruct(shape, jnp.dtype(plan.written_dtype))
        saved = [jax.ShapeDtypeStruct(s.shape, s.dtype) for s in plan.saved]
        total = None if plan.parts is None else plan.y_dtype
        ys = _called(plan.forward, [y, *saved], leaves, platform)
        self.y, *self.saved = _added(ys, total)
        self.ins = [tangent_type(leaves[i]) for i in wanted]
        self.outs = [tangent_type(self.y)]

    def outputs(self, ys: Sequence[Any]) -> Any:
        return ys[0]

    def pull(self, dy: Any) -> Sequence[Any]:
        """The cotangents of the wanted arrays."""
        of = {"x": self.leaves, "y": [self.y], "saved": self.saved, "dy": [dy]}
        given = [of[name][i] for name, i in self.plan.sources]
        if _platform_of(given) != self.platform:
            return self.call.run(self.leaves).rules(self.wanted).pull(dy)
        outs = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in self.ins]
        return _called(self.plan.backward(), outs, given, self.platform)


def ran(call: BoundCall, leaves: Sequence[Any], wanted: Sequence[int] = ()) -> Any:
    """A call by its kernels, which ran; None if it is composed."""
    if call.operation.fused is None or not (platform := _platform_of(leaves)):
        return None
    plan = plan_of(call.operation, call.described, None, wanted, platform)
    if plan is None or not _is_known(plan.forward, platform):
        return None
    if wanted and not _is_known(plan.backward(), platform):
        return None
    return Ran(call, leaves, wanted, plan, platform)


class FusedPlan:
    """How a staged call with kernels is differentiated; used like a `Plan`.

    Residuals are what the call was given, the value and what the kernel saved. Where
    the gradient is composed, it follows from the first alone.
    """

    def __init__(self, staged: Any, wanted: Sequence[int], plan: Any) -> None:
        self.staged, self.wanted, self.plan = staged, wanted, plan
        self.moving = (0,)
        self.n = len(staged.avals)
        name, body = staged.call.operation.name, staged.body
        saved = traced(lambda *xs: plan.saved_of(xs, as_array), staged.avals).out_avals
        self.op = staged.op
        if saved:
            avals = [*body.out_avals, *saved]
            self.op = Custom(
                name,
                run=self._run,
                jvp=self._jvp,
                outs=avals,
                effects=body.effects,
                kernel=Foreign(
                    plan.forward, avals, self._run, gpu=plan.gpu, parts=plan.parts
                ),
            )
        ins = [staged.avals[i].to_tangent_aval() for i in wanted]
        first = {"x": 0, "y": self.n, "saved": self.n + 1}
        held = self.n + 1 + len(saved)
        takes = [held if s == "dy" else first[s] + i for s, i in plan.sources]
        self.gradient = Custom(
            name,
            run=self._pulled,
            jvp=self._pulled_jvp,
            outs=ins,
            effects=body.effects,
            kernel=Foreign(plan.backward(), ins, self._pulled, takes, gpu=plan.gpu),
        )
        self.linear = LinearMap(
            staged.call.operation,
            pull=self.gradient,
            push=self._pushed,
            held=held,
            ins=ins,
            outs=[y.to_tangent_aval() for y in body.out_avals],
        )

    def forward(self, inputs: Sequence[Any]) -> tuple[Sequence[Any], list[Any]]:
        """The outputs, and the residuals of the linear function."""
        outs = self.op(*inputs)
        return outs[:1], [*inputs, *outs]

    @cached_property
    def composed(self) -> Plan:
        with naming(self.staged.axes):
            return Plan(self.staged, self.wanted)

    def _run(self, *inputs: Any) -> list[Any]:
        return [*self.staged.run(*inputs), *self.plan.saved_of(inputs, as_array)]

    def _jvp(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
        """What is saved does not move: the composed gradient reads nothing of it."""
        ys, dys = derivative(self.staged.op, primals, tangents)
        saved = self.plan.saved_of(primals, as_array)
        return [*ys, *saved], [*map(symbolic, dys), *map(still, saved)]

    def _pulled(self, *residuals_and_dy: Any) -> list[Any]:
        return self._linear(residuals_and_dy, LinearMap.cotangents)

    def _pushed(self, *residuals_and_dxs: Any) -> list[Any]:
        return self._linear(residuals_and_dxs, LinearMap.tangents)

    def _linear(self, given: Sequence[Any], apply: Any) -> list[Any]:
        _, residuals = self.composed.forward(given[: self.n])
        return apply(self.composed.linear, residuals, given[self.linear.held :])

    def _pulled_jvp(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
        dxs, ddxs = derivative(self._pulled, primals, tangents)
        return dxs, [*map(symbolic, ddxs)]
