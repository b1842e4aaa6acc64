"""What a body captures: tensors and variables that are not its arguments."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import gradsmith as gs
from tests.core.test_higher_order import WORDS, V, X, derivative


def test_captured_tensor_and_variable_get_their_gradient_through_the_body():
    c, v, x = gs.Tensor(2.0), gs.Variable(3.0), gs.Tensor(5.0)

    @gs.custom_gradient
    def op(x):
        return x * c * v, lambda dy: 10 * dy

    for persistent in (False, True):
        with gs.GradientTape(persistent=persistent) as tape:
            tape.watch([c, x])
            y = op(x)
        assert [d.item() for d in tape.gradient(y, [x, c, v])] == [10, 15, 10]


def test_the_rule_form_captures_too():
    c, v, x = gs.Tensor(2.0), gs.Variable(3.0), gs.Tensor(5.0)

    @gs.operation
    def op(x):
        return x * c * v

    @op.vjp
    def _(dy, y, x):
        return 10 * dy

    for persistent in (False, True):
        with gs.GradientTape(persistent=persistent) as tape:
            tape.watch([c, x])
            y = op(x)
        assert [d.item() for d in tape.gradient(y, [x, c, v])] == [10, 15, 10]


# --- higher order, in any mix of modes -----------------------------------------------


def closure_of(c):
    @gs.custom_gradient
    def op(x):
        e = np.exp(x * c)
        return e * c, lambda dy: dy * e * c * c

    return op


def rule_of(c):
    @gs.operation
    def op(x):
        return np.exp(x * c) * c

    @op.vjp
    def _(dy, y, x):
        return dy * y * c

    return op


def jvp_of(c):
    @gs.operation
    def op(x):
        return np.exp(x * c) * c

    @op.jvp
    def _(dx, y, x):
        return dx * y * c

    return op


def nested_in_closure(c):
    inner = closure_of(c)

    @gs.custom_gradient
    def op(x):
        y = inner(x)
        return y, lambda dy: dy * y * c

    return op


def nested_in_rule(c):
    inner = closure_of(c)

    @gs.operation
    def op(x):
        return inner(x)

    @op.vjp
    def _(dy, y, x):
        return dy * y * c

    return op


MAKERS = [closure_of, rule_of, jvp_of, nested_in_closure, nested_in_rule]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("followed", ["captured", "both"])
def test_captured_tensor_like_autodiff_to_third_order(make, followed):
    def f(c):
        x = np.sin(c) if followed == "both" else np.sin(X)
        return np.sum(V * make(c)(x) ** 2)

    def g(c):
        x = np.sin(c) if followed == "both" else np.sin(X)
        return np.sum(V * (np.exp(x * c) * c) ** 2)

    for word in WORDS:
        np.testing.assert_allclose(
            derivative(f, word)(X),
            derivative(g, word)(X),
            rtol=1e-10,
            atol=1e-10,
            err_msg=word,
        )


def tape_slope(f, v, dv, **options):
    def slope():
        with gs.GradientTape(**options) as tape:
            y = f()
        return np.sum(tape.gradient(y, v) * dv)

    return slope


def forward_slope(f, v, dv):
    def slope():
        with gs.ForwardAccumulator(v, dv) as accumulator:
            y = f()
        return accumulator.jvp(y)

    return slope


VARIABLE_MODES = {
    "R": tape_slope,
    "F": forward_slope,
    "P": lambda f, v, dv: tape_slope(f, v, dv, persistent=True),
}


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("order", [1, 2, 3])
def test_captured_variable_like_autodiff(make, order):
    v = gs.Variable(X)

    def f():
        return np.sum(V * make(v)(np.sin(X) + np.cos(v)) ** 2)

    def g():
        x = np.sin(X) + np.cos(v)
        return np.sum(V * (np.exp(x * v) * v) ** 2)

    for word in product("RFP", repeat=order):
        custom, plain = f, g
        for letter in word:
            custom = VARIABLE_MODES[letter](custom, v, V)
            plain = VARIABLE_MODES[letter](plain, v, V)
        np.testing.assert_allclose(
            custom().numpy(), plain().numpy(), rtol=1e-10, err_msg="".join(word)
        )


def test_a_variable_read_by_its_value_is_captured_once():
    v = gs.Variable(3.0)

    @gs.custom_gradient
    def op(x):
        return x * v.read_value() ** 2, lambda dy: dy * 0

    x = gs.Tensor(5.0)
    for slope in VARIABLE_MODES.values():
        assert slope(lambda: op(x), v, 1.0)().item() == 30
        assert slope(slope(lambda: op(x), v, 1.0), v, 1.0)().item() == 10


def test_an_argument_that_is_captured_as_well():
    x = gs.Tensor(3.0)

    @gs.custom_gradient
    def op(a):
        return a * x, lambda dy: 100 * dy

    for persistent in (False, True):
        with gs.GradientTape(persistent=persistent) as tape:
            tape.watch(x)
            y = op(x)
        assert tape.gradient(y, x).item() == 103


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("kind", [gs.Tensor, gs.Variable])
def test_what_is_captured_may_be_the_output_itself(kind, persistent):
    c, x = kind(3.0), gs.Tensor(2.0)

    @gs.custom_gradient
    def op(x):
        return c, lambda dy: 10 * dy

    with gs.GradientTape(persistent=persistent) as tape:
        tape.watch([c, x])
        y = op(x)
        z = y * 1
    assert y is not c
    assert [d.item() for d in tape.gradient(z, [x, c])] == [10, 1]


def test_one_of_several_outputs_depends_on_what_is_captured():
    c, x = gs.Tensor(3.0), gs.Tensor(2.0)

    @gs.custom_gradient
    def op(x):
        return x**2, c * x, lambda dy, dz: 2 * x * dy + 1000 * dz

    for word, expected in {"y": [4, None], "z": [1000, 2]}.items():
        with gs.GradientTape() as tape:
            tape.watch([c, x])
            outputs = dict(zip("yz", op(x), strict=True))
        found = tape.gradient(outputs[word], [x, c])
        assert [d if d is None else d.item() for d in found] == expected


def test_nothing_is_followed_that_the_tape_does_not_watch():
    c, v, x = gs.Tensor(2.0), gs.Variable(3.0, trainable=False), gs.Tensor(5.0)

    @gs.custom_gradient
    def op(x):
        return x * c * v, lambda dy: 10 * dy

    with gs.GradientTape() as tape:
        tape.watch(x)
        y = op(x)
    assert tape.watched_variables() == ()
    assert [d and d.item() for d in tape.gradient(y, [x, c, v])] == [10, None, None]


def test_arguments_need_not_be_followed():
    v = gs.Variable([1.0, 2.0])

    @gs.custom_gradient
    def op(x):
        return x * v, lambda dy: dy * 0

    for persistent in (False, True):
        with gs.GradientTape(persistent=persistent) as tape:
            y = op(np.array([3.0, 4.0]))
        assert tape.gradient(y, v).tolist() == [3, 4]


def test_a_method_captures_the_variables_of_its_module():
    class Layer(gs.Module):
        def __init__(self):
            self.w = gs.Variable(3.0)

        @gs.custom_gradient
        def call(self, x):
            return x * self.w, lambda dy: 10 * dy

    layer, x = Layer(), gs.Tensor(5.0)
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = layer(x)
    assert [d.item() for d in tape.gradient(y, [x, layer.w])] == [10, 5]


# --- a rule that speaks for the variables --------------------------------------------


@pytest.fixture
def v():
    return gs.Variable(3.0, name="v")


def gradients(f, sources, **options):
    with gs.GradientTape(**options) as tape:
        tape.watch([s for s in sources if not isinstance(s, gs.Variable)])
        y = f()
    return [d if d is None else d.item() for d in tape.gradient(y, sources)]


def with_variables(answer, seen=None):
    """An operation x -> x * v whose gradient is asked about variables."""

    def make(v):
        @gs.custom_gradient
        def op(x):
            def grad(dy, variables):
                if seen is not None:
                    seen.append(variables)
                return 10 * dy, answer(dy, variables)

            return x * v, grad

        return op

    return make


ANSWERS = {
    "list": lambda dy, variables: [100 * dy],
    "tuple": lambda dy, variables: (100 * dy,),
    "bare": lambda dy, variables: 100 * dy,
    "by name": lambda dy, variables: {"v": 100 * dy},
}


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("answer", ANSWERS)
def test_gradients_of_variables_by_the_rule(v, answer, persistent):
    x, seen = gs.Tensor(5.0), []
    op = with_variables(ANSWERS[answer], seen)(v)
    assert gradients(lambda: op(x), [x, v], persistent=persistent) == [10, 100]
    assert seen == [[v]]


def test_variables_with_words_in_place_of_a_gradient(v):
    x = gs.Tensor(5.0)
    assert gradients(lambda: with_variables(lambda *_: None)(v)(x), [x, v]) == [
        10,
        None,
    ]
    assert gradients(lambda: with_variables(lambda *_: [None])(v)(x), [x, v]) == [
        10,
        None,
    ]
    assert gradients(lambda: with_variables(lambda *_: gs.zero)(v)(x), [v]) == [0]
    op = with_variables(lambda *_: [gs.not_differentiable("it is a table")])(v)
    assert gradients(lambda: op(x), [x]) == [10]
    with pytest.raises(gs.NotDifferentiableError, match="'v': it is a table"):
        gradients(lambda: op(x), [x, v])


def test_several_variables_come_in_the_order_in_which_they_are_read():
    a, b = gs.Variable(1.0, name="a"), gs.Variable(2.0, name="b")

    @gs.custom_gradient
    def op(x):
        def grad(dy, *, variables):
            return dy, [dy * (10 if v is a else 20) for v in variables]

        return x * b * a * b, grad

    x = gs.Tensor(1.0)
    assert gradients(lambda: op(x), [x, a, b]) == [1, 10, 20]


def test_a_variable_that_the_body_reads_as_an_array_is_the_rules_matter(v):
    @gs.custom_gradient
    def op(x):
        w = v.numpy()
        return x * w, lambda dy, variables: (dy * w, [dy * x])

    x = gs.Tensor(5.0)
    assert gradients(lambda: op(x), [x, v]) == [3, 5]


def test_a_captured_tensor_beside_variables_is_found_by_autodiff(v):
    c, x = gs.Tensor(2.0), gs.Tensor(5.0)

    @gs.custom_gradient
    def op(x):
        return x * v * c, lambda dy, variables: (10 * dy, [100 * dy])

    for persistent in (False, True):
        found = gradients(lambda: op(x), [x, v, c], persistent=persistent)
        assert found == [10, 100, 15]


def test_no_variable_was_read():
    @gs.custom_gradient
    def required(x):
        return x * 2, lambda dy, variables: (2 * dy, [])

    @gs.custom_gradient
    def optional(x):
        def grad(dy, variables=None):
            return (2 * dy, []) if variables else 2 * dy

        return x * 2, grad

    assert gs.grad(required)(1.0) == gs.grad(optional)(1.0) == 2


def test_no_argument_is_an_array(v):
    @gs.custom_gradient
    def op(scale):
        return scale * v, lambda dy, variables: (None, [dy * scale])

    assert gradients(lambda: op(4.0), [v]) == [4]


def test_variables_in_a_vjp(v):
    @gs.operation
    def op(x):
        return x * v

    @op.vjp
    def _(dy, y, x, variables):
        return 10 * dy, [100 * dy]

    x = gs.Tensor(5.0)
    for persistent in (False, True):
        assert gradients(lambda: op(x), [x, v], persistent=persistent) == [10, 100]


def variables_like_autodiff(v):
    @gs.custom_gradient
    def op(x):
        e = np.exp(x * v)

        def grad(dy, variables):
            return dy * e * v * v, [dy * (e + x * v * e)]

        return e * v, grad

    return op


@pytest.mark.parametrize("order", [1, 2, 3])
def test_variables_like_autodiff_in_any_mix_of_modes(order):
    v = gs.Variable(X)
    op = variables_like_autodiff(v)

    def f():
        return np.sum(V * op(np.sin(X) + np.cos(v)) ** 2)

    def g():
        x = np.sin(X) + np.cos(v)
        return np.sum(V * (np.exp(x * v) * v) ** 2)

    for word in product("RFP", repeat=order):
        custom, plain = f, g
        for letter in word:
            custom = VARIABLE_MODES[letter](custom, v, V)
            plain = VARIABLE_MODES[letter](plain, v, V)
        np.testing.assert_allclose(
            custom().numpy(), plain().numpy(), rtol=1e-10, err_msg="".join(word)
        )


def test_wrong_answers_about_variables(v):
    x = gs.Tensor(5.0)

    def error(op):
        with pytest.raises(gs.GradientContractError) as info:
            gradients(lambda: op(x), [x, v])
        return str(info.value)

    @gs.custom_gradient
    def only_arguments(x):
        return x * v, lambda dy, variables: dy

    assert "expected: two entries" in error(only_arguments)
    too_many = error(with_variables(lambda dy, _: [dy, dy])(v))
    assert "one for each variable (v)" in too_many
    wrong_shape = error(with_variables(lambda dy, _: [np.ones(3)])(v))
    assert "for 'v' has the wrong shape" in wrong_shape
    assert "there is no argument 'w'" in error(
        with_variables(lambda dy, _: {"w": dy})(v)
    )


def test_variables_of_one_name_are_not_given_by_name():
    a, b, x = gs.Variable(1.0), gs.Variable(2.0), gs.Tensor(5.0)

    @gs.custom_gradient
    def op(x):
        return x * a * b, lambda dy, variables: (dy, {"variable": dy})

    with pytest.raises(gs.GradientContractError, match="two of them have the same"):
        gradients(lambda: op(x), [x, a, b])


def test_an_assignment_after_the_call_does_not_matter():
    v, x = gs.Variable(3.0), gs.Tensor(5.0)

    @gs.custom_gradient
    def op(x):
        return x * v, lambda dy: dy * 3

    for persistent in (False, True):
        v.assign(3.0)
        with gs.GradientTape(persistent=persistent) as tape:
            y = op(x * v)
            v.assign(100.0)
        assert tape.gradient(y, v).item() == 2 * 3 * 5


def test_an_assignment_after_the_call_does_not_matter_to_a_rule():
    v = gs.Variable(3.0)
    op = gs.with_gradient(np.square, lambda dy, y, x: 2 * x * dy)
    for persistent in (False, True):
        v.assign(3.0)
        with gs.GradientTape(persistent=persistent) as tape:
            y = op(v)
            v.assign(100.0)
        assert tape.gradient(y, v).item() == 6


def test_a_jvp_speaks_for_the_arguments_and_the_gradient_for_the_variables(v):
    @gs.custom_gradient
    def op(x):
        return x * v, lambda dy, variables: (10 * dy, [100 * dy])

    op.jvp(lambda dx, y, x: 1000 * dx)
    x = gs.Tensor(5.0)
    with gs.ForwardAccumulator(x, 1.0) as accumulator:
        y = op(x)
    assert accumulator.jvp(y).item() == 1000
    with gs.ForwardAccumulator(v, 1.0) as accumulator:
        y = op(x)
    assert accumulator.jvp(y).item() == 100


@pytest.mark.parametrize("kind", [gs.Tensor, gs.Variable])
def test_an_accumulator_does_not_follow_its_own_tangents(kind):
    """Else d(c * dy) would have a second term: the perturbations would be confused."""
    c, x = kind(3.0), gs.Tensor(1.0)
    op = gs.custom_gradient(lambda x: (x * c * c, lambda dy: dy))
    for square in (op, lambda x: x * c * c):
        with gs.GradientTape(), gs.ForwardAccumulator(c, 1.0) as accumulator:
            dy = accumulator.jvp(square(x))
            z = c * dy
        assert dy.item() == accumulator.jvp(z).item() == 6


def test_a_body_may_differentiate_a_tensor_that_nobody_follows():
    v, x = gs.Variable(3.0), gs.Tensor(np.ones(3))

    @gs.operation
    def op(x):
        z = gs.Tensor(np.ones(3))
        return x + v * gs.grad(lambda z: np.sum(z[:2] ** 2))(z)

    @op.vjp
    def _(dy, y, x):
        return dy

    with gs.GradientTape() as tape:
        tape.watch(x)
        y = op(x)
    dx, dv = tape.gradient(y, [x, v])
    assert dx.numpy().tolist() == [1, 1, 1]
    assert dv.item() == 4
