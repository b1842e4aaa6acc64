"""Where the frameworks' own functions leave NumPy, and derivatives at corners."""

from __future__ import annotations

import jax
import mlx.core as mx
import numpy as np
import pytest
import tensorflow as tf
import torch

import gradsmith as gs
import gradsmith.numpy as gnp

from .harness import FRAMEWORKS, NATIVE, find, plain

each = pytest.mark.parametrize("framework", FRAMEWORKS)
INF, NAN = np.inf, np.nan


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True), np.errstate(all="ignore"):
        yield


def numpys(name):
    found = np
    for part in name.split("."):
        found = getattr(found, part)
    return found


BYTES = np.array([0, 1, 200], np.uint8)
SMALL = np.array([1, -2, 3], np.int8)
WHOLE = np.array([[1, 2], [3, 4]], np.int32)
FLAGS = np.array([True, False])
NO_COLUMNS = np.ones((2, 0))
COMPLEX = np.array([[2, 1j], [-1j, 3]])

VALUES = [
    # Python numbers that a dtype can't hold compare all the same
    *[(name, BYTES, n) for n in (-1, 300) for name in ("less", "equal", "greater")],
    ("greater", -1, BYTES),
    *[(name, n, SMALL) for n in (1, 300) for name in ("not_equal", "less_equal")],
    ("greater_equal", SMALL, -2),
    ("less", FLAGS, ~FLAGS),
    ("add", SMALL, np.True_),
    ("logical_and", FLAGS, np.float32(0.5)),
    ("fmax", np.float32([1, NAN]), np.float32(0.5)),
    ("copysign", np.float32([1, 2]), np.float32(-1)),
    # Nothing to do
    ("absolute", BYTES),
    ("absolute", FLAGS),
    ("floor", FLAGS),
    ("ceil", WHOLE),
    ("rint", COMPLEX * 0.7),
    ("round", FLAGS),
    # Quotients that are rounded up, infinite ones
    ("floor_divide", np.array([1.0, INF, 1.0, -1.0]), np.array([0.1, 1.0, 0.0, INF])),
    ("fmod", np.array([1.0, -1.0, 5e17, 0.0]), np.array([INF, INF, 7.0, 2.0])),
    ("left_shift", BYTES, np.array([1, 8, 200], np.uint8)),
    ("right_shift", BYTES, np.array([1, 8, 200], np.uint8)),
    ("right_shift", SMALL, np.array([1, 8, 100], np.int8)),
    # dtypes
    ("angle", FLAGS),
    ("sinc", SMALL),
    ("average", SMALL, None, np.float32([1, 2, 3])),
    ("einsum", "ij->i", WHOLE),
    ("einsum", "...ij,...jk", np.ones((5, 2, 3)), np.ones((3, 4))),
    ("linalg.eigvalsh", COMPLEX),
    ("linalg.slogdet", COMPLEX),
    ("argmax", np.ones((2, 3)), np.int64(1)),
    ("vander", BYTES, np.int64(3)),
    ("vander", np.float16([0.1, -2]), 4),
    # No elements
    ("linalg.norm", NO_COLUMNS, INF, 1),
    ("diagonal", WHOLE, 2),
    ("trace", WHOLE, -3),
    ("roll", WHOLE, (), ()),
    ("searchsorted", np.array([1.0, 2.0, 3.0]), np.array([NAN, 1.5, 3.0])),
    ("meshgrid", np.array([1.0, 2.0]), 3.0),
    ("clip", np.array([1.0, NAN, 3.0]), 2.0, 0.0),
    ("clip", np.array([1.0, NAN, 3.0]), np.array([0.0, 0.0, NAN]), None),
]


def is_possible(framework, case):
    """MLX has complex64 alone, and no linear algebra of it."""
    return framework != "mlx" or not any(map(np.iscomplexobj, case[1:]))


@pytest.mark.parametrize(
    ("case", "framework"),
    [
        pytest.param(case, framework, id=f"{case[0]}-{framework}")
        for case in VALUES
        for framework in NATIVE
        if is_possible(framework, case)
    ],
)
def test_value_is_numpys(case, framework):
    name, *args = case
    wanted = numpys(name)(*args)
    swapped = [NATIVE[framework](x) if isinstance(x, np.ndarray) else x for x in args]
    found = find(name)(*swapped)
    if not isinstance(wanted, (tuple, list)):
        found, wanted = [found], [wanted]
    for y, want in zip(found, wanted, strict=True):
        assert plain(y).dtype == np.asarray(want).dtype
        np.testing.assert_allclose(plain(y), want, rtol=1e-12)


@each
def test_erf_of_the_infinite(framework):
    x = NATIVE[framework](np.array([INF, -INF, 0.0]))
    np.testing.assert_array_equal(plain(gnp.special.erf(x)), [1, -1, 0])


@pytest.mark.parametrize("framework", ["numpy", *FRAMEWORKS])
@pytest.mark.parametrize("axis", [None, -1])
def test_softmax_with_an_infinite_logit_is_undefined(framework, axis):
    y = gnp.special.softmax(NATIVE[framework](np.array([INF, 0.0])), axis=axis)
    assert np.all(np.isnan(plain(y)))


def test_no_warning_for_a_row_that_is_masked():
    with np.errstate(divide="raise"):
        y = gnp.special.logsumexp(np.full((1, 2), -INF), axis=1)
    np.testing.assert_array_equal(y, [-INF])
    assert gnp.special.logsumexp(np.ones((2, 0)), axis=1).tolist() == [-INF, -INF]
    assert gnp.special.softmax(np.ones(2, np.int8)).dtype == np.float64


# Errors are of one type in all


REFUSED = {
    "too small": (OverflowError, lambda x: gnp.add(gnp.astype(x, "uint8"), -1)),
    "too large": (OverflowError, lambda x: gnp.multiply(gnp.astype(x, "int8"), 300)),
    "shifted float": (TypeError, lambda x: gnp.left_shift(x, 1)),
    "bits of floats": (TypeError, lambda x: gnp.bitwise_and(x, x)),
    "inverted float": (TypeError, gnp.invert),
    "max of nothing": (ValueError, lambda x: gnp.max(x[:0])),
    "min of nothing": (ValueError, lambda x: gnp.min(x[:0], axis=0)),
    "vectors of two lengths": (ValueError, lambda x: gnp.vecdot(x, x[:1])),
    "powers of a matrix": (ValueError, lambda x: gnp.vander(x[:, None], 2)),
    "less than no powers": (ValueError, lambda x: gnp.vander(x, -1)),
    "half a power": (TypeError, lambda x: gnp.vander(x, 2.5)),
}


@pytest.mark.parametrize("framework", ["numpy", *FRAMEWORKS])
@pytest.mark.parametrize("name", REFUSED)
def test_refused_everywhere(name, framework):
    error, run = REFUSED[name]
    with pytest.raises(error):
        run(NATIVE[framework](np.array([1.0, 2.0])))


@each
def test_a_triangle_has_two_axes(framework):
    with pytest.raises(ValueError, match="two axes"):
        gnp.tril(NATIVE[framework](np.ones(2)))


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (lambda: gnp.linalg.eig, r"gnp\.linalg.*NumPy's function.*gs\.python_op"),
        (lambda: gnp.special.zeta, r"gnp\.special.*SciPy's function.*gs\.python_op"),
        (lambda: gnp.linalg.nothing, "'gradsmith.numpy.linalg' has no attribute"),
    ],
)
def test_missing_names_say_what_to_do(run, words):
    with pytest.raises(AttributeError, match=words):
        run()
    assert dir(gnp.linalg) == sorted(gnp.linalg.__all__)


# Derivatives at corners: the engine's in all, where the formula is ours


CORNERS = {
    "cbrt": (gnp.cbrt, [8.0, -8.0, 0.0]),
    "std of a constant": (gnp.std, [2.0, 2.0, 2.0]),
    "norm 3": (lambda x: gnp.linalg.norm(x, 3), [0.0, 0.0]),
    "norm 3, partly": (lambda x: gnp.linalg.norm(x, 3), [0.0, 2.0]),
    "clip at its bounds": (
        lambda x: gnp.clip(x, 0.0, 1.0), [-1.0, 0.0, 0.5, 1.0, 2.0],
    ),
    "clip by arrays": (
        lambda x: gnp.clip(x, gnp.zeros_like(x), gnp.ones_like(x)),
        [-1.0, 0.0, 0.5, 1.0, 2.0],
    ),
    "xlogy at 0": (lambda x: gnp.special.xlogy(x[0], x[1]), [0.0, 2.0]),
    "xlogy at 0, 0": (lambda x: gnp.special.xlogy(x[0], x[1]), [0.0, 0.0]),
    "xlog1py at 0": (lambda x: gnp.special.xlog1py(x[0], x[1]), [0.0, 2.0]),
    "logaddexp of equals": (lambda x: gnp.logaddexp(x[0], x[1]), [1.0, 1.0]),
    "angle of 0": (gnp.angle, [0.0, 1.0, -1.0]),
    "fmod of 0": (lambda x: gnp.fmod(x[0], x[1]), [0.0, 2.0]),
    "powers before the first infinite one": (lambda x: gnp.vander(x, 3), [1e150, 0.0]),
}  # fmt: skip


def gradient(framework, fn, x):
    if framework == "numpy":
        return gs.grad(lambda x: gnp.sum(fn(x)))(x)
    if framework == "jax":
        return jax.grad(lambda x: gnp.sum(fn(x)))(NATIVE["jax"](x))
    x = NATIVE[framework](x)
    if framework == "mlx":
        return mx.grad(lambda x: gnp.sum(fn(x)))(x)
    if framework == "torch":
        y = gnp.sum(fn(x.requires_grad_()))
        return torch.autograd.grad(y, x)[0] if y.requires_grad else torch.zeros_like(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = gnp.sum(fn(x))
    return tf.convert_to_tensor(tape.gradient(y, x, unconnected_gradients="zero"))


@each
@pytest.mark.parametrize("name", CORNERS)
def test_derivative_at_a_corner_is_the_engines(name, framework):
    fn, x = CORNERS[name]
    if name == "cbrt" and framework == "jax":
        x = x[:2]  # at 0 JAX's own is infinite
    found = plain(gradient(framework, fn, np.array(x)))
    np.testing.assert_allclose(found, gradient("numpy", fn, np.array(x)), rtol=1e-9)


@each
def test_second_derivative_of_logaddexp_of_equals(framework):
    softplus = lambda x: gnp.logaddexp(x, 0.0)
    x = NATIVE[framework](np.array(0.0))
    if framework == "torch":
        found = torch.func.grad(torch.func.grad(softplus))(x)
    elif framework == "jax":
        found = jax.grad(jax.grad(softplus))(x)
    elif framework == "mlx":
        found = mx.grad(mx.grad(softplus))(x)
    else:
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = softplus(x)
            dx = inner.gradient(y, x)
        found = outer.gradient(dx, x)
    np.testing.assert_allclose(plain(found), 0.25)


def test_whole_numbers_of_keras_are_arrays():
    keras = pytest.importorskip("keras")
    variable = keras.Variable(np.array([1, 2], np.int32))
    assert int(gnp.sum(gnp.add(variable, 1))) == 5


def test_torch_compiles_with_a_length_that_varies_beside_whole_numbers():
    fn = lambda x, n: gnp.multiply(n, x.shape[0]) + gnp.less(n, x.shape[0])
    run = torch.compile(fn, fullgraph=True, dynamic=True, backend="eager")
    for length in (3, 4):
        y = run(torch.ones(length), torch.ones(2, dtype=torch.int32))
        assert y.tolist() == [length + 1] * 2
