"""Writes into the arrays of a traced function."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradsmith as gs

X = np.random.default_rng(0).normal(size=(4, 5))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    e /= e.sum(-1, keepdims=True)
    return e


def shifted(x):
    y = np.zeros_like(x)
    y[1:] = x[:-1]
    y[0] += 1.0
    y[:, 2] *= x[:, 1]
    y[y > 0.5] = 0.5
    return y


def other_names(x):
    y = np.exp(x)
    same, row, turned = y, y[1], y.T
    y += 1.0
    row *= 2.0
    turned[0] -= 5.0
    return y, same, row, turned, x


def scattered(x):
    y = np.zeros_like(x[0], shape=3)
    np.add.at(y, np.array([0, 2, 0, 2]), x[:, 0])
    np.fill_diagonal(z := np.exp(x), 0.0)
    np.put_along_axis(z, np.argmax(x, 1)[:, None], 9.0, 1)
    np.copyto(z, x, where=x > 1)
    return y, z


def safely(x):
    return np.divide(1.0, x, out=np.zeros_like(x), where=x > 0)


def into(x):
    y = np.empty_like(x)
    np.multiply(x, 2, out=y)
    np.sin(y, y)
    y.sort()
    z = np.exp(x)
    z.fill(3.0)
    return y, z


def numbers(x):
    total, first = 0.0, x[0, 0]
    least = first
    for row in x:
        total += row.sum()
        least -= 1.0
    return total, first, least


def fresh(x):
    y, z, flat = x.copy(), x.astype(float), x.flatten()
    y += 1.0
    z[0] = 2.0
    flat[3] = 0.0
    return y, z, flat, x * 1.0


def in_a_row(x):
    y = np.exp(x).reshape(-1)  # nobody else has its memory
    y -= y.mean()
    return y.reshape(4, 5)


def whole_numbers(x):
    y = np.zeros_like(x, dtype=int)
    y[x > 0] = 3
    y[np.arange(3), np.arange(3)] += 1
    return y


def by_place(x):
    y, sums, z = np.zeros_like(x), np.zeros_like(x[0]), np.exp(x)
    np.clip(x, 0, 1, y)
    np.sum(x, 0, None, sums)
    z.round(1, z)
    stacked = np.zeros_like(x, shape=(2, 4, 5))
    np.stack([x, z], 0, stacked)
    product = np.zeros_like(x, shape=(4, 4))
    np.dot(x, x.T, product)
    return y, sums, z, stacked, product


def in_more_digits(x):
    short, sums = x.astype(np.float32), np.zeros_like(x[0])
    means, totals = np.zeros_like(sums), np.zeros_like(x)
    np.sum(short, axis=0, out=sums)
    np.mean(short, 0, None, means)
    np.add.accumulate(short, 0, out=totals)
    return sums, means, totals


def maybe_copies(x):
    y, z = np.exp(x), x.copy()
    same, other = y.astype(float, copy=False), np.astype(z, x.dtype, copy=False)
    same += 1.0
    other *= 2.0
    narrow = y.astype(np.float32, copy=False)
    narrow += 1.0
    return y, z, narrow


def without_nan(x):
    y, z = np.where(x > 0, np.nan, x), x.copy()
    z[0, 0] = np.nan
    same = np.nan_to_num(y, False, -9.0)
    row = np.nan_to_num(z[0], copy=False, nan=3.0)
    copied = np.nan_to_num(np.where(x > 0, np.inf, x))
    return y, same, z, row, copied


def medians(x):
    y = x.copy()
    z = y * 2.0
    return np.median(y, overwrite_input=True), np.median(z, 0, None, True), y.sum()


def numbers_and_arrays_of_one(x):
    y = np.exp(x)
    found = []
    for number in (
        np.linalg.norm(y), np.trace(y), np.einsum("ij,ij->", y, y), np.median(y),
        np.nanmax(y), np.real(y[0, 0]), np.where(y[0, 0] > 1, y[0, 0], 0.0),
        np.tensordot(y, y), np.copy(y[0, 0]), y[0, 0].copy(), y.sum().astype("f4"),
        np.where(y[0, 0] > 1, 2.0, 3.0).astype("f4"), np.linalg.slogdet(y[:, :4])[1],
        y[0, 0, ...], np.round(y.max()), np.squeeze(y.min()), np.copy(a=y)[1, 1],
    ):  # fmt: skip
        other = number
        number += 1.0
        found += [number, other]
    return *found, y


def at_a_place_that_is_computed(x):
    y = np.exp(x)
    i = np.argmax(y[:, 0])
    row, column, copy = y[i], y[1:, i], y[np.array(1)]
    row += 1.0
    column[0] = 5.0
    y[i] *= 2.0
    copy -= 1.0
    i += 1
    y[i - 1, 0] = 7.0
    return y, row, column, copy, i


def norm_of_an_argument(x):
    n = np.linalg.norm(x)
    n += 1.0
    return n, x


PROGRAMS = [
    softmax, shifted, other_names, scattered, safely, into, numbers, fresh, in_a_row,
    whole_numbers, by_place, in_more_digits, maybe_copies, without_nan, medians,
    numbers_and_arrays_of_one, at_a_place_that_is_computed, norm_of_an_argument,
]  # fmt: skip


def results(fn, x):
    y = fn(x)
    return y if isinstance(y, tuple) else (y,)


def pasted(program):
    names = {}
    exec(str(program), names)
    return names[program.name]


@pytest.mark.parametrize("fn", PROGRAMS)
@pytest.mark.parametrize("kernels", [True, False])
def test_writes_are_those_of_numpy(fn, kernels):
    expected = results(fn, X.copy())
    program = gs.trace(fn, X)
    with gs.kernels(kernels):
        compiled = gs.compile(fn)
        runs = [program, pasted(program), compiled, compiled]
        for run in runs:
            x = X.copy()
            for found, y in zip(results(run, x), expected, strict=True):
                np.testing.assert_allclose(found, y, rtol=1e-14)
                assert np.asarray(found).dtype == np.asarray(y).dtype
            np.testing.assert_array_equal(x, X)


def of_an_argument(x):
    x += 1
    return x


def of_an_argument_that_is_not_copied(x):
    y = x.astype(x.dtype, copy=False)
    y += 1
    return y


def of_an_argument_without_nan(x):
    return np.nan_to_num(x, copy=False)


def of_a_row_of_it(x):
    row = x[np.argmax(x[:, 0])]
    row += 1
    return row


def of_its_view(x):
    y = x.reshape(-1)
    y[0] = 1
    return y


def of_an_array_of_numpy(x):
    y = np.zeros((4, 5))
    y += x
    return y


def of_an_element_of_numpy(x):
    y = np.zeros(5)
    y[0] = x[0, 0]
    return y


def at_places(x):
    y = np.zeros(5)
    np.add.at(y, np.array([0]), x[0, :1])
    return y


def maybe_written(x):
    y = np.exp(x)
    flat = y.reshape(-1)
    flat += 1
    return y


def maybe_the_same(x):
    y = np.exp(x)
    rows = np.diff(y, n=0)  # y itself
    rows += 1
    return y


def maybe_changed(x):
    y = np.exp(x)
    flat = y.reshape(-1)
    y += 1
    return flat[0]


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (of_an_argument, "changes an argument in place"),
        (of_an_argument_that_is_not_copied, "changes an argument in place"),
        (of_an_argument_without_nan, "changes an argument in place"),
        (of_a_row_of_it, "changes an argument in place"),
        (of_its_view, "changes an argument in place"),
        (of_an_array_of_numpy, "np.zeros_like"),
        (at_places, "np.zeros_like"),
        (of_an_element_of_numpy, "np.stack of a list"),
        (maybe_written, r"may share its memory .*test_writes.py:\d+"),
        (maybe_the_same, r"may share its memory .*test_writes.py:\d+"),
        (maybe_changed, r"may share its memory .*test_writes.py:\d+"),
    ],
)
def test_what_nobody_can_know_is_refused_with_its_line(fn, words):
    with pytest.raises(gs.UnsupportedOperationError, match=words) as caught:
        gs.trace(fn, X)
    assert f"{__file__}:" in str(caught.value)


def test_an_argument_without_axes_is_an_array_too():
    def fn(x):
        x += 1.0
        return x

    with pytest.raises(gs.UnsupportedOperationError, match="changes an argument"):
        gs.compile(fn)(np.array(1.0))
    assert gs.compile(fn)(np.float64(1.0)) == 2.0  # a number


@pytest.mark.parametrize(
    "change",
    [
        lambda n: np.add(n, 1.0, out=n),
        lambda n: np.copyto(n, 1.0),
    ],
)
def test_a_number_is_not_written_into(change):
    for run in (lambda fn: fn(X), lambda fn: gs.trace(fn, X)):
        with pytest.raises((TypeError, AttributeError)):
            run(lambda x: change(np.sum(np.exp(x))))


def test_what_a_rule_may_have_saved_is_not_changed():
    def fn(x, t):
        c = np.exp(t)
        y = x * c
        c += 1.0
        return np.sum(y)

    with pytest.raises(gs.UnsupportedOperationError, match="may have saved"):
        gs.trace(gs.grad(fn), X, X)


@pytest.mark.parametrize(
    ("other", "error"), [(np.ones((3, 4, 5)), ValueError), (1j, TypeError)]
)
def test_shape_and_dtype_are_kept(other, error):
    def fn(x):
        y = np.exp(x)
        y += other
        return y

    for run in (fn, lambda x: gs.trace(fn, x)):
        with pytest.raises(error):
            run(X)


def test_an_operation_that_writes_is_fused():
    @gs.custom_gradient(fused=True)
    def op(x):
        y = np.exp(x)
        y += 1.0
        return y, lambda dy: dy * (y - 1.0)

    found = gs.grad(lambda x: np.sum(op(x)))(X)
    np.testing.assert_allclose(found, np.exp(X), rtol=1e-14)


# Random programs: arrays, views of them by all ways, and writes into any of them

VIEWS = [
    lambda x: x[1:],
    lambda x: x[..., ::-1],
    lambda x: x[:, 0],
    lambda x: x[-1],
    lambda x: x[None],
    lambda x: x.T,
    lambda x: np.swapaxes(x, 0, -1),
    lambda x: np.squeeze(x),
    lambda x: np.expand_dims(x, 1),
    lambda x: np.reshape(x, (-1,)),
    lambda x: np.flip(x),
    lambda x: x.copy(),
    lambda x: x + 1.0,
    lambda x: x[np.array([0, 0])],
]


def add_to(x, y):
    x += y.sum()


def put_into(x, y):
    x[0] = y.max()


def scale_a_part(x, y):
    x[..., 1:] *= 1.5


def flip_into(x, y):
    x[...] = x[..., ::-1]


def choose(x, y):
    x[x > 0.3] = -0.3


WRITES = [add_to, put_into, scale_a_part, flip_into, choose]
LINES = st.tuples(
    st.sampled_from([*VIEWS, *WRITES]), st.integers(0, 99), st.integers(0, 99)
)


@settings(max_examples=150)
@given(st.lists(LINES, min_size=2, max_size=12))
def test_random_views_and_writes(lines):
    def fn(x):
        arrays = [np.exp(x), x * 2.0]
        for line, i, j in lines:
            a, b = arrays[i % len(arrays)], arrays[j % len(arrays)]
            if a.ndim < 1 or (line is VIEWS[2] and a.ndim < 2):
                continue
            if line in VIEWS:
                arrays.append(line(a))
            else:
                line(a, b)
        return arrays

    x = X[:3, :3]
    try:
        expected = fn(x)
    except (IndexError, ValueError):  # NumPy's own
        with pytest.raises((IndexError, ValueError, gs.UnsupportedOperationError)):
            gs.trace(fn, x)
        return
    if {VIEWS[9], VIEWS[10]} & {line for line, *_ in lines}:
        try:
            program = gs.trace(fn, x)
        except gs.UnsupportedOperationError as error:
            if "may share its memory" not in str(error):
                raise
            return
    else:
        program = gs.trace(fn, x)
    for run in (program, gs.compile(fn)):
        for found, y in zip(run(x), expected, strict=True):
            np.testing.assert_allclose(found, y, rtol=1e-13)


def with_two_names(x):
    y = x * 2.0
    other = y
    y += 1.0
    return np.sum(other * y)


def with_one_name(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    e /= e.sum(-1, keepdims=True)
    return np.sum(e * x)


def test_what_a_pullback_has_is_not_changed_by_way_of_the_value():
    def fn(x):
        y, pull = gs.vjp(np.tanh, x)
        y += 1.0  # NumPy's is read-only
        return pull(x)[0]

    np.testing.assert_allclose(gs.compile(fn)(X), X / np.cosh(X) ** 2, rtol=1e-12)


@pytest.mark.parametrize("fn", [with_two_names, with_one_name])
def test_under_a_tape_value_and_gradient_are_of_the_same_function(fn):
    value, dx = gs.value_and_grad(fn)(X)
    for both in (gs.value_and_grad(gs.compile(fn)), gs.compile(gs.value_and_grad(fn))):
        found, slope = both(X)
        assert found == pytest.approx(value, rel=1e-13)
        np.testing.assert_allclose(slope, dx, rtol=1e-12, atol=1e-13)


def with_a_pullback(x):
    y = x * 1.0
    _, pull = gs.vjp(lambda y: np.sum(y * y * y), y)
    y += 1.0
    return pull(1.0)[0], y


def with_a_cotangent(x):
    dy = x * 2.0
    _, pull = gs.vjp(lambda y: y.T, x * 1.0)
    dx = pull(dy.T)[0]
    dx += 1.0
    return dx, dy


def with_more(x):
    more = x * 2.0
    _, same = gs.grad(lambda x: (np.sum(x * x), more), has_aux=True)(x)
    same += 1.0
    return more, same


within = gs.compile(lambda x: x)


def with_a_compiled_function(x):
    y = x * 2.0
    z = within(y)
    z += 1.0
    return y, z


@pytest.mark.parametrize(
    "fn", [with_a_pullback, with_a_cotangent, with_more, with_a_compiled_function]
)
def test_results_of_transforms_share_memory_as_ever(fn):
    for run in (gs.trace(fn, X), gs.compile(fn)):
        for found, y in zip(run(X), fn(X), strict=True):
            np.testing.assert_allclose(found, y, rtol=1e-13)


def test_what_an_operation_is_given_is_not_written_into():
    @gs.custom_gradient
    def doubled(x):
        x += x
        return x, lambda dy: 2.0 * dy

    @gs.custom_gradient
    def exponential(x):
        y = np.exp(x)

        def grad(dy):
            dy *= y
            return dy

        return y, grad

    for fn in (
        lambda x: np.sum(doubled(3.0 * x)),
        gs.grad(lambda x: np.sum(np.sin(exponential(x) + 2.0 * x))),
    ):
        with pytest.raises(ValueError, match="read-only"):
            fn(X)
        with pytest.raises(gs.UnsupportedOperationError, match="changes an argument"):
            gs.compile(fn)(X)
