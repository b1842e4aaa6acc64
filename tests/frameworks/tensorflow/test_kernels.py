"""Fused operations on eager tensors: memory, gradients, and what is composed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

tf = pytest.importorskip("tensorflow")
pytest.importorskip("llvmlite")

import gradsmith as gs  # noqa: E402
import gradsmith.numpy as gnp  # noqa: E402
from gradsmith import ops  # noqa: E402
from gradsmith.core import pool  # noqa: E402
from gradsmith.frameworks.numpy.call import fused as in_engine  # noqa: E402
from gradsmith.frameworks.tensorflow import private  # noqa: E402
from gradsmith.frameworks.tensorflow.call import fused  # noqa: E402
from gradsmith.operations import fusing  # noqa: E402
from gradsmith.ops import _rows  # noqa: E402
from tests.frameworks.fused_operations import normed, squash  # noqa: E402
from tests.ops.samples import LOSSES, STABLE  # noqa: E402


@pytest.fixture
def runs(monkeypatch):
    """Kernels that ran, by name."""
    found, run = [], fused._run
    monkeypatch.setattr(
        fused,
        "_run",
        lambda kernel, *args: (found.append(kernel.program.name), run(kernel, *args)),
    )
    return found


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(fusing, "SMALL", 0)


def normal(*shape):
    return tf.constant(np.random.default_rng(0).normal(size=shape), tf.float32)


def value_and_gradient(fn, x, dy=None, **options):
    with tf.GradientTape(**options) as tape:
        tape.watch(x)
        y = fn(x)
    return y, tape.gradient(y, x, dy)


def same(got, expected, rtol=2e-6):
    for a, b in zip(tf.nest.flatten(got), tf.nest.flatten(expected), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=2e-6)


def both(fn, x, dy=None):
    """By the kernel and composed."""
    got = value_and_gradient(fn, x, dy)
    with gs.kernels(False):
        return got, value_and_gradient(fn, x, dy)


FUNCTIONS = [
    ops.silu, ops.gelu, ops.softplus, ops.softmax, ops.log_softmax, normed,
    lambda x: ops.logsumexp(x, -1, keepdims=True) + 0 * x,
    lambda x: squash(x, tf.constant(2.0, x.dtype)),
]  # fmt: skip
EACH = pytest.mark.parametrize("fn", FUNCTIONS, ids=range(len(FUNCTIONS)))

UPSTREAM = {
    "none": lambda n, m: None,
    "plain": lambda n, m: normal(n, m),
    "transposed": lambda n, m: tf.transpose(normal(m, n)),
    "sliced": lambda n, m: normal(n, 2 * m)[:, ::2],
    "part": lambda n, m: normal(n + 2, m + 3)[1:-1, 2:-1],
    "rows": lambda n, m: normal(2 * n, m)[n:],  # at no round address
    "broadcast": lambda n, m: tf.broadcast_to(normal(n, 1), (n, m)),
    "some rows": lambda n, m: tf.IndexedSlices(
        normal(2, m), tf.constant([0, 3]), tf.constant([n, m])
    ),
}


@EACH
@pytest.mark.parametrize("upstream", UPSTREAM)
def test_upstream_gradients_of_any_kind(fn, upstream, runs):
    same(*both(fn, normal(7, 19)[2:], UPSTREAM[upstream](5, 19)))
    assert [name.endswith("_gradient") for name in runs] == [False, True]


@settings(max_examples=25, deadline=None)
@given(
    shape=st.lists(st.integers(0, 70), min_size=0, max_size=3),
    fn=st.sampled_from(FUNCTIONS[:5]),
)
def test_shapes_of_any_length(shape, fn):
    if fn in FUNCTIONS[3:5] and (not shape or shape[-1] == 0):
        return  # a row without elements is the composed form's
    same(*both(fn, normal(*shape) * 3, normal(*shape)))


@EACH
@pytest.mark.parametrize(
    ("dtype", "eps"), [(tf.float16, 2**-10), (tf.bfloat16, 2**-7)], ids=["f16", "bf16"]
)
def test_half_precision(fn, dtype, eps, runs):
    x, dy = tf.cast(normal(7, 33), dtype), tf.cast(normal(7, 33), dtype)
    got = value_and_gradient(fn, x, dy)
    assert len(runs) == 2
    expected = both(fn, tf.cast(x, tf.float64), tf.cast(dy, tf.float64))[1]
    for a, true in zip(got, expected, strict=True):
        assert a.dtype == dtype
        # A rule that reads the result reads what was rounded
        off = tf.abs(tf.cast(a, tf.float64) - true) / tf.maximum(tf.abs(true), 0.1)
        assert tf.reduce_max(off) < 4 * eps


SAMPLES = pytest.mark.parametrize("sample", [*STABLE, *LOSSES], ids=str)


@SAMPLES
def test_operations_are_those_of_the_engine(sample, runs, monkeypatch):
    """Those composed in float64, and kernels where the engine has them.

    But for `safe_where`, which is an operation there alone.
    """
    xs = [tf.constant(x, tf.float32) for x in sample.xs]
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = sample.fn(*xs, *map(tf.constant, sample.fixed))
        squares = y * y
    gradients = tape.gradient(squares, xs)
    argnums = tuple(range(len(xs)))
    loss = lambda *xs: gnp.sum(sample.fn(*xs) ** 2)
    with gs.kernels(False):
        value = sample.fn(*sample.xs, *sample.fixed)
        expected = gs.grad(loss, argnums)(*sample.xs, *sample.fixed)
    np.testing.assert_allclose(y, value, rtol=2e-6)
    for dx, true in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(dx, true, rtol=4e-6, atol=1e-6)
    count, run = [], in_engine._forward
    counted = lambda *a: (count.append(a), run(*a))[1]
    monkeypatch.setattr(in_engine, "_forward", counted)
    gs.grad(loss, argnums)(*[x.astype("float32") for x in sample.xs], *sample.fixed)
    assert [name for name in runs if not name.endswith("_gradient")] == [
        plan.operation.name for plan, _ in count if plan.operation.name != "_where"
    ]


def test_results_are_not_overwritten():
    """The memory of large ones is used again only when nobody holds them."""
    x = normal(600, 500)
    assert x.shape.num_elements() * 4 > pool.SMALLEST
    held, views, copies = [], [], []
    for i in range(6):
        y, dx = value_and_gradient(ops.softmax, x + i, normal(600, 500))
        copies += [y.numpy(), dx.numpy()]
        held.append(y)
        views.append(np.asarray(dx))  # the tensor itself is gone
        variable = tf.Variable(y)
        variable.assign_add(tf.ones_like(y))  # TensorFlow does so in place if it may
    for y, view, (a, b) in zip(
        held, views, zip(copies[::2], copies[1::2], strict=True), strict=True
    ):
        np.testing.assert_array_equal(y, a)
        np.testing.assert_array_equal(view, b)


def test_results_are_in_the_memory_that_the_kernel_wrote(monkeypatch):
    written, take = [], fused.tensor_of
    monkeypatch.setattr(
        fused, "tensor_of", lambda x: (written.append(x.ctypes.data), take(x))[1]
    )
    for shape in [(3, 5), (600, 500)]:
        for dtype in (tf.float32, tf.bfloat16):
            written.clear()
            results = value_and_gradient(ops.silu, tf.cast(normal(*shape), dtype))
            assert [np.asarray(each).ctypes.data for each in results] == written


def test_several_threads_share_the_work(monkeypatch):
    x, dy = normal(301, 1009), normal(301, 1009)
    monkeypatch.setattr(fused, "_threads", lambda: 1)
    one = value_and_gradient(ops.softmax, x, dy)
    monkeypatch.setattr(fused, "_threads", lambda: 3)
    for a, b in zip(one, value_and_gradient(ops.softmax, x, dy), strict=True):
        np.testing.assert_array_equal(a, b)


# What is differentiated in other ways


@EACH
def test_second_derivatives_are_those_of_the_composed_form(fn, runs):
    x = tf.cast(normal(3, 4), tf.float64)

    def second():
        with tf.GradientTape() as outer:
            outer.watch(x)
            dx = value_and_gradient(fn, x, tf.cast(normal(3, 4), x.dtype))[1]
        return outer.gradient(dx, x, tf.cast(normal(3, 4) ** 2, x.dtype))

    got = second()
    with gs.kernels(False):
        same(got, second(), rtol=1e-9)
    assert float(tf.reduce_max(tf.abs(got))) > 0.01


@EACH
def test_a_tape_that_is_opened_after_the_call(fn):
    """It differentiates the gradient, by the argument and by the upstream gradient."""
    x, dy = normal(3, 4), normal(3, 4)

    def second():
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = fn(x)
        with tf.GradientTape() as outer:
            outer.watch([x, dy])
            dx = inner.gradient(y, x, dy)
        return outer.gradient(dx, [x, dy], unconnected_gradients="zero")

    by_x, by_dy = second()
    with gs.kernels(False):
        same(by_dy, second()[1])
    expected = tf.zeros_like(x)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with gs.kernels(False):
            dx = value_and_gradient(fn, x, dy)[1]
    expected = outer.gradient(dx, x)
    same(by_x, expected, rtol=1e-5)


@EACH
def test_a_persistent_tape_gives_each_gradient_as_often_as_asked(fn, runs):
    x = normal(5, 19)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = fn(x)
        z = tf.reduce_sum(y * y)
    got = [tape.gradient(z, x), tape.gradient(y, x, normal(5, 19)), tape.gradient(z, x)]
    assert len(runs) == 4
    np.testing.assert_array_equal(got[0], got[2])
    with gs.kernels(False):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = fn(x)
            z = tf.reduce_sum(y * y)
        same(got[:2], [tape.gradient(z, x), tape.gradient(y, x, normal(5, 19))], 1e-5)


def test_gradients_that_the_forward_pass_makes_are_given_away_once(runs):
    x, labels = normal(6, 9), tf.constant([0, 8, 3, 3, -100, 1])
    loss = lambda x: ops.cross_entropy(x, labels)
    assert _rows.of_classes.kernels(x, labels, -1, 0.0, -100, 0.0).ahead
    (y, dx), expected = both(loss, x, tf.constant(3.0))
    same((y, dx), expected)
    assert len(runs) == 2
    before = dx.numpy()
    same(value_and_gradient(loss, x + 1, tf.constant(2.0))[1] * 1.5, dx, rtol=1e-5)
    np.testing.assert_array_equal(dx, before)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = loss(x)
    for factor in (3.0, 1.0, 3.0):
        got = tape.gradient(y, x, tf.constant(factor))
        same(got * (3 / factor), dx)


@pytest.mark.parametrize(
    ("fn", "slope"), [(ops.reverse, -1), (ops.round, 1), (lambda x: ops.scale(x, 5), 5)]
)
def test_what_is_passed_on_as_it_is(fn, slope):
    x = normal(8, 9)
    y, dx = value_and_gradient(lambda x: fn(fn(x) + x), x, tf.ones_like(x))
    same(dx, tf.fill((8, 9), float(slope * (slope + 1))))
    with gs.kernels(False):
        same(y, fn(fn(x) + x))


@EACH
@pytest.mark.parametrize("use_pfor", [True, False])
def test_jacobians(fn, use_pfor):
    x = normal(2, 3)

    def jacobian():
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = fn(x)
        return tape.jacobian(y, x, experimental_use_pfor=use_pfor)

    got = jacobian()
    with gs.kernels(False):
        same(got, jacobian(), rtol=1e-5)


@EACH
def test_forward_mode_is_composed(fn, runs):
    x, dx = normal(3, 4), normal(3, 4)

    def tangent():
        with tf.autodiff.ForwardAccumulator(x, dx) as accumulator:
            y = fn(x)
        return accumulator.jvp(y)

    got = tangent()
    assert not {"softmax", "log_softmax", "normed", "squash", "silu"}.intersection(runs)
    with gs.kernels(False):
        same(got, tangent())


@EACH
def test_forward_over_reverse_and_reverse_over_forward(fn):
    x, dx = normal(3, 4), normal(3, 4)

    def each():
        with tf.autodiff.ForwardAccumulator(x, dx) as accumulator:
            gradient = value_and_gradient(fn, x, normal(3, 4))[1]
        with tf.GradientTape() as tape:
            tape.watch(x)
            with tf.autodiff.ForwardAccumulator(x, dx) as inner:
                y = fn(x)
            tangent = tf.reduce_sum(inner.jvp(y) * normal(3, 4))
        return accumulator.jvp(gradient), tape.gradient(tangent, x)

    got = each()
    with gs.kernels(False):
        same(got, each(), rtol=1e-5)
    same(*got, rtol=1e-4)


@EACH
@pytest.mark.parametrize("options", [{}, {"jit_compile": True}], ids=["graph", "xla"])
def test_graphs_have_the_composed_form(fn, options, runs):
    x = normal(3, 4)
    compiled = tf.function(lambda x: value_and_gradient(fn, x), **options)
    got = compiled(x)
    assert not runs
    same(got, value_and_gradient(fn, x), rtol=1e-5)


def test_mapped_functions_have_the_composed_form(runs):
    x = normal(3, 4)
    gradient = lambda x: value_and_gradient(ops.silu, x)[1]
    got = tf.vectorized_map(gradient, x)
    assert not runs
    same(got, gradient(x))


def test_several_arguments_and_those_that_nobody_follows(runs):
    x, p = normal(3, 5), tf.abs(normal(3, 5)) + 1
    variable = tf.Variable(x)
    with tf.GradientTape() as tape:
        y = ops.xlogy(variable, p)
    same(tape.gradient(y, variable), tf.math.log(p))
    with tf.GradientTape() as tape:
        tape.watch([x, p])
        y = ops.xlogy(x, p)
    same(tape.gradient(y, [x, p]), [tf.math.log(p), x / p])
    assert len(runs) == 4
    same(ops.xlogy(x, p), y)


def test_who_sees_each_operation_sees_those_of_the_composed_form(runs):
    seen = []
    with private.after_operations(lambda name, *rest: seen.append(name)):
        value_and_gradient(ops.silu, normal(3, 5))
    assert len(seen) > 5
    assert not runs


def test_other_devices_are_composed(runs):
    assert fused.runs_on_host([normal(3)])
    with tf.device("/job:localhost/replica:0/task:0/device:CPU:0"):
        ops.silu(normal(3, 5))
    assert len(runs) == 1
    with tf.device("GPU:0"):  # there is none, or operations run on it
        ops.silu(normal(3, 5))
    assert len(runs) == 1


# Turning them off, and on


def test_kernels_can_be_turned_off(runs):
    with gs.kernels(False):
        value_and_gradient(ops.silu, normal(5))
    assert not runs
    value_and_gradient(ops.silu, normal(5))
    assert len(runs) == 2


def test_the_code_can_be_seen():
    text = str(ops.silu.kernels(tf.cast(normal(5), tf.bfloat16)))
    assert "def silu(x0: bfloat16, y0: bfloat16)" in text
    assert "def silu_gradient(" in text


def test_what_can_not_be_fused_is_refused_at_the_call():
    @gs.custom_gradient(fused=True)
    def running(x):
        return gnp.cumsum(x, axis=-1), lambda dy: dy

    with pytest.raises(gs.UnsupportedOperationError, match="cumsum"):
        running(normal(3, 5))


def test_labels_out_of_bounds_raise():
    with pytest.raises(IndexError, match="out of bounds"):
        _rows.of_classes(normal(2, 5), tf.constant([1, 7]), 1, 0.0, -100, 0.0)


def test_a_rule_that_is_given_later_is_used():
    @gs.operation(fused=True)
    def same_value(x):
        return x * 1

    x = normal(5)
    for factor in (2, 3):
        same_value.vjp(lambda dy, y, x, factor=factor: factor * dy)
        dx = value_and_gradient(same_value, x)[1]
        np.testing.assert_array_equal(dx, np.full(5, factor))


@EACH
def test_the_check_is_of_the_kernel(fn, runs):
    gs.assert_gradients(fn, tf.cast(normal(3, 4), tf.float64))
    assert runs
