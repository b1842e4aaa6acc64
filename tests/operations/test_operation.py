"""Operations: both forms, how they are called, and what they are called with."""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import math
import pickle
import threading
import traceback
import weakref
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

import gradsmith as gs

EPS = np.finfo(np.float32).eps
ROUND = gs.with_gradient(np.round, lambda dy, y, x: dy, surrogate="straight-through")


@gs.custom_gradient
def module_level(x):
    """Square."""
    return x * x, lambda dy: 2 * x * dy


# --- closure form: outputs and upstream ----------------------------------------------


class Result(NamedTuple):
    z: object
    w: object


@dataclass
class Record:
    z: object
    w: object
    label: str = "r"


OUTPUTS = {
    "flat": lambda z, w, grad: (z, w, grad),
    "tuple": lambda z, w, grad: ((z, w), grad),
    "list": lambda z, w, grad: ([z, w], grad),
    "returned as a list": lambda z, w, grad: [z, w, grad],
    "named tuple": lambda z, w, grad: (Result(z, w), grad),
    "dict": lambda z, w, grad: ({"z": z, "w": w}, grad),
    "dataclass": lambda z, w, grad: (Record(z, w), grad),
    "nested": lambda z, w, grad: ({"z": [z], "more": (w, "text", 3)}, grad),
}
SEQUENCES = ("flat", "tuple", "list", "returned as a list", "named tuple")


def arrays(tree):
    return [leaf for leaf in gs.core.trees.leaves(tree) if hasattr(leaf, "dtype")]


def z_and_w(kind, takes):
    """z = xy + sin x and w = y**2, returned in a kind of structure."""

    @gs.custom_gradient
    def op(x, y):
        def gradients(dz, dw):
            return dz * (y + np.cos(x)), dz * x + dw * 2 * y

        def structured(dys):
            return gradients(*arrays(dys))

        def starred(*dys):
            return gradients(*dys)

        def early_bound(dys, x=x, y=y):
            return gradients(*arrays(dys))

        grad = {
            "each": gradients,
            "all": starred,
            "one": structured,
            "early bound": early_bound,
        }[takes]
        return OUTPUTS[kind](x * y + np.sin(x), y**2, grad)

    return op


@pytest.mark.parametrize(
    ("kind", "takes"),
    [*product(OUTPUTS, ["one", "early bound"]), *product(SEQUENCES, ["each", "all"])],
)
def test_structures_of_outputs_and_upstream(kind, takes):
    op = z_and_w(kind, takes)
    structure = type(OUTPUTS[kind](0, 0, 0)[0])
    for persistent in (False, True):
        x, y = gs.Tensor(2.0), gs.Tensor(3.0)
        with gs.GradientTape(persistent=persistent) as tape:
            tape.watch([x, y])
            outputs = op(x, y)
        z, w = arrays(outputs)
        assert isinstance(outputs, structure) or kind in ("flat", "returned as a list")
        assert isinstance(z, gs.Tensor)
        dx, dy = tape.gradient([z, w], [x, y])
        assert dx.item() == pytest.approx(3 + math.cos(2))
        assert dy.item() == 8
    z, w = arrays(op(np.array(2.0), np.array(3.0)))
    assert isinstance(z, (np.ndarray, np.generic))


def test_an_output_without_a_cotangent_gives_zeros():
    op = gs.custom_gradient(lambda x: (x, x * 2, lambda dy, dz: dy + 100 * dz))
    assert gs.grad(lambda x: op(x)[0])(1.0) == 1
    assert gs.grad(lambda x: op(x)[1])(1.0) == 100


def test_a_tuple_of_one_output():
    op = gs.custom_gradient(lambda x: ((x * 2,), lambda dy: dy * 2))
    (y,) = op(np.ones(2))
    assert y.tolist() == [2, 2]
    assert gs.grad(lambda x: op(x)[0])(1.0) == 2


def test_whole_numbers_and_static_things_beside_floats():
    @gs.custom_gradient
    def top(x):
        def grad(dy, *rest):
            assert rest == (None, None, None)
            return np.where(x == np.max(x), dy, 0)

        return np.max(x), int(np.argmax(x.ravel())), np.arange(2), "max", grad

    x = gs.Tensor([1.0, 5.0, 2.0])
    for persistent in (False, True):
        with gs.GradientTape(persistent=persistent) as tape:
            tape.watch(x)
            value, place, numbers, word = top(x)
        assert (place, word, numbers.tolist()) == (1, "max", [0, 1])
        assert tape.gradient(value, x).tolist() == [0, 1, 0]


def test_only_whole_numbers():
    op = gs.custom_gradient(lambda x: (np.argmax(x), lambda dy: dy))
    x = gs.Tensor([1.0, 5.0])
    with gs.GradientTape() as tape:
        tape.watch(x)
        i = op(x)
    assert i.item() == 1
    assert tape.gradient(i, x) is None


@pytest.mark.parametrize("value", [2.5, 2.5 + 1j, np.float32(2.5)])
def test_python_numbers_as_outputs(value):
    op = gs.custom_gradient(lambda x: (value, lambda dy: np.ones(3)))
    x = gs.Tensor(np.ones(3))
    assert isinstance(op(x), gs.Tensor)
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = op(x)
    assert y.dtype == np.asarray(value).dtype
    assert tape.gradient(y, x).tolist() == [1, 1, 1]


def test_the_argument_itself_as_output():
    reverse = gs.custom_gradient(lambda x: (x, lambda dy: -dy))
    x = np.ones(3)
    assert reverse(x) is x
    t = gs.Tensor(x)
    for persistent in (False, True):
        with gs.GradientTape(persistent=persistent) as tape:
            tape.watch(t)
            y = reverse(t)
        assert y is not t
        assert tape.gradient(y, t).tolist() == [-1, -1, -1]


# --- rule form -----------------------------------------------------------------------


def test_rules_get_outputs_and_arguments():
    @gs.operation
    def op(x, p, *, shift=1.0):
        return {"y": x * p["s"] + shift}, x

    seen = {}

    @op.vjp
    def _(dy, y, x, p, *, shift):
        seen.update(dy=dy, y=y, x=x, p=p, shift=shift)
        return dy[0]["y"] * p["s"] + dy[1], {"s": np.sum(dy[0]["y"] * x)}

    x, s = gs.Tensor([1.0, 2.0]), gs.Tensor(3.0)
    with gs.GradientTape() as tape:
        tape.watch([x, s])
        y, _ = op(x, p={"s": s})
    dx, ds = tape.gradient(y, [x, s])
    assert dx.tolist() == [3, 3]
    assert ds.item() == 3
    assert seen["y"][0]["y"].tolist() == [4, 7]
    assert seen["shift"] == 1.0
    assert type(seen["x"]) is type(seen["y"][1]) is np.ndarray


def test_jvp_gets_a_tuple_of_tangents_and_zeros():
    @gs.operation
    def op(x, static, p):
        return x * p[0]

    @op.jvp
    def _(dx, y, x, static, p):
        dx, (dp,) = dx
        return dx * p[0] + x * dp

    x, p = np.array([1.0, 2.0]), [np.array(3.0)]
    assert gs.jvp(lambda x: op(x, "s", p), (x,), (np.ones(2),))[1].tolist() == [3, 3]
    assert gs.jvp(lambda p: op(x, "s", [p]), (p[0],), (1.0,))[1].tolist() == [1, 2]
    assert gs.grad(lambda x, p: np.sum(op(x, "s", p)), 1)(x, p)[0] == 3


RULES = {
    "vjp": {"vjp": lambda dy, y, x: 3 * x**2 * dy},
    "jvp": {"jvp": lambda dx, y, x: 3 * x**2 * dx},
    "both": {
        "vjp": lambda dy, y, x: 3 * x**2 * dy,
        "jvp": lambda dx, y, x: 3 * x**2 * dx,
    },
}


@pytest.mark.parametrize("rules", RULES)
def test_one_rule_suffices_for_both_modes(rules):
    cube = gs.operation(lambda x: x**3)
    for kind, rule in RULES[rules].items():
        assert getattr(cube, kind)(rule) is rule
    x = np.array([1.0, 2.0])
    assert gs.grad(lambda x: np.sum(cube(x)))(x).tolist() == [3, 12]
    assert gs.jvp(cube, (x,), (np.ones(2),))[1].tolist() == [3, 12]


def test_no_rule_at_all():
    @gs.operation
    def cube(x):
        return x**3

    assert cube(np.array(2.0)) == 8
    assert cube(gs.Tensor(2.0)).item() == 8
    x = gs.Tensor(2.0)
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = cube(x)
    message = r"operation 'cube' has no gradient yet.*@cube.vjp or @cube.jvp"
    with pytest.raises(gs.UnsupportedOperationError, match=message):
        tape.gradient(y, x)
    with pytest.raises(gs.UnsupportedOperationError, match=message):
        gs.jvp(cube, (2.0,), (1.0,))


def test_a_closure_may_have_a_jvp_besides():
    @gs.custom_gradient
    def op(x, scale=2.0):
        return x * scale, lambda dy: dy * scale

    @op.jvp
    def _(dx, y, x, scale):
        return 1000 * dx + y

    assert gs.grad(op)(1.0) == 2
    assert gs.jvp(op, (1.0,), (1.0,))[1] == 1002
    assert gs.jvp(gs.grad(op), (1.0,), (1.0,))[1] == 0


def test_a_closure_has_no_vjp_besides():
    with pytest.raises(gs.GradsmithError, match=r"with gs\.operation"):
        module_level.vjp(lambda dy, y, x: dy)


def test_a_rule_is_a_function():
    op = gs.operation(lambda x: x)
    for give in (op.vjp, op.jvp):
        with pytest.raises(gs.GradsmithError, match="function"):
            give(None)


# --- arguments -----------------------------------------------------------------------


@gs.custom_gradient
def weighted(x, w=2.0, *more, power=1, **options):
    arrays = [x, *more, *options.values()]
    assert all(not isinstance(a, np.ndarray) or not a.flags.writeable for a in arrays)
    y = x * w**power + sum(more) + sum(options.values())

    def grad(dy):
        return (dy * w**power, *(dy for _ in more), *(dy for _ in options))

    return y, grad


CALLS = {
    "positional": lambda x: weighted(x, 2.0),
    "keyword": lambda x: weighted(x=x, w=2.0),
    "keywords in another order": lambda x: weighted(w=2.0, x=x),
    "default": lambda x: weighted(x),
    "keyword-only": lambda x: weighted(x, power=1),
    "more": lambda x: weighted(x, 2.0, x, x) - 2 * x,
    "options": lambda x: weighted(x, a=x, b=x) - 2 * x,
}


@pytest.mark.parametrize("call", CALLS)
def test_however_it_is_called_it_is_the_same_call(call):
    x = np.array([1.0, 3.0])
    f = CALLS[call]
    np.testing.assert_array_equal(f(x), 2 * x)
    np.testing.assert_array_equal(gs.grad(lambda x: np.sum(f(x)))(x), [2, 2])
    np.testing.assert_array_equal(gs.jvp(f, (x,), (x,))[1], 2 * x)


def test_rules_are_called_like_the_operation():
    @gs.operation
    def op(x, /, w=2.0, *more, power=1, **options):
        return x * w**power + sum(more) + sum(options.values())

    @op.vjp
    def _(dy, y, x, w, *more, power, **options):
        return (dy * w**power, *(dy for _ in more), *(dy for _ in options))

    for f in (
        lambda x: op(x),
        lambda x: op(x, w=2.0, power=1),
        lambda x: op(x, 2.0, x, x) - 2 * x,
        lambda x: op(x, a=x, b=x) - 2 * x,
    ):
        x = np.array([1.0, 3.0])
        np.testing.assert_array_equal(f(x), 2 * x)
        np.testing.assert_array_equal(gs.vjp(f, x)[1](np.ones(2))[0], [2, 2])
        np.testing.assert_array_equal(gs.jvp(f, (x,), (x,))[1], 2 * x)


def test_numbers_of_numpy_are_static_like_others():
    @gs.custom_gradient
    def op(x, eps=EPS):
        return x + eps, lambda dy: dy

    for eps in (np.finfo(float).eps, np.float32(1e-3), np.sqrt(2.0)):
        assert gs.grad(lambda x, eps=eps: op(x, eps))(1.0) == 1
    assert gs.grad(op)(1.0) == 1
    assert op(np.float64(1.0), 0.5) == 1.5


def test_gradients_by_name_of_starred_arguments():
    @gs.custom_gradient
    def op(*xs, **named):
        return xs[0] * named["k"], lambda dy: {"xs[0]": dy * 3, "k": dy * 5}

    assert gs.grad(lambda a, b: op(a, k=b), (0, 1))(2.0, 3.0) == (3, 5)


def test_wrong_calls_say_so():
    for call in (
        lambda: module_level(),
        lambda: module_level(1.0, 2.0),
        lambda: module_level(y=1.0),
    ):
        with pytest.raises(TypeError, match=r"module_level\(\)"):
            call()


STATIC = [
    None,
    True,
    3,
    2.5,
    1j,
    "text",
    b"bytes",
    len,
    object(),
    slice(3),
    range(3),
    ...,
]
STATIC += [np.float32, np.dtype(float), np.int64(3), {1, 2}, [1, "a"], {}, gs.Module()]


@pytest.mark.parametrize("static", STATIC, ids=lambda s: type(s).__name__)
def test_static_arguments_arrive_as_they_are(static):
    seen = []

    @gs.custom_gradient
    def op(x, static):
        seen.append(static)
        return x * 2, lambda dy: dy * 2

    assert gs.grad(lambda x: op(x, static))(1.0) == 2
    assert gs.hessian(lambda x: op(x, static) ** 2)(np.array(1.0)) == 8
    assert all(s is static or s == static for s in seen)


def test_defaults_that_are_arrays_are_arguments():
    v = gs.Variable(3.0)

    @gs.custom_gradient
    def op(x, v=v):
        return x * v, lambda dy: (dy * 10, dy * 100)

    x = gs.Tensor(2.0)
    for persistent in (False, True):
        with gs.GradientTape(persistent=persistent) as tape:
            tape.watch(x)
            y = op(x)
        assert [d.item() for d in tape.gradient(y, [x, v])] == [10, 100]


def test_one_array_is_two_arguments():
    op = gs.custom_gradient(lambda a, b: (a * b, lambda dy: (dy * b, 10 * dy * a)))
    assert gs.grad(lambda x: op(x, x))(3.0) == 33
    assert gs.grad(gs.grad(lambda x: op(x, x)))(3.0) == 11


def test_a_variable_is_an_argument_like_any_other():
    v = gs.Variable([1.0, 2.0])
    with gs.GradientTape() as tape:
        y = module_level(v)
    assert tape.gradient(y, v).tolist() == [2, 4]


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "complex64", "complex128"]
)
def test_dtypes_stay(dtype):
    x = np.array([1, 2], dtype)
    y, pull = gs.vjp(module_level, x)
    assert y.dtype == pull(y)[0].dtype == dtype
    assert gs.jvp(module_level, (x,), (x,))[1].dtype == dtype


def test_complex_operations_follow_the_convention():
    """dL/dRe + i dL/dIm: the gradient of |z|**2 is 2z; pull is the adjoint of push."""
    op = gs.custom_gradient(lambda z: (np.real(z * np.conj(z)), lambda dy: 2 * dy * z))
    z, u = np.array([1 + 2j, 3 - 1j]), np.array([0.3 - 0.2j, 1j])
    np.testing.assert_allclose(gs.grad(lambda z: np.sum(op(z)))(z), 2 * z)
    dy = gs.jvp(op, (z,), (u,))[1]
    np.testing.assert_allclose(dy, 2 * np.real(np.conj(z) * u))

    square = gs.custom_gradient(lambda z: (z * z, lambda dy: dy * np.conj(2 * z)))
    np.testing.assert_allclose(gs.jvp(square, (z,), (u,))[1], 2 * z * u)


# --- methods -------------------------------------------------------------------------


class Scale:
    def __init__(self, factor):
        self.factor = factor

    @gs.custom_gradient
    def __call__(self, x):
        return x * self.factor, lambda dy: dy * 10

    @gs.operation
    def ruled(self, x):
        return x * self.factor

    @ruled.vjp
    def _(dy, y, self, x):  # noqa: N805
        return dy * self.factor

    @staticmethod
    @gs.custom_gradient
    def static(x):
        return x * 2, lambda dy: dy * 2

    @classmethod
    @gs.custom_gradient
    def of_class(cls, x):
        return x * 2, lambda dy: dy * len(cls.__name__)


def test_methods():
    scale = Scale(3.0)
    assert scale(np.array(2.0)) == 6
    assert gs.grad(scale)(2.0) == 10
    assert gs.grad(scale.ruled)(2.0) == 3
    assert gs.grad(Scale.static)(2.0) == gs.grad(scale.static)(2.0) == 2
    assert gs.grad(Scale.of_class)(2.0) == 5
    assert gs.grad(lambda x: Scale.ruled(scale, x))(2.0) == 3
    assert scale.ruled.name == "ruled"


def test_the_object_of_a_method_is_static_also_if_it_is_a_dataclass():
    @dataclass
    class Layer(gs.Module):
        w: object

        @gs.custom_gradient
        def call(self, x):
            return x * self.w, lambda dy: 10 * dy

    for w in (gs.Variable(3.0), np.array(3.0)):
        layer, x = Layer(w), gs.Tensor(2.0)
        for persistent in (False, True):
            with gs.GradientTape(persistent=persistent) as tape:
                tape.watch(x)
                y = layer(x)
            assert tape.gradient(y, x).item() == 10
            if isinstance(w, gs.Variable) and persistent:
                assert tape.gradient(y, w).item() == 2


# --- plain arrays and tensors --------------------------------------------------------


@pytest.mark.parametrize("op", [module_level, ROUND], ids=["closure", "rule"])
def test_plain_in_plain_out_and_tensor_in_tensor_out(op):
    tape = gs.GradientTape()
    persistent = gs.GradientTape(persistent=True)
    accumulator = gs.ForwardAccumulator(gs.Tensor(1.0), gs.Tensor(1.0))
    for context in (None, tape, persistent, accumulator):
        if context:
            context.__enter__()
        plain, tensor, variable = (
            np.ones(2),
            gs.Tensor([1.0, 1.0]),
            gs.Variable([1.0, 1]),
        )
        assert type(op(plain)) is np.ndarray
        assert type(op(tensor)) is gs.Tensor
        assert type(op(variable)) is gs.Tensor
        assert not isinstance(op(1.5), gs.Tensor)
        if context:
            context.__exit__(None, None, None)


def test_the_result_may_be_written_to():
    y = module_level(np.ones(3))
    y[0] = 5
    assert y.tolist() == [5, 1, 1]


MUTATIONS = {
    "item": lambda a: a.__setitem__(0, 1.0),
    "operator": lambda a: a.__imul__(2),
    "out": lambda a: np.add(a, 1, out=a),
    "sort": lambda a: a.sort(),
    "fill": lambda a: a.fill(0),
}


@pytest.mark.parametrize("mutate", MUTATIONS.values(), ids=MUTATIONS)
def test_arguments_and_upstream_are_read_only(mutate):
    def body(x):
        mutate(x)
        return x, lambda dy: dy

    def grad(dy):
        mutate(dy)
        return dy

    in_body = gs.custom_gradient(body)
    in_gradient = gs.custom_gradient(lambda x: (x * 2, grad))
    x, t = np.ones(3), gs.Tensor(np.ones(3))
    for call, where in (
        (lambda: in_body(x), "body"),
        (lambda: in_body(t), "body"),
        (lambda: gs.vjp(in_body, x), "body"),
        (lambda: gs.vjp(in_gradient, x)[1](np.ones(3)), "gradient"),
    ):
        with pytest.raises(ValueError, match="read-only") as info:
            call()
        raised, advice = info.value.__notes__
        assert f"raised by the {where} of operation" in raised
        assert "work on a copy (x = x.copy())" in advice
    assert x.tolist() == [1, 1, 1]


def test_outputs_given_to_a_rule_are_read_only():
    op = gs.operation(lambda x: x * 2)
    op.vjp(lambda dy, y, x: y.fill(0))
    with pytest.raises(ValueError, match="read-only"):
        gs.grad(lambda x: np.sum(op(x)))(np.ones(3))


def test_read_only_and_strided_inputs():
    x = np.arange(6.0)[::2]
    x.flags.writeable = False
    assert gs.grad(lambda x: np.sum(module_level(x)))(x).tolist() == [0, 4, 8]


# --- the user's exceptions -----------------------------------------------------------


class MyError(Exception):
    pass


def fails(*args):
    raise MyError("mine", 3)


FAILURES = {
    "body": gs.custom_gradient(fails),
    "gradient": gs.custom_gradient(lambda x: (x, fails)),
    "vjp": gs.with_gradient(np.sin, fails),
    "jvp": gs.with_gradient(np.sin, jvp=fails),
}


@pytest.mark.parametrize("where", FAILURES)
def test_the_users_exception_passes_through_with_a_note(where):
    op = FAILURES[where]
    for f in (gs.grad(op), gs.grad(gs.grad(op)), gs.hessian(op)):
        with pytest.raises(MyError) as info:
            f(np.array(1.0))
        assert info.value.args == ("mine", 3)
        assert f"raised by the {where} of operation {op.name!r}" in info.value.__notes__
        frames = traceback.extract_tb(info.value.__traceback__)
        assert frames[-1].name == "fails"
        assert info.value.__cause__ is None


def test_recording_goes_on_after_an_exception():
    x = gs.Tensor(2.0)
    for persistent in (False, True):
        with gs.GradientTape(persistent=persistent) as tape:
            tape.watch(x)
            with pytest.raises(MyError):
                FAILURES["body"](x)
            y = module_level(x)
        assert tape.gradient(y, x).item() == 4


def test_nested_operations_are_all_named():
    outer = gs.operation(lambda x: FAILURES["body"](x))
    with pytest.raises(MyError) as info:
        outer(np.ones(2))
    assert info.value.__notes__ == [
        "raised by the body of operation 'fails'",
        "raised by the body of operation '<lambda>'",
    ]


# --- needs ---------------------------------------------------------------------------


def test_needs_says_whose_gradient_is_wanted():
    asked = []

    @gs.custom_gradient
    def op(x, p, k, scale, name):
        def grad(dy, needs):
            asked.append(needs)
            dx = dy * p["a"] if needs["x"] else None
            dp = {"a": np.sum(dy * x)} if needs["p"] else None
            return {"x": dx, "p": dp}

        return x * p["a"], grad

    def f(x, p):
        return np.sum(op(x, p, np.arange(2), 3.0, "name"))

    x, p = np.array([1.0, 2.0]), {"a": np.array(3.0)}
    static = {"k": False, "scale": False, "name": False}
    assert gs.grad(f, 0)(x, p).tolist() == [3, 3]
    assert gs.grad(f, 1)(x, p)["a"] == 3
    assert gs.grad(f, (0, 1))(x, p)[1]["a"] == 3
    assert gs.jvp(lambda p: f(x, p), (p,), (p,))[1] == 9
    assert asked == [
        {"x": True, "p": False, **static},
        {"x": False, "p": True, **static},
        {"x": True, "p": True, **static},
        {"x": False, "p": True, **static},
    ]


def test_needs_follows_what_is_asked_of_the_tape():
    asked = []

    @gs.operation
    def op(x, y):
        return x * y

    @op.vjp
    def _(dz, z, x, y, *, needs):
        asked.append(needs)
        return dz * y, dz * x

    x, y = gs.Tensor(2.0), gs.Tensor(3.0)
    with gs.GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        z = op(x, y)
    tape.gradient(z, y)
    tape.gradient(z, [x, y])
    assert asked == [{"x": False, "y": True}, {"x": True, "y": True}]


@pytest.mark.parametrize("name", ["needs", "variables"])
def test_a_parameter_of_a_ruled_operation_can_not_be_called_like_an_option(name):
    fn = {"needs": lambda x, needs: x, "variables": lambda x, variables: x}[name]
    with pytest.raises(gs.GradsmithError, match=f"{name!r}"):
        gs.operation(fn)


# --- declarations --------------------------------------------------------------------


def test_a_surrogate_is_declared_in_words():
    @gs.custom_gradient(surrogate="straight-through rounding")
    def rounded(x):
        return np.round(x), lambda dy: dy

    assert rounded.surrogate == "straight-through rounding"
    assert module_level.surrogate is None
    assert gs.grad(rounded)(0.3) == 1
    for wrong in (True, "", " ", 3):
        with pytest.raises(gs.GradsmithError, match="surrogate"):
            gs.custom_gradient(lambda x: x, surrogate=wrong)


def test_a_rule_that_is_not_linear_has_no_forward_mode():
    @gs.custom_gradient(linear=False)
    def clipped(x):
        return x * 1, lambda dy: np.clip(dy, -1, 1) * x

    x = np.array([1.0, 2.0])
    assert gs.grad(lambda x: np.sum(100 * clipped(x)))(x).tolist() == [1, 2]
    second = gs.jacobian(gs.grad(lambda x: np.sum(100 * clipped(x))), mode="reverse")
    np.testing.assert_array_equal(second(x), np.eye(2))
    message = r"operation 'clipped' has no forward mode.*linear=False.*@clipped.jvp"
    with pytest.raises(gs.NotDifferentiableError, match=message):
        gs.jvp(clipped, (x,), (x,))
    with pytest.raises(gs.NotDifferentiableError, match=message):
        gs.hessian(lambda x: np.sum(clipped(x)))(x)
    clipped.jvp(lambda dx, y, x: 7 * dx)
    assert gs.jvp(clipped, (x,), (x,))[1].tolist() == [7, 14]


def test_a_jvp_that_is_not_linear_has_no_reverse_mode():
    op = gs.operation(lambda x: x * 1, linear=False)
    op.jvp(lambda dx, y, x: np.clip(dx, -1, 1))
    assert gs.jvp(op, (1.0,), (5.0,))[1] == 1
    with pytest.raises(
        gs.NotDifferentiableError, match=r"no reverse mode.*linear=False"
    ):
        gs.grad(op)(1.0)


def test_a_rule_that_can_not_be_transposed_says_so():
    op = gs.custom_gradient(lambda x: (x * 2, lambda dy: np.array(dy.tolist())))
    assert gs.grad(op)(1.0) == 1
    with pytest.raises(
        gs.UnsupportedOperationError, match=r"x\.tolist\(\) would make a constant"
    ) as info:
        gs.jvp(op, (1.0,), (1.0,))
    assert "@<lambda>.jvp would give it directly" in info.value.__notes__[-1]


def test_no_part_of_a_transposed_rule_gets_lost():
    """A part that leaves NumPy's protocols would silently be missing in the tangent."""
    op = gs.custom_gradient(lambda x: (x * 5, lambda dy: 2 * dy + np.array(dy) * 3))
    assert gs.grad(op)(1.0) == 5
    with pytest.raises(gs.UnsupportedOperationError, match=r"^np\.array.* a constant"):
        gs.jvp(op, (1.0,), (1.0,))


def test_a_rule_may_take_a_shortcut_where_the_upstream_is_zero():
    def grad(dy):
        return 2 * dy if np.any(dy != 0) else gs.zero

    op = gs.custom_gradient(lambda x: (x * 2, grad))
    assert gs.jvp(op, (1.0,), (3.0,))[1] == 6


def test_a_body_that_can_not_run_on_tensors_is_told_why_it_does():
    @gs.custom_gradient
    def fills(x):
        y = np.empty_like(x)
        y[:] = x
        return y, lambda dy: dy

    x = np.ones(3)
    assert gs.grad(lambda x: np.sum(fills(x)))(x).tolist() == [1, 1, 1]
    with pytest.raises(gs.GradsmithError) as info:
        gs.hessian(lambda x: np.sum(fills(x)))(x)
    assert "In rule form (gs.operation and @op.vjp) a body runs on" in str(
        info.value.__notes__
    )

    c = gs.Tensor(2.0)

    @gs.operation
    def scales(x):
        y = np.empty_like(x)
        y[:] = x
        return y * c

    scales.vjp(lambda dy, y, x: dy * c)
    assert np.sum(gs.hessian(lambda x: np.sum(scales(x) ** 2))(x)) == 24
    t = gs.Tensor(x)
    with gs.GradientTape(persistent=True) as tape:
        tape.watch([c, t])
        with pytest.raises(gs.GradsmithError) as info:
            scales(t)
    assert "Make what it captures an argument" in str(info.value.__notes__)


def test_options_are_checked_at_the_door():
    for make in (gs.custom_gradient, gs.operation):
        with pytest.raises(gs.GradsmithError, match="function"):
            make(3)
        with pytest.raises(gs.GradsmithError, match="linear"):
            make(lambda x: x, linear="no")
        with pytest.raises(TypeError):
            make(lambda x: x, "surrogate")
    with pytest.raises(gs.GradsmithError, match="grad"):
        gs.with_gradient(np.sin)
    with pytest.raises(gs.GradsmithError, match="function"):
        gs.with_gradient(np.sin, 3)


def test_an_operation_looks_like_its_function():
    assert module_level.__name__ == module_level.name == "module_level"
    assert module_level.__doc__ == "Square."
    assert list(inspect.signature(module_level).parameters) == ["x"]
    assert repr(module_level) == "<operation module_level>"
    assert gs.custom_gradient()(lambda x: x).name == "<lambda>"
    assert gs.operation(linear=True)(lambda x: x).name == "<lambda>"


def test_copies_and_pickles_are_the_operation_itself():
    assert copy.copy(module_level) is copy.deepcopy(module_level) is module_level
    assert pickle.loads(pickle.dumps(module_level)) is module_level


def test_the_attributes_of_a_callable_object_stay_its_own():
    class Callable:
        def __init__(self):
            self.vjp = self.name = self.fn = "mine"

        def __call__(self, x):
            return x * 2

    op = gs.with_gradient(Callable(), lambda dy, y, x: 2 * dy)
    assert op.name == "Callable"
    assert callable(op.vjp)
    assert gs.grad(op)(1.0) == 2


def test_operations_in_threads():
    found = {}

    def work(i):
        found[i] = gs.grad(lambda x: module_level(x) * i)(float(i))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {i: 2 * i * i for i in range(8)}


# --- another gradient for an existing function ---------------------------------------


def test_with_gradient_of_functions_of_all_kinds():
    def f(x, scale=2.0):
        return x * scale

    class Callable:
        def __call__(self, x):
            return x * 2

    ten = gs.with_gradient(module_level, lambda dy, y, x: 10 * dy)
    functions = {
        "python": (f, 2.0),
        "lambda": (lambda x: x * 2, 2.0),
        "ufunc": (np.exp, np.e),
        "numpy": (np.linalg.norm, 1.0),
        "builtin": (abs, 1.0),
        "c": (math.sin, math.sin(1.0)),
        "no signature": (max, 1.0),
        "partial": (functools.partial(np.sum, axis=0), 1.0),
        "partial with a keyword": (functools.partial(f, scale=3.0), 3.0),
        "operation": (ten, 1.0),
        "callable": (Callable(), 2.0),
    }
    for name, (fn, expected) in functions.items():
        op = gs.with_gradient(fn, lambda dy, y, x: 7 * dy * np.ones_like(x))
        x = np.ones(1) if name in ("no signature", "partial") else np.array(1.0)
        assert np.ravel(op(x))[0] == pytest.approx(expected), name
        assert np.sum(gs.grad(lambda x, op=op: np.sum(op(x)))(x)) == 7, name
        assert np.sum(gs.jacobian(lambda x, op=op: op(x))(x)) == 7, name


def test_with_gradient_of_functions_with_options():
    clip = gs.with_gradient(
        np.clip, lambda dy, y, a, a_min, a_max: dy * 5, surrogate="lets all through"
    )
    x = np.array([-1.0, 0.5, 2.0])
    assert clip(x, 0, 1).tolist() == [0, 0.5, 1]
    assert gs.grad(lambda x: np.sum(clip(x, 0, a_max=1)))(x).tolist() == [5, 5, 5]

    norm = gs.with_gradient(np.linalg.norm, lambda dy, y, x, _, axis: dy * x)
    assert gs.grad(lambda x: norm(x, axis=0))(x).tolist() == x.tolist()

    add = gs.with_gradient(np.add, lambda dy, y, a, b: (2 * dy, 3 * dy))
    assert gs.grad(lambda a, b: add(a, b), (0, 1))(1.0, 2.0) == (2, 3)

    where = gs.with_gradient(np.where, lambda dy, y, c, a, b: (None, dy, 9 * dy))
    assert gs.grad(lambda b: np.sum(where(x > 0, x, b)))(x).tolist() == [9, 9, 9]


def test_an_option_that_the_rule_does_not_know_is_not_dropped():
    norm = gs.with_gradient(np.linalg.norm, lambda dy, y, x: dy * x)
    x = np.array([3.0, 4.0])
    assert gs.grad(norm)(x).tolist() == [3, 4]
    with pytest.raises(gs.GradientContractError, match="the vjp of operation 'norm'"):
        gs.grad(lambda x: norm(x, ord=1))(x)


def test_with_gradient_by_its_tangent():
    op = gs.with_gradient(np.sin, jvp=lambda dx, y, x: 7 * dx)
    assert gs.grad(op)(1.0) == gs.jvp(op, (1.0,), (1.0,))[1] == 7


def test_a_function_without_a_rule_gets_one_at_any_order():
    """What the engine's own error message recommends."""
    f = np.vectorize(lambda x: x**3, otypes=[float])
    op = gs.with_gradient(f, lambda dy, y, x: 3 * x**2 * dy)
    x = np.array([1.0, 2.0])
    assert gs.grad(lambda x: np.sum(op(x)))(x).tolist() == [3, 12]
    assert np.diag(gs.hessian(lambda x: np.sum(op(x)))(x)).tolist() == [6, 12]


# --- memory --------------------------------------------------------------------------


@pytest.fixture
def no_gc():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Array(np.ndarray):
    """One that can be referred to weakly, like any subclass."""


def big():
    return np.ones(1000).view(Array)


def test_nothing_is_kept_but_what_the_closure_captures(no_gc):
    refs = {}

    @gs.custom_gradient
    def op(x):
        kept, dropped = big(), big()
        refs.update(kept=weakref.ref(kept), dropped=weakref.ref(dropped))
        y = big()
        refs["y"] = weakref.ref(y)
        return y, lambda dy: dy * np.asarray(kept)

    x = gs.Tensor(np.ones(1000))
    with gs.GradientTape() as tape:
        tape.watch(x)
        inner = x * 1.0
        refs["x"] = weakref.ref(inner)
        z = np.sum(op(inner))
        del inner
    assert refs["dropped"]() is None
    assert refs["x"]() is None
    assert refs["y"]() is None  # np.sum needs only its shape
    assert refs["kept"]() is not None
    tape.gradient(z, x)
    assert refs["kept"]() is None


def test_a_rule_keeps_arguments_and_outputs_until_the_walk(no_gc):
    refs = {}

    @gs.operation
    def op(x):
        y = big()
        refs["y"] = weakref.ref(y)
        return y

    op.vjp(lambda dy, y, x: dy * 2)
    x = gs.Tensor(np.ones(1000))
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = op(x * 1.0)
        z = np.sum(y)
        del y
    assert refs["y"]() is not None
    tape.gradient(z, x)
    assert refs["y"]() is None


def test_a_forgotten_tape_releases_all(no_gc):
    refs = {}

    @gs.custom_gradient
    def op(x):
        kept = big()
        refs["kept"] = weakref.ref(kept)
        return x * 2, lambda dy: dy * np.asarray(kept)

    def work():
        x = gs.Tensor(np.ones(1000))
        with gs.GradientTape() as tape:
            tape.watch(x)
            op(x)

    work()
    assert refs["kept"]() is None


def test_operations_forget_their_calls():
    """No call leaves anything behind in the operation or its rules."""
    x = gs.Tensor(np.ones(10))
    for _ in range(3):
        with gs.GradientTape() as tape:
            tape.watch(x)
            y = np.sum(module_level(x))
        tape.gradient(y, x)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(20):
        with gs.GradientTape() as tape:
            tape.watch(x)
            y = np.sum(module_level(x))
        tape.gradient(y, x)
    gc.collect()
    assert len(gc.get_objects()) - before < 20


# --- altered copies ------------------------------------------------------------------


def tenfold(rule):
    @functools.wraps(rule)
    def around(*args, **kwargs):
        return 10 * rule(*args, **kwargs)

    return around


def rule_form(x):
    return x**2


ALTERED = {
    "closure": lambda: gs.custom_gradient(lambda x: (x**2, lambda dy: 2 * x * dy)),
    "as a list": lambda: gs.custom_gradient(lambda x: [x**2, lambda dy: 2 * x * dy]),
    "vjp": lambda: gs.with_gradient(rule_form, lambda dy, y, x: 2 * x * dy),
    "jvp": lambda: gs.with_gradient(rule_form, jvp=lambda dx, y, x: 2 * x * dx),
}


@pytest.mark.parametrize("make", ALTERED.values(), ids=ALTERED)
def test_an_altered_copy_has_other_rules_and_leaves_the_operation_alone(make):
    op = make()
    altered = op.altered(tenfold)
    assert float(gs.grad(altered)(3.0)) == 60.0
    assert float(gs.jvp(altered, (3.0,), (1.0,))[1]) == 60.0
    assert float(altered(3.0)) == 9.0
    assert float(gs.grad(op)(3.0)) == 6.0


def test_an_altered_copy_keeps_what_was_declared():
    class Special(gs.Operation):
        pass

    op = Special(rule_form, closure=False, surrogate="words", linear=False)
    op.vjp(lambda dy, y, x: dy)
    op.told, op._cached = "this", "not that"
    altered = op.altered(tenfold)
    assert type(altered) is Special
    assert (altered.name, altered.surrogate, altered.linear) == (
        "rule_form", "words", False,
    )  # fmt: skip
    assert altered.told == "this"
    assert not hasattr(altered, "_cached")
