"""MLX: its transformations."""

from __future__ import annotations

from typing import Any

import mlx.core as mx

from .._transformations import BATCH, GRADIENT, SECOND, TANGENT, Row


def _vjp(s: Any) -> Any:
    return mx.vjp(s.phi, [s.t], [mx.array(1, s.dtype)])[1][0]


def _jvp(s: Any) -> Any:
    return mx.jvp(s.phi, [s.t], [s.dt])[1][0]


def _compiled_jvp(s: Any) -> Any:
    run = mx.compile(lambda t, dt: mx.jvp(s.phi, [t], [dt])[1][0])
    return run(s.t, s.dt)


def _grad_of_vmap(s: Any) -> Any:
    return mx.grad(lambda points: mx.vmap(s.phi)(points).sum())(s.points)


def _jvp_of_vmap(s: Any) -> Any:
    points = mx.stack([s.t, s.t])
    return mx.jvp(mx.vmap(s.phi), [points], [mx.stack([s.dt, s.dt])])[1][0][0]


def _slope(s: Any) -> Any:
    return lambda t: (mx.grad(s.phi)(t) * s.dt).sum()


def _forward_over_reverse(s: Any) -> Any:
    return mx.jvp(mx.grad(s.phi), [s.t], [s.dt])[1][0]


def _reverse_over_forward(s: Any) -> Any:
    return mx.grad(lambda t: mx.jvp(s.phi, [t], [s.dt])[1][0])(s.t)


ROWS = [
    Row("grad", GRADIENT, lambda s: mx.grad(s.phi)(s.t)),
    Row("value_and_grad", GRADIENT, lambda s: mx.value_and_grad(s.phi)(s.t)[1]),
    Row("vjp", GRADIENT, _vjp),
    Row("jvp", TANGENT, _jvp),
    Row("compile(grad)", GRADIENT, lambda s: mx.compile(mx.grad(s.phi))(s.t)),
    Row("grad(compile)", GRADIENT, lambda s: mx.grad(mx.compile(s.phi))(s.t)),
    Row("compile(jvp)", TANGENT, _compiled_jvp),
    Row("grad of grad", SECOND, lambda s: mx.grad(_slope(s))(s.t)),
    Row("jvp of grad", SECOND, _forward_over_reverse),
    Row("grad of jvp", SECOND, _reverse_over_forward),
    Row("vmap(grad)", BATCH, lambda s: mx.vmap(mx.grad(s.phi))(s.points)),
    Row("grad(vmap)", BATCH, _grad_of_vmap),
    Row("jvp(vmap)", TANGENT, _jvp_of_vmap),
    Row(
        "compile(vmap(grad))",
        BATCH,
        lambda s: mx.compile(mx.vmap(mx.grad(s.phi)))(s.points),
    ),
    Row("checkpoint", GRADIENT, lambda s: mx.grad(mx.checkpoint(s.phi))(s.t)),
    Row("keyword call", GRADIENT, lambda s: mx.grad(s.phi)(s.t), keyword=True),
    Row(
        "keyword call in compile",
        GRADIENT,
        lambda s: mx.compile(mx.grad(s.phi))(s.t),
        keyword=True,
    ),
]
