"""Optimizers against PyTorch and Keras, their options, errors, and saved states."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from math import sqrt

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.optimizers import SGD, Adam, AdamW, Optimizer, RMSprop

SHAPES = [(3, 2), (), (4,), (0, 2)]
ALL = {
    "sgd": SGD(0.1),
    "momentum": SGD(0.1, momentum=0.9),
    "nesterov": SGD(0.1, momentum=0.9, nesterov=True),
    "adam": Adam(0.1),
    "amsgrad": Adam(0.1, amsgrad=True),
    "adamw": AdamW(0.1, weight_decay=0.1),
    "rmsprop": RMSprop(0.1),
    "rmsprop-momentum": RMSprop(0.1, momentum=0.5),
    "rmsprop-centered": RMSprop(0.1, centered=True, momentum=0.5),
}
each = pytest.mark.parametrize("optimizer", ALL.values(), ids=ALL)


def fresh(optimizer):
    """Another optimizer with the same options."""
    return copy.deepcopy(optimizer)


def variables(dtype=float, seed=0):
    rng = np.random.default_rng(seed)
    names = [f"x{i}" for i in range(len(SHAPES))]
    return [
        gs.Variable(rng.standard_normal(shape), name=name, dtype=dtype)
        for name, shape in zip(names, SHAPES, strict=True)
    ]


def gradients(step, dtype=float):
    """Of changing sign and size, the same for all."""
    rng = np.random.default_rng(100 + step)
    return [rng.standard_normal(shape).astype(dtype) for shape in SHAPES]


def train(optimizer, xs, steps, dtype=float):
    for step in steps:
        optimizer.apply_gradients(zip(gradients(step, dtype), xs, strict=True))


# The formulas


def test_sgd_by_hand():
    x = gs.Variable([1.0, -2.0])
    sgd = SGD(0.5, momentum=0.5)
    for _ in range(2):
        sgd.apply_gradients([(np.array([1.0, 2.0]), x)])
    # The velocity is 0.5 g, then 0.75 g.
    np.testing.assert_array_equal(x.value, [1 - 1.25, -2 - 2.5])


def test_adam_by_hand():
    x = gs.Variable(1.0)
    adam = Adam(0.1, beta_1=0.5, beta_2=0.75, epsilon=0.125)
    adam.apply_gradients([(2.0, x)])
    # m = 1, v = 1; the correction is sqrt(0.25) / 0.5 = 1.
    np.testing.assert_allclose(x.value, 1 - 0.1 / 1.125, rtol=1e-15)


PYTORCH = {
    "sgd": (SGD(0.1), "SGD", {}),
    "momentum": (SGD(0.1, momentum=0.9), "SGD", {"momentum": 0.9}),
    "nesterov": (
        SGD(0.1, momentum=0.9, nesterov=True),
        "SGD",
        {"momentum": 0.9, "nesterov": True},
    ),
    "adam": (Adam(0.1, epsilon=0.01), "Adam", {"eps": 0.01}),
    "adam-betas": (
        Adam(0.1, beta_1=0.5, beta_2=0.9, epsilon=0.01),
        "Adam",
        {"betas": (0.5, 0.9), "eps": 0.01},
    ),
    "amsgrad": (
        Adam(0.1, beta_2=0.7, epsilon=1e-300, amsgrad=True),
        "Adam",
        {"betas": (0.9, 0.7), "eps": 0, "amsgrad": True},
    ),
    "adamw": (
        AdamW(0.1, epsilon=0.01, weight_decay=0.3),
        "AdamW",
        {"eps": 0.01, "weight_decay": 0.3},
    ),
    "rmsprop": (RMSprop(0.1, epsilon=1e-300), "RMSprop", {"alpha": 0.9, "eps": 0}),
    "rmsprop-momentum": (
        RMSprop(0.1, rho=0.8, momentum=0.5, epsilon=1e-300),
        "RMSprop",
        {"alpha": 0.8, "momentum": 0.5, "eps": 0},
    ),
    "rmsprop-centered": (
        RMSprop(0.1, rho=0.8, momentum=0.5, centered=True, epsilon=1e-300),
        "RMSprop",
        {"alpha": 0.8, "momentum": 0.5, "eps": 0, "centered": True},
    ),
}


# Centered RMSprop divides by sqrt(v - mean**2), which is 0 at the first step with
# rho = 0 only; with rho = 0.8 it is 0.4 |g|, far from where the epsilons differ.
@pytest.mark.parametrize("kind", PYTORCH)
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_as_pytorch(kind, dtype):
    torch = pytest.importorskip("torch", reason="the reference is PyTorch")
    ours, name, options = PYTORCH[kind]
    ours, xs = fresh(ours), variables(dtype)
    parameters = [torch.tensor(np.array(x.value), requires_grad=True) for x in xs]
    theirs = getattr(torch.optim, name)(parameters, lr=0.1, **options)
    epsilon = getattr(ours, "epsilon", None)
    phase = dtype(1 - 0.5j) if dtype is np.complex128 else 1
    for t in range(1, 30):
        grads = [g.astype(dtype) * phase for g in gradients(t)]
        if isinstance(ours, Adam):  # PyTorch's epsilon in our terms
            ours.epsilon = epsilon * sqrt(1 - ours.beta_2**t)
        ours.apply_gradients(zip(grads, xs, strict=True))
        for p, g in zip(parameters, grads, strict=True):
            p.grad = torch.tensor(g)
        theirs.step()
        for x, p in zip(xs, parameters, strict=True):
            np.testing.assert_allclose(x.value, p.detach().numpy(), rtol=1e-11)


KERAS = {
    "SGD": [{}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}],
    "Adam": [
        {"beta_2": 0.9, "epsilon": 0.1},
        {"beta_2": 0.7, "epsilon": 0.1, "amsgrad": True},
    ],
    "AdamW": [{"beta_2": 0.9, "epsilon": 0.1, "weight_decay": 0.3}],
    "RMSprop": [
        {"epsilon": 0.1},
        {"epsilon": 0.1, "rho": 0.8, "momentum": 0.5, "centered": True},
    ],
}
CLIPS = [{}, {"clipnorm": 0.5}, {"clipvalue": 0.3}, {"global_clipnorm": 1.0}]
RUN_KERAS = """
import json, sys
import keras, numpy as np
results = []
for name, options, x, grads in json.load(sys.stdin):
    xs = [keras.Variable(np.array(part), dtype="float64") for part in x]
    optimizer = getattr(keras.optimizers, name)(0.1, **options)
    for g in grads:
        optimizer.apply_gradients(zip([np.array(part) for part in g], xs))
    results.append([np.asarray(part).tolist() for part in xs])
json.dump(results, sys.stdout)
"""


def test_as_keras_with_every_clipping():
    """In a process of its own, since Keras has one back end per process."""
    if find_spec("keras") is None:
        pytest.skip("the reference is Keras, which is not installed")
    cases = [
        (name, {**options, **clip})
        for name, several in KERAS.items()
        for options in several
        for clip in CLIPS
    ]
    x, grads = (
        [[1.0, -2.0], [[0.5]]],
        [[[0.3 * t, -1.0], [[2.0 - t]]] for t in range(5)],
    )
    done = subprocess.run(
        [sys.executable, "-c", RUN_KERAS],
        input=json.dumps([(name, options, x, grads) for name, options in cases]),
        env={**os.environ, "KERAS_BACKEND": "numpy"},
        capture_output=True,
        text=True,
        check=True,
    )
    for (name, options), theirs in zip(cases, json.loads(done.stdout), strict=True):
        ours = [gs.Variable(part) for part in x]
        optimizer = globals()[name](0.1, **options)
        for g in grads:
            optimizer.apply_gradients(zip(g, ours, strict=True))
        for a, b in zip(ours, theirs, strict=True):
            # Keras keeps its powers of beta in float32; 1 - beta is 0.1 or more.
            np.testing.assert_allclose(
                a.value, b, rtol=1e-5, err_msg=f"{name} {options}"
            )


def test_defaults_are_those_of_keras():
    assert (SGD().learning_rate, Adam().learning_rate) == (0.01, 0.001)
    adam = AdamW()
    assert (adam.beta_1, adam.beta_2, adam.epsilon) == (0.9, 0.999, 1e-7)
    assert (adam.weight_decay, adam.amsgrad, RMSprop().rho) == (0.004, False, 0.9)


def test_centered_rmsprop_survives_a_variance_rounded_below_0():
    x = gs.Variable(np.zeros(1000, np.float32))
    rmsprop = RMSprop(0.1, rho=0.3, centered=True, epsilon=1e-20)
    g = np.random.default_rng(0).uniform(1, 2, 1000).astype(np.float32)
    for _ in range(30):
        rmsprop.apply_gradients([(g, x)])
    slots = rmsprop.state()
    assert np.any(slots["0/v"] < slots["0/mean"] ** 2), "the test has lost its point"
    assert np.all(np.isfinite(x.value))


# What is kept as it is


@each
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64])
def test_shapes_and_dtypes_stay(optimizer, dtype):
    optimizer, xs = fresh(optimizer), variables(dtype)
    train(optimizer, xs, range(3), dtype)
    for x, shape in zip(xs, SHAPES, strict=True):
        assert isinstance(x.value, np.ndarray)
        assert (x.shape, x.dtype) == (shape, dtype)
        assert np.all(np.isfinite(x.value))


def test_float64_gradients_and_rates_do_not_widen_float32():
    xs = variables(np.float32)
    train(Adam(lambda step: np.float64(0.1)), xs, range(2), np.float64)
    assert all(x.dtype == np.float32 for x in xs)


@each
def test_neither_gradients_nor_old_values_are_changed(optimizer):
    optimizer, xs = fresh(optimizer), variables()
    grads = gradients(0)
    for g in grads:
        g.flags.writeable = False
    old = [x.value for x in xs]
    before = [value.copy() for value in old]
    for _ in range(2):
        optimizer.apply_gradients(zip(grads, xs, strict=True))
    for value, copied in zip(old, before, strict=True):
        np.testing.assert_array_equal(value, copied)


def test_a_persistent_tape_still_knows_the_values_before_the_step():
    x = gs.Variable([3.0])
    with gs.GradientTape(persistent=True) as tape:
        y = x * x
    SGD(1.0).apply_gradients([(tape.gradient(y, x), x)])
    assert x.value == -3
    assert tape.gradient(y, x).numpy() == 6


def test_broadcast_and_transposed_gradients():
    x, y = gs.Variable(np.ones((3, 2))), gs.Variable(np.ones((3, 2)))
    g = np.arange(6.0).reshape(2, 3)
    SGD(1.0, momentum=0.5).apply_gradients(
        [(g.T, x), (np.broadcast_to(1.0, (3, 2)), y)]
    )
    np.testing.assert_array_equal(x.value, 1 - g.T)
    np.testing.assert_array_equal(y.value, np.zeros((3, 2)))


def test_steps_are_not_recorded():
    x = gs.Variable(1.0)
    with gs.GradientTape() as tape:
        y = x * x
        SGD(0.1).apply_gradients([(1.0, x)])
    assert tape.gradient(y, x).numpy() == 2


# Learning rates and options


def test_a_schedule_is_given_the_steps_done():
    seen = []
    x = gs.Variable(0.0)

    def schedule(step):
        seen.append(step)
        return 10.0**-step

    sgd = SGD(schedule)
    for _ in range(3):
        sgd.apply_gradients([(1.0, x)])
    assert seen == [0, 1, 2]
    assert sgd.iterations == 3
    np.testing.assert_allclose(x.value, -1.11, rtol=1e-15)


@pytest.mark.parametrize("rate", [np.array(0.5), np.float32(0.5), gs.Tensor(0.5)])
def test_a_schedule_may_return_any_number(rate):
    x = gs.Variable(0.0)
    SGD(lambda step: rate).apply_gradients([(1.0, x)])
    assert x.value == -0.5


def test_a_schedule_that_fails():
    x = gs.Variable(0.0)
    with pytest.raises(
        gs.GradsmithError, match=r"learning_rate\(0\) must be .* not -1"
    ):
        SGD(lambda step: -1).apply_gradients([(1.0, x)])
    with pytest.raises(ZeroDivisionError) as caught:
        SGD(lambda step: 1 / step).apply_gradients([(1.0, x)])
    assert caught.value.__notes__ == ["raised by the learning_rate of SGD"]


def test_options_may_be_set_between_steps():
    x = gs.Variable(0.0)
    sgd = SGD(1.0)
    sgd.learning_rate = 0.25
    sgd.apply_gradients([(1.0, x)])
    assert x.value == -0.25
    with pytest.raises(gs.GradsmithError, match="learning_rate of SGD must be"):
        sgd.learning_rate = -1
    with pytest.raises(gs.GradsmithError, match="SGD has no option 'lr'; it has learn"):
        sgd.lr = 0.1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: SGD(-0.1),
            "learning_rate of SGD must be a number of at least 0, not -",
        ),
        (lambda: SGD(float("nan")), "learning_rate of SGD must be .*not nan"),
        (lambda: Adam("0.1"), "learning_rate of Adam must be .*'0.1' of type str"),
        (lambda: Adam(True), "learning_rate of Adam must be .*True of type bool"),
        (lambda: Adam(beta_1=1), "beta_1 of Adam must be .* below 1, not 1"),
        (lambda: Adam(epsilon=0), "epsilon of Adam must be a number above 0"),
        (lambda: Adam(amsgrad=1), "amsgrad of Adam must be True or False, not 1"),
        (lambda: AdamW(weight_decay=-1), "weight_decay of AdamW must be"),
        (lambda: SGD(nesterov=True), "needs a momentum"),
        (lambda: SGD(clipnorm=0), "clipnorm of SGD must be a number above 0"),
        (lambda: SGD(clipnorm=1, clipvalue=1), "one way: give clipnorm or clipvalue"),
    ],
)
def test_wrong_options(make, message):
    with pytest.raises(gs.GradsmithError, match=message):
        make()


def test_options_are_keyword_only():
    with pytest.raises(TypeError):
        Adam(0.1, 0.9)


# Clipping


def test_clipping_by_norm_of_float16_does_not_overflow():
    x = gs.Variable(np.zeros(4, np.float16))
    SGD(1.0, clipnorm=2.0).apply_gradients([(np.full(4, 600, np.float16), x)])
    np.testing.assert_allclose(x.value, -1, rtol=1e-3)


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_clipping_does_not_hide_what_is_not_finite(bad):
    x = gs.Variable([0.0, 0.0])
    with np.errstate(invalid="ignore"):
        SGD(1.0, clipnorm=1.0).apply_gradients([([bad, 1.0], x)])
    assert np.isnan(x.value[0])


def test_small_gradients_are_not_scaled_up():
    x = gs.Variable([0.0, 0.0])
    SGD(1.0, global_clipnorm=9.0).apply_gradients([([0.3, 0.4], x)])
    np.testing.assert_array_equal(x.value, [-0.3, -0.4])


# Gradients that are missing or do not fit


def test_all_none_names_the_variables_and_points_at_explain():
    xs = [gs.Variable(1.0, name="kernel"), gs.Variable([1.0], name="bias")]
    with pytest.raises(gs.GradsmithError) as caught:
        SGD().apply_gradients([(None, x) for x in xs])
    for part in ("'kernel' of shape ()", "'bias'", "tape.explain(loss, variable)"):
        assert part in str(caught.value)


def test_some_none_are_left_out_with_one_warning():
    a, b = gs.Variable(1.0, name="a"), gs.Variable(1.0, name="b")
    adam = Adam(0.1)
    with pytest.warns(
        UserWarning, match=r"None.*'b' of shape \(\).*tape.explain"
    ) as told:
        adam.apply_gradients([(1.0, a), (None, b)])
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adam.apply_gradients([(1.0, a), (None, b)])
    assert a.value < b.value == 1
    assert adam.iterations == 2


def test_a_gradient_of_another_shape_changes_nothing():
    a, b = gs.Variable([1.0], name="a"), gs.Variable([1.0, 2.0], name="b")
    sgd = SGD(0.1)
    with pytest.raises(
        gs.GradsmithError, match=r"'b' of shape \(2,\) has shape \(2, 1\)"
    ):
        sgd.apply_gradients([([1.0], a), (np.ones((2, 1)), b)])
    assert a.value == 1
    assert sgd.iterations == 0


def test_a_scalar_gradient_is_not_broadcast():
    with pytest.raises(gs.GradsmithError, match=r"has shape \(\)"):
        SGD().apply_gradients([(1.0, gs.Variable([1.0, 2.0]))])


def test_wrong_pairs():
    x = gs.Variable(1.0, name="x")
    apply = SGD().apply_gradients
    with pytest.raises(gs.GradsmithError, match=r"pair 0 is \(Variable, float\)"):
        apply([(x, 1.0)])
    with pytest.raises(gs.GradsmithError, match="no pairs"):
        apply(zip([], [], strict=True))
    with pytest.raises(gs.GradsmithError, match=r"'x' of shape .* is given twice"):
        apply([(1.0, x), (1.0, x)])
    with pytest.raises(
        gs.GradsmithError, match="dtype complex128, the variable float64"
    ):
        apply([(1j, x)])
    with pytest.raises(gs.GradsmithError, match=r"'n' of shape .* dtype int"):
        apply([(1.0, gs.Variable(1, name="n"))])


# Saving and loading


@each
@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
@pytest.mark.parametrize("way", ["dict", "file", "json"])
def test_training_goes_on_bit_for_bit(optimizer, dtype, way, tmp_path):
    straight, broken = fresh(optimizer), fresh(optimizer)
    xs, ys = variables(dtype), variables(dtype)
    train(straight, xs, range(6), dtype)
    train(broken, ys, range(3), dtype)
    reloaded = fresh(optimizer)
    if way == "file":
        broken.save(tmp_path / "state")
        reloaded.load(tmp_path / "state")
        assert [path.name for path in tmp_path.iterdir()] == ["state"]
    else:
        state = broken.state()
        if way == "json":
            text = json.dumps(state, default=lambda array: array.tolist())
            state = json.loads(text)
        reloaded.load_state(state)
    zs = [gs.Variable(y.value, name=y.name) for y in ys]
    train(broken, ys, range(3, 6), dtype)  # must not share buffers with `reloaded`
    train(reloaded, zs, range(3, 6), dtype)
    for x, z in zip(xs, zs, strict=True):
        assert x.value.tobytes() == z.value.tobytes()
    assert reloaded.iterations == 6


def test_a_state_shares_no_memory_with_the_optimizer():
    sgd, other, x = SGD(0.1, momentum=0.5), SGD(), gs.Variable([0.0, 0.0])
    sgd.apply_gradients([([1.0, 2.0], x)])
    state = sgd.state()
    other.load_state(state)
    for optimizer in (sgd, other):
        optimizer.apply_gradients([([1.0, 1.0], x)])
    np.testing.assert_array_equal(state["0/velocity"], [0.1, 0.2])


def test_variables_may_come_one_after_another():
    sgd = SGD(1.0, momentum=0.5)
    xs = [gs.Variable(0.0, name=name) for name in "abc"]
    for x, g in zip(xs, [1.0, 2.0, 3.0], strict=True):
        sgd.apply_gradients([(g, x)])
    sgd.apply_gradients([(0.0, xs[1])])
    assert [sgd.state()[f"{i}/velocity"].item() for i in range(3)] == [1, 1, 3]
    assert sgd.state()["variables"] == ["a", "b", "c"]


def test_an_option_set_by_hand_is_part_of_the_state():
    adam, other = Adam(0.1, clipnorm=1.0), Adam(0.2, clipvalue=3.0)
    adam.learning_rate, adam.beta_1 = 0.05, 0.5
    other.load_state(adam.state())
    assert (other.learning_rate, other.beta_1) == (0.05, 0.5)
    assert (other.clipnorm, other.clipvalue) == (1.0, None)


def test_a_loaded_state_that_meets_no_variables_is_saved_again():
    adam, other = Adam(), Adam()
    train(adam, variables(), range(2))
    other.load_state(adam.state())
    assert list(other.state()) == list(adam.state())


def test_loading_goes_back_to_an_earlier_state():
    adam, xs = Adam(0.1), variables()
    empty = adam.state()
    values = [x.value for x in xs]
    train(adam, xs, range(3))
    once = [x.value for x in xs]
    adam.load_state(empty)
    assert adam.iterations == 0
    for x, value in zip(xs, values, strict=True):
        x.assign(value)
    train(adam, xs, range(3))
    for x, value in zip(xs, once, strict=True):
        np.testing.assert_array_equal(x.value, value)


def test_a_variable_without_a_gradient_keeps_its_place():
    a, b = gs.Variable(1.0, name="a"), gs.Variable(1.0, name="b")
    adam, other = Adam(0.1), Adam(0.1)
    with pytest.warns(UserWarning, match="'a' of shape"):
        adam.apply_gradients([(None, a), (1.0, b)])
    other.load_state(adam.state())
    adam.apply_gradients([(1.0, a), (2.0, b)])
    c, d = gs.Variable(1.0, name="a"), gs.Variable(0.9, name="b")
    other.apply_gradients([(1.0, c), (2.0, d)])
    assert c.value == a.value
    np.testing.assert_array_equal(other.state()["1/v"], adam.state()["1/v"])


def test_build_tells_the_order():
    a, b = gs.Variable([1.0], name="a"), gs.Variable([1.0], name="b")
    sgd, other = SGD(0.1, momentum=0.9), SGD(0.1, momentum=0.9)
    sgd.apply_gradients([([1.0], a), ([2.0], b)])
    other.build([a, b])
    other.load_state(sgd.state())
    other.apply_gradients([([0.0], b)])  # comes first, and is still the second
    np.testing.assert_allclose(other.state()["1/velocity"], [0.18], rtol=1e-15)


def test_states_that_do_not_fit():
    adam = Adam(0.1)
    a, b = gs.Variable([1.0], name="a"), gs.Variable([1.0, 2.0], name="b")
    adam.apply_gradients([([1.0], a), ([1.0, 1.0], b)])
    state = adam.state()
    with pytest.raises(gs.GradsmithError, match=r"of a SGD .* this is that of a Adam"):
        SGD().load_state(state)
    with pytest.raises(gs.GradsmithError, match="none of an optimizer"):
        Adam().load_state({"w": np.ones(2)})
    with pytest.raises(
        gs.GradsmithError, match="learning_rate that is a number, and thi"
    ):
        Adam(lambda step: 0.1).load_state(state)
    with pytest.raises(gs.GradsmithError, match="the state lacks 'beta_1'"):
        Adam().load_state({k: v for k, v in state.items() if k != "beta_1"})
    with pytest.raises(gs.GradsmithError, match="entry '2/m' and 2 variables"):
        Adam().load_state({**state, "2/m": np.ones(1)})
    with pytest.raises(gs.GradsmithError, match="epsilon in the state must be"):
        Adam().load_state({**state, "epsilon": -1.0})


def damaged(state):
    """Names of damages, and the states that have them."""
    without = lambda *names: {k: v for k, v in state.items() if k not in names}
    yield "lacks '1/v'", without("1/v")
    yield "lacks '0/m', '0/v'", without("0/m", "0/v")
    yield "lacks 'buffers'", without("buffers")
    yield "'0/m' is not finite", {**state, "0/m": np.array([np.nan])}
    yield "'1/v' is not finite", {**state, "1/v": np.array([1.0, np.inf])}
    yield "'1/v' is a mean of squares", {**state, "1/v": np.array([1.0, -1.0])}
    yield "'0/m' holds", {**state, "0/m": np.array(["x"])}
    yield "'0/m' holds", {**state, "0/m": np.array([None])}
    yield "'1/m' holds", {**state, "1/m": [[1.0], [2.0, 3.0]]}
    yield r"buffers of shape \(3,\)", {**state, "1/m": np.ones(3)}


def test_missing_and_damaged_moments_are_refused(tmp_path):
    adam = Adam(0.1)
    a, b = gs.Variable([1.0], name="a"), gs.Variable([1.0, 2.0], name="b")
    adam.apply_gradients([([1.0], a), ([1.0, 1.0], b)])
    for words, state in damaged(adam.state()):
        other = Adam(0.2)
        other.build([a, b])
        with pytest.raises(gs.GradsmithError, match=words):
            other.load_state(state)
        assert (other.iterations, other.learning_rate) == (0, 0.2)  # nothing was loaded
    path = tmp_path / "state.npz"
    adam.save(path)
    whole = path.read_bytes()
    Adam().load(path)
    at = whole.index(adam.state()["1/m"].tobytes())
    for damage in (whole[:-200], whole[: at + 3], b"", b"no file of NumPy's",
                   whole[:at] + b"\xff" + whole[at + 1 :]):  # fmt: skip
        path.write_bytes(damage)
        with pytest.raises(gs.GradsmithError, match="damaged"):
            Adam().load(path)


def test_variables_in_another_order_are_refused():
    adam, other = Adam(0.1), Adam(0.1)
    a, b = gs.Variable([1.0], name="a"), gs.Variable([1.0, 2.0], name="b")
    adam.apply_gradients([([1.0], a), ([1.0, 1.0], b)])
    other.load_state(adam.state())
    with pytest.raises(gs.GradsmithError, match=r"variable 0 is 'a' .*here it is 'b'"):
        other.apply_gradients([([1.0, 1.0], b), ([1.0], a)])
    with pytest.raises(
        gs.GradsmithError, match="variable 0 is 'a', and here it is 'z'"
    ):
        other.apply_gradients([([1.0], gs.Variable([1.0], name="z"))])
    c = gs.Variable([[1.0]], name="a")
    with pytest.raises(gs.GradsmithError, match=r"shape \(1,\), and here .* \(1, 1\)"):
        other.apply_gradients([([[1.0]], c)])
    other.apply_gradients([([1.0], a), ([1.0, 1.0], b)])  # nothing was changed before


def test_a_schedule_goes_on_where_it_was():
    def schedule(step):
        return 1 / (1 + step)

    sgd, other = SGD(schedule), SGD(schedule)
    x = gs.Variable(0.0)
    sgd.apply_gradients([(1.0, x)])
    other.load_state(sgd.state())
    other.apply_gradients([(1.0, x)])
    assert x.value == -1.5


def test_an_interrupted_save_keeps_the_earlier_file(tmp_path, monkeypatch):
    path = tmp_path / "state.npz"
    adam = Adam()
    adam.save(path)

    def fail(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(KeyboardInterrupt):
        adam.save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["state.npz"]
    Adam().load(path)


def test_two_who_save_at_once_leave_one_whole_file(tmp_path):
    path = tmp_path / "state.npz"
    adam, x = Adam(), gs.Variable(np.ones(50_000), name="x")
    adam.apply_gradients([(np.ones(50_000), x)])
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: adam.save(path), range(20)))
    assert [file.name for file in tmp_path.iterdir()] == ["state.npz"]
    Adam().load(path)


def test_a_deep_copy_goes_on_by_itself():
    net = {"x": gs.Variable(1.0), "adam": Adam(0.1, beta_1=0.5)}
    net["adam"].apply_gradients([(1.0, net["x"])])
    twin = copy.deepcopy(net)
    for one in (net, twin):
        one["adam"].apply_gradients([(-3.0, one["x"])])
    assert net["x"].value == twin["x"].value
    assert len(twin["adam"].state()["variables"]) == 1


# In use


def test_a_linear_model_is_trained_by_adam():
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((64, 3))
    labels = inputs @ [1.0, -2.0, 0.5] + 3.0
    w, b = gs.Variable(np.zeros(3), name="w"), gs.Variable(0.0, name="b")
    adam = Adam(lambda step: 0.1 * 0.99**step)
    for _ in range(500):
        with gs.GradientTape() as tape:
            error = inputs @ w + b - labels
            loss = np.sum(error * error) / 64
        adam.apply_gradients(zip(tape.gradient(loss, [w, b]), [w, b], strict=True))
    np.testing.assert_allclose(w.value, [1.0, -2.0, 0.5], atol=1e-3)
    np.testing.assert_allclose(b.value, 3.0, atol=1e-3)


def test_an_optimizer_of_ones_own_needs_a_step_alone():
    class SignSGD(Optimizer):
        def step(self, g, x, slots, rate):
            slots["seen"] += 1
            return np.sign(g) * rate

    x, sign = gs.Variable([1.0, 1.0]), SignSGD(0.5)
    sign.apply_gradients([([3.0, -0.1], x)])
    np.testing.assert_array_equal(x.value, [0.5, 1.5])
    np.testing.assert_array_equal(sign.state()["0/seen"], [1, 1])
