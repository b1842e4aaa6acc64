"""The same solver on the arrays of JAX and TensorFlow, compiled by them."""

from __future__ import annotations

import numpy as np


def by_jax(design, velocity, **how):
    import jax
    import jax.numpy as jnp

    with jax.enable_x64(True):
        problem = design(asarray=jnp.asarray, **how)
        gradient = jax.jit(jax.value_and_grad(problem.loss))
        loss, dv = gradient(jnp.asarray(velocity))
        return float(loss), np.asarray(dv)


def by_tensorflow(design, velocity, **how):
    import tensorflow as tf

    problem = design(asarray=tf.constant, **how)

    @tf.function
    def gradient(velocity):
        with tf.GradientTape() as tape:
            tape.watch(velocity)
            loss = problem.loss(velocity)
        return loss, tape.gradient(loss, velocity)

    loss, dv = gradient(tf.constant(velocity))
    return float(loss), dv.numpy()


BY = {"jax": by_jax, "tensorflow": by_tensorflow}
