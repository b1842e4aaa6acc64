"""JAX: its transformations."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax
from jax.sharding import Mesh, PartitionSpec

from .._transformations import BATCH, GRADIENT, SECOND, TANGENT, Row


def _vjp(s: Any) -> Any:
    y, pull = jax.vjp(s.phi, s.t)
    return pull(jnp.ones_like(y))[0]


def _hessian(s: Any) -> Any:
    return jnp.tensordot(jax.hessian(s.phi)(s.t), s.dt, s.dt.ndim)


def _grad_of_vmap(s: Any) -> Any:
    return jax.grad(lambda points: jax.vmap(s.phi)(points).sum())(s.points)


def _second_by_reverse(s: Any) -> Any:
    return jax.grad(lambda t: jnp.vdot(jax.grad(s.phi)(t), s.dt))(s.t)


def _scan(s: Any) -> Any:
    def total(points: Any) -> Any:
        start = jnp.zeros((), points.dtype)
        return lax.scan(lambda y, t: (y + s.phi(t), None), start, points)[0]

    return jax.grad(total)(s.points)


def _exported(s: Any) -> Any:
    saved = export.export(jax.jit(s.phi))(s.t).serialize(vjp_order=1)
    return jax.grad(export.deserialize(saved).call)(s.t)


def _sharded(s: Any) -> Any:
    mesh, axis = Mesh(np.array(jax.devices()[:1]), ("i",)), PartitionSpec("i")
    each = jax.shard_map(
        lambda ts: s.phi(ts[0])[None], mesh=mesh, in_specs=axis, out_specs=axis
    )
    return jax.jit(jax.grad(lambda t: jnp.sum(each(t[None]))))(s.t)  # eager: 4 s


ROWS = [
    Row("grad", GRADIENT, lambda s: jax.grad(s.phi)(s.t)),
    Row("jit(grad)", GRADIENT, lambda s: jax.jit(jax.grad(s.phi))(s.t)),
    Row("vjp", GRADIENT, _vjp),
    Row("jvp", TANGENT, lambda s: jax.jvp(s.phi, (s.t,), (s.dt,))[1]),
    Row("linearize", TANGENT, lambda s: jax.linearize(s.phi, s.t)[1](s.dt)),
    Row("jacrev", GRADIENT, lambda s: jax.jacrev(s.vector)(s.t).sum(0), full=True),
    Row("jacfwd", GRADIENT, lambda s: jax.jacfwd(s.vector)(s.t).sum(0), full=True),
    Row("hessian", SECOND, _hessian, full=True),
    Row("grad of grad", SECOND, _second_by_reverse),
    Row("vmap(grad)", BATCH, lambda s: jax.vmap(jax.grad(s.phi))(s.points)),
    Row("grad(vmap)", BATCH, _grad_of_vmap),
    Row(
        "jit(vmap(grad))",
        BATCH,
        lambda s: jax.jit(jax.vmap(jax.grad(s.phi)))(s.points),
    ),
    Row("checkpoint", GRADIENT, lambda s: jax.grad(jax.checkpoint(s.phi))(s.t)),
    Row("scan", BATCH, _scan),
    Row("shard_map", GRADIENT, _sharded),
    Row("export", GRADIENT, _exported),
    Row("keyword call", GRADIENT, lambda s: jax.grad(s.phi)(s.t), keyword=True),
    Row(
        "keyword call in jit",
        GRADIENT,
        lambda s: jax.jit(jax.grad(s.phi))(s.t),
        keyword=True,
    ),
]
