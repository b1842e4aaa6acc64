"""The parts of JAX that it does not publish, all in one place.

Where a release has moved one of them we do without it, more slowly; results don't
change. What differentiates is built on `jax.custom_jvp` and on a primitive, which are
public.
"""

from __future__ import annotations

from typing import Any

from jax.interpreters import ad

# Eager differentiation without staging. Without it all operations are staged.
try:
    from jax._src.interpreters.ad import LinearizeTrace, primitive_linearizations

    EAGER_TRACES: tuple[type, ...] = (LinearizeTrace, ad.JVPTrace)
except ImportError:
    EAGER_TRACES, primitive_linearizations = (), {}

# Types that JAX's caches hold weakly. Without it they keep what an eager rule captured,
# until it is their turn to be forgotten.
try:
    from jax._src.util import weakref_cache_key_types
except ImportError:
    weakref_cache_key_types = set()

# The named axes of the vmaps and meshes around us. Without it a collective in a rule is
# known only as long as they are active.
try:
    from jax._src.core import get_axis_env, no_axis_name
except ImportError:
    get_axis_env = no_axis_name = None


def named_axes() -> list[tuple[Any, int]]:
    """The named axes and their sizes."""
    return [] if get_axis_env is None else [*get_axis_env().axis_sizes.items()]


def axis_name(axis: Any) -> Any:
    """The name of an axis that vmap maps over, None if it has no name."""
    if no_axis_name is None:
        return axis.name if isinstance(axis.name, str) else None
    return None if axis.name is no_axis_name else axis.name


def varying_axes(aval: Any) -> frozenset[Any]:
    """The axes of a mesh over which a value varies, in shard_map."""
    kind = getattr(aval, "mat", None)
    return getattr(aval, "vma", frozenset()) if kind is None else kind.varying
