"""`scipy.special`: accuracy in the tails, what is refused, SciPy's own functions."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import gradsmith as gs
from gradsmith import UnsupportedOperationError

sp = pytest.importorskip("scipy.special")


def slope(fn, x, dtype: Any = np.float64):
    return gs.grad(lambda x: np.sum(fn(x)))(np.asarray(x, dtype))


TAILS = [  # by 40 digits of mpmath
    (sp.log_ndtr, -1e5, 100000.00001),
    (sp.log_ndtr, -40.0, 40.024968847207263723),
    (sp.log_ndtr, 5.0, 1.4867199409049057124e-6),
    (sp.log_ndtr, 30.0, 1.473646134878547519e-196),
    (sp.erfcx, 1e3, -5.6418873726549666885e-7),
    (sp.erfcx, 25.0, -0.00090054546344462671593),
    (sp.erfcx, -3.0, -97237.061503164615265),
    (sp.dawsn, -1e3, -5.0000075000187500656e-7),
    (sp.dawsn, 25.0, -0.00080192772332041127152),
    (sp.expit, -40.0, 4.2483542552915889592e-18),
    (sp.expit, 40.0, 4.2483542552915889592e-18),
    (sp.log_expit, 40.0, 4.2483542552915889953e-18),
    (sp.logit, 1e-200, 1e200),
    (sp.exprel, -50.0, 0.0004),
    (sp.exprel, -1e-3, 0.49966679163334027658),
    (sp.exprel, 0.0, 0.5),
    (sp.exprel, 1e-8, 0.50000000333333334583),
    (sp.exprel, 709.0, 1.1575198749865064146e305),
    (sp.exprel, 712.0, 0),  # where SciPy's value overflows
    (sp.erfcx, -30.0, 0),
    (sp.rgamma, -3.0, -6.0),
    (sp.rgamma, 0.0, 1.0),
    (sp.rgamma, -2.5, 1.1669802856379654815),
    (sp.psi, -1000.25, 19.738209551699784882),
    (sp.psi, -2.5, 9.5392466449891237539),
    (sp.psi, 30.0, 0.033895060357739944214),
    (sp.ndtri_exp, -1.0, 0.97617169482519488749),
    (lambda x: sp.betaln(x, 0.5), 1e8, -5.0000000125e-9),
    (lambda x: sp.betaln(x, 3.0), 40.0, -0.073199767711962833914),
    (lambda x: sp.betaln(x, 1e-3), 1e4, -1.000049951661669768e-7),
    (lambda x: sp.rel_entr(x, 1e-300), 1e300, 1382.5510557964274104),
    (lambda x: sp.boxcox(2.0, x), 0.0, np.log(2) ** 2 / 2),
    (lambda x: sp.inv_boxcox(2.0, x), 0.0, -2 * np.exp(2)),
    (lambda x: sp.pseudo_huber(x, 1e-3), 1e3, 2.5e-22 * (1 - 1e-12)),
]


@pytest.mark.parametrize(("fn", "x", "expected"), TAILS)
def test_accuracy_in_the_tails(fn, x, expected):
    np.testing.assert_allclose(slope(fn, x), expected, rtol=2e-13)


def test_second_derivative_in_the_tail():
    second = gs.grad(gs.grad(sp.log_ndtr))
    np.testing.assert_allclose(second(-1e5), -0.9999999999, rtol=1e-14)
    np.testing.assert_allclose(second(-40.0), -0.99937733162140861123, rtol=1e-12)
    np.testing.assert_allclose(second(40.0), 0, atol=1e-300)


EDGES = [  # at a pole, an infinite slope, or outside the domain
    (sp.gamma, [0.0, -1.0]),
    (sp.gammaln, [0.0, -0.0, -1.0]),
    (sp.psi, [0.0, -1.0, -1e300]),
    (sp.logit, [0.0, 1.0, -1.0, 2.0]),
    (sp.erfinv, [-1.0, 1.0, 2.0]),
    (sp.ndtri, [0.0, 1.0, 2.0]),
    (sp.entr, [0.0, -1.0]),
    (sp.y0, [0.0, -1.0]),
    (lambda x: sp.xlogy(x, 0.0), [0.0, 1.0]),
    (lambda x: sp.xlogy(0.0, x), [0.0, -1.0]),
    (lambda x: sp.rel_entr(x, 1.0), [0.0, -1.0]),
    (lambda x: sp.gammainc(0.5, x), [0.0, -1.0]),
    (lambda x: sp.jv(0.5, x), [0.0, -1.0]),
]


@pytest.mark.parametrize(("fn", "x"), EDGES)
def test_zero_at_edges(fn, x):
    with np.errstate(all="ignore"):
        assert not slope(fn, x).any()


NUMBERS = [
    lambda x: sp.xlogy(x, 2.0),
    lambda x: sp.xlogy(3, x),
    lambda x: sp.xlog1py(x, 0.5),
    lambda x: sp.huber(1.0, x),
    lambda x: sp.boxcox(x, 0.5),
    lambda x: sp.gammainc(2.5, x),
    lambda x: sp.betainc(2.5, 3, x),
    lambda x: sp.jv(2, x),
    lambda x: sp.betaln(x, 2),
    lambda x: sp.zeta(2, x),
    sp.expit,
    sp.gamma,
    sp.digamma,
    sp.log_ndtr,
    sp.logsumexp,
    sp.softmax,
]


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("fn", NUMBERS)
def test_numbers_promote_nothing(fn, dtype):
    x = np.array([0.25, 0.5], dtype)
    dx = slope(fn, x, dtype)
    assert dx.dtype == dtype
    truth = slope(fn, x.astype(float))
    np.testing.assert_allclose(dx, truth, rtol=4 * np.finfo(dtype).eps, atol=1e-7)


REFUSED = [
    (sp.gammainc, 0, (1.5, 0.5), "a"),
    (sp.betainc, 1, (1.5, 2.0, 0.5), "b"),
    (sp.jv, 0, (1.5, 0.5), "v"),
    (sp.zeta, 0, (2.0, 0.5), "x"),
    (sp.hyp2f1, 2, (1.0, 1.0, 2.0, 0.5), "c"),
]


@pytest.mark.parametrize(("fn", "i", "args", "name"), REFUSED)
def test_order_is_refused(fn, i, args, name):
    with pytest.raises(UnsupportedOperationError, match=rf"argument {name}.*stop_grad"):
        gs.grad(fn, i)(*args)

    def along(x):
        return fn(*args[:i], x, *args[i + 1 :])

    with pytest.raises(UnsupportedOperationError, match=f"argument {name}"):
        gs.jvp(along, (args[i],), (1.0,))


def test_order_as_an_option_is_refused():
    with pytest.raises(UnsupportedOperationError, match="polygamma"):
        gs.grad(lambda n: sp.polygamma(n, 2.0))(1.0)


@pytest.mark.parametrize(
    "fn",
    [sp.ellipk, lambda x: sp.eval_legendre(2, x), lambda x: sp.diric(x, 3),
     lambda x: sp.comb(x, 2), lambda x: sp.ellip_normal(5, 8, 3, x)],
)  # fmt: skip
def test_unknown_functions_raise(fn):
    # A ufunc asks for its rule; a function in Python asks for an array.
    unruled = "no gradient rule|^scipy.special.* would make a constant"
    with pytest.raises(UnsupportedOperationError, match=unruled):
        gs.grad(fn)(0.5)


def test_other_functions_of_scipy_raise():
    linalg = pytest.importorskip("scipy.linalg")
    with pytest.raises(UnsupportedOperationError, match=r"scipy\.linalg"):
        gs.grad(lambda x: linalg.det(x))(np.eye(2))
    assert linalg.det(gs.Tensor(np.eye(2))) == 1  # nobody differentiates it


def test_complex_digamma_has_no_second_derivative():
    z = np.array([1 + 1j])
    first = gs.grad(lambda z: np.sum(np.real(sp.loggamma(z))))
    np.testing.assert_allclose(first(z), np.conj(sp.psi(z)))
    with pytest.raises(UnsupportedOperationError, match="complex"):
        gs.grad(lambda z: np.sum(np.real(sp.psi(z))))(z)


# logsumexp, softmax, log_softmax


def test_logsumexp_is_exact_far_from_zero():
    """exp(x - y) alone has an error of eps*y, here 6e-5."""
    x = np.array([1000.0, 1000.5, 999.0], np.float32)
    shares = sp.softmax(x.astype(float))
    np.testing.assert_allclose(slope(sp.logsumexp, x, np.float32), shares, rtol=4e-7)


INFINITE = [
    ([-np.inf, -np.inf], [0, 0]),
    ([-np.inf, 1.0], [0, 1]),
    ([2.0, 2.0], [0.5, 0.5]),
    ([1e308, -1e308], [1, 0]),
    ([np.inf, 1.0], [0, 0]),
]


@pytest.mark.parametrize(("x", "expected"), INFINITE)
def test_logsumexp_of_infinities(x, expected):
    x = np.array(x)
    with np.errstate(over="ignore"):
        assert slope(sp.logsumexp, x).tolist() == expected
        _, dy = gs.jvp(sp.logsumexp, (x,), (np.ones(2),))
        assert dy == sum(expected)
        assert np.isfinite(gs.hessian(sp.logsumexp)(x)).all()


@pytest.mark.parametrize("fn", [sp.softmax, sp.log_softmax])
def test_softmax_of_minus_infinity(fn):
    x = np.array([[-np.inf, -np.inf], [-np.inf, 1.0], [0.0, 0.0]])
    weights = np.array([[1.0, 2.0], [0.0, 3.0], [1.0, 2.0]])

    def loss(x):
        y = fn(x, axis=1)
        return np.sum(
            np.where(np.isfinite(np.asarray(gs.stop_gradient(y))), y, 0) * weights
        )

    with np.errstate(all="ignore"):
        dx = gs.grad(loss)(x)
        assert not dx[:2].any()
        assert np.isfinite(gs.jvp(lambda x: fn(x, 1), (x,), (weights,))[1]).all()
    expected = [-0.25, 0.25] if fn is sp.softmax else [-0.5, 0.5]
    np.testing.assert_allclose(dx[2], expected)


def test_logsumexp_with_weights_and_sign():
    a, b = np.array([1.0, 2.0]), np.array([2.0, -3.0])

    def magnitude(a, b):
        y, sign = sp.logsumexp(a, b=b, return_sign=True)
        assert sign == -1
        return y

    da, db = gs.grad(magnitude, (0, 1))(a, b)
    total = np.sum(b * np.exp(a))
    np.testing.assert_allclose(da, b * np.exp(a) / total)
    np.testing.assert_allclose(db, np.exp(a) / total)


def test_weight_zero_takes_anything():
    b = np.array([1.0, 0.0])
    da = gs.grad(lambda a: sp.logsumexp(a, b=b))(np.array([1.0, 1e4]))
    assert da.tolist() == [1, 0]


def test_empty_logsumexp():
    dx = gs.grad(lambda x: np.sum(sp.logsumexp(x, axis=0)))(np.zeros((0, 2)))
    assert dx.shape == (0, 2)


def test_complex_sign_is_refused():
    with pytest.raises(UnsupportedOperationError, match="return_sign"):
        gs.grad(lambda z: sp.logsumexp(z, return_sign=True)[0])(np.array([1j, 1]))


# The hook


def test_plain_arrays_get_what_scipy_gives():
    x = np.array([[1.0, 2.0], [3.0, 0.5]])
    for options in ({}, {"axis": 1}, {"axis": 0, "keepdims": True}, {"b": x}):
        weight = options.pop("b", 1)
        expected = np.log(np.sum(weight * np.exp(x), **options))
        y = sp.logsumexp(x, b=weight, **options)
        np.testing.assert_allclose(y, expected, rtol=1e-14)
        assert type(y) is type(expected)
    assert type(sp.logsumexp([1, 2])) is np.float64
    with pytest.raises(TypeError, match="unexpected keyword"):
        sp.logsumexp(x, axes=1)


def test_redirected_functions_look_the_same():
    assert list(inspect.signature(sp.logsumexp).parameters)[:3] == ["a", "axis", "b"]
    assert "log of the sum" in sp.logsumexp.__doc__
    assert pickle.loads(pickle.dumps(sp.softmax)) is sp.softmax


def test_tensor_that_nobody_follows():
    y = sp.logsumexp(gs.Tensor([1.0, 2.0]))
    assert isinstance(y, gs.Tensor)
    assert y.numpy() == sp.logsumexp([1.0, 2.0])


ORDERS = {
    "scipy first": "from scipy.special import logsumexp; import gradsmith as gs",
    "gradsmith first": "import gradsmith as gs; from scipy.special import logsumexp",
    "within the function": "import gradsmith as gs; import scipy\n"
    "def logsumexp(x): from scipy.special import logsumexp; return logsumexp(x)",
}


@pytest.mark.parametrize("imports", ORDERS.values(), ids=ORDERS)
def test_order_of_imports(imports):
    check = "assert gs.grad(logsumexp)(np.zeros(2))[0] == 0.5"
    run(f"{imports}\nimport numpy as np\n{check}")


def test_gradsmith_does_not_import_scipy():
    run("import gradsmith, sys\nassert 'scipy' not in sys.modules")


def run(program):
    subprocess.run([sys.executable, "-c", program], check=True)
