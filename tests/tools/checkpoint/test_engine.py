"""gs.checkpoint on the embedded engine."""

from __future__ import annotations

import gc
import pickle
import random
import sys
import threading
import weakref
from contextlib import contextmanager

import numpy as np
import pytest

import gradsmith as gs

X = np.linspace(0.1, 1.0, 5)
W = gs.Variable(np.linspace(1.0, 2.0, 5), name="w")


def inside(x, scale=1.0, more=None):
    more = {"k": x} if more is None else more
    return {"a": np.sin(x) * W * scale, "b": [np.exp(x) * more["k"], 3]}


def loss(fn):
    def total(x):
        y = fn(x, scale=2.0, more={"k": x * x})
        assert y["b"][1] == 3
        return np.sum(y["a"] ** 2 + y["b"][0])

    return total


PLAIN, CHECKPOINTED = loss(inside), loss(gs.checkpoint(inside))
HIGHER = {
    "gradient": lambda f: gs.grad(f)(X),
    "tangent": lambda f: gs.jvp(f, (X,), (X,))[1],
    "hessian": lambda f: gs.hessian(f)(X),
    "hvp": lambda f: gs.hvp(f, (X,), (X,)),
    "reverse over reverse": lambda f: gs.grad(lambda x: np.sum(gs.grad(f)(x) ** 2))(X),
    "reverse over forward": lambda f: gs.grad(lambda x: gs.jvp(f, (x,), (X,))[1])(X),
    "jacobian": lambda f: gs.jacobian(lambda x: np.stack([f(x), f(2 * x)]))(X),
}


@pytest.mark.parametrize("what", HIGHER)
def test_both_modes_and_higher_orders_are_those_of_the_function(what):
    derivative = HIGHER[what]
    np.testing.assert_allclose(
        derivative(CHECKPOINTED), derivative(PLAIN), rtol=1e-12, atol=0
    )


def test_captured_variables_get_their_gradient_also_from_a_persistent_tape():
    found = []
    for fn in (PLAIN, CHECKPOINTED):
        x = gs.Tensor(X)
        with gs.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = fn(x)
            first = tape.gradient(y, [x, W])
        second = tape.gradient(first[1], [x, W])
        found.append([each.numpy() for each in (*first, *second)])
        np.testing.assert_array_equal(tape.gradient(y, W), first[1])
    for plain, ours in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, plain)


def test_a_variable_that_was_assigned_since_counts_as_it_was():
    w = gs.Variable([2.0, 3.0])
    with gs.GradientTape() as tape:
        y = gs.checkpoint(lambda: np.sum(w**3))()
    w.assign([10.0, 10.0])
    np.testing.assert_array_equal(tape.gradient(y, w), [12.0, 27.0])
    np.testing.assert_array_equal(w.numpy(), [10.0, 10.0])


def test_the_function_runs_once_forward_and_once_backward():
    calls = []
    fn = gs.checkpoint(lambda x: calls.append(0) or np.sum(np.sin(x)))
    fn(X)
    assert len(calls) == 1
    gs.grad(fn)(X)
    assert len(calls) == 3
    gs.jvp(fn, (X,), (X,))
    assert len(calls) == 4


def test_nothing_of_the_inside_is_alive_between_the_passes():
    alive = []

    def deep(x):
        for _ in range(5):
            x = np.tanh(x) * 1.5
            alive.append(weakref.ref(x))
        return np.sum(x)

    def alive_after(fn):
        alive.clear()
        x = gs.Tensor(np.zeros(10))
        with gs.GradientTape() as tape:
            tape.watch(x)
            y = fn(x)
        values = [each() for each in alive]
        nodes = sum(1 for n in gc.get_objects() if type(n).__name__ == "Node")
        assert values == [None] * 5
        return nodes, tape.gradient(y, x)

    gc.collect()
    plain, dx = alive_after(deep)
    gc.collect()
    ours, ours_dx = alive_after(gs.checkpoint(deep))
    np.testing.assert_array_equal(ours_dx, dx)
    assert plain - ours >= 8  # of ten operations a single one is left


def test_peak_memory_is_that_of_one_block():
    import tracemalloc

    def block(x):
        for _ in range(10):
            x = np.sin(np.tanh(x))
        return x

    def peak(fn):
        def four(x):
            for _ in range(4):
                x = fn(x)
            return np.sum(x)

        x = np.full(50_000, 0.5)
        gs.release_memory()
        tracemalloc.start()
        gs.grad(four)(x)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found / x.nbytes

    assert peak(block) > 80  # forty sines and forty tanh
    assert peak(gs.checkpoint(block)) < 32  # twenty of them, the states, and dy


def test_blocks_nest_and_work_in_operations_and_around_them():
    @gs.custom_gradient
    def square(x):
        return x * x * W, lambda dy: 2 * x * dy * W

    def outer(x):
        return np.sum(gs.checkpoint(lambda y: square(np.sin(y)))(np.cos(x)) * x)

    @gs.custom_gradient
    def around(x):
        y, pull = gs.vjp(gs.checkpoint(lambda x: np.sin(x) * x), x)
        return y * W, lambda dy: pull(dy * W)[0]

    for fn in (outer, lambda x: np.sum(around(x))):
        found = []
        for each in (fn, gs.checkpoint(fn)):
            x = gs.Tensor(X)
            with gs.GradientTape() as tape:
                tape.watch(x)
                y = each(x)
            found.append([dx.numpy() for dx in tape.gradient(y, [x, W])])
        np.testing.assert_array_equal(found[0], found[1])


def test_results_that_depend_on_nothing_stay_constants():
    rounded = gs.checkpoint(lambda x: np.round(x))
    dx = gs.grad(lambda x: np.sum(x * rounded(x)))(X)
    np.testing.assert_array_equal(dx, np.round(X))
    assert gs.checkpoint(lambda x: x)(3) == 3


def test_a_departure_is_told_as_without_it():
    leaves = lambda x: np.sum(gs.Tensor(np.asarray(x)) * 2)
    with pytest.raises(gs.UnsupportedOperationError, match="would make a constant"):
        gs.grad(gs.checkpoint(leaves))(X)


def test_methods_and_modules():
    class Layer(gs.Module):
        def __init__(self):
            self.w = gs.Variable([2.0, 3.0], name="w")

        @gs.checkpoint
        def __call__(self, x):
            return np.sum(np.sin(x * self.w))

    layer = Layer()
    with gs.GradientTape() as tape:
        y = layer(np.ones(2))
    np.testing.assert_allclose(tape.gradient(y, layer.w), np.cos([2.0, 3.0]))
    assert Layer.__call__.__name__ == "__call__"


def draws(rng, legacy):
    shuffled = random.Random(3)

    def noisy(x, generator):
        noise = generator.normal(size=5) * rng.random(5) * np.random.rand(5)
        noise = noise * random.random() * legacy.rand(5) * shuffled.random()
        return np.sum(np.sin(x) * noise)

    return noisy


def test_randomness_is_replayed_and_goes_on_as_without_checkpointing():
    found = []
    for wrap in (lambda f: f, gs.checkpoint):
        np.random.seed(0)
        random.seed(0)
        rng, given = np.random.default_rng(1), np.random.default_rng(2)
        noisy = wrap(draws(rng, np.random.RandomState(4)))
        value, dx = gs.value_and_grad(noisy)(X, given)
        after = rng.random(), given.random(), np.random.rand(), random.random()
        found.append((value, dx.tolist(), after))
    assert found[0] == found[1]


class Slotted:
    __slots__ = ("__rng", "unset")

    def __init__(self):
        self.__rng = np.random.default_rng(0)

    def __call__(self, x):
        return np.sum(x * x * self.__rng.random())


class Below(Slotted):
    __slots__ = ("more",)


@pytest.mark.parametrize("cls", [Slotted, Below])
def test_generators_in_slots_are_found(cls):
    expected = gs.grad(cls())(np.ones(2))
    found = gs.grad(gs.checkpoint(cls()))(np.ones(2))
    np.testing.assert_array_equal(found, expected)


def test_other_shapes_in_the_second_run_raise():
    sizes = iter([3, 4])
    grows = gs.checkpoint(lambda x: x * np.ones(next(sizes)))
    with pytest.raises(gs.GradsmithError, match="other shapes or dtypes when it was"):
        gs.grad(lambda x: np.sum(grows(x)))(1.0)


def test_bad_input():
    with pytest.raises(gs.GradsmithError, match=r"gs.checkpoint\(fn\)\(x\), not"):
        gs.checkpoint(np.ones(3))
    with pytest.raises(gs.GradsmithError, match="True or False, not 1"):
        gs.checkpoint(np.sin, verify=1)


# Other threads draw meanwhile


@contextmanager
def drawing(draw):
    """Another thread that draws numbers all the time; a list of them."""
    numbers, stop = [], threading.Event()

    def work():
        while not stop.is_set():
            numbers.append(draw())

    thread = threading.Thread(target=work)
    thread.start()
    try:
        while not numbers:
            pass
        yield numbers
    finally:
        stop.set()
        thread.join()


@pytest.fixture
def often_switched():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("often_switched")
def test_other_threads_never_see_a_number_twice():
    drawn = []

    def noisy(x):
        for _ in range(3):
            noise = np.random.standard_normal(5)
            drawn.append(noise)
            x = x * noise + np.random.random()
        return x

    with drawing(lambda: np.random.random_sample()) as numbers:
        for _ in range(30):
            drawn.clear()
            gs.grad(lambda x: np.sum(gs.checkpoint(noisy)(x)))(np.ones(5))
            assert len(drawn) == 6
            np.testing.assert_array_equal(
                drawn[:3], drawn[3:]
            )  # and what was recomputed
    assert len(numbers) == len(set(numbers)) > 30


@pytest.mark.usefixtures("often_switched")
def test_a_scan_with_other_threads_is_right_or_refused():
    numbers_of = {}

    def step(state):
        x, i = state
        noise = np.random.random_sample(2)
        numbers_of.setdefault(int(i), []).append(tuple(noise))
        return x * noise, i + 1

    def loss(x):
        return np.sum(gs.checkpoint_scan(step, (x, np.array(0)), 8, snapshots=2)[0])

    refusals = set()
    with drawing(lambda: np.random.random_sample()) as numbers:
        for _ in range(5):
            numbers_of.clear()
            try:
                gs.grad(loss)(np.ones(2))
            except gs.GradsmithError as error:
                refusals.add("another thread" in str(error))
                continue
            # The first run finds out that it draws at all
            assert all(len(set(found[1:])) == 1 for found in numbers_of.values())
    assert refusals <= {True}
    assert len(numbers) == len(set(numbers))


@pytest.mark.usefixtures("often_switched")
def test_a_generator_without_a_lock_is_not_shared_in_silence():
    shared = random.Random(0)

    def noisy(x):
        for _ in range(200):
            x = x * shared.random()
        return x

    def often():
        for _ in range(50):
            gs.grad(lambda x: np.sum(gs.checkpoint(noisy)(x)))(np.ones(5))

    with (
        drawing(shared.random),
        pytest.raises(gs.GradsmithError, match="another thread draws from at the same"),
    ):
        often()
    gs.grad(lambda x: np.sum(gs.checkpoint(noisy)(x)))(np.ones(5))  # alone it is right


def test_the_global_generator_goes_on_as_without_checkpoints():
    def noisy(x):
        return x * np.random.normal() + np.random.normal(size=3)

    results = []
    for wrap in (lambda f: f, gs.checkpoint):
        np.random.seed(5)
        np.random.normal()  # a second one is kept for later
        dx = gs.grad(lambda x: np.sum(wrap(noisy)(x)))(np.ones(3))  # noqa: B023
        results.append((*dx, np.random.normal(), *np.random.randint(9, size=4)))
    assert results[0] == results[1]
    state = np.random.get_state()
    assert state[0] == "MT19937"
    copied = pickle.loads(pickle.dumps(np.random.get_state.__self__))
    assert copied.random_sample() == np.random.random_sample()


def test_a_block_that_seeds_does_so_for_itself_when_it_is_recomputed():
    def seeds(x):
        np.random.seed(3)
        return x * np.random.random_sample()

    def loss(x):
        y = gs.checkpoint(seeds)(x)
        after.append(np.random.random_sample())
        return np.sum(y)

    after = []
    dx = gs.grad(loss)(np.ones(2))
    after.append(np.random.random_sample())
    np.random.seed(3)
    first, *expected = np.random.random_sample(3)
    assert after == expected
    np.testing.assert_array_equal(dx, first)
