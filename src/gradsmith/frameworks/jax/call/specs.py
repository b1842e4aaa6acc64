"""How JAX's arrays are described, and how its conventions differ from a rule's."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero

from ....core.cotangent import Spec
from ..private import ad, varying_axes


class _Constant:
    """A dtype without derivatives that NumPy does not know: keys, 4-bit integers."""

    kind = "i"

    def __init__(self, dtype: Any) -> None:
        self.dtype_of_jax = dtype

    def __eq__(self, other: object) -> bool:
        return getattr(other, "dtype_of_jax", other) == self.dtype_of_jax

    def __hash__(self) -> int:
        return hash(self.dtype_of_jax)

    def __str__(self) -> str:
        return str(self.dtype_of_jax)


@cache
def _described(dtype: Any) -> Any:
    # NumPy counts bfloat16 and float8 as void, and has no keys at all.
    if getattr(dtype, "kind", "V") != "V" or jnp.issubdtype(dtype, jnp.inexact):
        return dtype
    return _Constant(dtype)


def describe(x: Any) -> Spec:
    """The shape and dtype of an array, concrete or traced."""
    return Spec(x.shape, _described(x.dtype))


def tangent_type(x: Any) -> Any:
    """The type of the tangents of a value."""
    return jax.typeof(x).to_tangent_aval()


def as_array(x: Any) -> Any:
    """An array of JAX's: it gives numbers and NumPy's arrays on as they are."""
    return x if isinstance(x, jax.Array) else jnp.asarray(x)


def conjugate(x: Any) -> Any:
    """From JAX's convention for cotangents of complex numbers to a rule's, and back.

    A rule speaks of dL/dRe + i dL/dIm, JAX of its conjugate.
    """
    return jnp.conj(x) if x.dtype.kind == "c" else x


def fitted(dx: Any, like: Any) -> Any:
    """A gradient as an array of a type: its dtype, and where it is on the devices.

    In shard_map, what is one value on all devices collects the gradients of all.
    """
    if not isinstance(dx, jax.Array):
        dx = jnp.asarray(dx, like.dtype)
    aval = jax.typeof(dx)
    if aval.sharding != like.sharding and like.sharding.mesh.explicit_axes:
        dx = jax.sharding.reshard(dx, like.sharding)
    got, expected = varying_axes(aval), varying_axes(like)
    if got == expected:
        return dx
    if got - expected:
        dx = jax.lax.psum(dx, tuple(got - expected))
    return jax.lax.pcast(dx, tuple(expected - got), to="varying")


def as_output(y: Any) -> Any:
    """An output as it is given back; None if it is no number."""
    if isinstance(y, jax.Array):
        return y
    numbers = (np.ndarray, np.generic, float, complex)
    return jnp.asarray(y) if isinstance(y, numbers) else None


def ones(aval: Any) -> Any:
    """Where a rule is transposed; at zeros the user's code may take shortcuts."""
    return fitted(jax.lax.full_like(zeros(aval), 1), aval)


def zeros(aval: Any) -> Any:
    return ad.instantiate_zeros(ad.Zero(aval))  # sharded as the type says


def no_tangent(spec: Spec) -> Any:
    """What a jvp is given for an array that is not perturbed."""
    if isinstance(spec.dtype, _Constant):
        return None
    return jnp.zeros(spec.shape, spec.dtype)


# --- derivatives of functions --------------------------------------------------------


def still(x: Any) -> SymbolicZero:
    """The tangent of a value that does not move."""
    return SymbolicZero(tangent_type(x))


def symbolic(dy: Any) -> Any:
    """A tangent as the jvp of a `Custom` returns it."""
    return SymbolicZero(dy.aval) if type(dy) is ad.Zero else dy


def derivative(
    fn: Any, primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Any, list[Any]]:
    """The values and tangents of a function, some of whose inputs may not move."""
    moved = [i for i, dx in enumerate(tangents) if type(dx) is not SymbolicZero]

    def partly(*some: Any) -> Any:
        inputs = [*primals]
        for i, x in zip(moved, some, strict=True):
            inputs[i] = x
        return fn(*inputs)

    ys, dys = jax.jvp(partly, [primals[i] for i in moved], [tangents[i] for i in moved])
    return ys, [
        dy if dy.dtype == y.dtype else ad.Zero(jax.typeof(y).to_tangent_aval())
        for y, dy in zip(ys, dys, strict=True)
    ]
