"""ForwardAccumulator: by the jvp, or by the transpose of the gradient."""

import pytest
import tensorflow as tf

import gradsmith as gs

from .cases import canary, canary_rule, cube, jvp, log1pexp, orders, x3

ones3 = tf.ones(3)
two, one = tf.constant(2.0), tf.constant(1.0)
WRAPPERS = {
    "eager": lambda fn: fn,
    "function": tf.function,
    "jit": lambda fn: tf.function(fn, jit_compile=True),
}
PLACES = {  # where the accumulator is
    "outside": lambda fn, wrap: lambda x, dx: jvp(wrap(fn), x, dx),
    "inside": lambda fn, wrap: wrap(lambda x, dx: jvp(fn, x, dx)),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("wrap", WRAPPERS)
@pytest.mark.parametrize("fn", [canary, canary_rule])
def test_the_rule_is_used(fn, wrap, place):
    run = PLACES[place](fn, WRAPPERS[wrap])
    assert run(x3, 2 * ones3).numpy() == pytest.approx([20, 40, 60])


def forward_over_forward(fn, x):
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as outer:
        first = jvp(fn, x, tf.ones_like(x))
    return outer.jvp(first)


def forward_over_reverse(fn, x):
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as outer:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = fn(x)
        first = tape.gradient(y, x)
    return outer.jvp(first)


def reverse_over_forward(fn, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        first = jvp(fn, x, tf.ones_like(x))
    return tape.gradient(first, x)


SECOND = [forward_over_forward, forward_over_reverse, reverse_over_forward]


@pytest.mark.parametrize("second", SECOND)
@pytest.mark.parametrize("fn", [cube.closure, cube.rule, cube.jvp])
def test_second_order(fn, second):
    assert float(second(fn, two)) == 12
    assert float(tf.function(lambda x: second(fn, x))(two)) == 12


@pytest.mark.parametrize("second", SECOND[:2])  # the third is None, of any function
@pytest.mark.parametrize("fn", [cube.closure, cube.rule, cube.jvp])
def test_second_order_around_a_function(fn, second):
    assert float(second(tf.function(fn), two)) == 12


@gs.operation
def exp_rule(x):
    return tf.exp(x)


@exp_rule.vjp
def _(dy, y, x):
    return dy * y


@gs.operation
def exp_jvp(x):
    return tf.exp(x)


@exp_jvp.jvp
def _(dx, y, x):
    return dx * y


@pytest.mark.parametrize("second", SECOND)
@pytest.mark.parametrize("fn", [exp_rule, exp_jvp])
def test_second_order_through_the_result_that_a_rule_reads(fn, second):
    expected = pytest.approx(float(tf.exp(two)))
    assert float(second(fn, two)) == expected
    assert float(tf.function(lambda x: second(fn, x))(two)) == expected


@gs.custom_gradient
def of_an_argument(x):
    return x * x * x, lambda dy: 3 * x * x * dy


@gs.custom_gradient
def of_a_list(x):
    powers = [x, {"square": x * x}]
    return x**3, lambda dy: 3 * powers[1]["square"] * dy


@gs.custom_gradient
def of_a_helper(x):
    def square():
        return x * x

    return x**3, lambda dy: 3 * square() * dy


@gs.custom_gradient
def of_a_tape(x):
    def grad(dy):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x * x
        return tape.gradient(y, x, dy)

    return x**3, grad


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("fn", [of_an_argument, of_a_list, of_a_helper, of_a_tape])
def test_reverse_over_forward_when_the_accumulator_is_gone(fn, dtype):
    x = tf.constant([2.0, 3.0], dtype)
    with tf.GradientTape() as tape:
        tape.watch(x)
        accumulator = tf.autodiff.ForwardAccumulator(x, tf.ones_like(x))
        with accumulator:
            y = fn(x)
        first = accumulator.jvp(y)
        del accumulator
    assert tape.gradient(first, x).numpy().tolist() == [12, 18]


@pytest.mark.parametrize("second", SECOND)
def test_second_order_through_what_the_gradient_captured(second):
    s = 1 / (1 + 2.718281828**-1.0)
    assert float(second(log1pexp, one)) == pytest.approx(s * (1 - s), rel=1e-4)


@gs.operation
def two_rules(x, n):
    return x * x, 3 * x, n


@two_rules.vjp
def _(dy, y, x, n):
    return {"x": 10 * dy[0] + 100 * dy[1]}


@two_rules.jvp
def _(dx, y, x, n):
    return 20 * dx[0], gs.zero, None


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_each_mode_by_its_own_rule(wrap):
    fn = WRAPPERS[wrap](lambda x: two_rules(x, tf.constant(1))[:2])
    for run in (lambda x: jvp(fn, x, ones3), tf.function(lambda x: jvp(fn, x, ones3))):
        a, b = run(x3)
        assert (a.numpy().tolist(), b.numpy().tolist()) == ([20] * 3, [0] * 3)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x3)
        a, b = fn(x3)
    assert tape.gradient(a, x3).numpy() == pytest.approx([10] * 3)
    assert tape.gradient(b, x3).numpy() == pytest.approx([100] * 3)


@gs.custom_gradient(linear=False)
def clipped(x):
    return 2 * x, lambda dy: tf.clip_by_value(2 * dy, -1, 1)


@gs.operation(linear=False)
def clipped_both(x):
    return 2 * x


clipped_both.vjp(lambda dy, y, x: tf.clip_by_value(2 * dy, -1, 1))
clipped_both.jvp(lambda dx, y, x: 20 * dx)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("wrap", WRAPPERS)
def test_what_is_not_linear_has_no_transpose(wrap, place):
    run = PLACES[place](clipped, WRAPPERS[wrap])
    with pytest.raises(gs.NotDifferentiableError, match=r"@clipped\.jvp"):
        run(x3, ones3)
    run = PLACES[place](clipped_both, WRAPPERS[wrap])
    assert run(x3, ones3).numpy() == pytest.approx([20] * 3)


@pytest.mark.parametrize("fn", [clipped, clipped_both])
def test_what_is_not_linear_is_differentiated_twice(fn):
    # z = y² / 8 at x = 0.1: dz/dy = 0.05, dz/dx = 0.1 = x; at x = 10 it is clipped
    def loss(x):
        return fn(x) ** 2 / 8

    for wrapped in (loss, tf.function(loss)):
        for x, expected in [(0.1, 1.0), (10.0, 0.0)]:
            with tf.GradientTape() as outer, tf.GradientTape() as tape:
                point = tf.constant(x)
                outer.watch(point)
                tape.watch(point)
                y = wrapped(point)
                dx = tape.gradient(y, point)
            assert float(outer.gradient(dx, point)) == pytest.approx(expected)


@gs.operation
def no_rule(x):
    return 2 * x


@pytest.mark.parametrize("wrap", ["eager", "function"])
def test_an_operation_without_a_rule(wrap):
    fn = WRAPPERS[wrap](no_rule)
    assert fn(x3).numpy() == pytest.approx([2, 4, 6])
    with pytest.raises(gs.UnsupportedOperationError, match="has no gradient yet"):
        jvp(fn, x3, ones3)
    with tf.GradientTape() as tape:
        tape.watch(x3)
        y = fn(x3) if wrap == "eager" else no_rule(x3)
    with pytest.raises(gs.UnsupportedOperationError, match="has no gradient yet"):
        tape.gradient(y, x3)


def test_a_variable_with_a_tangent():
    v = tf.Variable([1.0, 2.0, 3.0])
    for fn in (canary, lambda v: tf.function(lambda: canary(v))()):
        with tf.autodiff.ForwardAccumulator(v, ones3) as accumulator:
            y = fn(v)
        assert accumulator.jvp(y).numpy() == pytest.approx([10, 20, 30])


def loop(fn, x):
    return tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, fn(y)), (0, x))[1]


@pytest.mark.parametrize("fn", [canary, canary_rule])
def test_an_accumulator_around_a_loop(fn):
    compiled = tf.function(lambda x: loop(fn, x))
    assert float(jvp(compiled, two, one)) == 800


def test_an_accumulator_around_a_loop_inside_of_a_function():
    run = tf.function(lambda x: jvp(lambda x: loop(canary_rule, x), x, one))
    assert float(run(two)) == 800
    run = tf.function(lambda x: jvp(lambda x: loop(canary, x), x, one))
    with pytest.raises(gs.UnsupportedOperationError, match="in rule form"):
        run(two)


def test_a_rule_that_calls_operations():
    @gs.operation
    def sine(x):
        return tf.sin(x)

    @gs.operation
    def cosine(x):
        return tf.cos(x)

    sine.vjp(lambda dy, y, x: dy * cosine(x))
    cosine.vjp(lambda dy, y, x: -dy * sine(x))
    for second in SECOND:
        assert float(second(sine, two)) == pytest.approx(-0.9092974)


def square_gradient(dy, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    return 5 * tape.gradient(y, x, dy)


with_tape = gs.with_gradient(lambda x: x * x, lambda dy, y, x: square_gradient(dy, x))


@gs.custom_gradient
def with_tape_closure(x):
    return x * x, lambda dy: square_gradient(dy, x)


with_tape_jvp = gs.with_gradient(lambda x: x * x, jvp=lambda dx, y, x: 10 * x * dx)


@with_tape_jvp.jvp
def _(dx, y, x):
    one = tf.ones_like(x)
    with tf.GradientTape() as tape:
        tape.watch(one)
        linear = square_gradient(one, x)
    return tape.gradient(linear, one, dx)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("wrap", WRAPPERS)
@pytest.mark.parametrize("fn", [with_tape, with_tape_closure, with_tape_jvp])
def test_rules_that_open_tapes(fn, wrap, place):
    run = PLACES[place](fn, WRAPPERS[wrap])
    assert run(x3, ones3).numpy() == pytest.approx([10, 20, 30])


@pytest.mark.parametrize("second", SECOND)
@pytest.mark.parametrize("fn", [with_tape, with_tape_jvp])
def test_second_order_of_rules_that_open_tapes(fn, second):
    assert float(second(fn, two)) == 10
    assert float(tf.function(lambda x: second(fn, x))(two)) == 10


@pytest.mark.parametrize("second", SECOND[:2])  # the third is None in eager mode
def test_second_order_of_a_closure_that_opens_a_tape(second):
    assert float(second(with_tape_closure, two)) == 10
    assert float(tf.function(lambda x: second(with_tape_closure, x))(two)) == 10


cube_both = gs.with_gradient(
    lambda x: x**3, lambda dy, y, x: 3 * x**2 * dy, jvp=lambda dx, y, x: 3 * x**2 * dx
)


def test_third_order_with_both_rules():
    for fn in (cube_both, tf.function(cube_both)):
        # (x³)² = x⁶, such that the upstream is differentiated too
        found = orders(lambda x, fn=fn: fn(x) ** 2, two, 3)
        assert [float(g) for g in found] == pytest.approx([64, 192, 480, 960])
