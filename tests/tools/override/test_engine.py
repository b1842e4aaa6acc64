import threading

import numpy as np
import pytest

import gradsmith as gs
import gradsmith.numpy as gnp

from .rules import tenfold

X = np.array([-1.0, 2.0])


def model(x):
    return np.sum(np.tanh(x))


def plain():
    return 1 / np.cosh(X) ** 2


def test_a_function_of_numpy_is_changed_in_the_scope_alone():
    with gs.override({np.tanh: tenfold}) as record:
        assert gs.grad(model)(X).tolist() == [10, 10]
    np.testing.assert_allclose(gs.grad(model)(X), plain())
    (change,) = record.changes
    assert (change.target, change.times) == ("np.tanh", 1)
    assert change.place.file == __file__
    assert change.place.source == "return np.sum(np.tanh(x))"


def test_a_changed_function_is_called_like_the_function():
    changed = gs.override(model, {np.tanh: tenfold})
    assert gs.grad(changed)(X).tolist() == [10, 10]
    assert gs.grad(changed)(X).tolist() == [10, 10]
    assert changed.record.count() == 2
    np.testing.assert_allclose(gs.grad(model)(X), plain())


def test_operators_are_calls_too():
    rule = lambda dy, y, a, b: (dy, 10 * dy)
    with gs.override({np.multiply: rule}) as record:
        assert gs.grad(lambda x: np.sum(x * x))(X).tolist() == [11, 11]
        assert gs.grad(lambda x: np.sum(np.multiply(x, x)))(X).tolist() == [11, 11]
        # Of a number there is no gradient; the rule may give one all the same.
        assert gs.grad(lambda x: np.sum(1.0 * x))(X).tolist() == [10, 10]
        assert gs.grad(lambda x: np.sum(x * 1))(X).tolist() == [1, 1]
    assert record.count() == 4


def test_methods_are_calls_too():
    with gs.override({np.sum: lambda dy, y, x: np.zeros_like(x) + 7}):
        assert gs.grad(lambda x: x.sum())(X).tolist() == [7, 7]


@gs.custom_gradient
def leaky(x):
    return gnp.where(x > 0, x, 0.5 * x), lambda dy: gnp.where(x > 0, dy, 0.5 * dy)


def test_an_operation_replaces_value_and_gradient():
    with gs.override({np.tanh: leaky}):
        value, gradient = gs.value_and_grad(model)(X)
    assert value == 1.5
    assert gradient.tolist() == [0.5, 1]


def test_an_operation_of_ours_is_a_target():
    with gs.override({leaky: tenfold}) as record:
        assert gs.grad(lambda x: np.sum(leaky(x)))(X).tolist() == [10, 10]
    assert record.count("leaky") == 1


def test_a_python_function_is_a_target_whoever_holds_it():
    def square(x):
        return x * x

    table = {"held": square}
    with gs.override({square: tenfold}):
        assert gs.grad(lambda x: np.sum(table["held"](x=x)))(X).tolist() == [10, 10]
    assert gs.grad(lambda x: np.sum(square(x)))(X).tolist() == [-2, 4]


def test_a_function_keeps_what_it_captured_and_its_defaults():
    power = 3

    def cube(x, *, shift=1.0):
        return x**power + shift

    with gs.override({cube: tenfold}):
        assert cube(2.0) == 9  # no array: left as it is
        value, gradient = gs.value_and_grad(lambda x: np.sum(cube(x)))(X)
    assert (value, gradient.tolist()) == (9, [10, 10])
    assert cube(2.0) == 9


def test_all_is_restored_after_an_exception():
    def fails(x):
        raise ValueError("mine")

    code = fails.__code__
    with pytest.raises(ValueError, match="mine"), gs.override({fails: tenfold}):
        fails(gs.Tensor(X))
    assert fails.__code__ is code
    with pytest.raises(ValueError, match="mine"), gs.override({np.tanh: tenfold}):
        raise ValueError("mine")  # and not that the target was never called
    np.testing.assert_allclose(gs.grad(model)(X), plain())


def test_the_innermost_override_holds():
    outer, inner = gs.override({np.tanh: tenfold}), {np.tanh: lambda dy, y, x: 3 * dy}
    with outer as record:
        with gs.override(inner):
            assert gs.grad(model)(X).tolist() == [3, 3]
        assert gs.grad(model)(X).tolist() == [10, 10]
    assert record.count() == 1


def test_other_threads_go_on_as_ever():
    found = []
    with gs.override({np.tanh: tenfold, leaky: tenfold}):
        thread = threading.Thread(target=lambda: found.append(gs.grad(model)(X)))
        thread.start()
        thread.join()
        gs.grad(lambda x: model(x) + np.sum(leaky(x)))(X)
    np.testing.assert_allclose(found[0], plain())


def test_the_rule_and_the_replacement_are_not_changed_themselves():
    rule = lambda dy, y, x: dy * gs.grad(model)(X)
    with gs.override({np.tanh: rule}) as record:
        np.testing.assert_allclose(gs.grad(model)(X), plain())
    assert record.count() == 1

    @gs.custom_gradient
    def own(x):
        return np.tanh(x), lambda dy: 10 * dy

    with gs.override({np.tanh: own}) as record:
        assert gs.grad(model)(X).tolist() == [10, 10]
    assert record.count() == 1


def test_a_second_derivative_is_that_of_the_rule():
    cubic = lambda dy, y, x: dy * x**2
    with gs.override({np.tanh: cubic}):
        second = gs.grad(gs.grad(np.tanh))(3.0)
    assert second == 6


def test_forward_mode_is_refused_unless_the_rule_is_linear():
    refused = pytest.raises(gs.NotDifferentiableError, match="linear")
    with gs.override({np.tanh: tenfold}), refused:
        gs.jvp(np.tanh, (X,), (X,))
    with gs.override({np.tanh: tenfold}, linear=True):
        assert gs.jvp(np.tanh, (X,), (X,))[1].tolist() == [-10, 20]


def test_arguments_that_matter_must_be_taken():
    total = lambda x: np.sum(np.sum(x, axis=1))
    x = np.ones((2, 3))
    with pytest.raises(gs.GradsmithError, match=r"axis=1.*no parameter"):
        gs.grad(gs.override(total, {np.sum: lambda dy, y, x: dy}))(x)
    taken = {np.sum: lambda dy, y, x, axis=None: np.zeros_like(x) + (axis or 0)}
    assert gs.grad(gs.override(total, taken))(x).tolist() == [[1] * 3] * 2


def test_inside_of_a_rule_nothing_is_changed_and_the_record_says_so():
    def act(x):
        return np.tanh(x)

    @gs.custom_gradient
    def ruled(x):
        return act(x), lambda dy: 5 * dy

    with gs.override({act: tenfold}) as record:
        gradient = gs.grad(lambda x: np.sum(ruled(x) + act(x)))(X)
    assert gradient.tolist() == [15, 15]
    assert record.count() == 1
    assert "act inside ruled was left alone" in str(record)


class Scaled:
    def __init__(self, k):
        self.k = k

    def act(self, x):
        return self.k * x


def power(n, x):
    return x**n


def joined(xs, axis=0):
    return np.concatenate(xs, axis)


ARGUMENTS = {
    "method": (Scaled.act, lambda dy, y, self, x: self.k * dy, Scaled(7).act),
    "number first": (power, lambda dy, y, n, x: 7 * n * dy, lambda x: power(1, x)),
    "one for each": (
        power,
        lambda dy, y, n, x: (None, 7 * n * dy),
        lambda x: power(1, x),
    ),
    "by name": (power, lambda dy, y, n, x: 7 * n * dy, lambda x: power(x=x, n=1)),
    "another order": (power, lambda dy, y, x, n: 7 * n * dy, lambda x: power(1, x)),
    "by keyword": (power, lambda dy, y, x, *, n: 7 * n * dy, lambda x: power(1, x)),
    "any name": (power, lambda dy, y, x, **k: 7 * k["n"] * dy, lambda x: power(1, x)),
    "all that comes": (power, lambda dy, y, *args: 7 * dy, lambda x: power(1, x)),
    "a tuple": (
        joined,
        lambda dy, y, axis, xs: (7 * dy[:2], dy[2:]),
        lambda x: joined((x, np.ones(2)), axis=0),
    ),
}


@pytest.mark.parametrize(("fn", "rule", "call"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_a_rule_is_given_the_arguments_in_their_places(fn, rule, call):
    changed = gs.override(lambda x: np.sum(call(x)), {fn: rule})
    assert gs.grad(changed)(np.ones(2)).tolist() == [7, 7]
