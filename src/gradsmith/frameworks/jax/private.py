"""The parts of JAX that it does not publish, all in one place.

Where a release has moved one of them we do without it, more slowly; results don't
change. What differentiates is built on primitives, which are public.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from inspect import signature, unwrap
from typing import Any

import jax
import jax.core
from jax.api_util import debug_info
from jax.extend.core import ClosedJaxpr, Jaxpr, Primitive
from jax.extend.linear_util import wrap_init
from jax.interpreters import ad as ad
from jax.interpreters import batching as batching
from jax.interpreters import mlir as mlir
from jax.interpreters.partial_eval import dce_jaxpr_consts as dce_jaxpr_consts

from ...core.patching import patched

# Eager differentiation without staging. Without it all operations are staged.
try:
    from jax._src.interpreters.ad import LinearizeTrace, primitive_linearizations

    EAGER_TRACES: tuple[type, ...] = (LinearizeTrace, ad.JVPTrace)
except ImportError:
    EAGER_TRACES, primitive_linearizations = (), {}

# How a linearization rule says that it has none; later releases have two kinds
NO_RESIDUALS = ([], None) if jax.__version_info__ >= (0, 11) else ([],)

# Types that JAX's caches hold weakly. Without it they keep what an eager rule captured,
# until it is their turn to be forgotten.
try:
    from jax._src.util import weakref_cache_key_types
except ImportError:
    weakref_cache_key_types = set()

# Tracing. 100 us instead of 260 by jax.make_jaxpr, three times in each call
try:
    from jax.interpreters.partial_eval import trace_to_jaxpr_dynamic
except ImportError:
    trace_to_jaxpr_dynamic = None

# The named axes of the vmaps and meshes around us. Without it a collective in a rule is
# known only as long as they are active.
try:
    from jax._src.core import extend_axis_env_nd, get_axis_env, no_axis_name
except ImportError:
    extend_axis_env_nd = get_axis_env = no_axis_name = None

# The lines that equations come from. Without it nothing is known of them.
try:
    from jax._src import source_info_util
except ImportError:
    source_info_util = None

# Checks in a body. Without it checkify says that it does not know our primitive.
try:
    from jax._src.checkify import checkify_jaxpr, error_checks
except ImportError:
    checkify_jaxpr, error_checks = None, {}

# The functions of JAX's that call rules of primitives, or run what was traced. Without
# them a primitive is intercepted also in the rules of others.
try:
    from jax._src import core as _core
    from jax._src.interpreters import ad as _ad
    from jax._src.interpreters import batching as _batching

    RULE_CALLERS = {
        fn.__code__
        for fn in (
            _core.EvalTrace.process_primitive,
            _ad.JVPTrace.process_primitive,
            _ad.LinearizeTrace.process_primitive,
            _batching.BatchTrace.process_primitive,
            unwrap(_core.eval_jaxpr),
            *(vars(_ad)[name] for name in dir(_ad) if name.startswith("backward_pass")),
        )
    }
except (ImportError, AttributeError):
    RULE_CALLERS = set()


def platform_of(ctx: Any) -> str:
    """For what code is lowered that runs on one device, here: "cpu", "cuda".

    Empty for code that is to be exported, and without what tells it.
    """
    module = ctx.module_context
    devices = getattr(module.axis_context, "num_devices", None)
    exported = getattr(module.lowering_parameters, "for_export", True)
    is_here = devices == 1 and len(module.platforms) == 1 and not exported
    return module.platforms[0] if is_here else ""


def traced(fn: Callable[..., Any], avals: Sequence[Any]) -> ClosedJaxpr:
    """What a function that returns a list computes; what it captures are constants."""
    if trace_to_jaxpr_dynamic is None:
        return jax.make_jaxpr(fn)(*avals)
    about = debug_info("gradsmith", fn, tuple(avals), {})
    jaxpr, _, consts = trace_to_jaxpr_dynamic(wrap_init(fn, debug_info=about), avals)
    return ClosedJaxpr(jaxpr, consts)


def without_values(closed: ClosedJaxpr) -> Jaxpr:
    """Traced code that does not keep alive what it captured."""
    jaxpr = closed.jaxpr  # in later releases the same object, values included
    return jaxpr.with_consts(()) if jaxpr is closed else jaxpr


@contextmanager
def naming_inputs(tracers: Sequence[Any]) -> Iterator[None]:
    """Let code be traced that captures values of transformations that are over.

    They only stand for inputs, which take their place when the code runs: so in
    jax.grad(jax.jit(jax.vmap(f))), or where a checkpoint is differentiated again.
    Without it JAX refuses them.
    """
    traces = {x._trace for x in tracers}
    over = [trace for trace in traces if getattr(trace, "_invalidated", False)]
    try:
        for trace in over:
            trace._invalidated = False
        yield
    finally:
        for trace in over:
            trace._invalidated = True


def named_axes() -> list[tuple[Any, int]]:
    """The named axes and their sizes."""
    return [] if get_axis_env is None else [*get_axis_env().axis_sizes.items()]


def naming(axes: Sequence[tuple[Any, int]]) -> AbstractContextManager[None]:
    """The context in which there are these axes, if the vmap around it is gone."""
    if extend_axis_env_nd is None or not axes:
        return nullcontext()
    return extend_axis_env_nd(axes)


def axis_name(axis: Any) -> Any:
    """The name of an axis that vmap maps over, None if it has no name."""
    if no_axis_name is None:
        return axis.name if isinstance(axis.name, str) else None
    return None if axis.name is no_axis_name else axis.name


def over_batch(fn: Callable[..., Any], axis: Any, dims: Sequence[int | None]) -> Any:
    """A function mapped over an axis that a vmap around it maps over."""
    return jax.vmap(
        fn,
        in_axes=tuple(dims),
        axis_name=axis_name(axis),
        axis_size=axis.size,
        spmd_axis_name=axis.spmd_name,
    )


def varying_axes(aval: Any) -> frozenset[Any]:
    """The axes of a mesh over which a value varies, in shard_map."""
    kind = getattr(aval, "mat", None)
    return getattr(aval, "vma", frozenset()) if kind is None else kind.varying


def check_inside(primitive: Primitive, body_of: Callable[..., Any]) -> None:
    """Let checkify follow the function that a primitive with its parameters runs."""
    follow = checkify_jaxpr
    names = [] if follow is None else [*signature(follow).parameters]
    if follow is None or "jaxpr" not in names:
        return
    # Later releases count the checks of a program in what comes before the code.
    before = names.index("jaxpr")

    def checked(*args: Any, **parameters: Any) -> Any:
        error, enabled, *inputs = args[before:]
        code = jax.make_jaxpr(body_of(**parameters))(*inputs)
        return follow(*args[:before], code, enabled, error, *inputs)

    error_checks[primitive] = checked


def frames_of(traceback: Any) -> Iterator[tuple[str, int, str]]:
    """File, line and function of frames outside of JAX, the innermost first."""
    if source_info_util is not None and traceback is not None:
        for frame in source_info_util.user_frames(traceback):
            yield frame.file_name, frame.start_line, frame.function_name


def from_line(traceback: Any) -> AbstractContextManager[None]:
    """The context in which all that is traced comes from a given line."""
    if source_info_util is None:
        return nullcontext()
    return source_info_util.user_context(traceback)


def traced_back(keep: Callable[[Any], bool]) -> AbstractContextManager[None]:
    """Let JAX give equations the line of another only if `keep` says so of it."""
    if source_info_util is None:
        return nullcontext()
    theirs = source_info_util.user_context

    def context(traceback: Any, *args: Any, **kwargs: Any) -> Any:
        return theirs(traceback, *args, **kwargs) if keep(traceback) else nullcontext()

    return patched(source_info_util, user_context=context)


def peeled(x: Any) -> tuple[Any, list[int], bool]:
    """What tracers of `grad`, `jvp` and `vmap` stand for, and the axes of batches.

    And whether there is one of `grad` or `jvp` among them. Without their attributes the
    value is not found.
    """
    axes: list[Any] = []
    differentiated = False
    while isinstance(x, jax.core.Tracer):
        if hasattr(x, "primal"):
            x, differentiated = x.primal, True
        elif hasattr(x, "val") and isinstance(getattr(x, "batch_dim", ""), int | None):
            axes += [] if x.batch_dim is None else [x.batch_dim]
            x = x.val
        else:
            break
    return x, axes, differentiated


def trace_of(x: Any) -> Any:
    """What a tracer is traced for."""
    return x._trace
