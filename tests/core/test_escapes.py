"""A followed value becomes no constant without a word: it is kept, or that raises."""

from __future__ import annotations

import inspect
import math
import pickle
from operator import index as operator_index

import numpy as np
import pytest

import gradsmith as gs

X = np.array([0.3, 0.7, 1.9])


def assigned(a, x):
    a[0] = x
    return a


def numbers(x):
    """An array of objects that are tensors."""
    array = np.empty(3, object)
    for i in range(3):
        array[i] = x[i]
    return array


REFUSED = [
    lambda x: np.asarray(x),
    lambda x: np.array(x),
    lambda x: np.array([x[0], x[1]]),
    lambda x: np.array([x[0], x[1]], object),
    lambda x: np.full(3, x[0]),
    lambda x: np.full((2, 3), x),
    lambda x: assigned(np.zeros(3), x[0]),
    lambda x: np.ascontiguousarray(x),
    lambda x: np.asanyarray(x),
    lambda x: np.require(x, requirements="C"),
    lambda x: np.vectorize(lambda v: v * v)(x),
    lambda x: np.frompyfunc(lambda v: v * v, 1, 1)(x),
    lambda x: np.fromiter((v * v for v in x), float),
    lambda x: np.polynomial.Polynomial([x[0], x[1]])(2.0),
    lambda x: np.polynomial.polynomial.polyval(2.0, x),
    lambda x: np.polynomial.chebyshev.chebval(2.0, [x[0], x[1]]),
    lambda x: np.sum([x[0], x[1]]),
    lambda x: np.exp([x[0], x[1]]),
    lambda x: np.c_[x, x],
    lambda x: np.r_[x[0], 1.0],
    lambda x: np.arange(0.0, x[2], 0.5),
    lambda x: np.select([X > 1], [X], default=x[0]),
    lambda x: np.pad(x, 1, constant_values=x[0]),
    lambda x: np.cov(np.outer(X, X) + np.eye(3), aweights=x),
    lambda x: np.pad(X, 1, constant_values=x[0]),
    lambda x: np.sum(X, initial=x[0]),
    lambda x: np.sum(x, initial=x[0]),
    lambda x: np.max(X, initial=x[2]),
    lambda x: np.add.reduce(X, initial=x[0]),
    lambda x: np.piecewise(X, [X > 1], [lambda v: v * x[0], 0.0]),
    lambda x: np.apply_along_axis(lambda v: v * x[0], 0, X),
    lambda x: np.random.default_rng(0).normal(x),
    lambda x: np.random.default_rng(0).normal(x[0], 1.0),
    lambda x: np.random.default_rng(0).permuted(x),
    lambda x: np.matrix(x),
    lambda x: np.ma.masked_array(x, [0, 1, 0]),
    lambda x: np.nditer(x),
    lambda x: numbers(x).astype(float),
    lambda x: x * numbers(x),
    lambda x: np.dot(x, numbers(x)),
    lambda x: gs.Tensor(X) * numbers(x),
    lambda x: np.dot(gs.Tensor(X), numbers(x)),
    lambda x: np.concatenate([x, numbers(x)]),
    lambda x: np.where(X > 1, x, numbers(x)),
    lambda x: np.clip(x, numbers(x), 1.0),
    lambda x: float(x[0]),
    lambda x: int(x[0]),
    lambda x: complex(x[0]),
    lambda x: math.sin(x[0]),
    lambda x: math.floor(x[0]),
    lambda x: math.fsum(x),
    lambda x: pow(2.0, float(x[0])),
    lambda x: x[0].item(),
    lambda x: x.item(1),
    lambda x: x.tolist(),
    lambda x: pickle.loads(pickle.dumps(x)),
    lambda x: pickle.loads(pickle.dumps({"state": [x]}, protocol=2))["state"][0],
]  # fmt: skip
MODES = {
    "grad": lambda f, x: gs.grad(f)(x),
    "tape": lambda f, x: taped(f, x, gs.GradientTape()),
    "persistent": lambda f, x: taped(f, x, gs.GradientTape(persistent=True)),
    "jvp": lambda f, x: gs.jvp(f, (x,), (np.ones(3),)),
    "second": lambda f, x: gs.hessian(f)(x),
    "outer": lambda f, x: gs.grad(lambda x: gs.grad(lambda t: t * f(x))(2.0))(x),
}


def taped(f, x, tape):
    x = gs.Tensor(x)
    with tape:
        tape.watch(x)
        f(x)


def differences(f):
    """Of a function of a tensor that nobody follows."""
    value = lambda x: float(f(gs.Tensor(x)))
    return [(value(X + h) - value(X - h)) / 2e-6 for h in 1e-6 * np.eye(3)]


def text_of(fn):
    return inspect.getsource(fn).strip().removeprefix("lambda x: ").removesuffix(",")


@pytest.mark.parametrize("fn", REFUSED, ids=text_of)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_a_followed_value_is_not_made_a_constant(fn, mode):
    """Part of the gradient is there, so nothing would be noticed."""
    with pytest.raises((gs.UnsupportedOperationError, ValueError)) as caught:
        MODES[mode](lambda x: np.sum(fn(np.abs(x))) + np.sum(x), X)
    error = caught.value
    if type(error) is ValueError:  # NumPy's, when it sets an element
        error = error.__cause__
    assert isinstance(error, gs.UnsupportedOperationError)
    assert "gs.stop_gradient" in str(error)


@pytest.mark.parametrize("fn", REFUSED, ids=text_of)
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_what_nobody_follows_is_converted(fn):
    """Not watched, or watched by a tape that is closed, paused or has forgotten it."""
    x, other = gs.Tensor(X), gs.Tensor(X)
    with gs.GradientTape(persistent=True) as tape, gs.GradientTape():
        tape.watch(x)
        with tape.stop_recording():
            fn(x)
        fn(other)
        fn(gs.stop_gradient(x))
        fn(gs.constant(x))
        y = np.abs(x)
        tape.reset()
        fn(y)
    fn(y)


def test_the_message_names_the_line_the_function_and_the_way_out():
    def total(x):
        a = np.full(3, x[0])
        return np.sum(a) + x[1]

    line = f"{__file__}:{total.__code__.co_firstlineno + 1}"
    with pytest.raises(gs.UnsupportedOperationError) as caught:
        gs.grad(total)(X)
    words = str(caught.value)
    assert f"at {line}: a = np.full(3, x[0])" in words
    assert words.startswith("numpy.full would make a constant of a value")
    for way in ("np.stack([a, b])", "gnp.array", "gs.stop_gradient(x)", "x.numpy()"):
        assert way in words


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: (x[0] if x[0] > 0 else x[1]) * max(x[0], x[1]),
        lambda x: x[0] * bool(x[0]),
        lambda x: x[int(np.argmax(x))] * np.floor(x[2]).item(),
        lambda x: x[np.argmax(x)] * float(np.floor(x[2])),
        lambda x: x[np.array([np.argmin(x), np.argmax(x)])][1] * range(9)[np.argmax(x)],
        lambda x: sorted(x, reverse=True)[0] * len(f"{x[0]:.3f}"),
        lambda x: x[0] * (5.0 not in x) * np.asarray(x > 0.5).sum(),
        lambda x: x[0] * np.array([x.size, x.ndim, len(x)]).sum(),
    ],
    ids=text_of,
)
def test_control_flow_and_text_may_look_at_values(fn, capsys):
    """Comparisons, conditions, positions and printing; their derivative is zero."""

    def f(x):
        print(x, f"{x!r} {x!s} {x[0]:.3f}")  # noqa: T201 (it must work)
        return fn(x)

    np.testing.assert_allclose(gs.grad(f)(X), differences(f), rtol=1e-7)
    assert "Tensor([0.3, 0.7, 1.9]) 0.300" in capsys.readouterr().out
    for mode in MODES.values():
        mode(f, X)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.numpy()[1],
        lambda x: float(gs.stop_gradient(x[1])),
        lambda x: np.full(x.shape, gs.stop_gradient(x[1]))[0],
        lambda x: gs.constant(x)[1],
    ],
    ids=text_of,
)
def test_a_constant_that_is_meant_is_one(fn):
    np.testing.assert_allclose(gs.grad(lambda x: x[0] * fn(x))(X), [X[1], 0, 0])
    np.testing.assert_array_equal(gs.grad(lambda x: fn(x) * 2.0)(X), np.zeros(3))


def test_comparing_in_a_test_is_no_conversion():
    def f(x):
        np.testing.assert_allclose(x * 2, 2 * X)
        return np.sum(x * x)

    np.testing.assert_allclose(gs.grad(f)(X), 2 * X)


def test_after_the_tape_all_is_as_ever():
    x = gs.Variable(X)
    with gs.GradientTape(persistent=True) as tape:
        loss = np.sum(x * x)
    float(loss), np.asarray(loss), math.sqrt(loss), np.array([loss, loss])
    dx = tape.gradient(loss, x)
    np.testing.assert_allclose(np.asarray(dx), 2 * X)
    value, dx = gs.value_and_grad(lambda x: np.sum(x * x))(X)
    assert float(value) == np.sum(X * X)


def test_a_variable_is_followed_from_its_first_reading():
    w = gs.Variable(2.0)
    with gs.GradientTape(), pytest.raises(gs.UnsupportedOperationError):
        float(w)
    with gs.GradientTape(watch_accessed_variables=False):
        assert float(w) == 2.0
    with gs.GradientTape():
        assert w.numpy() == 2.0
        assert float(gs.Variable(2.0, trainable=False)) == 2.0
        assert int(gs.Variable(2)) == 2


def test_only_the_outer_tape_follows():
    """The inner one is there; who follows the value is asked, not who records."""

    def f(x):
        inner = gs.grad(lambda t: t * t * float(gs.stop_gradient(x[0])))
        return np.sum(x * inner(3.0))

    np.testing.assert_allclose(gs.grad(f)(X), 6 * X[0] * np.ones(3))
    with pytest.raises(gs.UnsupportedOperationError, match=r"float\(x\)"):
        gs.grad(lambda x: gs.grad(lambda t: t * t * float(x[0]))(3.0) + x[1])(X)


def test_a_body_that_leaves_the_engine_has_its_own_rule():
    """By whatever it does, also where NumPy puts its own error in front of ours."""

    def filled(x):
        a = np.zeros(3)
        for i in range(3):
            a[i] = x[i]
        return a

    for plain in (filled, np.asarray, lambda x: np.array([x[0], x[1], x[2]])):

        @gs.custom_gradient
        def square(x, plain=plain):
            a = plain(x)
            return a * a, lambda dy: 2 * a * dy

        for persistent in (False, True):
            x = gs.Tensor(X)
            with gs.GradientTape(persistent=persistent) as tape:
                tape.watch(x)
                y = np.sum(square(x) * x)
            np.testing.assert_allclose(tape.gradient(y, x), 3 * X**2)
        with pytest.raises(gs.UnsupportedOperationError, match="rule form"):
            gs.hessian(lambda x: np.sum(square(x)))(X)


def test_hips_tutorial_rule_has_a_right_second_derivative_or_none():
    @gs.custom_gradient
    def logsumexp(x):
        largest = np.max(x)
        y = largest + np.log(np.sum(np.exp(x - largest)))

        def grad(dy):
            return np.full(x.shape, dy) * np.exp(x - np.full(x.shape, y))

        return y, grad

    p = np.exp(X) / np.sum(np.exp(X))
    np.testing.assert_allclose(gs.grad(logsumexp)(X), p)
    for again in (gs.hessian(logsumexp), gs.jacrev(gs.grad(logsumexp))):
        with pytest.raises(gs.UnsupportedOperationError, match=r"numpy\.full"):
            again(X)


def test_a_tensor_of_a_followed_tensor_is_followed():
    def f(x):
        return np.sum(gs.Tensor([x[0] * 2, gs.Tensor(x)[1], 5.0]) * x)

    np.testing.assert_allclose(gs.grad(f)(X), [4 * X[0], 2 * X[1], 5.0])


@pytest.mark.parametrize("operator", [np.add, np.multiply, np.power, np.matmul, np.dot])
def test_a_list_beside_a_tensor_is_an_array(operator):
    def f(x):
        return np.sum(operator(x, [x[0], x[1] * 2, 3.0]))

    np.testing.assert_allclose(gs.grad(f)(X), differences(f), rtol=1e-7)


def test_a_number_that_is_no_whole_one_is_no_index():
    """As for NumPy's own: bytes(x) and range(x) ask for an index."""
    with pytest.raises(TypeError, match="integer"):
        operator_index(gs.Tensor(0.5))
    assert operator_index(gs.Tensor(3)) == 3


def test_a_ufunc_that_somebody_made_is_named_as_theirs():
    made = np.frompyfunc(abs, 1, 1)
    with pytest.raises(gs.UnsupportedOperationError, match=r"^abs") as error:
        gs.grad(lambda x: np.sum(made(x)))(X)
    assert "scipy" not in str(error.value)
