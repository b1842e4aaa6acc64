"""Tracing: what becomes a step, what is built in, and what is refused."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith import ops
from gradsmith.core import trees

X = np.linspace(-1.0, 2.0, 12).reshape(3, 4)


def pasted(program):
    """The function that the printed code defines."""
    known: dict = {}
    exec(str(program), known)
    return known[program.name]


def softmax(x, axis=-1):
    e = gnp.exp(x - gnp.max(x, axis=axis, keepdims=True))
    return e / gnp.sum(e, axis=axis, keepdims=True)


def test_portable_code_becomes_numpy_code_that_runs_when_pasted():
    program = gs.trace(softmax, X)
    assert len(program) == 5
    assert str(program).splitlines()[3:] == [
        "def softmax(x):",
        "    a = np.max(x, axis=-1, keepdims=True)",
        "    b = x - a",
        "    c = np.exp(b)",
        "    d = np.sum(c, axis=-1, keepdims=True)",
        "    e = c / d",
        "    return e",
    ]
    np.testing.assert_array_equal(program(X), softmax(X))
    np.testing.assert_array_equal(pasted(program)(X), softmax(X))


def loss(params, x):
    h = np.tanh(x @ params["w"] + params["b"])
    return np.sum(h[0] * h[-1]) + np.max(h)


PARAMS = {"w": np.linspace(0.0, 1.0, 8).reshape(4, 2), "b": np.array([0.1, -0.2])}


@pytest.mark.parametrize(
    "derivative",
    [
        gs.value_and_grad,
        gs.grad,
        gs.jacobian,
        lambda f: lambda p, x: gs.jvp(lambda p: f(p, x), (p,), (p,))[1],
        lambda f: lambda p, x: gs.hvp(lambda p: f(p, x), (p,), (p,)),
        lambda f: lambda p, x: gs.hessian(lambda b: f({**p, "b": b}, x))(p["b"]),
    ],
)
def test_derivatives_of_functions_of_trees(derivative):
    fn = derivative(loss)
    program = gs.trace(fn, PARAMS, X)
    got, expected = program(PARAMS, X), fn(PARAMS, X)
    gs.core.trees.map(
        lambda y, e: np.testing.assert_allclose(y, e, rtol=1e-13), got, expected
    )
    inputs = [*PARAMS.values(), X]
    again = pasted(program)(*inputs) if program.name.isidentifier() else got
    gs.core.trees.map(np.testing.assert_array_equal, again, got)


def test_a_tape_within():
    def slope(x):
        x = gs.Tensor(x)
        with gs.GradientTape() as tape:
            tape.watch(x)
            y = np.sum(x**3)
        return tape.gradient(y, x).numpy()

    np.testing.assert_allclose(gs.trace(slope, X)(X), 3 * X**2)


@gs.custom_gradient
def tenfold(x):
    return gnp.sin(x), lambda dy: 10 * dy


@gs.operation
def cube(x):
    return x**3


@cube.vjp
def _(dy, y, x):
    return 7 * dy * x**2


def test_the_rule_of_an_operation_is_what_is_traced():
    both = gs.grad(lambda x: np.sum(tenfold(x) + cube(x)))
    np.testing.assert_array_equal(gs.trace(both, X)(X), both(X))
    np.testing.assert_array_equal(gs.trace(tenfold, X)(X), np.sin(X))


@pytest.mark.parametrize("name", ["softmax", "gelu", "silu", "softplus", "logsumexp"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ready_made_operations(name, dtype):
    op = getattr(ops, name)
    x = X.astype(dtype)
    fn = gs.value_and_grad(lambda x: np.sum(op(x) * np.arange(4, dtype=dtype)))
    if name == "logsumexp":
        fn = gs.value_and_grad(lambda x: np.sum(op(x)))
    (value, dx), (expected, slope) = gs.trace(fn, x)(x), fn(x)
    assert (value.dtype, dx.dtype) == (expected.dtype, slope.dtype)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(value, expected, rtol=4 * eps)
    np.testing.assert_allclose(dx, slope, rtol=8 * eps, atol=8 * eps)


def test_labels_are_inputs_too():
    labels = np.array([0, 3, 1])
    fn = gs.value_and_grad(lambda x, y: np.sum(ops.cross_entropy(x, y)))
    value, dx = gs.trace(fn, X, labels)(X, labels)
    np.testing.assert_allclose(value, fn(X, labels)[0])
    np.testing.assert_allclose(dx, fn(X, labels)[1], atol=1e-15)


@pytest.mark.parametrize("name", ["silu", "softmax", "logsumexp", "huber"])
def test_no_array_is_made_while_tracing(name):
    # 64 TB: whoever makes one of this shape runs out of memory
    x = gs.spec((1 << 22, 1 << 22), np.float32)
    args = (x, x) if name == "huber" else (x,)
    fn = gs.value_and_grad(lambda x, *rest: np.sum(getattr(ops, name)(x, *rest)))
    value, dx = gs.trace(fn, *args).results
    assert (value.shape, dx.shape) == ((), x.shape)


def test_specs_stand_for_arrays():
    program = gs.trace(softmax, gs.spec((3, 4), "float32"))
    assert program == gs.trace(softmax, X.astype("float32"))
    assert program != gs.trace(softmax, X)
    assert program.results[0].dtype == np.float32


def test_what_is_no_array_is_built_in():
    assert gs.trace(softmax, X, axis=0) != gs.trace(softmax, X)
    assert "np.power(x, 3)" in str(gs.trace(lambda x, n: x**n, X, 3))


def test_python_numbers_stay_weak():
    assert gs.trace(lambda x: 2.0 * x, X.astype("float32")).results[0].dtype == "f4"
    assert (
        gs.trace(lambda x: np.float64(2) * x, X.astype("f4")).results[0].dtype == "f8"
    )


def test_captured_arrays_are_constants_as_they_were():
    weights = np.ones(4)
    weights[1] = 5.0

    def fn(x):
        y = x * weights
        weights[0] += 1.0
        return y + x * weights

    weights[0] = 0.0
    expected = fn(X)
    weights[0] = 0.0
    program = gs.trace(fn, X)
    weights[:] = 7.0
    np.testing.assert_array_equal(program(X), expected)


def test_large_constants_are_parameters_of_the_printed_function():
    table = np.arange(200.0)
    text = str(gs.trace(lambda x: gnp.take(table, x), np.array([1, 2])))
    assert "(x, *, c0):" in text
    assert "# c0 is captured: shape (200,), float64" in text


def scaled(x):
    if np.sum(x) > 0:
        return x
    return -x


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (scaled, "np.where"),
        (lambda x: x * float(x[0, 0]), "np.sin instead of math.sin"),
        (lambda x: np.array([x[0], x[1]]), "np.stack"),
        (lambda x: x[x > 0], r"np\.where\(mask"),
        (lambda x: np.unique(x), "depends on the elements"),
        (lambda x: np.arange(9.0)[np.argmax(x)], "gnp.take"),
        (lambda x: np.add(x, 1, out=np.zeros((3, 4))), "writes into an array by out="),
        (lambda x: np.zeros((3, 4)).__iadd__(x), "writes into an array by out="),
        (lambda x: x.item(), "needs the elements"),
        (lambda x: x[: np.argmax(x)], "needs the elements"),
        (lambda x: np.repeat(x, np.argmax(x)), "depends on the elements"),
    ],
)
def test_what_needs_elements_is_refused_with_its_line(fn, words):
    with pytest.raises(gs.UnsupportedOperationError, match=words) as caught:
        gs.trace(fn, X)
    assert f"{__file__}:" in str(caught.value)
    with pytest.raises(gs.UnsupportedOperationError):
        gs.trace(gs.grad(lambda x: np.sum(fn(x * 1.0))), X)


def test_random_draws_are_refused():
    rng = np.random.default_rng(0)
    for fn in (lambda x: x + rng.random(), lambda x: x + np.random.rand()):
        with pytest.raises(gs.GradsmithError, match="draws random numbers"):
            gs.trace(fn, X)


def test_what_leaves_a_trace_is_refused():
    kept = []
    gs.trace(lambda x: kept.append(x), X)
    with pytest.raises(gs.GradsmithError, match="after the trace has ended"):
        kept[0] + 1.0


def test_a_step_knows_its_line():
    (step,) = gs.trace(lambda x: np.sin(x), X).steps
    assert step.place.file == __file__


def test_a_black_box_is_one_step():
    @gs.python_op(spec=lambda x: x)
    def half(x):
        return np.array([v / 2 for v in np.asarray(x).ravel()]).reshape(x.shape)

    @half.vjp
    def _(dy, y, x):
        return np.array(dy) / 2

    program = gs.trace(half, X)
    assert len(program) == 1
    np.testing.assert_array_equal(program(X), X / 2)
    gradient = gs.trace(gs.grad(lambda x: np.sum(half(x) * 3)), X)
    np.testing.assert_array_equal(gradient(X), np.full(X.shape, 1.5))


def test_a_black_box_within_a_compiled_function():
    @gs.python_op
    def solver(x):
        return np.arctan(np.asarray(x))

    @solver.vjp
    def _(dy, y, x):
        return dy / (1 + x * x)

    @gs.python_op
    def both(x):
        return np.sin(np.asarray(x)), np.cos(np.asarray(x))

    @both.vjp
    def _(dy, y, x):
        return dy[0] * y[1] - dy[1] * y[0]

    def loss(x):
        s, c = both(x)
        return np.sum(solver(x) * 2 * s[:, ::-1] + c)

    for fn in (loss, gs.value_and_grad(loss), lambda x: solver(x[0, 0])):
        expected, got = fn(X), gs.compile(fn)(X)
        trees.map(partial(np.testing.assert_allclose, rtol=1e-14), got, expected)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: np.split(x, 1, axis=1)[0] * 2,
        lambda x: np.unstack(x[:1])[0] * 2,
        lambda x: np.meshgrid(x[0])[0] * 2,
        lambda x: np.broadcast_arrays(x)[0] * 2,
    ],
)
def test_a_list_of_one_is_unpacked(fn):
    program = gs.trace(fn, X)
    for run in (program, pasted(program), gs.compile(fn)):
        np.testing.assert_array_equal(run(X), fn(X), strict=True)


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match=r"gs\.trace takes a function, not 3"):
        gs.trace(3, np.ones(2))
