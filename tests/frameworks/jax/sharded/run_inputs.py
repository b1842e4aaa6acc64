"""Sharded inputs, and shard_map with collectives: values, gradients, tangents."""

import sys
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith import ops
from gradsmith.operations import fusing

X = jnp.arange(16.0)
W = jnp.float32(3)


@gs.custom_gradient
def times(x, w):
    return x * w, lambda dy: (10 * dy * w, 100 * jnp.sum(dy * x))


@gs.operation
def times_by_rule(x, w):
    return x * w


@times_by_rule.vjp
def _(dy, y, x, w):
    return 10 * dy * w, 100 * jnp.sum(dy * x)


@cache
def mesh(kind=AxisType.Auto):
    return jax.make_mesh((8,), ("i",), axis_types=(kind,))


def same(found, expected):
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def check_sharded_inputs(op):
    x = jax.device_put(X, NamedSharding(mesh(), P("i")))
    gradient = jax.grad(lambda x, w: jnp.sum(op(x, w) ** 2), (0, 1))
    expected = (20 * X * W**2, 200 * W * jnp.sum(X * X))
    for f in (gradient, jax.jit(gradient)):
        found = f(x, W)
        same(found, expected)
        assert found[0].sharding.is_equivalent_to(x.sharding, 1)
    with jax.set_mesh(mesh(AxisType.Explicit)):
        x = jax.device_put(X, P("i"))
        same(jax.jit(gradient)(x, W), expected)


def check_silent_gradients():
    @gs.custom_gradient
    def silent(x, w):
        return x * w, lambda dy: (None, gs.zero)

    loss = lambda x, w: jnp.sum(silent(x, w) ** 2)
    constant = gs.with_gradient(lambda x: x * 2, lambda dy, y, x: jnp.full(16, 10.0))
    with jax.set_mesh(mesh(AxisType.Explicit)):
        x, w = jax.device_put(X, P("i")), jax.device_put(X, P("i"))
        for wrap in (lambda f: f, jax.jit):
            f = wrap(jax.grad(lambda x: jnp.sum(constant(x))))
            same(f(x), jnp.full(16, 10.0))
        for f in (loss, jax.jit(loss)):
            same(jax.grad(f, (0, 1))(x, w), (0 * X, 0 * X))
            same(jax.jvp(f, (x, w), (x, w))[1], 0.0)
    mapped = jax.shard_map(
        silent, mesh=mesh(), in_specs=(P("i"), P()), out_specs=P("i")
    )
    total = jax.jit(jax.grad(lambda x, w: jnp.sum(mapped(x, w)), (0, 1)))
    same(total(X, W), (0 * X, 0.0))


def check_shard_map(op, check_vma):
    def local(x, w):
        return op(x, w)

    mapped = jax.shard_map(
        local,
        mesh=mesh(),
        in_specs=(P("i"), P()),
        out_specs=P("i"),
        check_vma=check_vma,
    )
    expected = (jnp.full(16, 30.0), 100 * jnp.sum(X))
    gradient = jax.grad(lambda x, w: jnp.sum(mapped(x, w)), (0, 1))
    same(jax.jit(gradient)(X, W), expected)
    same(gradient(X, W), expected)
    tangent = jax.jit(lambda x, w: jax.jvp(mapped, (x, w), (x, w))[1])
    same(tangent(X, W), 10 * X * W + 100 * X * W)
    second = jax.grad(lambda w: jnp.sum(jax.grad(lambda x: jnp.sum(mapped(x, w)))(X)))
    same(jax.jit(second)(W), 160.0)


def check_gradient_inside(op):
    def local(x, w):
        return jax.grad(lambda x: jnp.sum(op(x, w)))(x)

    inside = jax.shard_map(local, mesh=mesh(), in_specs=(P("i"), P()), out_specs=P("i"))
    same(jax.jit(inside)(X, W), jnp.full(16, 30.0))
    same(inside(X, W), jnp.full(16, 30.0))


def check_collectives():
    @gs.custom_gradient
    def centred(x):
        mean = lax.pmean(jnp.mean(x), "i")
        shared = lambda dy: dy - lax.pmean(jnp.mean(dy), "i")
        return x - mean, lambda dy: 10 * shared(dy)

    mapped = jax.shard_map(centred, mesh=mesh(), in_specs=P("i"), out_specs=P("i"))
    weights = X**2
    expected = 10 * (weights - jnp.mean(weights))
    same(jax.jit(jax.grad(lambda x: jnp.sum(weights * mapped(x))))(X), expected)
    same(jax.jit(lambda x: jax.jvp(mapped, (x,), (weights,))[1])(X), expected)

    @gs.custom_gradient
    def total(x):
        return lax.psum(jnp.sum(x), "i"), lambda dy: jnp.broadcast_to(10 * dy, x.shape)

    summed = jax.shard_map(total, mesh=mesh(), in_specs=P("i"), out_specs=P())
    same(jax.jit(jax.grad(summed))(X), jnp.full(16, 10.0))


def check_choices():
    """A norm is computed otherwise where it overflows on one of the devices."""
    x = X.reshape(8, 2).at[3].mul(1e25)
    spec = P("i")
    norm = lambda x: ops.norm(x, axis=-1)
    mapped = jax.shard_map(norm, mesh=mesh(), in_specs=spec, out_specs=spec)
    total = lambda f: lambda x: jnp.sum(f(x))
    for f in (mapped, jax.jit(mapped)):
        same(f(x), norm(x))
        same(jax.grad(total(f))(x), jax.grad(total(norm))(x))


def check_kernels():
    """What is fused is composed on several devices."""

    @gs.custom_gradient(fused=True)
    def squares(x):
        return gnp.sum(x * x, axis=-1), lambda dy: 2 * x * dy[:, None]

    gradient = jax.grad(lambda x: jnp.sum(squares(x) ** 2))
    x = X.reshape(8, 2)
    expected = 4 * x * jnp.sum(x * x, axis=-1, keepdims=True)
    sharded = jax.device_put(x, NamedSharding(mesh(), P("i")))
    for f in (gradient, jax.jit(gradient)):
        same(f(sharded), expected)
    assert "gradsmith" not in jax.jit(gradient).lower(sharded).as_text()
    with jax.set_mesh(mesh(AxisType.Explicit)):
        same(jax.jit(gradient)(jax.device_put(x, P("i"))), expected)


def main():
    for op in (times, times_by_rule):
        check_sharded_inputs(op)
        check_shard_map(op, check_vma=True)
        check_shard_map(op, check_vma=False)
        check_gradient_inside(op)
    check_collectives()
    check_choices()
    check_silent_gradients()
    if fusing.runs_on_cpu():
        check_kernels()
    sys.stdout.write("done\n")


if __name__ == "__main__":
    main()
