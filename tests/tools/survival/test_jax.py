"""What JAX's own mechanisms do with a rule."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs
from benchmarks.survival import survey

jax = pytest.importorskip("jax")
jnp = jax.numpy

X = np.float32([0.5, 1.5, -2.0])
FORWARD = ("jvp", "linearize", "jacfwd")


def squares():
    """x * x by each mechanism, with the right rule."""

    @jax.custom_vjp
    def by_vjp(x):
        return x * x

    by_vjp.defvjp(lambda x: (x * x, x), lambda x, dy: (2 * x * dy,))

    @jax.custom_jvp
    def by_jvp(x):
        return x * x

    @by_jvp.defjvp
    def _(xs, dxs):
        return xs[0] * xs[0], 2 * xs[0] * dxs[0]

    @jax.custom_gradient
    def by_closure(x):
        return x * x, lambda dy: 2 * x * dy

    return by_vjp, by_jvp, by_closure


def refused(survival):
    return [o.transformation for o in survival.outcomes if o.verdict == "refused"]


def column(name):
    return dict(survey("jax").columns)[name]


def test_custom_vjp_refuses_forward_mode_and_honours_the_rest():
    survival = column("custom_vjp")
    assert (survival.operation, survival.framework) == ("square", "JAX")
    assert refused(survival) == list(FORWARD)
    assert "can't apply forward-mode" in survival["jvp"].detail
    assert survival.count("honoured") == len(survival.outcomes) - len(FORWARD)


def test_custom_jvp_honours_all():
    survival = column("custom_jvp")
    assert survival.count("honoured") == len(survival.outcomes) == 18


def test_custom_gradient_refuses_keywords_too():
    some = ["grad", *FORWARD, "keyword call", "keyword call in jit"]
    survival = gs.survives(squares()[2], X, only=some)
    assert survival.operation == "by_closure"
    assert refused(survival) == [*FORWARD, "keyword call", "keyword call in jit"]
    assert survival.ok


def test_a_rule_that_is_not_used_is_seen():
    class Dropping(jax.custom_vjp):
        def __call__(self, *args):
            return self.fun(*args)

    op = Dropping(lambda x: x * x)
    op.defvjp(lambda x: (x * x, x), lambda x, dy: (2 * x * dy,))

    survival = gs.survives(op, X, only=["grad", "jvp", "jit(vmap(grad))"])
    assert survival.count("dropped") == 3


def test_static_arguments_trees_integers_and_symbolic_zeros():
    def fn(n, params, index):
        return {"y": params["w"][index] ** n, "n": index}

    op = jax.custom_vjp(fn, nondiff_argnums=(0,))

    def fwd(n, params, index):
        return fn(n, params, index), (params["w"], index)

    def bwd(n, saved, dy):
        w, index = saved
        dw = n * w[index] ** (n - 1) * dy["y"]
        return {"w": jnp.zeros_like(w).at[index].add(dw)}, None

    op.defvjp(fwd, bwd)
    survival = gs.survives(
        op, 3, {"w": jnp.arange(1.0, 4.0)}, jnp.array([2, 0]), only=["grad", "hessian"]
    )
    assert survival.count("honoured") == 2


def test_half_precision_and_complex():
    vjp, jvp, _ = squares()
    for x in (jnp.bfloat16([0.5, 1.5]), jnp.complex64([1 + 2j, 0.5j])):
        for op in (vjp, jvp):
            survival = gs.survives(op, x, only=["grad", "jit(vmap(grad))"])
            assert survival.count("honoured") == 2, str(survival)


def test_a_jitted_operation_is_jaxs_and_cannot_be_silenced():
    vjp, *_ = squares()
    survival = gs.survives(jax.jit(vjp), X, only=["grad", "jvp"])
    assert survival.framework == "JAX"
    assert "can't be silenced" in survival.note
    assert [o.verdict for o in survival.outcomes] == ["unclear", "refused"]


def test_the_operation_is_left_as_it_was():
    for op in squares():
        before = dict(vars(op))
        gs.survives(op, X, only=["grad", "jit(grad)"])
        assert vars(op) == before
