"""Functions without a gradient run, say why they have none, and change nothing."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.core.rule import RULES, Nondifferentiable
from gradsmith.rules.nondifferentiable import IN_PLACE

X = np.array([[0.5, -1.5], [2.5, 0.5]])

# How to call the functions that want more than one floating array.
CALLS = {
    np.isin: lambda x: np.isin(x, [0.5]),
    np.searchsorted: lambda x: np.searchsorted(np.array([0.0, 1.0]), x),
    np.digitize: lambda x: np.digitize(x, [0.0, 1.0]),
    np.argpartition: lambda x: np.argpartition(x, 1),
    np.einsum_path: lambda x: np.einsum_path("ij,jk", x, x),
    np.can_cast: lambda x: np.can_cast(x.value, np.complex128),
}
PAIRS = {np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
    np.logical_and, np.logical_or, np.logical_xor, np.isclose, np.allclose,
    np.array_equal, np.array_equiv, np.may_share_memory, np.shares_memory,
    np.floor_divide, getattr(np, "in1d", None)}  # fmt: skip
WHOLE = {np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.left_shift, np.right_shift,
    np.gcd, np.lcm, np.ravel_multi_index, np.unravel_index, np.busday_count,
    np.busday_offset, np.is_busday, np.datetime_as_string, np.packbits, np.unpackbits,
    np.invert, np.bitwise_count, np.isnat}  # fmt: skip
FILES = {np.save, np.savez, np.savez_compressed, np.savetxt}


def floating_functions():
    for fn, rule in RULES.items():
        ours = isinstance(rule, Nondifferentiable) and rule.name.startswith("np.")
        if ours and fn not in WHOLE | FILES | {np.can_cast}:
            yield fn


@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated")  # from NumPy 2.5 on
@pytest.mark.filterwarnings("ignore:`in1d` is deprecated")  # before NumPy 2.4
@pytest.mark.parametrize("fn", [*floating_functions()], ids=lambda fn: fn.__name__)
def test_runs_as_in_numpy_and_says_why(fn):
    call = CALLS.get(fn, (lambda x: fn(x, x)) if fn in PAIRS else fn)
    expected = call(X)
    x = gs.Tensor(X)
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = call(x)
    assert _plain(y) == _plain(expected)
    if isinstance(y, gs.Tensor):
        told = tape.explain(y * 1.0, x)
        assert RULES[fn].why in told
        assert RULES[fn].name in told
    assert np.array_equal(x.value, X)


def _plain(y):
    return repr(gs.core.tensor.unwrap(y)).replace("Tensor", "array")


def test_files(tmp_path):
    x = gs.Tensor(X)
    np.save(tmp_path / "x.npy", x)
    np.savetxt(tmp_path / "x.txt", x)
    np.savez(tmp_path / "x.npz", x=x)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), X)
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "x.txt"), X)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npz")["x"], X)


def test_whole_numbers():
    n = gs.Tensor([5, 3])
    np.testing.assert_array_equal((n & 1).numpy(), [1, 1])
    np.testing.assert_array_equal(np.unravel_index(n, (3, 3))[0].numpy(), [1, 1])
    np.testing.assert_array_equal(np.packbits(gs.Tensor([1, 0, 1])).numpy(), [160])


ARGUMENTS = {
    np.copyto: (X,),
    np.fill_diagonal: (1.0,),
    np.place: (X > 0, [1.0]),
    np.put: ([0], [1.0]),
    np.put_along_axis: (np.zeros((1, 2), int), 1.0, 0),
    np.putmask: (X > 0, 1.0),
}


@pytest.mark.parametrize("fn", IN_PLACE, ids=lambda fn: fn.__name__)
def test_writing_in_place_raises(fn):
    x = gs.Tensor(X)
    with pytest.raises(gs.UnsupportedOperationError, match=f"np.{fn.__name__} writes"):
        fn(x, *ARGUMENTS[fn])
    np.testing.assert_array_equal(x.value, X)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, out: np.floor(x, out=out),
        lambda x, out: np.sum(x, axis=0, out=out),
        lambda x, out: np.take(x, [0, 1], out=out),
        lambda x, out: np.round(x, out=out),
        lambda x, out: np.compress([True, True], x, out=out),
    ],
)
def test_writing_to_out_raises(call):
    out = np.zeros(2)
    with pytest.raises(gs.UnsupportedOperationError, match="out="):
        call(gs.Tensor(X), out)
    np.testing.assert_array_equal(out, [0, 0])


def test_sign_of_real_and_complex_numbers():
    assert gs.grad(lambda x: np.sign(x))(3.0) == 0
    x = np.array([3 + 4j, 0])
    dx = gs.grad(lambda t: np.sum(np.real(np.sign(t))))(x)
    # Re(x)/|x| has the gradient (Im(x)**2 - 1j*Re(x)*Im(x))/|x|**3
    np.testing.assert_allclose(dx, [(16 - 12j) / 125, 0])


def test_heaviside_passes_its_value_at_zero():
    step = lambda a, b: np.sum(np.heaviside(a, b))
    da, db = gs.grad(step, (0, 1))(np.array([-1.0, 0.0, 2.0]), np.full(3, 0.5))
    np.testing.assert_array_equal(da, [0, 0, 0])
    np.testing.assert_array_equal(db, [0, 1, 0])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_frexp(dtype):
    x = np.array([0.75, -6.0, 0.0, np.finfo(dtype).smallest_subnormal, 100.0], dtype)
    with np.errstate(all="raise"):
        (mantissa, exponent), pull = gs.vjp(np.frexp, x)
    for got, expected in zip((mantissa, exponent), np.frexp(x), strict=True):
        np.testing.assert_array_equal(got, expected)
        assert got.dtype == expected.dtype
    dx = pull((np.ones(5, dtype), np.zeros(5, exponent.dtype)))[0]
    np.testing.assert_array_equal(dx[[0, 1, 4]], np.array([1, 1 / 8, 1 / 128], dtype))


def test_results_of_integer_dtype_are_constants():
    x = gs.Tensor([1.5, 2.5])
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = np.sum(x.astype(int)) * 2.0 + np.sum(np.linspace(x, 9, 3, dtype=int)) * 1.0
    assert tape.gradient(y, x) is None
    assert "integer" in tape.explain(y, x)
    assert gs.jvp(lambda t: np.sum(t.astype(int)) * 2.0, (X,), (X,))[1] == 0
