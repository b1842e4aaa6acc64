"""Derivatives by JAX.

A function that is called many times is compiled as a whole: the second order of a small
one in 0.1 s; its single operations, which eager calls compile one by one, in 0.8 s.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.experimental import checkify
from jax.extend.core import jaxprs_in_params

from ...core.patching import patched_function
from .._calculus import Script, Traits
from .arrays import array
from .call.specs import conjugate

compiles = True
REPRODUCER = Script(
    imports=(
        "import jax",
        "import jax.numpy as jnp",
        'jax.config.update("jax_enable_x64", True)',
    ),
    array="jnp.asarray",
    total="jnp.sum",
    gradient=("rule = jax.grad(loss)(jnp.asarray({x}))",),
)


def value(fn: Any, xs: Any) -> list[Any]:
    xs = list(xs)
    both = _together(fn, xs)
    return _run(_value, fn, xs) if both is None else both[0]


def vjp(fn: Any, xs: Any, *, nested: bool = False, eager: bool = False) -> Any:
    xs = list(xs)
    if nested or eager:
        ys, transposed = jax.vjp(fn, xs)
        # JAX's gradient of a complex argument is the conjugate of everyone else's.
        return ys, lambda dys: _conjugate(transposed(_conjugate(dys))[0])

    def pull(dys: Any) -> list[Any]:
        both = _together(fn, xs, list(dys))
        return _run(_pulled, fn, xs, list(dys)) if both is None else both[1]

    return value(fn, xs), pull


def _conjugate(arrays: Any) -> list[Any]:
    return [conjugate(x) for x in arrays]


def _value(fn: Any, xs: list[Any]) -> list[Any]:
    return fn(xs)


def _pulled(fn: Any, xs: list[Any], dys: list[Any]) -> list[Any]:
    return vjp(fn, xs, nested=True)[1](dys)


_SMALL = 10**4  # elements, of which a gradient that nobody asked for costs nothing
_apart: set[Any] = set()  # those of which one raises something: which of them?


def _together(fn: Any, xs: list[Any], dys: list[Any] | None = None) -> Any:
    """Values and gradients of one function: compiling two takes twice the time.

    None where each is better asked for on its own.
    """
    shapes = tuple((x.shape, str(x.dtype)) for x in xs)
    if (hash(fn), shapes) in _apart or fn in _eager or _is_traced(xs):
        return None
    if sum(x.size for x in xs) > _SMALL:
        return None
    try:
        return _run(_both, fn, xs, _zeros(fn, shapes) if dys is None else dys)
    except Exception:
        _apart.add((hash(fn), shapes))
        return None


def _both(fn: Any, xs: list[Any], dys: list[Any]) -> Any:
    return _value(fn, xs), _pulled(fn, xs, dys)


@lru_cache(maxsize=128)
def _zeros(fn: Any, shapes: tuple[Any, ...]) -> list[Any]:
    """Upstream gradients for arguments of these shapes and dtypes."""
    xs = [jax.ShapeDtypeStruct(*each) for each in shapes]
    ys = jax.eval_shape(partial(_value, fn), xs)
    return [array(np.zeros(y.shape), str(y.dtype)) for y in ys]


def _is_traced(xs: list[Any]) -> bool:
    return any(isinstance(x, Tracer) for x in xs)


# Most of what a compiler does to be fast afterwards is not worth it here: with these
# it takes a third of the time.
_options: dict[str, Any] = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
    "xla_cpu_enable_concurrency_optimized_scheduler": False,
}


@lru_cache(maxsize=128)
def _compiled(way: Any, fn: Any) -> Any:
    return jax.jit(partial(way, fn), compiler_options=_options or None)


_eager: set[Any] = set()  # those that look at values, which a compiler has none of


def _run(way: Any, fn: Any, *args: Any) -> list[Any]:
    if fn in _eager or _is_traced(args[0]):
        return way(fn, *args)
    try:
        return _compiled(way, fn)(*args)
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError):
        found = way(fn, *args)
        _eager.add(fn)
        return found
    except jax.errors.JaxRuntimeError as error:
        if "compile option" not in str(error) or not _options:
            raise
        _options.clear()  # another XLA, which has others
        _compiled.cache_clear()
        return _run(way, fn, *args)


def jvp(fn: Any, xs: Any, dxs: Any, *, nested: bool = False) -> Any:
    pushed = _pushed if nested else partial(_run, _pushed)
    return pushed(fn, list(xs), list(dxs))


def _pushed(fn: Any, xs: list[Any], dxs: list[Any]) -> Any:
    return jax.jvp(fn, (xs,), (dxs,))


def second(fn: Any, xs: Any, dys: Any, vs: Any) -> Any:
    return _run(_second, fn, list(xs), list(dys), list(vs))


def _second(fn: Any, xs: list[Any], dys: list[Any], vs: list[Any]) -> Any:
    def slope(xs: list[Any], dys: list[Any]) -> Any:
        pairs = zip(_pulled(fn, xs, dys), vs, strict=True)
        return sum(jnp.sum(jnp.real(jnp.conj(v) * g)) for g, v in pairs)

    found = jax.grad(slope, (0, 1))(xs, dys)
    return [_conjugate(gradients) for gradients in found]


def abstract(fn: Any, xs: Any) -> bool:
    # What JAX remembers of a trace goes with a function of its own: 6 kB each time.
    jax.eval_shape(lambda xs: fn(xs), xs)
    return True


def traits(fn: Any, xs: Any) -> Traits:
    every = [*_equations(_code(fn, xs))]
    names = {name for name, _ in every}
    drawn = {name for name, is_repeated in every if is_repeated}
    return Traits(
        iterates=bool(names & {"while", "pure_callback", "io_callback"}),
        rejects="random_gamma" in names
        or bool(drawn & {"random_bits", "threefry2x32"}),
    )


def _code(fn: Any, xs: Any) -> Any:
    return jax.make_jaxpr(fn)(list(xs)).jaxpr


def _equations(code: Any, is_repeated: bool = False) -> Iterator[tuple[str, bool]]:
    """The names of all equations, and whether they are in a loop without an end."""
    for eqn in code.eqns:
        name = eqn.primitive.name
        yield name, is_repeated
        for inner in jaxprs_in_params(eqn.params):
            yield from _equations(inner, is_repeated or name == "while")


@contextmanager
def unstopped() -> Iterator[None]:
    stop: Any = jax.lax.stop_gradient
    # What was compiled before has stopped them already.
    with jax.disable_jit(), patched_function(stop, lambda _, args, kwargs: args[0]):
        yield


_INDEXING = ("gather", "scatter", "dynamic_slice", "dynamic_update_slice")


def in_bounds(fn: Any, xs: Any) -> bool:
    # An index out of bounds is clamped in the value, and dropped in the gradient.
    try:
        names = [name for name, _ in _equations(_code(fn, xs))]
        if not any(name.startswith(_INDEXING) for name in names):
            return True  # what checkify does to find out takes seconds
        error, _ = checkify.checkify(fn, errors=checkify.index_checks)(xs)
    except Exception:
        return True  # it can't be told
    return error.get() is None
