"""TensorFlow: its transformations."""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import Any

import tensorflow as tf

from .._transformations import BATCH, GRADIENT, SECOND, TANGENT, Row


def _gradient(phi: Any, t: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(t)
        y = phi(t)
    return tape.gradient(y, t)


def _tangent(phi: Any, s: Any) -> Any:
    with tf.autodiff.ForwardAccumulator(s.t, s.dt) as accumulator:
        y = phi(s.t)
    return accumulator.jvp(y)


def _compiled(fn: Any, **options: Any) -> Any:
    return tf.function(lambda t: fn(t), **options)


def _nested_tapes(s: Any) -> Any:
    def slope(t: Any) -> Any:
        found = _gradient(s.phi, t)
        return None if found is None else tf.reduce_sum(found * s.dt)

    return _gradient(slope, s.t)


def _jacobian(s: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(s.t)
        y = s.vector(s.t)
    found = tape.jacobian(y, s.t)
    return None if found is None else tf.reduce_sum(found, 0)


def _batch_jacobian(s: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(s.points)
        y = tf.stack([s.vector(t) for t in tf.unstack(s.points)])
    found = tape.batch_jacobian(y, s.points)
    return None if found is None else tf.reduce_sum(found, 1)


def _map_fn(s: Any) -> Any:
    return _gradient(lambda ts: tf.reduce_sum(tf.map_fn(s.phi, ts)), s.points)


def _while_loop(s: Any) -> Any:
    def mean(t: Any) -> Any:
        start = (tf.constant(0), tf.zeros((), s.dtype))
        step = lambda i, y: (i + 1, y + s.phi(t) / 2)
        return tf.while_loop(lambda i, _: i < 2, step, start)[1]

    return _compiled(lambda t: _gradient(mean, t))(s.t)


def _vectorized_map(s: Any) -> Any:
    return tf.vectorized_map(lambda t: _gradient(s.phi, t), s.points)


def _saved_model(s: Any) -> Any:
    module: Any = tf.Module()
    signature = [tf.TensorSpec(s.t.shape, s.t.dtype)]
    module.phi = _compiled(s.phi, input_signature=signature)
    with TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder)
        return _gradient(tf.saved_model.load(folder).phi, s.t)


ROWS = [
    Row("GradientTape", GRADIENT, lambda s: _gradient(s.phi, s.t)),
    Row("nested tapes", SECOND, _nested_tapes),
    Row("ForwardAccumulator", TANGENT, lambda s: _tangent(s.phi, s), forward=True),
    Row(
        "forward over reverse",
        SECOND,
        lambda s: _tangent(lambda t: _gradient(s.phi, t), s),
    ),
    Row("tape.jacobian", GRADIENT, _jacobian, full=True),
    Row("tape.batch_jacobian", BATCH, _batch_jacobian, full=True),
    Row("tf.function", GRADIENT, lambda s: _gradient(_compiled(s.phi), s.t)),
    Row(
        "tape in tf.function",
        GRADIENT,
        lambda s: _compiled(lambda t: _gradient(s.phi, t))(s.t),
    ),
    Row(
        "tf.function(jit_compile)",
        GRADIENT,
        lambda s: _compiled(lambda t: _gradient(s.phi, t), jit_compile=True)(s.t),
    ),
    Row(
        "ForwardAccumulator in tf.function",
        TANGENT,
        lambda s: _compiled(lambda t: _tangent(s.phi, s.at(t)))(s.t),
        forward=True,
    ),
    Row(
        "ForwardAccumulator over tf.function",
        TANGENT,
        lambda s: _tangent(_compiled(s.phi), s),
        forward=True,
    ),
    Row("vectorized_map(gradient)", BATCH, _vectorized_map),
    Row("map_fn", BATCH, _map_fn),
    Row("while_loop", GRADIENT, _while_loop),
    Row("recompute_grad", GRADIENT, lambda s: _gradient(tf.recompute_grad(s.phi), s.t)),
    Row("SavedModel", GRADIENT, _saved_model),
    Row("keyword call", GRADIENT, lambda s: _gradient(s.phi, s.t), keyword=True),
    Row(
        "keyword call in tf.function",
        GRADIENT,
        lambda s: _compiled(lambda t: _gradient(s.phi, t))(s.t),
        keyword=True,
    ),
]
