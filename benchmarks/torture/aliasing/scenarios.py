"""Scenarios in every framework and mode, as a table of functions of the mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gradsmith as gs
import gradsmith.numpy as gnp

from ..modes import Mode, numpy

SCENARIOS: dict[str, Callable[[Mode], None]] = {}
MUTABLE = ("numpy", "numpy tape", "torch", "torch compile")  # arrays that can change
X = np.array([0.5, -1.25, 2.0])
DY = np.array([1.0, 2.0, -3.0])


def applies(title: str, mode: str) -> bool:
    """Whether something can be changed there, between forward and backward."""
    if mode == "mlx" and title in (
        "static list changed",
        "captured numpy array changed",
    ):
        return False
    return mode in MUTABLE or "can_change" not in SCENARIOS[title].__code__.co_names


def scenario(run: Callable[[Mode], None]) -> Callable[[Mode], None]:
    SCENARIOS[run.__name__.replace("_", " ")] = run
    return run


def same(got: Any, expected: Any, what: str) -> None:
    got = numpy(got)
    if not np.allclose(got, expected, rtol=1e-5):
        raise AssertionError(f"{what} is {got}, expected {np.asarray(expected)}")


def gradient(
    mode: Mode, fun: Any, expected: Any, *xs: Any, between: Any = None
) -> None:
    """The gradient of the first argument, after something else happened in between."""
    y, pull = mode.vjp(fun, *xs)
    if between:
        between(y)
    same(pull(mode.array(DY))[0], expected, "the gradient")


def square() -> Any:
    @gs.custom_gradient
    def square(x: Any) -> Any:
        return x * x, lambda dy: 2 * x * dy

    return square


def square_by_rule() -> Any:
    op = gs.operation(lambda x: x * x)
    op.vjp(lambda dy, y, x: 2 * x * dy)
    return op


def exponential() -> Any:
    op = gs.operation(lambda x: gnp.exp(x))
    op.vjp(lambda dy, y, x: y * dy)
    return op


def square_in_python() -> Any:
    op = gs.python_op(lambda x: x * x)
    op.vjp(lambda dy, y, x: 2 * x * dy)
    return op


def can_change(mode: Mode) -> Any:
    assert mode.change is not None, f"arrays of {mode.framework} can't be changed"
    return mode.change


def _input_changed(op: Callable[[], Any], mode: Mode, slope: Any, change: Any) -> None:
    x = mode.array(X)
    gradient(mode, op(), slope * DY, x, between=lambda y: change(x))


@scenario
def input_changed_closure(mode: Mode) -> None:
    _input_changed(square, mode, 2 * X, can_change(mode))


@scenario
def input_changed_rule(mode: Mode) -> None:
    _input_changed(square_by_rule, mode, 2 * X, can_change(mode))


@scenario
def input_changed_python_op(mode: Mode) -> None:
    _input_changed(square_in_python, mode, 2 * X, can_change(mode))


@scenario
def input_changed_saved_output(mode: Mode) -> None:
    _input_changed(exponential, mode, np.exp(X), can_change(mode))


@scenario
def output_changed_that_the_rule_uses(mode: Mode) -> None:
    change = can_change(mode)
    gradient(mode, exponential(), np.exp(X) * DY, mode.array(X), between=change)


@scenario
def output_changed_of_a_python_op(mode: Mode) -> None:
    change, op = can_change(mode), gs.python_op(lambda x: np.exp(x))
    op.vjp(lambda dy, y, x: y * dy)
    gradient(mode, op, np.exp(X) * DY, mode.array(X), between=change)


@scenario
def captured_numpy_array_changed(mode: Mode) -> None:
    weights = np.array([1.0, 2.0, 3.0], np.float32 if mode.name == "mlx" else float)

    @gs.custom_gradient
    def scaled(x: Any) -> Any:
        w = weights * 1.0
        return x * mode.array(w), lambda dy: dy * mode.array(w)

    gradient(
        mode, scaled, [1.0, 4.0, -9.0], mode.array(X), between=lambda y: weights.fill(0)
    )


@scenario
def captured_array_of_the_framework_changed(mode: Mode) -> None:
    change, weights = can_change(mode), mode.array([1.0, 2.0, 3.0])

    @gs.custom_gradient
    def scaled(x: Any) -> Any:
        return x * weights, lambda dy: dy * weights

    between = lambda y: change(weights)
    gradient(mode, scaled, [1.0, 4.0, -9.0], mode.array(X), between=between)


@scenario
def closure_state_changed_by_a_second_call(mode: Mode) -> None:
    op = square()
    x, other = mode.array(X), mode.array(X + 10)
    first = mode.vjp(op, x)
    mode.vjp(op, other)
    same(first[1](mode.array(DY))[0], 2 * X * DY, "the gradient")


@scenario
def upstream_changed_by_the_rule(mode: Mode) -> None:
    """The same upstream gradient goes to two operations."""

    @gs.custom_gradient
    def square(x: Any) -> Any:
        def grad(dy: Any) -> Any:
            dy *= 2 * x
            return dy

        return x * x, grad

    def twice(x: Any) -> Any:
        return square(x) + square(x * 1.0)

    gradient(mode, twice, 4 * X * DY, mode.array(X))


@scenario
def upstream_of_the_caller_changed_by_the_rule(mode: Mode) -> None:
    @gs.custom_gradient
    def square(x: Any) -> Any:
        def grad(dy: Any) -> Any:
            dy *= 2 * x
            return dy

        return x * x, grad

    dy = mode.array(DY)
    _, pull = mode.vjp(square, mode.array(X))
    same(pull(dy)[0], 2 * X * DY, "the gradient")
    same(dy, DY, "the caller's upstream gradient")


@scenario
def upstream_is_returned_as_the_gradient_of_two(mode: Mode) -> None:
    @gs.custom_gradient
    def added(a: Any, b: Any) -> Any:
        return a + b, lambda dy: (dy, dy)

    x = mode.array(X)
    _, pull = mode.vjp(lambda a, b: added(a * 2.0, b) * 1.0, x, mode.array(X))
    da, db = pull(mode.array(DY))
    same(da, 2 * DY, "the first gradient")
    same(db, DY, "the second gradient")


@scenario
def same_array_twice(mode: Mode) -> None:
    @gs.custom_gradient
    def product(a: Any, b: Any) -> Any:
        return a * b, lambda dy: (dy * b, dy * a)

    gradient(mode, lambda x: product(x, x), 2 * X * DY, mode.array(X))


@scenario
def same_array_twice_in_a_tree(mode: Mode) -> None:
    @gs.custom_gradient
    def product(xs: Any) -> Any:
        a, b = xs["a"], xs["b"][0]
        return a * b, lambda dy: {"a": dy * b, "b": [dy * a]}

    gradient(mode, lambda x: product({"a": x, "b": [x]}), 2 * X * DY, mode.array(X))


@scenario
def rule_returns_the_argument_itself(mode: Mode) -> None:
    @gs.custom_gradient
    def half_square(x: Any) -> Any:
        return gnp.sum(x * x) / 2, lambda dy: x

    def twice(x: Any) -> Any:
        return half_square(x) + half_square(x)

    y, pull = mode.vjp(twice, mode.array(X))
    one = mode.array(np.array(1.0))
    same(y, np.sum(X * X), "the value")
    same(pull(one)[0], 2 * X, "the gradient")
    same(pull(one)[0], 2 * X, "the gradient, again")


@scenario
def rule_reuses_one_buffer(mode: Mode) -> None:
    """Of a python_op: its rule returns the same NumPy array every time."""
    buffer = np.empty(3, np.float32 if mode.name == "mlx" else float)
    op = gs.python_op(lambda x: x * x)
    op.vjp(lambda dy, y, x: np.multiply(2 * x, dy, out=buffer))
    twice = lambda x: op(x) + op(3.0 * x)
    gradient(mode, twice, 20 * X * DY, mode.array(X))


@scenario
def body_reuses_one_buffer(mode: Mode) -> None:
    buffer = np.empty(3, np.float32 if mode.name == "mlx" else float)
    op = gs.python_op(lambda x: np.multiply(x, x, out=buffer))
    op.vjp(lambda dy, y, x: 2 * x * dy)
    y, pull = mode.vjp(lambda x: op(x) * op(2.0 * x), mode.array(X))
    same(y, 4 * X**4, "the value")
    same(pull(mode.array(DY))[0], 16 * X**3 * DY, "the gradient")


@scenario
def body_reuses_one_buffer_between_calls(mode: Mode) -> None:
    buffer = np.empty(3, np.float32 if mode.name == "mlx" else float)
    op = gs.python_op(lambda x: np.multiply(x, x, out=buffer))
    op.vjp(lambda dy, y, x: 2 * x * dy)
    first, _ = mode.vjp(op, mode.array(X))
    mode.vjp(op, mode.array(X + 1))
    same(first, X * X, "the value of the first call")


@scenario
def body_of_python_op_keeps_its_argument(mode: Mode) -> None:
    kept: list[Any] = []
    op = gs.python_op(lambda x: (kept.append(x), x * x)[1])
    op.vjp(lambda dy, y, x: 2 * x * dy)

    def between(y: Any) -> None:
        for x in kept:
            if isinstance(x, np.ndarray) and x.flags.writeable:
                x[...] = 7.0

    gradient(mode, op, 2 * X * DY, mode.array(X), between=between)


@scenario
def body_changes_its_argument(mode: Mode) -> None:
    @gs.custom_gradient
    def doubled(x: Any) -> Any:
        x *= 2.0
        return x, lambda dy: 2 * dy

    x = mode.array(X)
    y, pull = mode.vjp(doubled, x)
    same(y, 2 * X, "the value")
    same(pull(mode.array(DY))[0], 2 * DY, "the gradient")


@scenario
def body_of_python_op_changes_its_argument(mode: Mode) -> None:
    def doubled(x: Any) -> Any:
        x *= 2.0
        return x

    op = gs.python_op(doubled)
    op.vjp(lambda dy, y, x: 2 * dy)
    x = mode.array(X)
    y, pull = mode.vjp(op, x)
    same(y, 2 * X, "the value")
    same(x, X, "the caller's array")
    same(pull(mode.array(DY))[0], 2 * DY, "the gradient")


@scenario
def body_returns_its_argument(mode: Mode) -> None:
    @gs.custom_gradient
    def reverse(x: Any) -> Any:
        return x, lambda dy: -dy

    x = mode.array(X)
    y, pull = mode.vjp(lambda x: reverse(x) * x, x)
    same(y, X * X, "the value")
    same(pull(mode.array(DY))[0], (X - X) * DY, "the gradient")


@scenario
def argument_returned_and_then_changed(mode: Mode) -> None:
    change = can_change(mode)

    @gs.custom_gradient
    def reverse(x: Any) -> Any:
        return x, lambda dy: -dy

    x = mode.array(X)
    y, pull = mode.vjp(reverse, x)
    change(y)
    same(pull(mode.array(DY))[0], -DY, "the gradient")


@scenario
def outputs_share_memory(mode: Mode) -> None:
    @gs.custom_gradient
    def both(x: Any) -> Any:
        y = x * x
        return (y, y), lambda da, db: 2 * x * (da + 3 * db)

    def joined(x: Any) -> Any:
        a, b = both(x)
        return a + b * 2.0

    gradient(mode, joined, 14 * X * DY, mode.array(X))


@scenario
def output_is_a_view_of_the_argument(mode: Mode) -> None:
    @gs.custom_gradient
    def first(x: Any) -> Any:
        return x[:2], lambda dy: gnp.concatenate([dy, 0 * dy[:1]])

    x = mode.array(X)
    y, pull = mode.vjp(lambda x: first(x) * first(x), x)
    same(y, X[:2] ** 2, "the value")
    same(pull(mode.array(DY[:2]))[0], [*(2 * X * DY)[:2], 0], "the gradient")


@scenario
def gradient_changed_by_the_caller(mode: Mode) -> None:
    change = can_change(mode)
    _, pull = mode.vjp(square(), mode.array(X))
    dy = mode.array(DY)
    first = pull(dy)[0]
    change(first)
    same(pull(dy)[0], 2 * X * DY, "the second gradient")
    same(dy, DY, "the caller's upstream gradient")


@scenario
def identity_gradient_changed_by_the_caller(mode: Mode) -> None:
    change = can_change(mode)

    @gs.custom_gradient
    def through(x: Any) -> Any:
        return x * 1.0, lambda dy: dy

    dy = mode.array(DY)
    _, pull = mode.vjp(through, mode.array(X))
    change(pull(dy)[0])
    same(pull(mode.array(DY))[0], DY, "the second gradient")


@scenario
def static_list_changed(mode: Mode) -> None:
    factors = [2.0]

    @gs.custom_gradient
    def scaled(x: Any, factors: Any) -> Any:
        factor = factors[0]
        return x * factor, lambda dy: (dy * factor, None)

    fun = lambda x: scaled(x, factors)
    between = lambda y: factors.__setitem__(0, 9.0)
    gradient(mode, fun, 2 * DY, mode.array(X), between=between)


@scenario
def rule_changes_the_saved_output(mode: Mode) -> None:
    """Asked twice: the second gradient must not see what the first one wrote."""
    op = gs.operation(lambda x: gnp.exp(x))

    @op.vjp
    def _(dy: Any, y: Any, x: Any) -> Any:
        y *= dy
        return y

    value, pull = mode.vjp(op, mode.array(X))
    dy = mode.array(DY)
    same(pull(dy)[0], np.exp(X) * DY, "the gradient")
    same(value, np.exp(X), "the value, after the rule ran")
    same(pull(dy)[0], np.exp(X) * DY, "the second gradient")


@scenario
def checkpointed_input_changed(mode: Mode) -> None:
    change, x = can_change(mode), mode.array(X)
    fun = gs.checkpoint(lambda x: x * x * x)
    gradient(mode, fun, 3 * X**2 * DY, x, between=lambda y: change(x))


@scenario
def not_contiguous(mode: Mode) -> None:
    op = square()
    wide = np.repeat(X, 2)

    def strided(x: Any) -> Any:
        return op(x[::2])

    _, pull = mode.vjp(strided, mode.array(wide))
    same(pull(mode.array(DY))[0][::2], 2 * X * DY, "the gradient")


@scenario
def views_that_overlap(mode: Mode) -> None:
    @gs.custom_gradient
    def product(a: Any, b: Any) -> Any:
        return a * b, lambda dy: (dy * b, dy * a)

    _, pull = mode.vjp(lambda x: product(x[:2], x[1:]), mode.array(X))
    dy = DY[:2]
    expected = np.array([X[1] * dy[0], X[0] * dy[0] + X[2] * dy[1], X[1] * dy[1]])
    same(pull(mode.array(dy))[0], expected, "the gradient")
