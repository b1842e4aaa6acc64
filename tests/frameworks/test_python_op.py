"""Python operations: NumPy, SciPy or C bodies with NumPy gradients, in all five."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy.special import gammainc

import gradsmith as gs
import gradsmith.numpy as gnp
from examples import sparse_solve

from .portable import ALL, ENGINE, FOREIGN

each = pytest.mark.parametrize("framework", ALL, ids=lambda f: f.name)
each_foreign = pytest.mark.parametrize("framework", FOREIGN, ids=lambda f: f.name)
each_compiled = pytest.mark.parametrize(
    "framework", [f for f in FOREIGN if f.calls_back], ids=lambda f: f.name
)
with_and_without_compiler = pytest.mark.parametrize(
    ("framework", "compiled"),
    [(f, compiled) for f in ALL for compiled in (False, f.calls_back)],
    ids=lambda x: getattr(x, "name", str(x)),
)
X = np.array([0.5, 1.5, 2.5])


@pytest.fixture(autouse=True)
def _compiled_anew():
    """The code of `total` is one for all operations, and compiled for a few only."""
    yield
    if "torch" in sys.modules:
        sys.modules["torch"]._dynamo.reset()


@gs.python_op
def cube(x):
    assert type(x) is np.ndarray
    return x**3


@cube.vjp
def _(dy, y, x):
    return 3 * x**2 * dy


@gs.python_op
def canary(x):
    return np.asarray(x) * 2


@canary.vjp
def _(dy, y, x):
    return 10 * dy


def total(op):
    return lambda *xs: gnp.sum(op(*xs))


def gradients(framework, op, compiled):
    loss = total(op)
    if compiled:
        return framework.compiled_gradients(loss)
    return lambda *xs: framework.gradients(loss, *xs)


@with_and_without_compiler
def test_value_and_gradient(framework, compiled):
    x = framework.array(X, "float32")
    y = (framework.compiled(cube) if compiled else cube)(x)
    (dx,) = gradients(framework, cube, compiled)(x)
    np.testing.assert_allclose(framework.plain(y), X**3, rtol=1e-6)
    np.testing.assert_allclose(framework.plain(dx), 3 * X**2, rtol=1e-6)
    assert framework.plain(y).dtype == framework.plain(dx).dtype == np.float32


@with_and_without_compiler
def test_the_rule_is_what_counts(framework, compiled):
    (dx,) = gradients(framework, canary, compiled)(framework.array(X, "float32"))
    np.testing.assert_array_equal(framework.plain(dx), [10, 10, 10])


@each
def test_forward_mode_from_the_rule(framework):
    x, dx = framework.array(X, "float32"), framework.array([1, 0, 2], "float32")
    dy = framework.tangent(cube, (x,), (dx,))
    np.testing.assert_allclose(framework.plain(dy), 3 * X**2 * [1, 0, 2], rtol=1e-6)


@each
def test_second_order_is_found_by_the_engine(framework):
    def gradient(x):
        return gnp.sum(framework.gradients(total(cube), x)[0] * x)

    (ddx,) = framework.gradients(gradient, framework.array(X, "float32"))
    np.testing.assert_allclose(framework.plain(ddx), 9 * X**2, rtol=1e-6)


@each_foreign
def test_second_order_of_what_nobody_sees_into_is_refused(framework):
    @gs.python_op
    def square(x):
        return x * x

    @square.vjp
    def _(dy, y, x):
        return dy * 2 * np.asarray(x)

    def gradient(x):
        return gnp.sum(framework.gradients(total(square), x)[0])

    with pytest.raises(Exception, match="the engine can't trace all of it"):
        framework.gradients(gradient, framework.array(X, "float32"))


@with_and_without_compiler
def test_trees_static_arguments_and_whole_numbers(framework, compiled):
    @gs.python_op
    def pick(p, k, scale=1.0):
        return {"picked": p["x"][k] * scale, "count": np.int32(len(k))}

    @pick.vjp
    def _(dy, y, p, k, scale=1.0):
        dx = np.zeros_like(p["x"])
        np.add.at(dx, k, dy["picked"] * scale)
        return {"x": dx}, None

    k = framework.array([0, 2, 2], "int32")

    def picked(x):
        return pick({"x": x}, k, scale=3.0)["picked"]

    x = framework.array(X, "float32")
    (dx,) = gradients(framework, picked, compiled)(x)
    np.testing.assert_array_equal(framework.plain(dx), [3, 0, 6])
    assert int(pick({"x": x}, k)["count"]) == 3


@each
def test_closure_form(framework):
    @gs.python_op
    @gs.custom_gradient
    def sine(x):
        return np.sin(x), lambda dy: dy * np.cos(x)

    (dx,) = framework.gradients(total(sine), framework.array(X, "float32"))
    np.testing.assert_allclose(framework.plain(dx), np.cos(X), rtol=1e-6)

    def gradient(x):
        return gnp.sum(framework.gradients(total(sine), x)[0])

    (ddx,) = framework.gradients(gradient, framework.array(X, "float32"))
    np.testing.assert_allclose(framework.plain(ddx), -np.sin(X), rtol=1e-6)


@with_and_without_compiler
def test_a_body_that_returns_its_gradient(framework, compiled):
    @gs.python_op
    def sine(x):
        def grad(dy):
            return dy * np.cos(x)

        return np.sin(x), grad

    @gs.python_op
    def both(x, y):
        return x * y, x + y, lambda dz, dw: (dz * y + dw, dz * x + dw)

    x = framework.array(X, "float32")
    (dx,) = gradients(framework, sine, compiled)(x)
    np.testing.assert_allclose(framework.plain(dx), np.cos(X), rtol=1e-6)
    (dx, dy) = gradients(framework, lambda *xs: both(*xs)[0], compiled)(x, x * 2)
    np.testing.assert_allclose(framework.plain(dx), 2 * X, rtol=1e-6)
    np.testing.assert_allclose(framework.plain(dy), X, rtol=1e-6)


@each_compiled
def test_rules_given_with_the_function(framework):
    def grad(dy, y, a, x):
        density = np.exp(-x) * x ** (a - 1)
        return gs.not_differentiable("no closed form"), dy * density

    op = gs.python_op(lambda a, x: gammainc(a, x), grad)
    ones = framework.array(np.ones(3), "float32")
    (dx,) = framework.gradients(
        lambda x: gnp.sum(op(ones, x)), framework.array(X, "float32")
    )
    np.testing.assert_allclose(framework.plain(dx), np.exp(-X), rtol=1e-6)


# --- shapes and dtypes ---------------------------------------------------------------


@each_compiled
def test_one_trial_run_for_each_kind_of_call(framework):
    runs = []

    @gs.python_op
    def double(x):
        runs.append(x.shape)
        return x * 2

    double.vjp(lambda dy, y, x: dy * 2)
    for size in (3, 3, 4):
        run = framework.compiled(lambda x: double(x) + 1)
        run(framework.array(np.ones(size), "float32"))
    assert sorted(runs) == [(3,)] * 3 + [(4,)] * 2


@each_compiled
def test_a_spec_in_place_of_the_trial(framework):
    runs = []

    @gs.python_op(spec=lambda x, n: gs.spec((n, *x.shape), x.dtype))
    def repeated(x, n):
        runs.append(n)
        return np.stack([x] * n)

    @repeated.vjp
    def _(dy, y, x, n):
        return np.sum(dy, axis=0)

    run = framework.compiled_gradients(lambda x: gnp.sum(repeated(x, 2)))
    (dx,) = run(framework.array(X, "float32"))
    np.testing.assert_array_equal(framework.plain(dx), [2, 2, 2])
    assert runs == [2]


@each_compiled
def test_a_spec_that_is_wrong(framework):
    @gs.python_op(spec=gs.spec((2,), "float32"))
    def op(x):
        return x * 2

    with pytest.raises(Exception, match="returned other outputs than expected"):
        framework.plain(framework.compiled(op)(framework.array(X, "float32")))


@each_compiled
def test_a_body_that_made_up_values_break(framework):
    @gs.python_op
    def op(x):
        if not np.all(x > 2):
            raise ArithmeticError("out of the domain")
        return x * 2

    with pytest.raises(Exception, match="out of the domain") as info:
        framework.compiled(op)(framework.array(X + 5, "float32"))
    if framework.name != "torch":  # the compiler raises an error of its own
        assert "spec=" in "\n".join(info.value.__notes__)


@with_and_without_compiler
def test_the_contract_is_checked_while_tracing(framework, compiled):
    @gs.python_op
    def op(x):
        return x * 2

    op.vjp(lambda dy, y, x: np.sum(dy))

    run = gradients(framework, op, compiled)
    with pytest.raises(Exception, match="for 'x' has the wrong shape"):
        run(framework.array(X, "float32"))


@each_foreign
def test_the_error_of_the_body_is_the_users(framework):
    @gs.python_op
    def op(x):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        op(framework.array(X, "float32"))


@each_foreign
def test_outputs_that_are_no_numbers(framework):
    op = gs.python_op(lambda x: (x, "text"), lambda dy, y, x: dy[0])
    with pytest.raises(gs.GradientContractError, match="not an array of numbers"):
        op(framework.array(X, "float32"))


# --- in each framework ---------------------------------------------------------------


def test_under_vmap_and_scan_in_jax():
    import jax

    x = jax.numpy.asarray(np.arange(6.0).reshape(2, 3), "float32")
    expected = 3 * np.arange(6.0).reshape(2, 3) ** 2
    gradient = jax.grad(total(cube))
    np.testing.assert_allclose(jax.vmap(gradient)(x), expected, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.vmap(gradient))(x), expected, rtol=1e-6)

    def step(carry, row):
        return carry + gnp.sum(cube(row)), None

    def loop(x):
        return jax.lax.scan(step, 0.0, x)[0]

    np.testing.assert_allclose(jax.grad(loop)(x), expected, rtol=1e-6)


def test_transposed_in_jax():
    import jax

    x = jax.numpy.asarray(X, "float32")
    _, pushed = jax.linearize(cube, x)
    (pulled,) = jax.linear_transpose(pushed, x)(jax.numpy.ones(3))
    np.testing.assert_allclose(pulled, 3 * X**2, rtol=1e-6)


def test_in_keras_and_xla():
    import tensorflow as tf

    x = tf.constant(X, tf.float32)
    with pytest.raises(Exception, match="XLA") as info:
        tf.function(cube, jit_compile=True)(x)
    assert "jit_compile" in str(info.value)


def test_mlx_says_that_it_has_no_callback():
    mlx = FOREIGN[-1]
    x = mlx.array(X, "float32")
    for run in (mlx.compiled(cube), lambda x: mlx.batched(cube, x)):
        with pytest.raises(gs.UnsupportedOperationError, match="no callback"):
            run(x)
    checkpoint = mlx.module.checkpoint(total(cube))
    np.testing.assert_allclose(mlx.gradients(checkpoint, x)[0], 3 * X**2, rtol=1e-6)


def test_under_vmap_and_inductor_in_torch():
    import torch

    x = torch.arange(6.0).reshape(2, 3)
    gradient = torch.func.vmap(torch.func.grad(lambda x: cube(x).sum()))
    torch.testing.assert_close(gradient(x), 3 * x**2)


# --- the example ---------------------------------------------------------------------


@each
def test_sparse_solve(framework):
    args = sparse_solve.problem()
    truth = sparse_solve.differences(*args)
    _, run = sparse_solve.FRAMEWORKS[framework.name]
    dc = run(*args)
    np.testing.assert_allclose(dc, truth, rtol=1e-6, atol=1e-6 * np.abs(truth).max())


@with_and_without_compiler
def test_memory_that_the_code_uses_again(framework, compiled):
    """Body and rule return the same array each time: two results stay two."""
    values, slopes = np.empty(64, "float32"), np.empty(64, "float32")

    @gs.python_op
    def exp(x):
        return np.exp(x, out=values)

    @exp.vjp
    def _(dy, y, x):
        return np.multiply(dy, y, out=slopes)

    xs = [framework.array(np.full(64, n), "float32") for n in (0, 1)]
    if framework is ENGINE:
        xs = [gs.Tensor(x) for x in xs]
    two = lambda a, b: (exp(a), exp(b))
    ys = (framework.compiled(two) if compiled else two)(*xs)
    assert [framework.plain(y)[0] for y in ys] == pytest.approx([1, np.e])
    dxs = gradients(framework, lambda a, b: exp(a) + exp(b), compiled)(*xs)
    assert [framework.plain(dx)[0] for dx in dxs] == pytest.approx([1, np.e])


@with_and_without_compiler
def test_the_code_can_not_write_into_the_arguments(framework, compiled):
    @gs.python_op(spec=lambda x: gs.spec(x.shape, x.dtype))
    def zeroed(x):
        x[:] = 0
        return x * 2

    run = framework.compiled(zeroed) if compiled else zeroed
    x = framework.array(X, "float32")
    with pytest.raises(Exception, match="read-only"):
        framework.plain(run(x))
    np.testing.assert_array_equal(framework.plain(x), X)


# --- a dtype of its own --------------------------------------------------------------


def doubles_alone(*xs):
    """A solver that refuses all else."""
    assert all(x.dtype in (np.float64, np.int32) for x in xs), [x.dtype for x in xs]


@gs.python_op(dtype="float64")
def power(x, n):
    doubles_alone(x, n)
    return x**n


@power.vjp
def _(dy, y, x, n):
    doubles_alone(dy, y, x, n)
    return dy * n * x ** (n - 1), None


@gs.python_op(dtype=np.float64)
def power_in_closure_form(x, n):
    doubles_alone(x, n)

    def grad(dy):
        doubles_alone(dy)
        return dy * n * x ** (n - 1), None

    return x**n, grad


@gs.python_op(dtype="float64", spec=lambda x, n: gs.spec(x.shape, "float64"))
def power_with_spec(x, n):
    doubles_alone(x, n)
    return x**n


power_with_spec.vjp(power.vjp_rule)


@gs.python_op(dtype="float64", spec=lambda x, n: gs.spec(x.shape, x.dtype))
def power_with_the_arguments_spec(x, n):
    return x**n


power_with_the_arguments_spec.vjp(power.vjp_rule)
POWERS = [power, power_in_closure_form, power_with_spec, power_with_the_arguments_spec]


@pytest.mark.parametrize("op", POWERS, ids=lambda op: op.name)
@with_and_without_compiler
def test_code_that_knows_one_dtype(framework, compiled, op):
    x, n = framework.array(X, "float32"), framework.array([2, 3, 4], "int32")
    y = (framework.compiled(op) if compiled else op)(x, n)
    (dx,) = gradients(framework, lambda x: op(x, n), compiled)(x)
    y, dx = framework.plain(y), framework.plain(dx)
    np.testing.assert_array_equal(y, (X ** [2, 3, 4]).astype("float32"))
    expected = [2, 3, 4] * X ** [1, 2, 3]
    np.testing.assert_array_equal(dx, expected.astype("float32"))
    assert y.dtype == dx.dtype == np.float32


@pytest.mark.parametrize("op", POWERS[:2], ids=lambda op: op.name)
@each
def test_tangents_and_second_order_in_one_dtype(framework, op):
    x, n = framework.array(X, "float32"), framework.array([3, 3, 3], "int32")
    cubed = lambda x: op(x, n)
    dx = framework.array([1, 0, 2], "float32")
    dy = framework.plain(framework.tangent(cubed, (x,), (dx,)))
    np.testing.assert_allclose(dy, 3 * X**2 * [1, 0, 2], rtol=1e-6)
    assert dy.dtype == np.float32

    def gradient(x):
        return gnp.sum(framework.gradients(total(cubed), x)[0])

    ddx = framework.plain(framework.gradients(gradient, x)[0])
    np.testing.assert_allclose(ddx, 6 * X, rtol=1e-6)
    assert ddx.dtype == np.float32


@each
def test_the_promoted_dtype_comes_back(framework):
    @gs.python_op(dtype="float64")
    def scaled(p, c):
        doubles_alone(p["x"], c)
        return {"scaled": p["x"] * c, "count": np.int32(len(p["x"])), "mean": 0.5}

    @scaled.vjp
    def _(dy, y, p, c):
        doubles_alone(dy["scaled"], p["x"], c)
        return {"x": dy["scaled"] * c}, np.sum(dy["scaled"] * p["x"])

    x, c = framework.array(X, "float16"), framework.array(2, "float32")
    y = scaled({"x": x}, c)
    dtypes = {name: str(framework.plain(part).dtype) for name, part in y.items()}
    assert dtypes == {"scaled": "float32", "count": "int32", "mean": "float32"}
    loss = lambda x, c: gnp.sum(scaled({"x": x}, c)["scaled"])
    dx, dc = map(framework.plain, framework.gradients(loss, x, c))
    np.testing.assert_array_equal(dx, [2, 2, 2])
    assert (dx.dtype, dc.dtype, float(dc)) == ("float16", "float32", 4.5)


@each
def test_scalars_of_numpy_in_one_dtype(framework):
    @gs.python_op(dtype="float64")
    def scaled(x, options):
        doubles_alone(x, options["c"])
        return x * options["c"]

    @scaled.vjp
    def _(dy, y, x, options):
        return dy * options["c"]

    options = {"c": np.float32(2)}
    y = framework.plain(scaled(framework.array(X, "float32"), options))
    np.testing.assert_array_equal(y, 2 * X)
    assert y.dtype == np.float32
    assert scaled(np.float16(3), options).dtype == np.float32


@pytest.mark.parametrize("framework", ALL[:4], ids=lambda f: f.name)
def test_complex_numbers_of_one_precision(framework):
    @gs.python_op(dtype="float64")
    def parts(z):
        assert z.dtype == np.complex128
        return z * 2, np.abs(z)

    parts.vjp(lambda dy, y, z: dy[0] * 2)
    z = framework.array(X * 1j, "complex64")
    doubled, size = map(framework.plain, parts(z))
    assert (doubled.dtype, size.dtype) == ("complex64", "float32")
    np.testing.assert_array_equal(doubled, X * 2j)
    np.testing.assert_array_equal(size, X)


@pytest.mark.parametrize("dtype", ["int32", "complex128", "flot64", 3, "U5"])
def test_a_dtype_that_nothing_is_computed_in(dtype):
    with pytest.raises(gs.GradsmithError, match=r"dtype=.*float64"):
        gs.python_op(lambda x: x, dtype=dtype)
