"""What counts as an operand and as an option, in every operation and framework."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith import ops
from gradsmith.operations.operation import Operation
from tests.frameworks.portable import ALL, FOREIGN

EACH = pytest.mark.parametrize("framework", ALL, ids=lambda f: f.name)

X = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
ONES = np.ones_like(X)
SHARES = ONES / 3

# Each option: a call of x, of an array of ones, and of the option; and a value
OPTIONS = {
    "binary.pos_weight": (
        lambda x, t, v: ops.binary_cross_entropy_with_logits(x, t, pos_weight=v), 0.3
    ),
    "clamp": (lambda x, _, v: ops.clamp(x, -v, v), 0.3),
    "clip_by_norm": (lambda x, _, v: ops.clip_by_norm(x, v) ** 2, 0.3),
    "clip_by_norm.axis": (lambda x, _, v: ops.clip_by_norm(x, 0.5, v) ** 2, 1),
    "clip_by_value": (lambda x, _, v: ops.clip_by_value(x, -v, v) ** 2, 0.3),
    "cross_entropy.axis": (lambda x, t, v: ops.cross_entropy(x, t / 3, axis=v), 1),
    "cross_entropy.label_smoothing": (
        lambda x, t, v: ops.cross_entropy(x, t / 3, label_smoothing=v), 0.3
    ),
    "cross_entropy.z_loss": (
        lambda x, t, v: ops.cross_entropy(x, t / 3, z_loss=v), 0.3
    ),
    "cross_entropy.of classes": (
        lambda x, _, v: ops.cross_entropy(x, [0, 1], label_smoothing=v, z_loss=v), 0.3
    ),
    "cross_entropy.ignore_index": (
        lambda x, _, v: ops.cross_entropy(x, [0, 1], ignore_index=v), 1
    ),
    "divide": (lambda x, t, v: ops.divide(x, t - 1, v), 0.3),
    "divide.fill": (lambda x, t, v: ops.divide(t, x, fill=v), 0.3),
    "focal": (lambda x, t, v: ops.focal(x, t, gamma=v, alpha=v), 0.3),
    "gaussian_nll": (lambda x, t, v: ops.gaussian_nll(x, t, t - 1, eps=v), 0.3),
    "gumbel_softmax": (lambda x, _, v: ops.gumbel_softmax(x, 1, v), 0.3),
    "gumbel_softmax.axis": (lambda x, _, v: ops.gumbel_softmax(x, seed=1, axis=v), 1),
    "huber": (lambda x, t, v: ops.huber(x, t, delta=v), 0.3),
    "kl_divergence": (lambda x, t, v: ops.kl_divergence(x, t / 3, axis=v), 1),
    "log_softmax": (lambda x, _, v: ops.log_softmax(x, v), 1),
    "logsumexp": (lambda x, _, v: ops.logsumexp(x, v), 1),
    "noise": (lambda x, _, v: ops.noise(x, 1, v), 0.3),
    "noise.std": (lambda x, _, v: ops.noise(x, seed=1, std=v), 0.3),
    "norm": (lambda x, _, v: ops.norm(x, v), 1),
    "norm.keepdims": (lambda x, _, v: ops.norm(x, axis=v, keepdims=True), 1),
    "one_hot_argmax": (lambda x, _, v: ops.one_hot_argmax(x, temperature=v), 0.3),
    "quantize": (lambda x, _, v: ops.quantize(x, 3, -v, v), 0.3),
    "quantize.bits": (lambda x, _, v: ops.quantize(x, v), 3),
    "reverse": (lambda x, _, v: ops.reverse(x, v), 0.3),
    "safe_where": (lambda x, _, v: ops.safe_where(x > 0, gnp.log, x, v, at=v), 0.3),
    "scale": (lambda x, _, v: ops.scale(x, v), 0.3),
    "softmax": (lambda x, _, v: ops.softmax(x, v), 0),
    "spike_arctan": (lambda x, _, v: ops.spike_arctan(x, v, v), 0.3),
    "spike_fast_sigmoid": (lambda x, _, v: ops.spike_fast_sigmoid(x, slope=v), 0.3),
}  # fmt: skip


@EACH
@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_of_numpy_is_the_python_number(framework, name):
    fn, value = OPTIONS[name]
    types = (np.float64, np.float32, np.float16, np.array)
    if isinstance(value, int):
        types = (np.int64, np.int8, np.array)
    ones = framework.array(ONES)

    def found(option):
        x = framework.array(X)
        loss = lambda x: gnp.sum(fn(x, ones, option))
        return fn(x, ones, option), framework.gradients(loss, x)[0]

    for option in [of(value) for of in types]:
        for got, expected in zip(found(option), found(option.item()), strict=True):
            assert got.dtype == expected.dtype
            np.testing.assert_array_equal(
                framework.plain(got), framework.plain(expected)
            )


@pytest.mark.parametrize("framework", FOREIGN[:2], ids=lambda f: f.name)
@pytest.mark.parametrize("name", ["clamp", "divide", "huber", "scale", "norm"])
def test_an_option_of_numpy_in_compiled_code(framework, name):
    fn, value = OPTIONS[name]
    option, ones = np.asarray(value)[()], framework.array(ONES)
    found = framework.compiled(lambda x: fn(x, ones, option))(framework.array(X))
    assert framework.plain(found).dtype == np.float32
    np.testing.assert_allclose(framework.plain(found), fn(X, ONES, value), rtol=1e-6)


# PyTorch's own, while it compiles
@pytest.mark.filterwarnings("ignore:.*Function.*should not be instantiated")
@pytest.mark.parametrize("option", [np.float64(0.3), np.array(0.3)])
@pytest.mark.parametrize("name", ["clamp", "huber", "scale"])
def test_an_option_of_numpy_under_dynamo(name, option):
    torch = pytest.importorskip("torch")
    torch._dynamo.reset()
    fn, value = OPTIONS[name]
    ones, x = torch.tensor(ONES), torch.tensor(X, requires_grad=True)
    compiled = torch.compile(lambda x: fn(x, ones, option), backend="eager")
    y = compiled(x)
    assert y.dtype == torch.float32
    (dx,) = torch.autograd.grad(y.sum(), x)
    expected = gs.grad(lambda x: np.sum(fn(x, ONES, value)))(X)
    np.testing.assert_allclose(dx, expected, rtol=1e-6)


def test_torch_fx_sees_one_node_for_each_operation():
    fx = pytest.importorskip("torch.fx")
    graph = fx.symbolic_trace(lambda x: ops.clamp(ops.silu(x), np.float64(-1), 1.0))
    calls = [node for node in graph.graph.nodes if node.op == "call_function"]
    assert [node.target for node in calls] == [ops.silu, ops.clamp]
    assert calls[1].args[1:] == (-1.0, 1.0)


IMPLICIT = {
    "argmin": lambda x, v: ops.argmin(lambda z, p: gnp.sum((z - p) ** 2), x, x, tol=v),
    "fixed_point": lambda x, v: ops.fixed_point(lambda z, p: z / 2 + p, x, x, tol=v),
    "linear_solve": lambda x, v: ops.linear_solve(lambda z, p: z * p, x, x, tol=v),
    "odeint": lambda x, v: ops.odeint(lambda y, t, p: -y * p, x, x, x, rtol=v, atol=v),
    "root": lambda x, v: ops.root(lambda z, p: z * z - p, x, x, tol=v),
}


@EACH
@pytest.mark.parametrize("name", IMPLICIT)
def test_a_tolerance_of_numpy_is_the_python_number(framework, name):
    x = framework.array(np.array([1.0, 2.0], np.float32))
    expected = framework.plain(IMPLICIT[name](x, 1e-3))
    for option in (np.float64(1e-3), np.array(1e-3)):
        got = framework.plain(IMPLICIT[name](x, option))
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)


def test_every_operation_says_what_its_operands_are():
    found = [op for op in vars(ops).values() if isinstance(op, Operation)]
    assert [op.name for op in found if op.convert is None] == []


# Calls of one array, which are all that an array can be given to
OF_ONE = {
    "binary_cross_entropy_with_logits": lambda x: ops.binary_cross_entropy_with_logits(
        x, 1.0
    ),
    "clamp": lambda x: ops.clamp(x, -1.0, 1.0),
    "clip_by_norm": lambda x: ops.clip_by_norm(x, 1.0),
    "clip_by_value": lambda x: ops.clip_by_value(x, -1.0, 1.0),
    "cross_entropy": lambda x: ops.cross_entropy(x, 0),
    "divide": lambda x: ops.divide(x, x),
    "floor": ops.floor,
    "focal": lambda x: ops.focal(x, 1.0),
    "gaussian_nll": lambda x: ops.gaussian_nll(x, 1.0, 1.0),
    "gelu": ops.gelu,
    "gumbel_softmax": lambda x: ops.gumbel_softmax(x, 1),
    "huber": lambda x: ops.huber(x, 1.0),
    "kl_divergence": lambda x: ops.kl_divergence(x, [0.5, 0.5]),
    "log1mexp": ops.log1mexp,
    "log_sigmoid": ops.log_sigmoid,
    "log_softmax": ops.log_softmax,
    "logsumexp": ops.logsumexp,
    "nan_to_zero": ops.nan_to_zero,
    "noise": lambda x: ops.noise(x, 1),
    "norm": ops.norm,
    "one_hot_argmax": ops.one_hot_argmax,
    "poisson_nll": lambda x: ops.poisson_nll(x, 1.0),
    "quantize": lambda x: ops.quantize(x, 3),
    "reverse": ops.reverse,
    "round": ops.round,
    "safe_where": lambda x: ops.safe_where(True, np.exp, x),
    "scale": lambda x: ops.scale(x, 2.0),
    "sigmoid": ops.sigmoid,
    "sign": ops.sign,
    "silu": ops.silu,
    "softmax": ops.softmax,
    "softplus": ops.softplus,
    "spike_arctan": ops.spike_arctan,
    "spike_fast_sigmoid": ops.spike_fast_sigmoid,
    "sqrt": ops.sqrt,
    "xlogy": lambda x: ops.xlogy(x, x),
}
TAKE_COMPLEX = {"nan_to_zero", "reverse", "safe_where", "scale"}
NEED_AN_AXIS = {
    "cross_entropy", "gumbel_softmax", "kl_divergence", "log_softmax",
    "one_hot_argmax", "softmax",
}  # fmt: skip


def test_these_are_all_operations():
    assert {*OF_ONE} | {*IMPLICIT} == {*ops.__all__}


def refusal(call, *words):
    with pytest.raises(gs.GradsmithError, match=r"ops\.\w+: the argument") as caught:
        call()
    text = str(caught.value)
    assert all(word in text for word in ("expected:", "what to do:", *words))


@EACH
@pytest.mark.parametrize("name", sorted(OF_ONE.keys() - TAKE_COMPLEX))
def test_complex_arrays_are_refused(framework, name):
    x = framework.array(np.array([1 + 2j, 0.5j], np.complex64))
    refusal(lambda: OF_ONE[name](x), f"ops.{name}", "complex64")


@pytest.mark.parametrize("target", [np.array([1j, 2.0]), [1j, 2.0], 1j, None, "one"])
@pytest.mark.parametrize("name", ["huber", "poisson_nll", "gaussian_nll", "divide"])
def test_other_operands_are_looked_at_too(name, target):
    x = np.ones(2)
    rest = (x,) if name == "gaussian_nll" else ()
    refusal(lambda: getattr(ops, name)(x, target, *rest))


def test_complex_numbers_pass_where_only_the_gradient_is_changed():
    x = np.array([1 + 2j, -1j])
    for name in TAKE_COMPLEX - {"safe_where"}:
        np.testing.assert_array_equal(OF_ONE[name](x), x)
    real = lambda x: np.sum(np.real(ops.scale(x, 2.0) * (3 + 1j)))
    plain = lambda x: np.sum(np.real(x * (3 + 1j)))
    np.testing.assert_allclose(gs.grad(real)(x), 2 * gs.grad(plain)(x))


@pytest.mark.parametrize("name", OF_ONE)
def test_lists_and_numbers_are_arrays(name):
    op = OF_ONE[name]
    for given in ([0.5, 2.0], (0.5, 2.0), [1, 2], 3.0, 3):
        x = np.array(given)
        if name in NEED_AN_AXIS and not x.ndim:
            refusal(lambda given=given: op(given), "axis")
            continue
        with np.errstate(all="ignore"):
            got, expected = op(given), op(x)
        assert isinstance(got, (np.ndarray, np.generic))
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("name", OF_ONE)
@pytest.mark.parametrize(
    "x", [None, "abc", b"abc", ["a", "b"], np.array(["a", "b"])], ids=repr
)
def test_what_is_no_number_is_refused(name, x):
    refusal(lambda: OF_ONE[name](x), f"ops.{name}")


@EACH
def test_lists_beside_arrays_of_a_framework(framework):
    x = framework.array(X)
    row = [1.0, 2.0, 4.0]
    for op in (ops.divide, ops.xlogy, ops.huber):
        got = framework.plain(op(x, row))
        np.testing.assert_allclose(got, op(X, np.array(row)), rtol=1e-6)
    got = framework.plain(ops.cross_entropy(x, [0, 2]))
    np.testing.assert_allclose(got, ops.cross_entropy(X, np.array([0, 2])), rtol=1e-6)
    got = framework.plain(ops.kl_divergence(x, SHARES.tolist()))
    np.testing.assert_allclose(got, ops.kl_divergence(X, SHARES), rtol=1e-6)


@EACH
def test_lists_of_arrays_are_differentiated(framework):
    x = framework.array(np.array([0.5, 2.0], np.float32))
    loss = lambda x: gnp.sum(ops.sigmoid([x[0], x[1]]))
    (found,) = framework.gradients(loss, x)
    (expected,) = framework.gradients(lambda x: gnp.sum(ops.sigmoid(x)), x)
    np.testing.assert_allclose(framework.plain(found), framework.plain(expected))


@pytest.mark.parametrize("of", [np.float64, np.float32, np.array])
def test_norms_of_one_number(of):
    assert ops.norm(of(-3.0)) == 3
    assert ops.norm(of(np.inf)) == np.inf
    assert ops.norm(of(0.0)) == 0
    assert gs.grad(ops.norm)(of(-3.0)) == -1
    assert gs.grad(ops.norm)(of(0.0)) == 0
    assert gs.grad(lambda x: ops.clip_by_norm(x, 0.5) * 1.0)(of(3.0)) == 0.5


@EACH
def test_losses_of_whole_numbers(framework):
    x = framework.array(np.array([1, 2], np.int32))
    for loss in (
        ops.poisson_nll, ops.huber, lambda x, t: ops.gaussian_nll(x, t, t),
    ):  # fmt: skip
        expected = loss(np.array([1.0, 2.0]), np.array([1.0, 2.0]))
        found = framework.plain(loss(x, x))
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        "binary_cross_entropy_with_logits", "cross_entropy", "focal", "gaussian_nll",
        "huber", "log_softmax", "logsumexp", "norm", "poisson_nll", "softmax",
    ],
)  # fmt: skip
def test_an_unknown_number_of_axes_in_tensorflow(name):
    tf = pytest.importorskip("tensorflow")
    signature = [tf.TensorSpec(None, tf.float32)]
    call = tf.function(OF_ONE[name], input_signature=signature, autograph=False)
    with pytest.raises(
        ValueError, match=r"how many axes.*set it with tf\.ensure_shape"
    ):
        call.get_concrete_function()
