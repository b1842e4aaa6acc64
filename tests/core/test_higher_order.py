"""Custom operations agree with autodiff of the same formula, in any mix of modes.

A derivative of order n is a word of n letters, read from the inside: R is reverse mode,
F forward mode, P a persistent tape, Q a persistent tape asked while it records.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import log_softmax

import gradsmith as gs
from gradsmith.core import gradient_tape

X = np.array([[0.3, -0.7, 1.1], [0.2, 0.9, -0.4]])
V = np.array([[0.5, 1.0, -0.3], [0.8, -0.6, 0.2]])
WORDS = ["".join(w) for n in (1, 2, 3) for w in product("RFPQ", repeat=n)]


def derivative(f, word):
    """The derivative of f in direction V, once for each letter."""
    for letter in word:
        f = MODES[letter](f)
    return f


def reverse(f):
    return lambda x: np.sum(gs.grad(f)(x) * V)


def forward(f):
    return lambda x: gs.jvp(f, (x,), (V,))[1]


def persistent(f, *, inside=False):
    def slope(x):
        x = x if isinstance(x, gs.Tensor) else gs.Tensor(x)
        with gs.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = f(x)
            dx = tape.gradient(y, x) if inside else None
        dx = dx if inside else tape.gradient(y, x)
        return np.sum(dx * V)

    return slope


MODES = {
    "R": reverse,
    "F": forward,
    "P": persistent,
    "Q": lambda f: persistent(f, inside=True),
}

# --- operations and the formulas they stand for --------------------------------------


@gs.custom_gradient
def captures_intermediate(x):
    e = np.exp(x)
    return e * x, lambda dy: dy * (e + e * x)


@gs.custom_gradient
def captures_output(x):
    y = np.exp(2 * x)
    return y, lambda dy: 2 * dy * y


@gs.custom_gradient
def captures_argument(x):
    return x**3, lambda dy: 3 * dy * x**2


@gs.custom_gradient
def softmax(x, axis=-1):
    e = np.exp(x)
    y = e / np.sum(e, axis=axis, keepdims=True)
    return y, lambda dy: y * (dy - np.sum(dy * y, axis=axis, keepdims=True))


def plain_softmax(x):
    e = np.exp(x)
    return e / np.sum(e, axis=-1, keepdims=True)


@gs.operation
def by_vjp(x):
    return np.sin(x) * x


@by_vjp.vjp
def _(dy, y, x):
    return dy * (np.cos(x) * x + np.sin(x))


@gs.operation
def by_vjp_of_output(x):
    return np.exp(2 * x)


@by_vjp_of_output.vjp
def _(dy, y, x):
    return 2 * y * dy


@gs.operation
def by_jvp(x):
    return np.sin(x) * x


@by_jvp.jvp
def _(dx, y, x):
    return dx * (np.cos(x) * x + np.sin(x))


@gs.operation
def by_both(x):
    return np.exp(2 * x)


@by_both.vjp
def _(dy, y, x):
    return 2 * y * dy


@by_both.jvp
def _(dx, y, x):
    return 2 * y * dx


@gs.operation
def black_box(x):
    """Its body leaves NumPy's protocols, so only the rule can be differentiated."""
    x = np.array([[float(a) for a in row] for row in x])
    return np.array(x**3)


@black_box.vjp
def _(dy, y, x):
    return 3 * x**2 * dy


@gs.custom_gradient
def two(x, s):
    z, w = x * s + np.sin(x), s**2 * x

    def grad(dz, dw):
        return dz * (s + np.cos(x)) + dw * s**2, dz * x + 2 * dw * s * x

    return z, w, grad


@gs.custom_gradient
def of_tree(p):
    e = np.exp(p["a"])

    def grad(dy):
        return {"a": dy * e * p["b"][0], "b": [dy * e]}

    return e * p["b"][0], grad


@gs.custom_gradient
def nested(x):
    """Calls others in its body and in its gradient."""
    y = captures_intermediate(x) * captures_output(x)

    def grad(dy):
        e, e2 = captures_intermediate(x), captures_output(x)
        return dy * ((np.exp(x) + e) * e2 + 2 * e * e2)

    return y, grad


@gs.custom_gradient
def differentiates_inside(x):
    """Its gradient is found by a transform within the body."""
    slope = gs.grad(lambda x: np.sum(np.sin(x) * x))(x)
    return np.sin(x) * x, lambda dy: dy * slope


@gs.custom_gradient
def is_a_derivative(x):
    """Its output is found by a transform within the body."""
    y = gs.grad(lambda x: np.sum(x**3 / 3))(x)
    return y, lambda dy: 2 * x * dy


@gs.custom_gradient
def returns_argument(x):
    return x, x**2, lambda dy, dz: dy + 2 * x * dz


@gs.custom_gradient
def returns_twice(x):
    y = np.exp(x)
    return y, y, lambda dy, dz: (dy + dz) * y


@gs.custom_gradient
def with_whole_numbers(x):
    return np.exp(x), np.argmax(x.ravel()), lambda dy, di: dy * np.exp(x)


@gs.custom_gradient
def twice_the_same(a, b):
    return a * b, lambda dy: (dy * b, dy * a)


CASES = {
    "intermediate": (captures_intermediate, lambda x: np.exp(x) * x),
    "output": (captures_output, lambda x: np.exp(2 * x)),
    "argument": (captures_argument, lambda x: x**3),
    "softmax": (softmax, plain_softmax),
    "vjp": (by_vjp, lambda x: np.sin(x) * x),
    "vjp of output": (by_vjp_of_output, lambda x: np.exp(2 * x)),
    "jvp": (by_jvp, lambda x: np.sin(x) * x),
    "both": (by_both, lambda x: np.exp(2 * x)),
    "black box": (black_box, lambda x: x**3),
    "two outputs": (
        lambda x: two(x, s=x * x)[0] * two(x, x * x)[1],
        lambda x: (x**3 + np.sin(x)) * x**5,
    ),
    "one of two outputs": (lambda x: two(x, x)[1], lambda x: x**3),
    "tree": (
        lambda x: of_tree({"a": x, "b": [x * x]}),
        lambda x: np.exp(x) * x * x,
    ),
    "nested": (nested, lambda x: np.exp(3 * x) * x),
    "transform inside": (differentiates_inside, lambda x: np.sin(x) * x),
    "transform is output": (is_a_derivative, lambda x: x**2),
    "returns argument": (
        lambda x: np.sin(returns_argument(x)[0]) * returns_argument(x)[1],
        lambda x: np.sin(x) * x**2,
    ),
    "returns twice": (
        lambda x: returns_twice(x)[0] * np.sin(returns_twice(x)[1]),
        lambda x: np.exp(x) * np.sin(np.exp(x)),
    ),
    "whole numbers": (lambda x: with_whole_numbers(x)[0], np.exp),
    "same argument twice": (lambda x: twice_the_same(x, x) * x, lambda x: x**3),
    "custom of custom": (
        lambda x: captures_output(captures_intermediate(x)),
        lambda x: np.exp(2 * np.exp(x) * x),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_like_autodiff_of_the_formula_to_third_order(name):
    custom, plain = CASES[name]

    def f(x):
        return np.sum(V * custom(x) ** 2)

    def g(x):
        return np.sum(V * plain(x) ** 2)

    np.testing.assert_allclose(f(X), g(X))
    for word in WORDS:
        expected = derivative(g, word)(X)
        np.testing.assert_allclose(
            derivative(f, word)(X), expected, rtol=1e-10, atol=1e-10, err_msg=word
        )


@pytest.mark.parametrize("name", CASES)
def test_jacobian_hessian_and_hvp(name):
    custom, plain = CASES[name]

    def f(x):
        return np.sum(V * custom(x))

    def g(x):
        return np.sum(V * plain(x))

    for transform in (
        lambda f: gs.jacobian(f, mode="reverse")(X),
        lambda f: gs.jacobian(f, mode="forward")(X),
    ):
        np.testing.assert_allclose(transform(custom), transform(plain), atol=1e-12)
    for transform in (
        lambda f: gs.hessian(f)(X),
        lambda f: gs.jacobian(gs.grad(f), mode="reverse")(X),
        lambda f: gs.hvp(f, (X,), (V,)),
    ):
        np.testing.assert_allclose(transform(f), transform(g), atol=1e-12)


def test_the_rule_holds_at_every_order():
    """A rule that is not the derivative shows which one was used."""

    @gs.custom_gradient(surrogate="ten times too much")
    def op(x):
        return x**2, lambda dy: 20 * x * dy

    assert gs.grad(op)(3.0) == 60
    assert gs.grad(gs.grad(op))(3.0) == 20
    assert gs.jvp(gs.grad(op), (3.0,), (1.0,))[1] == 20
    assert gs.grad(gs.grad(gs.grad(op)))(3.0) == 0


def test_the_gradient_of_a_captured_output_is_the_rule():
    @gs.custom_gradient(surrogate="ten times too much")
    def op(x):
        y = np.exp(x)
        return y, lambda dy: 10 * y * dy

    e = np.exp(0.5)
    assert gs.grad(op)(0.5) == pytest.approx(10 * e)
    assert gs.grad(gs.grad(op))(0.5) == pytest.approx(100 * e)
    assert gs.hessian(op)(np.array(0.5)) == pytest.approx(100 * e)


def test_a_rule_with_its_own_second_derivative():
    """A custom operation in the gradient of a custom operation is used at order two."""

    @gs.custom_gradient
    def slope(x):
        return 2 * x, lambda dy: 7 * dy

    @gs.custom_gradient
    def op(x):
        return x**2, lambda dy: dy * slope(x)

    assert gs.grad(op)(3.0) == 6
    assert gs.grad(gs.grad(op))(3.0) == 7
    assert gs.hessian(op)(np.array(3.0)) == 7


def test_tape_in_a_tape_sees_the_gradient_of_the_gradient():
    x = gs.Tensor(2.0)
    with gs.GradientTape() as outer:
        outer.watch(x)
        with gs.GradientTape() as inner:
            inner.watch(x)
            y = captures_argument(x)
        dx = inner.gradient(y, x)
    assert dx.item() == 12
    assert outer.gradient(dx, x).item() == 12


def test_a_hundred_operations_deep():
    def f(x):
        for _ in range(100):
            x = captures_argument(x) ** (1 / 3) + 0.01
        return x

    assert gs.grad(f)(1.0) == pytest.approx(gs.jvp(f, (1.0,), (1.0,))[1])


# A body that the engine can't see into


@gs.custom_gradient
def opaque_cube(x):
    plain = np.asarray(x)
    return plain**3, lambda dy: 3 * plain**2 * dy


@gs.custom_gradient
def unruled_cube(x):
    plain = np.emath.power(x, 3)  # has no rule
    return plain, lambda dy: 3 * np.emath.power(x, 2) * dy


@pytest.mark.parametrize("cube", [opaque_cube, unruled_cube])
@pytest.mark.parametrize("persistent", [False, True])
def test_an_opaque_body_has_its_first_derivative(cube, persistent):
    x = gs.Tensor(2.0)
    with gs.GradientTape(persistent=persistent) as tape:
        tape.watch(x)
        y = cube(x) * x
    assert tape.gradient(y, x).item() == 8 + 12 * 2


def test_a_second_derivative_through_an_opaque_body_is_refused():
    with pytest.raises(gs.UnsupportedOperationError, match="rule form"):
        gs.grad(gs.grad(lambda x: opaque_cube(x) * x))(2.0)


def test_an_opaque_body_of_something_else_does_not_matter():
    slope = gs.grad(lambda x: gs.grad(lambda z: opaque_cube(z) * x)(2.0))
    assert slope(5.0) == 12


def test_a_tape_that_a_function_leaves_open_is_refused():
    tapes = []

    def f(x):
        tapes.append(gs.GradientTape())
        tapes[-1].__enter__()
        return np.sum(x**2)

    with pytest.raises(gs.TapeError, match="closes what it has opened"):
        gs.grad(f)(X)
    tapes[-1].__exit__()
    np.testing.assert_array_equal(gs.grad(lambda x: np.sum(x**2))(X), 2 * X)


def test_a_walk_begins_with_plain_arrays(monkeypatch):
    """Nobody follows what it begins with, whoever records it."""
    seeds, walk = [], gradient_tape.walk_back

    def walk_back(cotangents, *args, **kwargs):
        seeds.append(isinstance(*cotangents.values(), gs.Tensor))
        return walk(cotangents, *args, **kwargs)

    monkeypatch.setattr(gradient_tape, "walk_back", walk_back)
    linear = lambda x: lambda y: 2.0 * np.sum(x[1:]) - np.sum(y * y)
    product = lambda x: lambda y: np.sum(x * y * y)
    for cost in (linear, product):
        gs.grad(lambda x, cost=cost: np.sum(x * gs.grad(cost(x))(V)))(X)
        gs.grad(lambda x, cost=cost: np.sum(x * gs.vjp(cost(x), V)[1](1.0)[0]))(X)
    assert seeds == [False] * 8


def test_seconds_of_narrow_shares_with_plain_cotangents():
    """Those of a minimum are plain, and the precise shares of others are tensors."""
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    f = lambda x: np.sum(np.min(log_softmax(x, axis=1), axis=1))
    g = lambda x: np.sum(gs.grad(f)(x) ** 2)
    truth = gs.grad(g)(x.astype(float))
    np.testing.assert_allclose(gs.grad(g)(x), truth, rtol=1e-5, atol=1e-6)


OF_BOTH = {
    "a product of both": lambda x, y: np.sum(x * y * y),
    "a sum of both": lambda x, y: np.sum((x + y) ** 3),
    "numbers": lambda x, y: np.sum((2.0 * (x - y)) ** 2 / 3.0),
    "functions": lambda x, y: np.sum(np.exp(-x) * np.sin(y)),
    "parts": lambda x, y: np.sum(x[0] * y[1]) * np.sum((x + y)[:, 1:] ** 2),
    "sums": lambda x, y: np.sum(np.sum(x * y, 0) ** 2) + np.sum(np.mean(x * y, 1)),
    "shapes": lambda x, y: np.sum(((x * y).T @ np.reshape(x + y, (2, 3))) ** 2),
    "broadcasts": lambda x, y: np.sum((x[:1] + y) * (x * y[:, :1])),
}


@pytest.mark.parametrize("name", OF_BOTH)
@pytest.mark.parametrize("same", [False, True], ids=["of two", "of one"])
def test_nested_gradients_are_those_of_differences(name, same):
    """The gradient in x of that in y, where y may be x: of a tape within another."""
    f = OF_BOTH[name]

    def slope(x):
        y = x * 1.0 if same else 2.0 + V
        return np.sum(gs.grad(lambda y: f(x, y))(y) * V * V)

    step = 1e-6 * V
    expected = (slope(X + step) - slope(X - step)) / 2e-6
    np.testing.assert_allclose(np.sum(gs.grad(slope)(X) * V), expected, rtol=1e-7)


def test_nested_gradients_of_arrays_of_objects():
    with pytest.raises(gs.GradsmithError):
        gs.grad(lambda x: np.sum(gs.grad(lambda y: np.sum(np.array([x]) * y))(V)))(X)
