"""The contract holds in JAX, at trace time under a compiler, with the same words."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gradsmith as gs

X = jnp.arange(3, dtype="float32")


def differentiated(operation, *, forward=False):
    f = lambda *args: jnp.sum(operation(*args))
    if forward:
        return lambda *args: jax.jvp(f, args, args)
    return jax.grad(f, argnums=(0,))


WAYS = {
    "eager": lambda op: differentiated(op),
    "jit": lambda op: jax.jit(differentiated(op)),
    "jit inside": lambda op: differentiated(jax.jit(op)),
    "vmap": lambda op: jax.vmap(differentiated(op)),
    "forward": lambda op: differentiated(op, forward=True),
}


@pytest.fixture(params=WAYS.values(), ids=WAYS)
def way(request):
    return request.param


def returning(gradient):
    @gs.custom_gradient
    def op(x):
        return x * 2, gradient

    return op


BROKEN = [
    (lambda dy: jnp.sum(dy), "wrong shape"),
    (lambda dy: dy[None], "wrong shape"),
    (lambda dy: dy.astype("float16"), "wrong dtype"),
    (lambda dy: (dy, dy), "wrong number of entries"),
    (lambda dy: "dy", "is not an array"),
    (lambda dy: {"z": dy}, "names the wrong arguments"),
    (lambda: 0, "can't be called"),
]


@pytest.mark.parametrize(("gradient", "words"), BROKEN)
def test_a_broken_gradient_is_refused(gradient, words, way):
    x = X[None] if way is WAYS["vmap"] else X
    with pytest.raises(gs.GradientContractError, match=words) as info:
        way(returning(gradient))(x)
    assert "operation 'op'" in str(info.value)


def test_the_words_are_those_of_the_engine():
    messages = []
    for run in (lambda op: jax.jit(differentiated(op))(X), _on_the_engine):
        with pytest.raises(gs.GradientContractError) as info:
            run(returning(lambda dy: dy[:2]))
        messages.append(str(info.value))
    assert messages[0] == messages[1]


def _on_the_engine(operation):
    gs.grad(lambda x: np.sum(operation(x)))(np.asarray(X))


def test_a_broken_tangent_is_refused():
    op = gs.with_gradient(lambda x: x * 2, jvp=lambda dx, y, x: dx[:2])
    for f in (differentiated(op), differentiated(op, forward=True)):
        for wrap in (lambda f: f, jax.jit):
            with pytest.raises(gs.GradientContractError, match="wrong shape"):
                wrap(f)(X)


def test_zero_is_said_and_not_assumed():
    @gs.custom_gradient
    def op(x, y, z):
        return x + y + z, lambda dy: (10 * dy, None, gs.zero)

    for wrap in (lambda f: f, jax.jit):
        assert wrap(jax.grad(op, (0, 1, 2)))(1.0, 2.0, 3.0) == (10, 0, 0)
        assert wrap(jax.jacfwd(op, (0, 1, 2)))(1.0, 2.0, 3.0) == (10, 0, 0)


def test_not_differentiable_raises_when_it_is_asked_for():
    @gs.custom_gradient
    def op(x, labels):
        why = gs.not_differentiable("the labels are data")
        return x * labels, lambda dy: (10 * dy, why)

    for wrap in (lambda f: f, jax.jit):
        for transform in (jax.grad, jax.jacfwd):
            assert wrap(transform(op))(1.0, 2.0) == 10
            with pytest.raises(gs.NotDifferentiableError, match=r"'labels'.*are data"):
                wrap(transform(op, 1))(1.0, 2.0)
        for stop in (jax.lax.stop_gradient, gs.stop_gradient):  # as the error says
            stopped = lambda x, stop=stop: op(x, stop(x))
            assert wrap(jax.grad(stopped))(1.0) == 10
    # under vmap, and around a function that is compiled by itself
    assert jax.grad(jax.jit(op))(1.0, 2.0) == 10
    each = jax.vmap(jax.grad(op), (0, None))(X, 2.0)
    np.testing.assert_array_equal(each, 10)


def test_needs_tells_what_is_perturbed():
    seen = []

    @gs.custom_gradient
    def op(x, w, n):
        def grad(dy, needs):
            seen.append(needs)
            return (10 * dy if needs["x"] else None), 100 * dy, None

        return x * w, grad

    n = jnp.int32(1)
    for wrap in (lambda f: f, jax.jit):
        seen.clear()
        assert wrap(jax.grad(op))(1.0, 2.0, n) == 10
        assert wrap(jax.grad(op, 1))(1.0, 2.0, n) == 100
        assert wrap(jax.grad(op, (0, 1)))(1.0, 2.0, n) == (10, 100)
        assert seen == [
            {"x": True, "w": False, "n": False},
            {"x": False, "w": True, "n": False},
            {"x": True, "w": True, "n": False},
        ]


def test_a_gradient_that_nobody_asks_for_is_not_computed():
    def heavy(x):
        return jnp.linalg.inv(x)

    @gs.custom_gradient
    def op(x, w):
        return x * w, lambda dy: (10 * dy, dy @ heavy(w))

    w = jnp.eye(3)
    text = jax.jit(jax.grad(lambda x: op(x, w).sum())).lower(w).as_text()
    assert "lapack" not in text
    both = jax.jit(jax.grad(lambda w: op(w, w).sum())).lower(w).as_text()
    assert "lapack" in both


# --- exceptions of the user's code ---------------------------------------------------


def test_a_value_dependent_branch_keeps_its_error_and_gets_a_note():
    @gs.custom_gradient
    def op(x):
        return (x if x > 0 else -x), lambda dy: dy

    assert jax.grad(op)(2.0) == 1  # concrete
    with pytest.raises(jax.errors.TracerBoolConversionError) as info:
        jax.jit(op)(2.0)
    notes = "".join(info.value.__notes__)
    assert "the body of operation 'op'" in notes
    assert "gnp.where" in notes


def test_a_numpy_function_on_a_traced_value_gets_a_note():
    @gs.custom_gradient
    def op(x):
        return x * 2, lambda dy: np.exp(dy)

    with pytest.raises(jax.errors.TracerArrayConversionError) as info:
        jax.jit(jax.grad(op))(2.0)
    notes = "".join(info.value.__notes__)
    assert "the gradient of operation 'op'" in notes
    assert "gs.python_op" in notes


def test_the_users_own_exception_passes():
    @gs.custom_gradient
    def op(x):
        def grad(dy):
            raise KeyError("mine")

        return x * 2, grad

    for wrap in (lambda f: f, jax.jit):
        assert wrap(op)(X)[2] == 4  # the rule is nobody's business here
        with pytest.raises(KeyError, match="mine"):
            wrap(differentiated(op))(X)


def test_arrays_of_numpy_and_jax_do_not_mix():
    @gs.custom_gradient
    def op(x, w):
        return x * w, lambda dy: (dy, dy)

    with pytest.raises(gs.GradsmithError, match="two frameworks"):
        op(X, np.ones(3))
