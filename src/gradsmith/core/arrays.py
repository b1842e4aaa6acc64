"""Whose arrays these are: NumPy's (with the engine's tensors) or a framework's.

No framework is imported to find out: one whose array we are given is loaded already.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from . import trees as _tree
from .cotangent import Spec
from .errors import GradsmithError
from .tape import Traced

NAMES = {
    "numpy": "NumPy",
    "tensorflow": "TensorFlow",
    "jax": "JAX",
    "torch": "PyTorch",
}
_ROOTS = {
    "torch": "torch",
    "jax": "jax",
    "jaxlib": "jax",
    "tensorflow": "tensorflow",
    "keras": "keras",
}
# What counts as an array of a framework, beside the types that are derived from it.
_ARRAY_TYPES = {
    "torch": lambda torch: (torch.Tensor, torch.fx.Proxy),
    "jax": lambda jax: (jax.Array,),
    "tensorflow": lambda tf: (
        tf.Tensor, tf.Variable, tf.IndexedSlices, tf.RaggedTensor, tf.SparseTensor
    ),
    "keras": lambda keras: (keras.Variable, keras.KerasTensor),
}  # fmt: skip
_known: dict[type, str | None] = {}
_wrapping: set[type] = set()  # those of the known types that have an array inside

# How an adapter describes the arrays of its framework, registered when it is loaded.
DESCRIBE: dict[str, Callable[[Any], Spec]] = {}

# How an adapter runs an operation, by the type of the first argument, if the call is of
# the usual kind; else it returns NotImplemented, before the body has run.
QUICK: dict[type, Callable[[Any, tuple[Any, ...]], Any]] = {}


def framework_of(x: Any) -> str | None:
    """The framework that an array belongs to; None for what is no array.

    >>> framework_of(np.ones(3)), framework_of(3.0)
    ('numpy', None)
    """
    cls = type(x)
    try:
        return _known[cls]
    except KeyError:
        found = _known[cls] = _find(x)
        return found


def _find(x: Any) -> str | None:
    if isinstance(x, (Traced, np.ndarray)):
        return "numpy"
    for base in type(x).__mro__:  # a user's subclass is from another module
        name = _ROOTS.get(base.__module__.partition(".")[0])
        if name is not None and name in sys.modules:
            module = sys.modules[name]
            if not isinstance(x, _ARRAY_TYPES[name](module)):
                return None
            if name == "keras":
                _wrapping.add(type(x))
                name = module.backend.backend()
            return name if name in NAMES else None
    return None


def is_array(x: Any) -> bool:
    """Whether an argument counts as an array; all else, numbers too, is static."""
    return framework_of(x) is not None


def unwrapped(arrays: Sequence[Any], caller: str) -> Sequence[Any]:
    """The same arrays, with what is inside of Keras' variables in their place."""
    if _wrapping and any(type(x) in _wrapping for x in arrays):
        return [_inside(x, caller) if type(x) in _wrapping else x for x in arrays]
    return arrays


def _inside(x: Any, caller: str) -> Any:
    if hasattr(x, "value"):
        return x.value  # as a layer reads it: cast, if the layer computes in float16
    raise GradsmithError(
        f"{caller} was given a KerasTensor, which has no values\n"
        "  expected: arrays\n"
        "  what to do: call it inside the `call` of a keras.Layer (or in a "
        "keras.layers.Lambda), and that layer on the KerasTensor"
    )


def common_framework(arrays: Iterable[Any], caller: str) -> str:
    """The framework that all of these arrays belong to; `caller` is who was given them.

    >>> common_framework([np.ones(3), np.zeros(2)], "operation 'add'")
    'numpy'
    """
    first: Any = None
    name = None
    for x in arrays:
        found = framework_of(x)
        if name is None:
            first, name = x, found
        elif found != name:
            raise _mixed(caller, first, x)
    return name or "numpy"


def _mixed(caller: str, x: Any, other: Any) -> GradsmithError:
    mine, others = (
        f"a {NAMES[framework_of(each) or 'numpy']} array ({type(each).__name__})"
        for each in (x, other)
    )
    return GradsmithError(
        f"{caller} was given arrays of two frameworks: {mine} and {others}\n"
        "  expected: all of one framework, since no derivative passes from one into "
        "another\n"
        "  what to do: convert one of them first: tf.convert_to_tensor(x), "
        "jnp.asarray(x), torch.as_tensor(x) or np.asarray(x)"
    )


def described(x: Any) -> Spec | None:
    """The spec of an array of any framework; None for what is no array."""
    name = framework_of(x)
    if name in DESCRIBE:
        return DESCRIBE[name](x)
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return Spec(tuple(x.shape), x.dtype)
    return None


def same_shape(got: Any, expected: Any) -> bool:
    """Whether shapes agree, as far as they are known: a graph may leave axes open."""
    if got is None or expected is None:
        return True
    pairs = zip(got, expected, strict=False)
    return len(got) == len(expected) and all(m == n or None in (m, n) for m, n in pairs)


# --- containers ----------------------------------------------------------------------


def _registered(node: Any) -> _tree.Kind | None:
    """How to take a container apart that its class registered with JAX."""
    trees = getattr(sys.modules.get("jax"), "tree_util", None)
    if trees is None or node is None or trees.all_leaves([node]):
        return None

    def children(node: Any) -> Any:
        return trees.tree_flatten_with_path(node, is_leaf=lambda x: x is not node)

    return _tree.Kind(
        keys=lambda node: [trees.keystr(path) for path, _ in children(node)[0]],
        values=lambda node: [child for _, child in children(node)[0]],
        step=str,
        rebuild=lambda node, new: trees.tree_unflatten(children(node)[1], new),
    )


_tree.FOREIGN.append(_registered)
