"""grad, value_and_grad, vjp, jvp, jacobian, hessian, hvp, stop_gradient."""

from __future__ import annotations

import math
import re
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradsmith as gs
from gradsmith.core.tape import state

X = np.array([0.3, -1.2, 2.0])


@pytest.fixture(autouse=True)
def no_recorder_stays():
    yield
    assert state().recorders == ()


def is_plain(tree):
    return all(
        type(x) in (np.ndarray, np.float64, np.float32, float)
        for x in gs.core.trees.leaves(tree)
    )


def assert_close(found, expected):
    """Two trees of one structure with close leaves."""
    gs.core.trees.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10), expected, found
    )


# --- grad ----------------------------------------------------------------------------


def test_grad_of_one_argument():
    assert_close(gs.grad(lambda x: np.sum(np.sin(x)))(X), np.cos(X))


def test_grad_to_the_third_order():
    third = gs.grad(gs.grad(gs.grad(lambda x: np.sin(x) * x)))
    assert_close(third(0.7), -3 * np.sin(0.7) - 0.7 * np.cos(0.7))


@pytest.mark.parametrize(
    ("argnums", "expected"),
    [(0, 15.0), (2, 6.0), (-1, 6.0), ((0, 2), (15.0, 6.0)), ([-1, 0], (6.0, 15.0))],
)
def test_argnums_choose_the_arguments(argnums, expected):
    assert gs.grad(lambda x, y, z: x * y * z, argnums)(2.0, 3, 5.0) == expected


@pytest.mark.parametrize(
    ("argnums", "words"),
    [
        (2, "2 positional arguments, so there is none with number 2"),
        (-3, "none with number -3"),
        ((0, 0), "names an argument twice"),
        ((0, -2), "names an argument twice"),
        ("x", "argnums must be numbers of arguments, not 'x'"),
        (0.0, "argnums must be numbers of arguments"),
    ],
)
def test_argnums_that_do_not_fit_are_refused(argnums, words):
    with pytest.raises(gs.GradsmithError, match=words):
        gs.grad(lambda x, y: x * y, argnums)(2.0, 3.0)


@pytest.mark.parametrize("transform", [gs.grad, gs.value_and_grad, gs.jacobian])
def test_mistakes_of_beginners_are_told_at_once(transform):
    """Not when what they made is called, perhaps far from here."""
    x = np.ones(3)
    with pytest.raises(gs.GradsmithError, match=r"not an ndarray\n.*\(f\)\(x\) is the"):
        transform(np.sum, x)
    with pytest.raises(gs.GradsmithError, match="takes a function, not a float64"):
        transform(np.sum(x))
    assert transform(np.sum, np.int64(0))


def test_an_argument_by_keyword_is_static():
    assert gs.grad(lambda x, *, power: x**power)(2.0, power=3) == 12.0
    with pytest.raises(gs.GradsmithError, match="0 positional arguments"):
        gs.grad(lambda x: x * x)(x=2.0)


def test_has_aux():
    def fn(x):
        return np.sum(x * x), {"doubled": 2 * x, "note": "text"}

    dx, aux = gs.grad(fn, has_aux=True)(X)
    assert_close(dx, 2 * X)
    assert_close(aux["doubled"], 2 * X)
    assert aux["note"] == "text"
    (value, aux), _ = gs.value_and_grad(fn, has_aux=True)(X)
    assert (value, is_plain(aux["doubled"])) == (np.sum(X * X), True)
    with pytest.raises(gs.GradsmithError, match=r"must return \(value, aux\)"):
        gs.grad(lambda x: x, has_aux=True)(2.0)


def test_value_and_grad():
    value, dx = gs.value_and_grad(lambda x: np.sum(np.exp(x)))(X)
    assert value == np.sum(np.exp(X))
    assert_close(dx, np.exp(X))


def test_a_constant_function_has_gradient_zero():
    assert gs.grad(lambda x: 3.0)(2.0) == 0.0
    assert_close(gs.grad(lambda x: np.float64(3))(X), np.zeros(3))


def test_an_argument_that_is_not_used_has_gradient_zero():
    assert gs.grad(lambda x, y: x * x, (0, 1))(2.0, 3.0) == (4.0, 0.0)


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (lambda x: x, r"returned an array of shape \(3,\)"),
        (lambda x: x[:1], r"returned an array of shape \(1,\)"),
        (lambda x: (x[0], x[1]), "returned a tuple.*has_aux=True"),
        (lambda x: None, "returned a NoneType"),
        (lambda x: np.sum(x) * 1j, "dtype complex128"),
        (lambda x: np.argmax(x), "dtype int64"),
    ],
)
def test_the_gradient_is_that_of_one_real_number(fn, words):
    with pytest.raises(gs.GradsmithError, match=words):
        gs.grad(fn)(X)


@pytest.mark.parametrize("x", [3, [1, 2], np.array([1, 2]), gs.Tensor(3), True, "text"])
def test_whole_numbers_have_no_gradient(x):
    with pytest.raises(gs.GradsmithError, match="only floating and complex arrays"):
        gs.grad(lambda x: np.sum(x))(x)


def test_the_name_of_the_function_is_in_the_message():
    def loss(x):
        return x

    with pytest.raises(gs.GradsmithError, match="loss returned"):
        gs.grad(loss)(X)
    assert gs.grad(loss).__name__ == "loss"


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: math.sqrt(x[0]),
        lambda x: np.sum(np.vectorize(lambda v: v * v)(x)),
        lambda x: np.sum(np.array([x[0] * 2, x[1]])),
        lambda x: np.sum(np.array([x[0], x[1]]) ** 2) + x[0],
    ],
)
@pytest.mark.parametrize(
    "differentiate",
    [
        lambda fn: gs.grad(fn)(X),
        lambda fn: gs.vjp(fn, X),
        lambda fn: gs.jvp(fn, (X,), (X,)),
        lambda fn: gs.jacobian(fn)(X),
    ],
)
def test_a_value_that_left_the_tape_has_no_silent_zero(fn, differentiate):
    line = f"{__file__}:{fn.__code__.co_firstlineno}"
    with pytest.raises(gs.UnsupportedOperationError, match=re.escape(line)):
        differentiate(lambda x: fn(abs(x)))


def test_numbers_for_the_log_leave_the_tape_on_purpose():
    log = []

    def fn(x):
        y = np.sum(x * x)
        log.append(float(y.numpy()))
        log.append(f"{y:.3f}")
        return y

    assert_close(gs.grad(fn)(X), 2 * X)
    assert gs.grad(lambda x: math.floor(gs.stop_gradient(x)) * 1.0)(2.5) == 0.0
    assert gs.grad(lambda x: np.floor(x))(2.5) == 0.0


def test_an_exception_of_the_function_passes_through():
    with pytest.raises(ZeroDivisionError):
        gs.grad(lambda x: gs.grad(lambda y: 1 / 0)(x))(2.0)
    assert state().recorders == ()


# --- what comes in and what comes out ------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_dtype_stays(dtype):
    x = X.astype(dtype)
    fn = lambda x: np.sum(np.tanh(x) * 2.5 + x / 3)
    value, dx = gs.value_and_grad(fn)(x)
    y, dy = gs.jvp(fn, (x,), (x,))
    second = gs.hvp(fn, (x,), (x,))
    assert {a.dtype for a in (value, dx, y, dy, second)} == {np.dtype(dtype)}
    assert gs.jacobian(np.sin)(x).dtype == dtype


def test_plain_in_plain_out():
    fn = lambda x: np.sum(x * x)
    assert is_plain(gs.value_and_grad(fn)(X))
    assert is_plain(gs.jvp(fn, (X,), (X,)))
    y, pull = gs.vjp(fn, X)
    assert is_plain((y, pull(1.0)))
    assert is_plain((gs.jacobian(np.sin)(X), gs.hessian(fn)(X), gs.hvp(fn, (X,), (X,))))


def test_a_number_gives_a_number():
    results = (
        gs.value_and_grad(lambda x: x * x)(3.0),
        gs.jvp(np.sin, (3.0,), (1.0,)),
        gs.vjp(lambda x: x * x, 3.0)[1](1.0),
        gs.jacobian(lambda x: x * x)(3.0),
        gs.hessian(lambda x: x * x)(3.0),
    )
    assert {type(x) for x in gs.core.trees.leaves(results)} == {np.float64}


@pytest.mark.parametrize("where", ["argument", "keyword", "tape"])
def test_tensors_in_tensors_out(where):
    fn = lambda x, scale=1.0: np.sum(x * scale)
    if where == "argument":
        dx = gs.grad(fn)(gs.Tensor(X))
    elif where == "keyword":
        dx = gs.grad(fn)(X, scale=gs.Tensor(2.0))
    else:
        with gs.GradientTape():
            dx = gs.grad(fn)(X)
    assert isinstance(dx, gs.Tensor)


def test_gradients_may_be_changed_in_place():
    """They are neither read-only nor the same memory twice."""
    da, db = gs.grad(lambda a, b: np.sum(a + b), (0, 1))(X, X)
    da *= 5.0
    assert_close((da, db), (np.full(3, 5.0), np.ones(3)))


def test_a_pulled_cotangent_is_not_the_given_one():
    dy = np.ones(3)
    _, pull = gs.vjp(lambda x: x, X)
    (dx,) = pull(dy)
    dx *= 5.0
    assert_close(dy, np.ones(3))


def test_a_pushed_tangent_is_not_the_given_one():
    dx = np.ones((3, 1))
    _, dy = gs.jvp(lambda x: x.T, (X[:, None],), (dx,))
    dy *= 5.0
    assert_close(dx, np.ones((3, 1)))


def test_changing_the_input_later_does_not_change_the_pullback():
    x = X.copy()
    _, pull = gs.vjp(lambda x: x * x, x)
    x *= 100
    assert_close(pull(np.ones(3))[0], 2 * X)


def test_the_value_beside_a_pullback_is_read_only():
    y, _ = gs.vjp(np.exp, X)
    with pytest.raises(ValueError, match="read-only"):
        y *= 2


def test_read_only_and_strided_inputs():
    x = np.arange(12.0).reshape(3, 4)[::2, ::-1]
    x.flags.writeable = False
    assert_close(gs.grad(lambda x: np.sum(x**2))(x), 2 * x)


def test_empty_inputs():
    empty = np.zeros((0, 3))
    assert gs.grad(np.sum)(empty).shape == (0, 3)
    assert gs.jvp(np.sin, (empty,), (empty,))[1].shape == (0, 3)
    assert gs.jacobian(lambda x: np.ones(2) * np.sum(x))(empty).shape == (2, 0, 3)
    assert gs.jacobian(lambda x: x[:0])(X).shape == (0, 3)
    assert gs.hessian(lambda x: np.sum(x**2))(empty).shape == (0, 3, 0, 3)


def test_the_same_array_for_two_arguments():
    assert_close(
        gs.grad(lambda a, b: np.sum(a * a * b), (0, 1))(X, X), (2 * X * X, X * X)
    )
    assert_close(gs.jvp(lambda a, b: a * b, (X, X), (np.ones(3), np.zeros(3)))[1], X)


# --- trees ---------------------------------------------------------------------------

Layer = namedtuple("Layer", "w b")


@dataclass(frozen=True)
class Model:
    first: Layer
    rest: list


def model(scale=1.0):
    return Model(
        Layer(
            scale * np.array([[1.0, 2.0], [3.0, 4.0]]), scale * np.array([0.5, -0.5])
        ),
        [{"scale": np.float64(2.0 * scale)}],
    )


def predict(model, x):
    return np.tanh(x @ model.first.w + model.first.b) * model.rest[0]["scale"]


def loss(model, x):
    return np.sum(predict(model, x) ** 2)


def test_the_gradient_of_a_tree_is_a_tree():
    x = np.array([[0.1, -0.2], [0.3, 0.05]])
    dm = gs.grad(loss)(model(), x)
    t = np.tanh(x @ model().first.w + model().first.b)
    inner = 8 * t * (1 - t**2)
    expected = Model(Layer(x.T @ inner, inner.sum(0)), [{"scale": 4 * np.sum(t**2)}])
    assert type(dm) is Model
    assert type(dm.first) is Layer
    assert_close(dm, expected)


def test_both_modes_agree_on_trees():
    x, v = np.array([[0.1, -0.2]]), model(0.3)
    y, dy = gs.jvp(lambda m: {"y": predict(m, x)}, (model(),), (v,))
    _, pull = gs.vjp(lambda m: {"y": predict(m, x)}, model())
    (dm,) = pull({"y": np.ones((1, 2))})
    products = gs.core.trees.map(lambda a, b: np.sum(a * b), dm, v)
    assert_close(np.sum(dy["y"]), sum(gs.core.trees.leaves(products)))
    assert_close(y, {"y": predict(model(), x)})


def test_the_hessian_times_a_vector_on_trees():
    x, v = np.array([[0.1, -0.2]]), model(0.3)
    product = gs.hvp(lambda m: loss(m, x), (model(),), (v,))
    forward = gs.jvp(gs.grad(lambda m: loss(m, x)), (model(),), (v,))[1]
    reverse = gs.grad(
        lambda m: sum(
            gs.core.trees.leaves(
                gs.core.trees.map(
                    lambda a, b: np.sum(a * b), gs.grad(lambda m: loss(m, x))(m), v
                )
            )
        )
    )(model())
    assert_close(product, forward)
    assert_close(product, reverse)


@pytest.mark.parametrize("kind", [OrderedDict, lambda d: defaultdict(int, d)])
def test_dicts_of_other_kinds(kind):
    params = kind({"b": 2.0, "a": 3.0})
    found = gs.grad(lambda p: p["a"] * p["b"])(params)
    assert (type(found), dict(found)) == (type(params), {"b": 3.0, "a": 2.0})
    assert list(found) == ["b", "a"]


def test_a_jacobian_of_trees_has_both_structures():
    def fn(p):
        return {"product": p["a"] * p["b"], "sum": [p["a"] + 0]}

    p = {"a": np.array([1.0, 2.0]), "b": 3.0}
    for mode in ("forward", "reverse", "auto"):
        found = gs.jacobian(fn, mode=mode)(p)
        expected = {
            "product": {"a": 3 * np.eye(2), "b": p["a"]},
            "sum": [{"a": np.eye(2), "b": np.zeros(2)}],
        }
        assert_close(found, expected)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: gs.jvp(np.sin, (X,), (X, X)), "one structure"),
        (lambda: gs.jvp(np.sin, (X,), (X[:2],)), r"shape \(2,\).*its primal \(3,\)"),
        (lambda: gs.jvp(np.sin, (X,), (X * 1j,)), "complex128.*float64"),
        (lambda: gs.jvp(np.sin, X, X), r"gs.jvp\(f, \(x,\), \(dx,\)\)"),
        (lambda: gs.hvp(np.sum, X, X), r"gs.hvp\(f, \(x,\), \(dx,\)\)"),
        (lambda: gs.hvp(np.sum, 1.0, 1.0), r"gs.hvp\(f, \(x,\), \(dx,\)\)"),
        (lambda: gs.vjp(np.sin, X)[1](X[:2]), r"the cotangent has shape \(2,\)"),
        (lambda: gs.vjp(np.sin, X)[1](X * 1j), "complex128, its target"),
        (lambda: gs.vjp(lambda x: (x, x), X)[1](X), "one structure"),
        (lambda: gs.jacobian(np.sin, mode="both"), "mode must be"),
    ],
)
def test_what_does_not_fit_is_refused(call, words):
    with pytest.raises(gs.GradsmithError, match=words):
        call()


# --- vjp, jvp, jacobian, hessian, hvp ------------------------------------------------


def test_vjp_with_aux_and_several_pulls():
    y, pull, aux = gs.vjp(lambda a, b: (a * b, "text"), X, 2.0, has_aux=True)
    assert_close(y, 2 * X)
    assert aux == "text"
    assert_close(pull(np.ones(3)), (np.full(3, 2.0), X.sum()))
    assert_close(pull(X), (2 * X, np.sum(X * X)))


def test_jvp_with_aux():
    y, dy, aux = gs.jvp(lambda x: (x * x, [x]), (3.0,), (1.0,), has_aux=True)
    assert (y, dy, aux) == (9.0, 6.0, [3.0])


def test_jvp_of_a_constant():
    assert gs.jvp(lambda x: 3.0, (2.0,), (1.0,)) == (3.0, 0.0)


def test_a_pullback_is_differentiable_in_the_cotangent():
    _, pull = gs.vjp(np.sin, X)
    assert_close(gs.grad(lambda dy: np.sum(pull(dy)[0] * X))(np.ones(3)), np.cos(X) * X)


def test_a_pullback_is_differentiable_in_the_primal():
    def fn(x):
        _, pull = gs.vjp(np.sin, x)
        return np.sum(pull(np.ones(3))[0])

    assert_close(gs.grad(fn)(X), -np.sin(X))
    assert_close(gs.jvp(fn, (X,), (X,))[1], -np.sin(X) @ X)


def test_a_pullback_that_leaves_its_transform():
    """Made inside a transform and used after it, it still pulls."""
    pulls = []

    def fn(x):
        y, pull = gs.vjp(np.sin, x)
        pulls.append(pull)
        return np.sum(y)

    gs.grad(fn)(X)
    assert_close(pulls[0](np.ones(3))[0], np.cos(X))


def matrix(x):
    return np.stack([np.sin(x), x[0] * x, np.cumsum(x)])


@pytest.mark.parametrize("mode", ["forward", "reverse", "auto"])
def test_jacobian_modes_agree(mode):
    found = gs.jacobian(matrix, mode=mode)(X)
    expected = np.zeros((3, 3, 3))
    expected[0] = np.diag(np.cos(X))
    expected[1] = X[0] * np.eye(3)
    expected[1, :, 0] += X
    expected[2] = np.tril(np.ones((3, 3)))
    assert_close(found, expected)


@pytest.mark.parametrize("mode", ["forward", "reverse", "auto"])
def test_jacobian_of_several_arguments(mode):
    da, db = gs.jacobian(lambda a, b: a * b, (0, 1), mode)(X, 2.0)
    assert_close((da, db), (2 * np.eye(3), X))


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_jacobian_of_a_constant(mode):
    assert_close(gs.jacobian(lambda x: 3.0, mode=mode)(X), np.zeros(3))


MODES = {"reverse": gs.jacrev, "forward": gs.jacfwd}
shapes = st.lists(st.integers(0, 3), max_size=2).map(tuple)


@settings(max_examples=30)
@given(shapes, shapes, st.sampled_from([0, 1, -1, (0, 1), (1, 0), (1,)]))
def test_jacrev_and_jacfwd_are_the_jacobian_in_both_modes(inner, outer, argnums):
    weights = np.cos(np.arange(math.prod(inner) * math.prod(outer)))
    weights = weights.reshape(outer + inner)
    a = {"w": np.linspace(0, 1, math.prod(inner)).reshape(inner), "n": [np.array(0.5)]}

    def fn(a, b, *, scale):
        y = np.sum(
            weights * np.sin(a["w"] * scale) * b, tuple(range(len(outer), weights.ndim))
        )
        return {"y": y * a["n"][0], "z": (b**2,)}

    for mode, transform in MODES.items():
        expected = gs.jacobian(fn, argnums, mode)(a, 0.3, scale=2.0)
        assert_close(transform(fn, argnums)(a, 0.3, scale=2.0), expected)
        assert_close(gs.jacobian(fn, argnums)(a, 0.3, scale=2.0), expected)


def test_jacfwd_walks_nothing_back():
    @gs.operation
    def forward_alone(x):
        return x * 2

    forward_alone.jvp(lambda dx, y, x: 2 * dx)
    refused = gs.custom_gradient(
        lambda x: (x, lambda dy: np.clip(dy, 0, 1)), linear=False
    )
    assert_close(gs.jacfwd(forward_alone)(X), 2 * np.eye(3))
    assert_close(gs.jacrev(refused)(X), np.eye(3))
    with pytest.raises(gs.GradsmithError, match="linear"):
        gs.jacfwd(refused)(X)


@pytest.mark.parametrize("transform", MODES.values())
def test_jacrev_and_jacfwd_of_a_holomorphic_function(transform):
    z = np.array([1 + 2j, 0.5j])
    assert_close(transform(np.exp, holomorphic=True)(z), np.diag(np.exp(z)))
    with pytest.raises(gs.GradsmithError, match="holomorphic"):
        transform(np.exp)(z)


def test_jacobian_of_a_jacobian():
    for inner in ("forward", "reverse"):
        for outer in ("forward", "reverse"):
            second = gs.jacobian(gs.jacobian(lambda x: x**3, mode=inner), mode=outer)
            expected = np.zeros((3, 3, 3))
            expected[range(3), range(3), range(3)] = 6 * X
            assert_close(second(X), expected)


def test_hessian():
    found = gs.hessian(lambda x: np.sum(x**3) + x[0] * x[1])(X)
    expected = np.diag(6 * X)
    expected[0, 1] = expected[1, 0] = 1.0
    assert_close(found, expected)


def test_hessian_of_two_arguments_is_a_block_matrix():
    (aa, ab), (ba, bb) = gs.hessian(lambda a, b: np.sum(a * a * b), (0, 1))(X, 2.0)
    assert_close(aa, 4 * np.eye(3))
    assert_close((ab, ba, bb), (2 * X, 2 * X, 0.0))


def test_hvp_of_several_primals():
    a, b = X, np.array([1.0, 2.0, 3.0])
    v, w = np.array([1.0, 0.0, -1.0]), np.array([0.5, 0.5, 2.0])
    da, db = gs.hvp(lambda a, b: np.sum(a * a * b), (a, b), (v, w))
    assert_close((da, db), (2 * b * v + 2 * a * w, 2 * a * v))


def test_hvp_is_differentiable():
    fn = lambda x: np.sum(x**4)
    third = gs.grad(lambda x: np.sum(gs.hvp(fn, (x,), (np.ones(3),))))(X)
    assert_close(third, 24 * X)


# --- nesting -------------------------------------------------------------------------


@pytest.mark.parametrize("modes", ["rr", "rf", "fr", "ff"])
def test_perturbations_are_not_confused(modes):
    """d/dx (x * d/dy (x + y)) is 1, not 2."""
    step = {
        "r": gs.grad,
        "f": lambda fn: lambda x: gs.jvp(fn, (x,), (1.0,))[1],
    }
    outer, inner = (step[mode] for mode in modes)
    assert outer(lambda x: x * inner(lambda y: x + y)(1.0))(1.0) == 1.0
    assert outer(lambda x: inner(lambda y: x * y * y)(x))(3.0) == 12.0


def test_a_closure_over_a_tensor_of_a_tape():
    w = gs.Variable(3.0)
    with gs.GradientTape() as tape:
        dx = gs.grad(lambda x: w * w * x * x)(2.0)
    assert dx == 36.0
    assert tape.gradient(dx, w) == 24.0


def test_a_variable_inside_a_function_is_a_constant_of_its_transform():
    w = gs.Variable(3.0)
    assert gs.grad(lambda x: w * x)(2.0) == 3.0


def test_with_respect_to_a_variable():
    w = gs.Variable(3.0)
    assert gs.grad(lambda w: w * w)(w) == 6.0
    with gs.GradientTape() as tape:
        dw = gs.grad(lambda w: w * w * w)(w)
    assert tape.gradient(dw, w) == 18.0


def test_a_tape_inside_a_transform():
    def fn(x):
        with gs.GradientTape() as tape:
            tape.watch(x)
            y = np.sum(x**3)
        return np.sum(tape.gradient(y, x))

    assert_close(gs.grad(fn)(X), 6 * X)
    assert_close(gs.jvp(fn, (X,), (np.ones(3),))[1], np.sum(6 * X))


def test_a_loop_in_python_and_a_condition():
    def fn(x):
        while x < 10:
            x = x * x if x > 1 else x + 1
        return x

    assert_close(gs.grad(fn)(0.5), 8 * 1.5**7)


# --- stop_gradient -------------------------------------------------------------------


def test_stop_gradient():
    fn = lambda x: np.sum(gs.stop_gradient(x) * x)
    assert_close(gs.grad(fn)(X), X)
    assert_close(gs.jvp(fn, (X,), (np.ones(3),))[1], np.sum(X))
    assert_close(gs.grad(lambda x: np.sum(gs.grad(fn)(x)))(X), np.zeros(3))


def test_stop_gradient_of_trees_and_plain_values():
    tree = {"a": gs.Tensor(1.0), "b": (2.0, "text", gs.Variable(3.0))}
    stopped = gs.stop_gradient(tree)
    assert stopped == tree
    assert not isinstance(stopped["b"][2], gs.Variable)
    assert stopped["b"][1] == "text"


# --- complex -------------------------------------------------------------------------

Z = np.array([1.0 + 2.0j, -0.5 + 0.3j])


def real_gradient(fn, z):
    """dL/dRe + i dL/dIm, by functions of real arguments."""
    dx, dy = gs.grad(lambda x, y: fn(x + 1j * y), (0, 1))(z.real, z.imag)
    return dx + 1j * dy


@pytest.mark.parametrize(
    "fn",
    [
        lambda z: np.sum(np.real(z * z)),
        lambda z: np.sum(np.abs(np.exp(z) * z)),
        lambda z: np.sum(np.real(z) * np.imag(z) ** 2),
        lambda z: np.real(np.sum(z * np.conj(np.roll(z, 1)) * (2 + 1j))),
    ],
)
def test_the_gradient_of_a_real_loss_points_uphill(fn):
    dz = gs.grad(fn)(Z)
    assert_close(dz, real_gradient(fn, Z))
    assert fn(Z + 1e-3 * dz) > fn(Z)


def test_both_modes_agree_on_complex_values():
    fn = lambda z: np.exp(z) * np.conj(z)
    u, v = np.array([0.3 - 1j, 2.0 + 0.1j]), np.array([1.0 + 1j, -0.2j])
    _, dy = gs.jvp(fn, (Z,), (v,))
    (dz,) = gs.vjp(fn, Z)[1](u)
    assert_close(np.real(np.vdot(u, dy)), np.real(np.vdot(dz, v)))


@pytest.mark.parametrize("mode", ["forward", "reverse", "auto"])
def test_the_jacobian_of_a_holomorphic_function(mode):
    found = gs.jacobian(lambda z: np.exp(z), mode=mode, holomorphic=True)(Z)
    assert_close(found, np.diag(np.exp(Z)))


def test_the_jacobian_of_a_real_function_of_complex_values():
    found = gs.jacobian(lambda z: np.abs(z) ** 2)(Z)
    assert_close(found, np.diag(2 * Z))


def test_the_jacobian_of_a_complex_function_of_real_values():
    found = gs.jacobian(lambda x: np.exp(1j * x))(X)
    assert_close(found, np.diag(1j * np.exp(1j * X)))


@pytest.mark.parametrize(
    ("fn", "x", "options", "words"),
    [
        (np.conj, Z, {}, "only if it is holomorphic"),
        (np.abs, Z, {"mode": "forward"}, "its inputs are complex: use reverse"),
        (lambda x: x * 1j, X, {"mode": "reverse"}, "its outputs are complex: use forw"),
        (np.sin, X, {"holomorphic": True}, "for complex inputs and outputs"),
    ],
)
def test_jacobians_that_would_be_seen_in_part_are_refused(fn, x, options, words):
    with pytest.raises(gs.GradsmithError, match=words):
        gs.jacobian(fn, **options)(x)


def test_hvp_of_complex_values():
    """L = |z|**4 has the gradient 4 |z|**2 z."""
    v = np.array([0.5 - 1j, 1j])
    found = gs.hvp(lambda z: np.sum(np.abs(z) ** 4), (Z,), (v,))
    expected = 4 * (np.abs(Z) ** 2 * v + 2 * np.real(np.conj(Z) * v) * Z)
    assert_close(found, expected)


# Results belong to the caller


def test_a_gradient_that_a_rule_holds_can_be_changed_by_the_caller():
    held = np.ones(3)
    fixed = gs.custom_gradient(lambda x: (np.sum(x), lambda dy: held))
    gs.grad(fixed)(np.ones(3))[0] = 5
    assert held[0] == 1


def test_values_and_aux_do_not_share_memory_with_the_arguments():
    x = np.ones(4)
    y, _ = gs.jvp(lambda x: x.reshape(2, 2), (x,), (np.ones(4),))
    y[0] = 5
    _, aux = gs.grad(lambda x: (np.sum(x * x), x), has_aux=True)(x)
    aux[0] = 7
    np.testing.assert_array_equal(x, np.ones(4))


@pytest.mark.parametrize("f", [lambda x: x > 0, lambda x: bool(x > 0), lambda x: True])
def test_the_gradient_of_true_or_false_is_refused(f):
    for transform in (gs.grad, gs.value_and_grad, gs.hessian):
        with pytest.raises(gs.GradsmithError, match="one real number"):
            transform(f)(1.5)


@pytest.mark.parametrize(
    ("outputs", "mode"),
    [(1, "reverse"), (2, "reverse"), (3, "forward"), (9, "forward")],
)
def test_the_mode_of_a_jacobian_is_the_cheaper_one(outputs, mode):
    runs = []

    def f(x):
        runs.append(x)
        return np.tile(np.sin(x), outputs)

    x = np.ones(4)
    gs.jacobian(f)(x)
    # Once to know the outputs, and forward once more
    assert len(runs) == (2 if mode == "forward" else 1)
