"""What a body captures gets its gradient through the body, beside the rule."""

from contextvars import ContextVar
from functools import partial

import numpy as np
import pytest
import tensorflow as tf

import gradsmith as gs

WRAPPERS = {"eager": lambda fn: fn, "function": tf.function}
PLACES = ["eager", "function", "inside"]
two, three = tf.constant(2.0), tf.constant(3.0)


def product_closure(w):
    @gs.custom_gradient
    def product(x):
        square = x * x
        return w * square, lambda dy: 20 * w * x * dy  # 2 w x dy would be right

    return product


def product_rule(w):
    @gs.operation
    def product(x):
        return w * x * x

    product.vjp(lambda dy, y, x: 20 * w * x * dy)
    return product


def derivatives(make, w, x, place):
    """y = w x²: dy/dx and dy/dw, and of each its derivatives by x and w."""

    def run(x, w):
        with tf.GradientTape(persistent=True) as outer:
            outer.watch([x, w])
            with tf.GradientTape() as tape:
                tape.watch([x, w])
                y = fn(x)
            dx, dw = tape.gradient(y, [x, w])
        zero = "zero"
        ddx = outer.gradient(dx, [x, w], unconnected_gradients=zero)
        ddw = outer.gradient(dw, [x, w], unconnected_gradients=zero)
        return [dx, dw, *ddx, *ddw]

    if place == "inside":
        fn = make(w)
        return [float(g) for g in tf.function(lambda: run(x, w))()]
    fn = WRAPPERS[place](make(w))
    return [float(g) for g in run(x, w)]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("make", [product_closure, product_rule])
@pytest.mark.parametrize("variable", [False, True])
def test_first_and_second_order(make, variable, place):
    w = tf.Variable(3.0) if variable else tf.constant(3.0)
    # dx = 20 w x, dw = x²; d(dw)/dx goes through the body: 2 x
    assert derivatives(make, w, two, place) == [120, 4, 60, 40, 4, 0]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("make", [product_closure, product_rule])
def test_forward_mode(make, place):
    w = tf.Variable(3.0)
    fn = make(w)

    def run():
        with tf.autodiff.ForwardAccumulator([two, w], [three, three]) as accumulator:
            y = (tf.function(fn) if place == "function" else fn)(two)
        return accumulator.jvp(y)

    found = tf.function(run)() if place == "inside" else run()
    assert float(found) == 120 * 3 + 4 * 3


@pytest.mark.parametrize("place", ["eager", "inside"])
@pytest.mark.parametrize("make", [product_closure, product_rule])
def test_reverse_over_forward(make, place):
    w = tf.Variable(3.0)
    fn = make(w)

    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            with tf.autodiff.ForwardAccumulator([x, w], [three, three]) as accumulator:
                y = fn(x)
            dy = accumulator.jvp(y)
        return tape.gradient(dy, [x, w])

    # dy = (20 w x + x²) · 3
    found = (tf.function(run) if place == "inside" else run)(two)
    assert [float(g) for g in found] == [(60 + 4) * 3, 40 * 3]


@pytest.mark.parametrize("place", ["eager", "function"])
def test_a_jvp_beside_what_is_captured(place):
    w = tf.Variable(3.0)

    @gs.operation
    def product(x):
        return w * x * x

    product.jvp(lambda dx, y, x: 20 * w * x * dx)
    fn = WRAPPERS[place](product)
    with tf.autodiff.ForwardAccumulator([two, w], [three, three]) as accumulator:
        y = fn(two)
    assert float(accumulator.jvp(y)) == 120 * 3 + 4 * 3
    with tf.GradientTape() as tape:
        tape.watch(two)
        y = fn(two)
    assert [float(g) for g in tape.gradient(y, [two, w])] == [120, 4]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("order", [1, 2])
def test_a_rule_that_takes_variables(place, order):
    w = tf.Variable(3.0, name="w")

    @gs.custom_gradient
    def product(x):
        def grad(dy, variables):
            assert [v.name for v in variables] == ["w:0"]
            return 10 * x * dy, [7 * x * dy]

        return x * w, grad

    def run(x):
        with tf.GradientTape(persistent=True) as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = fn(x)
            dx, dw = tape.gradient(y, [x, w])
        if order == 1:
            return dx, dw
        return outer.gradient(dx, x), outer.gradient(dw, x)

    fn = tf.function(product) if place == "function" else product
    found = (tf.function(run) if place == "inside" else run)(two)
    assert [float(g) for g in found] == ([20, 14] if order == 1 else [10, 7])


@pytest.mark.parametrize("place", PLACES)
def test_variables_that_are_optional(place):
    @gs.custom_gradient
    def double(x):
        def grad(dy, variables=None):
            assert variables is None
            return 10 * dy

        return 2 * x, grad

    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = fn(x)
        return tape.gradient(y, x)

    fn = tf.function(double) if place == "function" else double
    assert float((tf.function(run) if place == "inside" else run)(two)) == 10


@pytest.mark.parametrize("place", PLACES)
def test_variables_taken_and_a_tensor_captured(place):
    w, u = tf.Variable(3.0), tf.constant(5.0)

    @gs.custom_gradient
    def product(x):
        return x * w * u, lambda dy, variables: (10 * dy, [7 * dy])

    def run(x):
        with tf.GradientTape() as tape:
            tape.watch([x, u])
            y = fn(x)
        return tape.gradient(y, [x, w, u])

    fn = tf.function(product) if place == "function" else product
    found = (tf.function(run) if place == "inside" else run)(two)
    assert [float(g) for g in found] == [10, 7, 6]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("nested", [False, True])
def test_captured_through_an_object_and_a_helper(place, nested):
    class Holder:
        pass

    holder = Holder()
    holder.parts = {"w": tf.constant(3.0)}
    w = holder.parts["w"]

    def helper(x):
        return holder.parts["w"] * x

    @gs.custom_gradient
    def product(x):
        return helper(x), lambda dy: 10 * dy

    def run(x):
        with tf.GradientTape() as outer:
            if nested:
                outer.watch([x, w])
            with tf.GradientTape() as tape:
                tape.watch([x, w])
                y = fn(x)
            return tape.gradient(y, [x, w])

    fn = tf.function(product) if place == "function" else product
    found = (tf.function(run) if place == "inside" else run)(two)
    assert [float(g) for g in found] == [10, 2]


@pytest.mark.parametrize("place", PLACES)
def test_only_what_is_captured_is_differentiated(place):
    w = tf.Variable([1.0, 2.0, 3.0])

    @gs.operation
    def lookup(index):
        return tf.gather(w, index)

    def run(index):
        with tf.GradientTape() as tape:
            y = fn(index)
        return tf.convert_to_tensor(tape.gradient(y, w))

    fn = tf.function(lookup) if place == "function" else lookup
    found = (tf.function(run) if place == "inside" else run)(tf.constant([2, 2]))
    assert found.numpy().tolist() == [0, 0, 2]


def test_captured_inside_of_a_loop():
    w = tf.Variable(3.0)
    fn = gs.with_gradient(lambda x: w * x * x, lambda dy, y, x: 20 * y / x * dy)

    @tf.function
    def looped(x):
        for _ in tf.range(2):
            x = fn(x)
        return x

    with tf.GradientTape() as tape:
        tape.watch(two)
        y = looped(two)  # y1 = w x² = 12, y2 = w y1²
    dx, dw = tape.gradient(y, [two, w])
    assert float(dx) == (20 * 3 * 12) * (20 * 3 * 2)
    assert float(dw) == 12**2 + (20 * 3 * 12) * 4


def test_a_captured_value_that_the_argument_comes_from():
    w = tf.Variable(3.0)
    fn = product_closure(w)
    for wrapped in (lambda: fn(w * 2), tf.function(lambda: fn(w * 2))):
        with tf.GradientTape() as tape:
            y = wrapped()
        # x = 2 w = 6: by the rule 20 w x · 2, through the body x²
        assert float(tape.gradient(y, w)) == 20 * 3 * 6 * 2 + 36


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("persistent", [False, True])
def test_a_captured_value_that_comes_from_the_argument(place, persistent):
    def outer(x):
        square = x * x

        @gs.custom_gradient
        def product(x):
            return square * x, lambda dy: 10 * dy

        return product(x)

    def run(x):
        with tf.GradientTape(persistent=persistent) as tape:
            tape.watch(x)
            y = fn(x)
        return tape.gradient(y, x)

    fn = tf.function(outer) if place == "function" else outer
    # by the rule 10, and through the body, where the square is captured, x · 2 x
    assert float((tf.function(run) if place == "inside" else run)(two)) == 10 + 8


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("form", ["closure", "rule"])
def test_a_body_that_calls_a_function_with_a_variable(form, place, nested):
    w = tf.Variable(3.0)
    inner = tf.function(lambda x: w * x * x)
    if form == "closure":
        product = gs.custom_gradient(lambda x: (inner(x), lambda dy: 10 * x * dy))
    else:
        product = gs.with_gradient(lambda x: inner(x), lambda dy, y, x: 10 * x * dy)

    def run(x):
        with tf.GradientTape() as outer:
            outer.watch([x, w] if nested else [])
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = fn(x)
            dx, dw = tape.gradient(y, [x, w])
        return [dx, dw, outer.gradient(dw, x)] if nested else [dx, dw]

    fn = tf.function(product) if place == "function" else product
    found = (tf.function(run) if place == "inside" else run)(two)
    assert [float(g) for g in found] == [20, 4, 4][: len(found)]


def test_random_numbers_are_drawn_once():
    drawn = []

    @gs.custom_gradient
    def noisy(x):
        noise = tf.random.normal(())
        drawn.append(noise)
        return x * noise, lambda dy: noise * x * dy

    with tf.GradientTape() as outer:
        outer.watch(two)
        with tf.GradientTape() as tape:
            tape.watch(two)
            y = noisy(two)
        first = tape.gradient(y, two)
    assert len(drawn) == 1
    assert float(first) == pytest.approx(2 * float(drawn[0]))
    assert float(outer.gradient(first, two)) == pytest.approx(float(drawn[0]))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("make", [product_closure, product_rule])
def test_a_variable_that_is_not_trained_but_watched(make, place, nested):
    w = tf.Variable(3.0, trainable=False)

    def run(x):
        with tf.GradientTape() as outer:
            if nested:
                outer.watch([x, w])
            with tf.GradientTape() as tape:
                tape.watch([x, w])
                y = fn(x)
            return tape.gradient(y, [x, w])

    fn = tf.function(make(w)) if place == "function" else make(w)
    found = (tf.function(run) if place == "inside" else run)(two)
    assert [float(g) for g in found] == [120, 4]


@pytest.mark.parametrize("make", [product_closure, product_rule])
def test_compiled_by_xla(make):
    w = tf.Variable(3.0)
    fn = tf.function(make(w), jit_compile=True)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            tape.watch(two)
            y = fn(two)
        dx, dw = tape.gradient(y, [two, w])
    assert (float(dx), float(dw)) == (120, 4)
    assert float(outer.gradient(dx, w)) == 40


def test_tensors_inside_of_an_argument_that_is_no_array():
    class Box:
        def __init__(self, w):
            self.w = w

    @gs.custom_gradient
    def product(x, box):
        return x * box.w, lambda dy: 10 * dy

    w = tf.constant(3.0)
    for persistent in (False, True):
        with tf.GradientTape(persistent=persistent) as tape:
            tape.watch([two, w])
            y = product(two, Box(w))
        assert [float(g) for g in tape.gradient(y, [two, w])] == [10, 2]


hidden = ContextVar("hidden")
outside = tf.constant(3.0)


def in_a_context_variable(x):
    return hidden.get() * x, lambda dy: 10 * x * dy


def in_a_function_inside(x):
    def product():
        return outside * x

    return product(), lambda dy: 10 * x * dy


def in_a_partial(w, x):
    return w * x, lambda dy: 10 * x * dy


BODIES = [in_a_context_variable, in_a_function_inside, partial(in_a_partial, outside)]


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("form", ["closure", "rule"])
def test_captured_tensors_that_are_hard_to_find(form, body):
    hidden.set(outside)
    product = gs.custom_gradient(body)
    if form == "rule":
        product = gs.with_gradient(lambda x: body(x)[0], lambda dy, y, x: 10 * x * dy)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([two, outside])
        y = product(two)
    assert [float(g) for g in tape.gradient(y, [two, outside])] == [20, 2]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("make", [product_closure, product_rule])
def test_mixed_derivatives_by_different_tapes(make, place):
    w = tf.Variable(3.0)

    def run(x):
        with tf.GradientTape(watch_accessed_variables=False) as outer:
            outer.watch(x)
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(w)
                y = fn(x)
            dw = tape.gradient(y, w)
        return outer.gradient(dw, x)

    fn = tf.function(make(w)) if place == "function" else make(w)
    assert float((tf.function(run) if place == "inside" else run)(two)) == 4


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("form", ["variables", "rule"])
def test_a_body_runs_once(form, persistent, place):
    w, count = tf.Variable(3.0), tf.Variable(0, trainable=False)

    def body(x):
        count.assign_add(1)
        return w * x, lambda dy, variables: (10 * dy, [7 * dy])

    product = gs.custom_gradient(body)
    if form == "rule":
        product = gs.with_gradient(lambda x: body(x)[0], lambda dy, y, x: 10 * dy)

    def run(x):
        with tf.GradientTape(persistent=persistent) as tape:
            tape.watch(x)
            y = fn(x)
        return tape.gradient(y, [x, w])

    fn = tf.function(product) if place == "function" else product
    found = (tf.function(run) if place == "inside" else run)(two)
    assert [float(g) for g in found] == [10, 7 if form == "variables" else 2]
    assert int(count) == 1


def plain_body(x):
    e = np.exp(x)
    return e, lambda dy: e * dy


def plain_part(x):
    e = x.numpy()
    return x * x, lambda dy: 2 * e * dy


def plain_number(x):
    e = float(x)
    return x * x, lambda dy: 2 * e * dy


@pytest.mark.parametrize("body", [plain_body, plain_part, plain_number])
def test_a_second_derivative_of_what_became_plain_is_refused(body):
    operation = gs.custom_gradient(body)
    with tf.GradientTape() as outer:
        outer.watch(two)
        with tf.GradientTape() as tape:
            tape.watch(two)
            y = operation(two)
        with pytest.raises(gs.UnsupportedOperationError, match="became plain there"):
            tape.gradient(y, two)
    with tf.GradientTape(persistent=True) as tape:  # and the first is right
        tape.watch(two)
        y = operation(two)
    expected = np.exp(2) if body is plain_body else 4
    assert float(tape.gradient(y, two)) == pytest.approx(expected)


def test_constants_of_a_body_are_no_matter():
    @gs.custom_gradient
    def scaled(x):
        weights, factor = np.asarray([1.0, 2.0], np.float32), 3.0
        return factor * x * weights, lambda dy: 10 * factor * x * weights * dy

    x = tf.constant([1.0, 1.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = scaled(x)
        first = tape.gradient(y, x)
    assert outer.gradient(first, x).numpy() == pytest.approx([30, 60])
