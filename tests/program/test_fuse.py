"""Operations as kernels on NumPy's arrays: plans, refusals, and turning them off."""

import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith import ops
from gradsmith.core import pool
from gradsmith.operations import fusing
from gradsmith.program.kernels import kernel, machine, primitives
from gradsmith.program.kernels.kernel import Kernel

X = np.random.default_rng(0).normal(size=(5, 37))


def run(script):
    """What a new process prints."""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.split()


# What is saved, and what is computed again


def sources(op, *args):
    return [name for name, _ in op.kernels(*args).sources]


def test_what_there_is_one_of_for_each_row_is_saved():
    plan = ops.log_softmax.kernels(X)
    assert {spec.shape for spec in plan.saved} == {(5, 1)}
    assert "exp" not in [n.op for n in plan.backward().nest.passes[0].keeps]


def test_the_result_is_read_if_the_rule_does():
    assert sources(ops.softmax, X) == ["dy", "y"]


def test_elementwise_gradients_keep_the_argument_alone():
    plan = ops.silu.kernels(X)
    assert plan.saved == []
    assert sources(ops.silu, X) == ["dy", "x"]


def test_what_is_computed_of_small_arrays_is_computed_again():
    @gs.custom_gradient(fused=True)
    def over(x, count):
        n = gnp.astype(count, x.dtype)
        return gnp.sum(x, axis=-1) / n, lambda dy: (x * 0 + dy[:, None] / n, None)

    assert over.kernels(X, np.array([3])).saved == []
    dx = gs.grad(lambda x: np.sum(over(x, np.array([3]))))(X)
    np.testing.assert_array_equal(dx, np.full_like(X, 1 / 3))


def test_what_the_gradient_alone_needs_is_left_to_it():
    plan = ops.one_hot_argmax.kernels(X)
    assert plan.saved == []
    assert "exp" not in [n.op for n in plan.forward.nest.nodes]


# What takes no kernel


@pytest.fixture
def runs(monkeypatch):
    """The names of the kernels that ran."""
    monkeypatch.setattr(fusing, "SMALL", 0)
    names, run = [], Kernel.run

    def noted(self, *args):
        names.append(self.program.name)
        run(self, *args)

    monkeypatch.setattr(Kernel, "run", noted)
    return names


def test_a_value_that_is_the_argument_is_not_computed(runs):
    x = X.T  # neither is it copied where it is strided
    assert ops.reverse(x) is x
    dx = gs.grad(lambda x: np.sum(ops.reverse(x) * X.T))(x)
    assert runs == ["reverse_gradient"]
    np.testing.assert_array_equal(dx, -X.T)


def test_a_gradient_that_is_the_upstream_one_is_passed_on(runs):
    value, pull = gs.vjp(ops.round, X)
    dy = X + 1
    (dx,) = pull(dy)
    assert runs == ["round"]
    np.testing.assert_array_equal(value, np.round(X))
    np.testing.assert_array_equal(dx, dy)
    dx[:] = 0  # it is the caller's
    np.testing.assert_array_equal(dy, X + 1)


NOT_COPIED = """
import numpy as np
import gradsmith as gs
from gradsmith import ops
from gradsmith.operations import buffers

buffers._copied = lambda y: 1 / 0
x = np.linspace(1.0, 2.0, 1024)
dx = gs.grad(lambda x: np.sum(ops.sqrt(x)))(x)
np.testing.assert_allclose(dx, 0.5 / np.sqrt(x))
"""


def test_a_result_that_the_gradient_reads_is_not_copied():
    """In a process of its own: a compiler that runs Python's frames holds some too."""
    subprocess.run([sys.executable, "-c", NOT_COPIED], check=True)


LARGE = np.linspace(1.0, 2.0, 1 << 17)
WRITTEN_OVER = """
import numpy as np
import gradsmith as gs
from gradsmith import ops

x, places = np.linspace(1.0, 2.0, 1 << 17), []

def total(x):
    y = ops.sqrt(x)
    places.append(y.numpy().ctypes.data)
    return np.sum(y)

for _ in range(20):  # Python counts as many references once it knows the code
    dx = gs.grad(total)(x)
    np.testing.assert_allclose(dx, 0.5 / np.sqrt(x))
assert dx.ctypes.data == places[-1]
"""


@pytest.mark.skipif(
    not pool.owns(np.empty(1)), reason="this Python does not count all references"
)
def test_a_large_gradient_is_written_over_a_value_that_nobody_sees():
    subprocess.run([sys.executable, "-c", WRITTEN_OVER], check=True)


SEEN = {
    "by its tensor": lambda y: y,
    "by its array": lambda y: y.numpy(),
    "by a view": lambda y: y.numpy()[::2],
    "by its memory": lambda y: y.numpy().data,
}


@pytest.mark.parametrize("look", SEEN.values(), ids=SEEN)
def test_a_value_that_somebody_sees_is_not_written_over(look):
    def total(x):
        y = ops.sqrt(x)
        held.append(look(y))
        return np.sum(y)

    for _ in range(20):
        held = []
        dx = gs.grad(total)(LARGE)
        np.testing.assert_allclose(dx, 0.5 / np.sqrt(LARGE))
        step = 2 if look is SEEN["by a view"] else 1
        np.testing.assert_allclose(held[0], np.sqrt(LARGE)[::step])


def test_a_value_that_is_needed_again_is_not_written_over():
    x = gs.Tensor(LARGE)
    expected = 0.5 / np.sqrt(LARGE)
    with gs.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = ops.sqrt(x)
        total = np.sum(y)
    del y
    for _ in range(2):
        np.testing.assert_allclose(tape.gradient(total, x), expected)
    with gs.GradientTape() as tape:
        tape.watch(x)
        pair = (lambda y: gnp.stack([np.sum(y), np.sum(2 * y)]))(ops.sqrt(x))
    first, second = tape.jacobian(pair, x).numpy()
    np.testing.assert_allclose(first, expected)
    np.testing.assert_allclose(second, 2 * expected)
    dx = gs.grad(lambda x: np.sum(ops.sqrt(x) ** 2))(LARGE)  # y is saved twice
    np.testing.assert_allclose(dx, np.ones_like(LARGE))


def test_the_value_is_read_before_the_gradients_are_written_over_it():
    x, y = LARGE, 2 * LARGE[::-1]
    gradients = gs.grad(lambda x, y: np.sum(ops.divide(x, y)), (0, 1))
    for _ in range(20):
        for dx, expected in zip(gradients(x, y), (1 / y, -x / y**2), strict=True):
            np.testing.assert_allclose(dx, expected)


# Under one tape, where most calls are made


BOTH = gs.fuse(
    gs.custom_gradient(lambda x, y, a=2.0: (a * x * y, _of_product(x, y, a)))
)


def _of_product(x, y, a):
    return lambda dy: (dy * a * y, dy * a * x)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: BOTH(x, y),
        lambda x, y: BOTH(x, y=y, a=3.0),
        lambda x, y: BOTH(x, Y),
        lambda x, y: BOTH(X, y),
        lambda x, y: BOTH(x, x),
        lambda x, y: BOTH(x.T, y.T),
        lambda x, y: BOTH(x, gs.Variable(Y)),
        lambda x, y: BOTH(x, gs.stop_gradient(y), -0.0),
    ],
    ids=range(8),
)
def test_calls_under_a_tape_are_those_of_the_composed_form(call):
    def gradients(on):
        with gs.kernels(on):
            both = gs.value_and_grad(
                lambda x, y: np.sum(call(x, y) * call(x, y)), (0, 1)
            )
            value, dxs = both(X, Y)
            return [np.asarray(value), *dxs]

    for ours, composed in zip(gradients(True), gradients(False), strict=True):
        np.testing.assert_allclose(ours, composed, rtol=1e-13)


Y = X[::-1] + 1


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_gradients_are_differentiated_by_the_upstream_gradient(dtype):
    x = gs.Tensor(np.linspace(-1, 1, 600).astype(dtype))
    dy = gs.Tensor(np.linspace(1, 2, 600).astype(dtype))
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = ops.silu(x)
    with gs.GradientTape() as later:
        later.watch(dy)
        total = np.sum(tape.gradient(y, x, output_gradients=dy))
    (slope,) = gs.vjp(ops.silu, x.numpy())[1](np.ones(600, dtype))
    found = later.gradient(total, dy).numpy()
    assert found.dtype == dtype
    np.testing.assert_allclose(found, slope, rtol=4 * float(np.finfo(dtype).eps))


# Refusals


def test_what_is_no_kernel_is_refused_with_its_line():
    @gs.custom_gradient(fused=True)
    def running(x):
        y = gnp.cumsum(x)
        return y, lambda dy: dy

    line = running.fn.__code__.co_firstlineno + 2
    with pytest.raises(gs.UnsupportedOperationError, match="cumsum") as caught:
        running(X)
    assert f"test_fuse.py:{line}" in str(caught.value)
    assert "'running'" in caught.value.__notes__[0]


def test_a_gradient_that_is_no_kernel_is_refused_at_the_call():
    @gs.custom_gradient(fused=True)
    def turned(x):
        return 2 * x, lambda dy: 2 * gnp.transpose(gnp.transpose(dy))

    np.testing.assert_array_equal(turned(X), 2 * X)  # nobody asks for its gradient
    with pytest.raises(gs.UnsupportedOperationError, match="transpose"):
        gs.grad(lambda x: np.sum(turned(x)))(X)


def test_captured_arrays_are_refused():
    weights = np.arange(37.0) + 1

    @gs.custom_gradient(fused=True)
    def weighted(x):
        return x * weights, lambda dy: dy * weights

    with pytest.raises(gs.UnsupportedOperationError, match="make it an argument"):
        weighted(X)


@pytest.mark.parametrize("make", [gs.Variable, gs.Tensor])
def test_captured_tensors_are_refused(make):
    """Also one number, which else would be a constant: it may have a gradient."""
    weight = make(2.0)

    @gs.custom_gradient(fused=True)
    def weighted(x):
        return x * weight, lambda dy: dy * weight

    with pytest.raises(gs.UnsupportedOperationError, match="make it an argument"):
        weighted(X)


def test_only_operations_are_fused():
    with pytest.raises(gs.GradsmithError, match="takes an operation"):
        gs.fuse(np.exp)
    with pytest.raises(gs.GradsmithError, match="has no kernels"):
        gs.custom_gradient(lambda x: (x, lambda dy: dy)).kernels(X)


def test_operations_of_ours_that_are_no_kernel_are_composed():
    y = ops.softmax(np.ones((200, 100)), axis=0)
    np.testing.assert_allclose(y, 1 / 200)


# Values


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@given(data=st.data())
def test_positions_are_the_first_ones_and_those_of_nan(dtype, data):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, max_side=20))
    elements = [-1, 0, 2] if dtype == "int32" else [-np.inf, -1.5, -0.0, 0.0, np.nan]
    x = data.draw(hnp.arrays(dtype, shape, elements=st.sampled_from(elements)))
    for find in (np.argmax, np.argmin):
        for axis in (-1, None):
            program = gs.trace(lambda x, f=find, axis=axis: f(x, axis=axis), x)
            np.testing.assert_array_equal(Kernel(program)(x), find(x, axis=axis))


@given(
    n=st.integers(-(2**31), 2**31 - 1),
    shift=st.integers(0, 31),
    dtype=st.sampled_from(["int32", "int64"]),
)
def test_bits_are_shifted_with_the_sign(n, shift, dtype):
    x = np.array([n, -n // 3, 5], dtype)
    program = gs.trace(lambda x: np.right_shift(x, shift), x)
    np.testing.assert_array_equal(Kernel(program)(x), x >> shift)


@pytest.mark.parametrize("seed", [3, -1, np.array(2**40 + 5)], ids=repr)
@pytest.mark.parametrize("shape", [(5, 37), (1, 300), (2, 3, 50)], ids=str)
def test_random_numbers_are_those_of_the_composed_form(seed, shape, monkeypatch):
    monkeypatch.setattr(fusing, "SMALL", 0)
    x = np.linspace(-2, 2, np.prod(shape)).reshape(shape)
    for fn in (ops.noise, ops.gumbel_softmax):
        assert not fn.kernels(x, seed).forward.nest.constants
        value = gs.value_and_grad(lambda x, fn=fn: np.sum(fn(x, seed) ** 2))
        got = value(x)
        with gs.kernels(False):
            expected = value(x)
        np.testing.assert_allclose(got[0], expected[0], rtol=1e-13)
        np.testing.assert_allclose(got[1], expected[1], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_strides_and_empty_arrays(dtype, monkeypatch):
    monkeypatch.setattr(fusing, "SMALL", 0)
    x = X.astype(dtype)
    for each in (x.T, x[:, ::2], x[1:-1, 3:-2], x[:0], np.broadcast_to(x[:1], (5, 37))):
        for fn in (ops.silu, ops.softmax):
            value = gs.value_and_grad(lambda x, fn=fn: np.sum(fn(x) ** 2))
            got = value(each)
            with gs.kernels(False):
                expected = value(each)
            rtol = 4 * np.finfo(dtype).eps
            np.testing.assert_allclose(got[0], expected[0], rtol=8 * rtol)
            np.testing.assert_allclose(got[1], expected[1], rtol=8 * rtol, atol=rtol)


def test_sums_of_float64_carry_what_rounding_takes():
    @gs.custom_gradient(fused=True)
    def total(x):
        return gnp.sum(x, axis=-1), lambda dy: gnp.zeros_like(x) + dy[:, None]

    x = np.full((1, 10**6), 0.1)
    x[0, 0] = 1e9
    exact = 1e9 + 0.1 * (10**6 - 1)
    assert abs(total(x)[0] - exact) <= 2 * np.spacing(exact)


@pytest.mark.parametrize("n", [63, 64, 150, 100_003])
@pytest.mark.parametrize("term", [np.exp, np.square, np.abs])
def test_sums_of_float32_that_are_not_negative(term, n):
    x = np.random.default_rng(n).normal(size=(3, n)).astype(np.float32)
    y = Kernel(gs.trace(lambda x: np.sum(term(x), axis=-1), x))(x)
    exact = np.sum(term(x.astype(float)), axis=-1)
    np.testing.assert_allclose(y, exact, rtol=float(np.finfo(np.float32).eps))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("find", [np.max, np.min])
def test_extremes_find_nan_in_every_register(find, dtype):
    x = np.random.default_rng(0).normal(size=(150, 149)).astype(dtype)
    x[::2, 7], x[::3, 11] = np.inf, -np.inf
    np.fill_diagonal(x, np.nan)  # in each column, and in no column of the last row
    y = Kernel(gs.trace(lambda x: find(x, axis=-1), x))(x)
    np.testing.assert_array_equal(y, find(x, axis=-1))
    assert np.isnan(y).sum() == 149


def test_sums_with_infinities():
    @gs.custom_gradient(fused=True)
    def total(x):
        return gnp.sum(x, axis=-1), lambda dy: gnp.zeros_like(x) + dy[:, None]

    x = np.array([[1.0, np.inf], [-np.inf, np.inf], [1e308, 1e308], [np.nan, 1.0]])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(total(x), np.sum(x, -1))


HALF = {"silu": ops.silu, "sigmoid": ops.sigmoid, "softplus": ops.softplus}


@pytest.mark.parametrize("name", HALF)
def test_all_of_float16(name):
    """Value and gradient of every number are those of float64, rounded."""
    fn = HALF[name]
    x = np.arange(2**16, dtype=np.uint16).view(np.float16)
    x = x[np.isfinite(x)]
    results = []
    with np.errstate(all="ignore"):
        for each in (x, x.astype(np.float64)):
            y, pull = gs.vjp(fn, each)
            results.append((y, *pull(np.ones_like(each))))
    for got, true in zip(*results, strict=True):
        with np.errstate(over="ignore"):
            ulp = np.spacing(np.abs(true).astype(np.float16)).astype(np.float64)
        assert np.max(np.abs(np.asarray(got, np.float64) - true) / ulp) < 0.51


@pytest.mark.parametrize("name", ["sigmoid", "silu", "softplus", "log_sigmoid", "gelu"])
def test_an_audit_is_of_the_kernel(name, monkeypatch):
    pytest.importorskip("flint")
    monkeypatch.setattr(fusing, "SMALL", 0)
    found = gs.audit(getattr(ops, name), (-110, 110), points=2000)
    assert found.value.max_ulp <= 4
    assert found.gradient.max_ulp <= 4


@pytest.mark.parametrize("name", ["silu", "gelu"])
def test_older_processors_have_as_many_digits(name, monkeypatch):
    """Those without FMA, AVX2 and AVX-512."""
    pytest.importorskip("flint")
    monkeypatch.setattr(fusing, "SMALL", 0)
    here = machine.this_machine()
    old = machine.Machine(here.name, here.features, 16, fma=False, scales=False)
    for module in (kernel, primitives):
        monkeypatch.setattr(module, "this_machine", lambda: old)
    op = getattr(ops, name)
    op.fused.forget()
    try:
        found = gs.audit(op, (-110, 110), points=1000)
    finally:
        op.fused.forget()
    assert found.value.max_ulp <= 4
    assert found.gradient.max_ulp <= 4


# Off, and not there


def test_the_environment_turns_kernels_off():
    script = (
        "import os; os.environ['GRADSMITH_KERNELS'] = 'off'\n"
        "import sys, numpy as np, gradsmith as gs\n"
        "gs.ops.silu(np.ones(10**5)); print('llvmlite' in sys.modules)"
    )
    assert run(script) == ["False"]


def test_importing_us_does_not_import_llvm():
    script = (
        "import sys, gradsmith as gs; gs.ops.silu; print('llvmlite' in sys.modules)"
    )
    assert run(script) == ["False"]


def test_without_llvm_all_is_composed():
    script = (
        "import sys, importlib.util as u\n"
        "find = u.find_spec\n"
        "u.find_spec = lambda name: None if name == 'llvmlite' else find(name)\n"
        "import numpy as np, gradsmith as gs\n"
        "print(gs.ops.silu.fused, gs.ops.silu(np.zeros(10**5)).sum())\n"
        "try:\n    gs.fuse(gs.ops.silu)\n"
        "except gs.GradsmithError as e:\n    print('gradsmith[kernels]' in str(e))"
    )
    assert run(script) == ["None", "0.0", "True"]


def test_plans_are_bounded(monkeypatch):
    monkeypatch.setattr(fusing, "MOST_PLANS", 4)
    monkeypatch.setattr(fusing, "SMALL", 0)
    for n in range(10):
        ops.sigmoid(np.ones(n + 1))
    assert 0 < len(ops.sigmoid.fused._plans) <= 4


def test_the_loops_are_shown():
    text = str(ops.softmax.kernels(np.ones((4, 5), "float32")))
    assert text.startswith("def softmax(x0: float32, y0: float32):")
    assert "for r in range(4):" in text
    assert "max of" in text
    assert "def softmax_gradient" in text


def test_a_kernel_is_vectorised():
    source = ops.silu.kernels(np.ones(4, "float32")).forward.source
    assert "x float>" in source
    assert "@expf" not in source


# Small arrays


def test_the_smallest_arrays_are_composed_and_small_ones_in_many_shapes(monkeypatch):
    monkeypatch.setattr(fusing, "MOST_SMALL", 2)
    made, plan = [], fusing.Fused.planned
    monkeypatch.setattr(
        fusing.Fused, "planned", lambda *args: (made.append(args), plan(*args))[1]
    )
    monkeypatch.setattr(ops.sigmoid, "fused", fusing.Fused(ops.sigmoid, strict=False))
    first = {}
    for n in (511, 512, 513, 514, 511, 512, 513, 514):
        y = ops.sigmoid(np.linspace(-9, 9, n, dtype="float32"))
        np.testing.assert_array_equal(y, first.setdefault(n, y))
    assert len(made) == 2


def test_kernels_that_pick_one_element_of_a_row_are_shown():
    from gradsmith.ops import _rows

    labels = np.zeros(5, int)
    text = str(_rows.of_classes.kernels(X, labels, 1, 0.0, -100, 0.0))
    assert "where c = " in text


@pytest.mark.parametrize("on", ["off", 0, None])
def test_kernels_are_on_or_off(on):
    before = fusing.is_on()
    with pytest.raises(gs.GradsmithError, match="True or False"), gs.kernels(on):
        pass
    assert fusing.is_on() is before
