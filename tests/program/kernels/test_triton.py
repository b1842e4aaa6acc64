"""Kernels for GPUs: their source, run by a stand-in for Triton.

On a GPU, by Triton itself: tests/frameworks/torch/test_cuda.py.
"""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith import ops
from gradsmith.core.cotangent import Spec
from gradsmith.operations.fusing import Fused
from gradsmith.ops._rows import of_classes
from gradsmith.ops.regression import _huber_total
from gradsmith.program.kernels import triton_launch
from gradsmith.program.kernels.kernel import Kernel
from gradsmith.program.kernels.mode import for_kernel
from gradsmith.program.kernels.triton_kernel import GpuKernel
from gradsmith.program.trace import trace

from .stand_in import triton


def classes(x, labels):
    return of_classes(x, labels, 1, 0.0, -100, 0.0)


def gradient(fn):
    def pulled(dy, *args):
        y, pull = gs.vjp(lambda x: fn(x, *args[1:]), args[0])
        return y, pull(dy)

    return pulled


def run(program, arrays, monkeypatch, strides=None):
    """What the kernel of a program writes."""
    kernel = Kernel(program)
    with triton(monkeypatch):
        started = GpuKernel(kernel.nest, kernel.storage)
        written = [np.empty(v.shape, v.dtype) for v in program.results]
        given = [np.ascontiguousarray(x) for x in (*arrays, *kernel.nest.constants)]
        own = [n for kind, _ in kernel.nest.inputs for n in started.strides(kind)]
        started.start([*given, *written, *_words(started)], strides or own, 2)
    return written


def _words(kernel):
    return [np.zeros(kernel.words, "int64")] if kernel.words else []


def arrays_of(shape, dtype="float32", seed=0):
    rng = np.random.default_rng(seed)
    x = (3 * rng.normal(size=shape)).astype(dtype)
    return x, rng.normal(size=shape).astype(dtype), rng.integers(0, shape[1], shape[0])


FORMS = ["whole", "shared", "chunks"]
SHAPES = [(1, 5), (4, 8), (3, 100), (300, 3), (2, 2500)]
ELEMENTWISE = ["silu", "sigmoid", "softplus", "gelu", "softmax", "log_softmax"]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_value_and_gradient(name, shape, monkeypatch):
    x, dy, _ = arrays_of(shape)
    _compare(gradient(lambda x: getattr(ops, name)(x)), (dy, x), monkeypatch)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_rows_with_labels(shape, form, monkeypatch):
    x, dy, labels = arrays_of(shape)
    _in_form(form, monkeypatch)
    _compare(gradient(classes), (dy[:, 0].copy(), x, labels), monkeypatch)


def test_rows_with_labels_and_their_number(monkeypatch):
    x, dy, labels = arrays_of((4, 100))

    def mean(x, labels, n):
        return of_classes(x, labels, 1, 0.0, -100, 0.0, n)

    args = dy[:, 0].copy(), x, labels, np.array([4])
    _compare(gradient(mean), args, monkeypatch)


def test_rows_in_parts_with_infinities_and_nans(monkeypatch):
    x, _, labels = arrays_of((6, 11))
    x[0, 1], x[1], x[2, 3], x[3, 2:4] = np.inf, -np.inf, np.nan, np.inf
    x[4, :-1] = -100  # one takes nearly all
    for form in FORMS:
        _in_form(form, monkeypatch)
        for fn, args in (
            (classes, (x, labels)),
            (lambda x: ops.softmax(x), (x,)),
            (lambda x: ops.logsumexp(x, axis=-1), (x,)),
        ):
            _compare(fn, args, monkeypatch)


def test_half_precision_is_read_and_written_as_such(monkeypatch):
    x, _, _ = arrays_of((4, 40))
    program = _traced(lambda x: ops.softmax(x), x)
    kernel = Kernel(program, ("float16", "float16"))
    half = x.astype("float16")
    with triton(monkeypatch):
        y = np.empty(x.shape, "float16")
        started = GpuKernel(kernel.nest, kernel.storage)
        started.start([half, y], [40, 1], 2)
    assert "reread" in started.source
    np.testing.assert_allclose(y, ops.softmax(half), rtol=2e-3, atol=1e-7)


SMALL_TILES = {"LONGEST": 16, "_CHUNK": 16, "_TILE": 8}


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("shape", [(6, 40), (5, 100)], ids=str)
@pytest.mark.parametrize("name", ["of_classes", "huber"])
def test_the_gradient_of_a_loss_is_made_in_the_forward_pass(
    name, shape, small, monkeypatch
):
    for each, n in SMALL_TILES.items() if small else ():
        monkeypatch.setattr(triton_launch, each, n)
    x, t, labels = arrays_of(shape)
    op, *args = {
        "of_classes": (of_classes, x, labels, 1, 0.0, -100, 0.0, 6, True),
        "huber": (_huber_total, x, t, 1.0, "mean"),
    }[name]
    bound = op.signature.bind(tuple(args), {})
    plan = Fused(op, strict=True).planned(bound, [0], gpu=True, ahead=True)
    assert plan.ahead
    assert plan.parts is not None
    given = {"x": bound.leaves}
    parts, *given["saved"] = _started(plan.forward, given["x"], monkeypatch)
    y, pull = gs.vjp(lambda x: op(x, *args[1:]), x)
    np.testing.assert_allclose(parts.sum(), y, rtol=1e-6)
    for dy in (1, 3):
        given["dy"] = [np.array(dy, x.dtype)]
        (dx,) = pull(given["dy"][0])
        read = [given[name][i] for name, i in plan.sources]
        made = given["saved"][plan.small]
        (apart,) = _started(plan.backward(), read, monkeypatch)
        np.testing.assert_allclose(apart, dx, rtol=2e-6, atol=1e-9)
        (place,) = (k for k, each in enumerate(read) if each is made)
        read[place] = made = made.copy()
        _started(plan.backward(), read, monkeypatch, [made])
        np.testing.assert_array_equal(made, apart)


def test_a_product_in_place_by_1_writes_nothing(monkeypatch):
    x, t, _ = arrays_of((6, 40))
    bound = _huber_total.signature.bind((x, t, 1.0, "sum"), {})
    plan = Fused(_huber_total, strict=True).planned(bound, [0], gpu=True, ahead=True)
    found = []
    for dy in (1.0, 2.0):
        x.flags.writeable = True
        given = {"dy": np.array(dy, x.dtype), "saved": x}
        read = [given[name] for name, _ in plan.sources]
        x.flags.writeable = False
        try:
            _started(plan.backward(), read, monkeypatch, [x])
        except ValueError:
            found.append(dy)  # read-only
    assert found == [2.0]


def _started(kernel, given, monkeypatch, written=None):
    """What a kernel writes, into new memory unless it is given."""
    with triton(monkeypatch):
        started = GpuKernel(kernel.nest, kernel.storage, kernel.in_place)
        if written is None:
            written = [np.empty(v.shape, v.dtype) for v in kernel.program.results]
        own = [n for kind, _ in kernel.nest.inputs for n in started.strides(kind)]
        constants = kernel.nest.constants
        arrays = [*given, *constants, *written, *_words(started)]
        started.start(arrays, own, 2)
    return written


def test_a_user_s_function_with_a_column_and_integers(monkeypatch):
    def norm(x, weight, count):
        size = gnp.sqrt(gnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)
        return x / size * weight + gnp.astype(count, x.dtype)

    x, _, _ = arrays_of((5, 12))
    weight = np.linspace(1, 2, 12, dtype="float32")
    count = np.arange(60).reshape(5, 12)[:, ::-1].copy()
    _compare(norm, (x, weight, count), monkeypatch)


def test_strides_are_those_given(monkeypatch):
    x, _, _ = arrays_of((4, 6))
    program = _traced(lambda x: ops.softmax(x), x)
    turned = np.ascontiguousarray(x.T)
    (y,) = run(program, [turned], monkeypatch, strides=[1, 4])
    np.testing.assert_allclose(y, ops.softmax(x), rtol=1e-6)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_positions_and_random_numbers(shape, form, monkeypatch):
    x, dy, _ = arrays_of(shape)
    x[0, -1] = np.nan
    _in_form(form, monkeypatch)
    for fn in (ops.one_hot_argmax, ops.round, lambda x: ops.gumbel_softmax(x, 3)):
        _compare(lambda x, fn=fn: fn(x), (x,), monkeypatch)
    _compare(gradient(lambda x: ops.noise(x, 3)), (dy, x), monkeypatch)


def test_a_label_beyond_the_row_gives_nan(monkeypatch):
    x, _, labels = arrays_of((3, 5))
    labels[1] = 5
    (y,) = run(_traced(classes, x, labels), [x, labels], monkeypatch)
    assert np.isnan(y).tolist() == [False, True, False]


@pytest.mark.parametrize("form", FORMS)
def test_rows_that_are_ignored_are_not_read(form, monkeypatch):
    x, _, labels = arrays_of((4, 10))
    labels[1], x[1] = -100, np.nan
    _in_form(form, monkeypatch)
    program = _traced(gradient(classes), np.ones(4, "float32"), x, labels)
    y, dx = run(program, [np.ones(4, "float32"), x, labels], monkeypatch)
    assert y[1] == 0
    np.testing.assert_array_equal(dx[1], 0)
    others = [0, 2, 3]
    _, pull = gs.vjp(lambda x: classes(x, labels[others]), x[others])
    (expected,) = pull(np.ones(3, "float32"))
    np.testing.assert_allclose(dx[others], expected, rtol=3e-6, atol=1e-7)


@pytest.mark.parametrize("form", FORMS)
def test_one_place_of_a_row_is_written_over(form, monkeypatch):
    def marked(x, at):
        hot = gnp.equal(gnp.arange(x.shape[1]), gnp.expand_dims(at, 1))
        return gnp.where(hot, gnp.sum(x, axis=1, keepdims=True), 2 * x)

    x, _, at = arrays_of((4, 10))
    at[:2] = -1, 10  # none
    _in_form(form, monkeypatch)
    _compare(marked, (x, at), monkeypatch)
    kernel = Kernel(_traced(marked, x, at))
    assert "debug_barrier" in GpuKernel(kernel.nest, kernel.storage).source


@pytest.mark.parametrize("form", FORMS)
def test_a_column_that_equals_a_fraction_is_no_place(form, monkeypatch):
    def marked(x):
        top = gnp.max(x, axis=1, keepdims=True)
        return gnp.where(gnp.equal(gnp.arange(x.shape[1]), top), top, 2 * x)

    x, _, _ = arrays_of((4, 10))
    x[0, 0] = 9
    _in_form(form, monkeypatch)
    _compare(marked, (x,), monkeypatch)


def _in_form(form, monkeypatch):
    """Rows beyond 4 columns are shared by programs, or taken in chunks."""
    if form != "whole":
        parts = 100 if form == "shared" else 0
        small = {"LONGEST": 4, "_CHUNK": 16, "_SHARE": 32, "_MOST_PARTS": parts}
        for name, n in small.items():
            monkeypatch.setattr(triton_launch, name, n)


def _traced(fn, *args):
    with for_kernel(gpu=True), gs.kernels(False):
        return trace(fn, *args)


def _compare(fn, args, monkeypatch):
    """The kernel computes what the program does, in float32."""
    program = _traced(fn, *args)
    found = run(program, args, monkeypatch)
    with np.errstate(all="ignore"):
        expected = program(*args)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for y, e in zip(found, expected, strict=True):
        e = e[0] if isinstance(e, tuple) else e
        np.testing.assert_allclose(y, e, rtol=3e-6, atol=1e-6)


@pytest.mark.parametrize("columns", [16, 11])
@pytest.mark.parametrize("name", ["classes", "softmax", "logsumexp", "norm"])
def test_the_next_row_is_read_ahead(name, columns, monkeypatch):
    monkeypatch.setattr(triton_launch, "LONGEST", 16)
    x, _, labels = arrays_of((7, columns))
    x = x.astype("float16")
    labels[[1, 4]], x[1] = -100, np.nan  # rows that don't count
    fn, args = {
        "classes": (classes, (x, labels)),
        "softmax": (lambda x: ops.softmax(x), (x,)),
        "logsumexp": (lambda x: ops.logsumexp(x, axis=-1), (x,)),
        "norm": (lambda x: gnp.sqrt(gnp.mean(x * x, axis=1)), (x,)),
    }[name]
    program = _traced(fn, *[a.astype("float32") if a is x else a for a in args])
    kernel = Kernel(program, ["float16", *["int64"] * (len(args) - 1), "float16"])
    y = np.empty(program.results[0].shape, "float16")
    (written,) = _started(kernel, args, monkeypatch, [y])
    launch = GpuKernel(kernel.nest, kernel.storage).launch
    assert launch.ahead
    assert launch.programs(kernel.nest, 2) < 7
    with np.errstate(all="ignore"):
        expected = fn(*args)
    np.testing.assert_allclose(written, expected, rtol=2e-3, atol=1e-6)


@pytest.mark.parametrize("rows", [5, 16])
def test_the_parts_of_a_loss_are_added_up(rows, monkeypatch):
    x, _, labels = arrays_of((rows, 40))
    bound = of_classes.signature.bind((x, labels, 1, 0.0, -100, 0.0, rows, True), {})
    half = bound.with_leaves([Spec(x.shape, "float16"), Spec(labels.shape, "int64")])
    plan = Fused(of_classes, strict=True).planned(half, [0], gpu=True, ahead=True)
    assert (plan.parts.dtype, plan.y_dtype) == ("float32", "float16")
    parts = x[:, 0]
    (y,) = _started(plan.total, [parts], monkeypatch, [np.empty((), "float16")])
    assert y == parts.sum().astype("float16")


@pytest.mark.parametrize("columns", [32, 96, 70])
@pytest.mark.parametrize("name", ["classes", "softmax", "log_softmax", "norm", "any"])
@pytest.mark.parametrize("half", [False, True])
def test_programs_share_rows(name, columns, half, monkeypatch):
    _in_form("shared", monkeypatch)
    x, dy, labels = arrays_of((5, columns))
    if half:
        x, dy = x.astype("float16"), dy.astype("float16")
    labels[1], x[1], x[2] = -100, np.nan, -40
    x[2, 3], labels[2] = 3, 3  # one takes nearly all
    x[3, 0] = np.inf

    def norm(x):
        y = x - gnp.mean(x, axis=1, keepdims=True)
        return y / gnp.sqrt(gnp.mean(y * y, axis=1, keepdims=True))

    def any_of(x):
        return gnp.where(gnp.any(x > 5, axis=1, keepdims=True), x, 2 * x)

    fn, args = {
        "classes": (gradient(classes), (dy[:, 0].copy(), x, labels)),
        "softmax": (lambda x: ops.softmax(x), (x,)),
        "log_softmax": (gradient(lambda x: ops.log_softmax(x)), (dy, x)),
        "norm": (norm, (x,)),
        "any": (any_of, (x,)),
    }[name]
    program = _traced(fn, *[a.astype("f4") if a.dtype == "f2" else a for a in args])
    names = [a.dtype.name for a in args] + [x.dtype.name] * len(program.results)
    kernel = Kernel(program, names)
    launch = GpuKernel(kernel.nest, kernel.storage).launch
    assert launch.shared is not (half and name == "log_softmax")
    written = [np.empty(v.shape, x.dtype) for v in program.results]
    _started(kernel, args, monkeypatch, written)
    many = [a.astype(float) if a.dtype.kind == "f" else a for a in args]
    with np.errstate(all="ignore"):
        expected = fn(*many)
    if name in ("classes", "log_softmax"):
        expected = expected[0], *expected[1]
    tolerance = 2e-3 if half else 3e-6
    for y, e in zip(
        written, expected if isinstance(expected, tuple) else (expected,), strict=True
    ):
        np.testing.assert_allclose(y, e, rtol=tolerance, atol=tolerance / 3)


@pytest.mark.parametrize("held", [-np.inf, 2.0])
def test_an_exponential_off_another_top_is_its_own(held, monkeypatch):
    """Exponentials of a sum stand for those alone that are off its own top."""

    def shares(x):
        top = gnp.max(x, axis=1, keepdims=True)
        top = gnp.where(gnp.equal(top, held) if held < 0 else top > held, held, top)
        e = gnp.exp(gnp.where(gnp.equal(x, top), 0, x - top))
        return e / gnp.sum(gnp.exp(x), axis=1, keepdims=True) + ops.softmax(x)

    _in_form("shared", monkeypatch)
    x, _, _ = arrays_of((5, 70))
    x[1] = -np.inf
    _compare(shares, (x,), monkeypatch)


@pytest.mark.parametrize("form", FORMS)
def test_a_row_is_only_looked_into(form, monkeypatch):
    def off_label(x, labels):
        return x - gnp.take_along_axis(x, gnp.expand_dims(labels, 1), axis=1)

    _in_form(form, monkeypatch)
    x, _, labels = arrays_of((5, 70))
    _compare(off_label, (x, labels), monkeypatch)


def test_what_a_gather_reads_is_found_once(monkeypatch):
    def steps(x, labels):
        for _ in range(12):
            x = x + 0.01 * x * x
        return x - gnp.take_along_axis(x, gnp.expand_dims(labels, 1), axis=1)

    x, _, labels = arrays_of((5, 70))
    lines = Kernel(_traced(steps, x, labels)).on_gpu.source.splitlines()
    assert len(lines) < 1000  # 2**12 products, each found again
    _compare(steps, (0.1 * x, labels), monkeypatch)


@pytest.mark.parametrize(
    ("columns", "multiple"), [(7, 1), (6, 2), (12, 4), (24, 8), (32, 1)]
)
def test_what_divides_the_length_of_rows_is_told(columns, multiple, monkeypatch):
    x, dy, _ = arrays_of((5, columns))
    program = _traced(gradient(lambda x: ops.softmax(x)), dy, x)
    kernel = Kernel(program).on_gpu
    assert kernel.numbers()["MULTIPLE"] == multiple
    _compare(gradient(lambda x: ops.softmax(x)), (dy, x), monkeypatch)


def test_rows_that_are_apart_by_another_number(monkeypatch):
    x, _, _ = arrays_of((4, 13))
    program = _traced(lambda x: ops.softmax(x), x[:, :8])
    (y,) = run(program, [x], monkeypatch, strides=[13, 1])
    np.testing.assert_allclose(y, ops.softmax(x[:, :8]), rtol=1e-6)


@pytest.mark.parametrize(
    ("columns", "dtype", "block", "warps"),
    [
        (5000, "float32", 2048, 2),
        (5000, "float16", 4096, 2),
        (50257, "float32", 8192, 4),
        (50257, "float16", 4096, 4),
        (65536, "float32", 8192, 4),
    ],
)
def test_long_rows_of_uneven_length_are_shared(columns, dtype, block, warps):
    x = np.empty((2, columns), "float32")
    nest = Kernel(_traced(lambda x: ops.softmax(x), x)).nest
    launch = triton_launch.launch_of(nest, [dtype, dtype])
    assert launch.shared
    assert (launch.block, launch.warps) == (block, warps)


@pytest.mark.parametrize("columns", [3000, 4096, 32768])
def test_short_rows_and_powers_of_two_are_not(columns):
    x = np.empty((2, columns), "float32")
    nest = Kernel(_traced(lambda x: ops.softmax(x), x)).nest
    assert not triton_launch.launch_of(nest, ["float32"] * 2).shared


def test_programs_share_no_row_that_fills_a_small_gpu(monkeypatch):
    _in_form("shared", monkeypatch)
    x, _, _ = arrays_of((5, 100))
    kernel = Kernel(_traced(lambda x: ops.softmax(x), x)).on_gpu
    assert kernel.words == 5 * 4
    assert kernel.for_gpu(16) is kernel
    apart = kernel.for_gpu(15)
    assert apart.launch.chunked
    assert apart.words == 0


@pytest.mark.parametrize("twice", [False, True])
def test_a_row_read_ahead_counts_by_each_of_its_flags(twice, monkeypatch):
    monkeypatch.setattr(triton_launch, "LONGEST", 16)

    def shares(x, first, second):
        def some(flags):
            flags = gnp.expand_dims(flags, 1)
            return gnp.where(gnp.greater(flags, 0), x, gnp.zeros_like(x))

        y = gnp.sum(gnp.exp(some(first)), axis=1, keepdims=True)
        return some(first) / y + (some(second) if twice else 0)

    x = arrays_of((7, 16))[0].astype("float16")
    first, second = np.arange(7) % 2, np.arange(7) % 3
    program = _traced(shares, x.astype("float32"), first, second)
    kernel = Kernel(program, ["float16", "int64", "int64", "float16"])
    (y,) = _started(kernel, (x, first, second), monkeypatch, [np.empty_like(x)])
    source = GpuKernel(kernel.nest, kernel.storage).source
    assert ("next_flag" in source) is not twice
    np.testing.assert_allclose(y, shares(x, first, second), rtol=4e-3, atol=1e-6)


def _of_rows(x, counts):
    return gnp.where(gnp.expand_dims(gnp.greater(counts, 0), 1), x, 0.0)


def _of_late_rows(x, counts):
    return _of_rows(x, gnp.max(_of_rows(x, counts), axis=1))


# Functions of rows that count by one of two arrays
COUNTED = {
    "softmax": lambda x, a, b: ops.softmax(_of_rows(x, a)),
    "logsumexp": lambda x, a, b: ops.logsumexp(_of_rows(x, a), axis=1),
    "two": lambda x, a, b: ops.softmax(_of_rows(x, a)) + _of_rows(x, b),
    "late": lambda x, a, b: ops.softmax(_of_late_rows(x, a)),
    "and all": lambda x, a, b: ops.softmax(_of_rows(x, a)) + x,
    "gathered": lambda x, a, b: gnp.take_along_axis(
        _of_late_rows(x, a), gnp.expand_dims(b, 1), axis=1
    ),
}


@pytest.mark.parametrize("columns", [16, 11])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("name", COUNTED)
def test_rows_that_do_not_count_are_zeros(name, dtype, columns, monkeypatch):
    """Where rows are read ahead (float16), and where they are not."""
    monkeypatch.setattr(triton_launch, "LONGEST", 16)
    x = arrays_of((7, columns))[0].astype(dtype)
    a, b = np.array([[1, 0, 1, 1, 0, 0, 1], [1, 1, 0, 1, 0, 1, 0]])
    wide = x.astype("float32")
    program = _traced(COUNTED[name], wide, a, b)
    kernel = Kernel(program, [dtype, "int64", "int64", dtype])
    y = np.empty(program.results[0].shape, dtype)
    (written,) = _started(kernel, [x, a, b], monkeypatch, [y])
    rtol = 3e-3 if dtype == "float16" else 3e-6
    np.testing.assert_allclose(written, COUNTED[name](wide, a, b), rtol=rtol, atol=rtol)
