"""Tapes in generators: each sees what its generator does, and nothing of its consumer.

Except where a generator is run for the sake of a block: context managers and fixtures.
"""

from __future__ import annotations

import _thread
import asyncio
import contextlib
import gc
import itertools
import random
import threading
import types
import weakref

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.core.tape import State, state


@pytest.fixture(autouse=True)
def _nothing_stays_open():
    yield
    assert state().__class__ is State
    assert state().recorders == ()


def cubes(x):
    """The gradient of x**3, of which a part is recorded before and after a `yield`."""
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        yield y
        y = y * x
    yield tape.gradient(y, x).numpy()


@pytest.fixture
def x():
    return gs.Tensor(3.0)


def test_what_a_consumer_does_is_not_recorded(x):
    generator = cubes(x)
    y = next(generator)
    assert state().recorders == ()
    assert float(y) == 9.0  # a tape that follows y would refuse this
    np.testing.assert_array_equal(np.array([y, x]), [9.0, 3.0])
    assert (y * 2.0).marks is None
    assert next(generator) == 27.0


def test_a_consumer_has_a_tape_of_its_own(x):
    generator = cubes(x)
    next(generator)
    with gs.GradientTape() as tape:
        tape.watch(x)
        z = x * 5.0
        assert state().recorders == (tape,)
        assert next(generator) == 27.0
        z = z * x
        assert state().recorders == (tape,)
    assert tape.gradient(z, x).numpy() == 30.0


def test_a_generator_within_a_consumers_tape_is_recorded_by_it(x):
    def squares():
        for i in range(3):
            yield x * x * float(i)

    with gs.GradientTape() as tape:
        tape.watch(x)
        y = sum(squares())
    assert tape.gradient(y, x).numpy() == 18.0


@pytest.mark.parametrize("opened_first", [False, True])
def test_a_generators_gradient_is_differentiated_by_its_consumer(x, opened_first):
    def gradients():
        with gs.GradientTape() as tape:
            tape.watch(x)
            yield None
            y = x * x * x
            yield None
            y = y * x
        yield tape.gradient(y, x)

    generator = gradients()
    if opened_first:
        next(generator)
    with gs.GradientTape() as outer:
        outer.watch(x)
        *_, dx = generator
    assert float(dx) == 108.0
    assert outer.gradient(dx, x).numpy() == 108.0


@pytest.mark.parametrize("opened_first", [False, True])
def test_a_generators_tangent_is_differentiated_by_its_consumer(x, opened_first):
    def tangents():
        with gs.ForwardAccumulator(x, gs.Tensor(1.0)) as acc:
            yield None
            y = x * x * x
            yield acc.jvp(y)

    generator = tangents()
    if opened_first:
        next(generator)
    with gs.GradientTape() as tape:
        tape.watch(x)
        *_, dy = generator
    assert float(dy) == 27.0
    assert tape.gradient(dy, x).numpy() == 18.0


def test_a_generators_tape_differentiates_a_consumers_tangent(x):
    def gradients():
        with gs.GradientTape() as tape:
            tape.watch(x)
            dy = yield
            dy = yield dy * x
        yield tape.gradient(dy, x)

    generator = gradients()
    next(generator)
    with gs.ForwardAccumulator(x, gs.Tensor(1.0)) as acc:
        y = generator.send(x * x)
    assert float(acc.jvp(y)) == 27.0
    generator.close()


def test_an_accumulator_sees_nothing_of_the_consumer(x):
    def tangents():
        with gs.ForwardAccumulator(x, gs.Tensor(1.0)) as acc:
            y = x * x
            yield y
            yield acc.jvp(y * x).numpy()

    generator = tangents()
    y = next(generator)
    assert float(y) == 9.0
    assert (y * 2.0).marks is None
    assert next(generator) == 27.0
    generator.close()


# --- several generators


def test_generators_that_take_turns_have_their_own_tapes():
    xs = [gs.Tensor(float(i)) for i in range(1, 4)]
    for values in zip(*map(cubes, xs), strict=True):
        last = values
    assert last == (3.0, 12.0, 27.0)


def test_generators_end_in_any_order():
    xs = [gs.Tensor(float(i)) for i in range(1, 4)]
    for order in itertools.permutations(range(3)):
        generators = [cubes(x) for x in xs]
        for generator in generators:
            next(generator)
        assert [next(generators[i]) for i in order] == [
            3.0 * (i + 1) ** 2 for i in order
        ]
        assert state().recorders == ()


def test_delegation_is_as_good_as_a_call(x):
    def delegates():
        yield from cubes(x)
        with gs.GradientTape() as tape:
            tape.watch(x)
            y = yield from scaled(x)
            y = y * x
        yield tape.gradient(y, x).numpy()

    def scaled(x):
        y = x * 5.0
        yield y
        return y * x

    generator = delegates()
    assert [float(v) for v in generator] == [9.0, 27.0, 15.0, 135.0]


def test_a_pipeline_of_generators():
    def source(w):
        with gs.GradientTape() as tape:
            y = w * w
            yield y
            y = y * w
            yield y
        yield tape.gradient(y, w).numpy()

    def doubled(values):
        for value in values:
            with gs.GradientTape() as tape:
                if not isinstance(value, float):
                    tape.watch(value)
                    value = value * 2.0
                    assert state().recorders == (tape,)
                yield value

    w = gs.Variable(3.0)
    assert [float(v) for v in doubled(source(w))] == [18.0, 54.0, 27.0]


def test_sent_and_thrown_in(x):
    def steps():
        with gs.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x * x
            while True:
                try:
                    y = y * (yield float(y.numpy()))
                except ValueError:
                    y = y * x
                    yield tape.gradient(y, x).numpy()

    generator = steps()
    next(generator)
    generator.send(2.0)
    assert generator.throw(ValueError) == 54.0
    with gs.GradientTape() as tape:
        tape.watch(x)
        generator.close()
        assert state().recorders == (tape,)


def test_an_exception_in_a_generator_closes_its_tape(x):
    def fails():
        with gs.GradientTape() as tape:
            tape.watch(x)
            yield x * x
            raise KeyError

    generator = fails()
    next(generator)
    with gs.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(KeyError):
            next(generator)
        y = x * x
    assert tape.gradient(y, x).numpy() == 6.0


# --- the ends of generators


def test_a_generator_that_is_collected_as_garbage(x):
    class Owner:
        def steps(self):
            with gs.GradientTape() as tape:
                tape.watch(x)
                yield self

    owner = Owner()
    owner.generator = owner.steps()
    next(owner.generator)
    del owner
    gc.collect()
    assert state().__class__ is State


def test_a_generator_that_ends_in_another_thread(x):
    generator = cubes(x)
    next(generator)
    thread = threading.Thread(target=generator.close)
    thread.start()
    thread.join()
    assert state().recorders == ()
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert tape.gradient(y, x).numpy() == 6.0


def test_a_generator_at_the_bottom_of_a_thread(x):
    done, found = threading.Event(), []

    def steps():
        with gs.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        found.append(tape.gradient(y, x).numpy())
        done.set()
        yield

    generator = steps()
    _thread.start_new_thread(generator.__next__, ())
    assert done.wait(60)
    assert found == [6.0]


def test_nothing_is_kept_alive(x):
    class Large:
        pass

    def steps():
        large = Large()
        seen.append(weakref.ref(large))
        with gs.GradientTape() as tape:
            tape.watch(x)
            yield
        yield large

    seen = []
    with gs.GradientTape():
        generator = steps()
        next(generator)
        del generator
        assert seen[0]() is None


def test_the_same_tape_is_not_opened_twice(x):
    def steps():
        with gs.GradientTape() as tape:
            yield tape

    generator = steps()
    with pytest.raises(gs.TapeError, match="open already"):
        next(generator).__enter__()
    generator.close()


def test_a_consumer_that_takes_the_gradient(x):
    def steps():
        with gs.GradientTape() as tape:
            tape.watch(x)
            yield tape, x * x

    generator = steps()
    tape, y = next(generator)
    z = y * x
    assert tape.gradient(z, x) is None
    assert "opened in a generator" in tape.explain(z, x)
    generator = steps()
    tape, y = next(generator)
    assert tape.gradient(y, x).numpy() == 6.0


# --- blocks that a generator opens for others


@contextlib.contextmanager
def recording(x):
    with gs.GradientTape(persistent=True) as tape:
        tape.watch(x)
        yield tape


class Recording:
    """Home-made: a class around a tape, and one around a generator."""

    def __init__(self, x):
        self.tape, self.x = gs.GradientTape(persistent=True), x

    def __enter__(self):
        self.tape.__enter__()
        self.tape.watch(self.x)
        return self.tape

    def __exit__(self, *raised):
        self.tape.__exit__(*raised)


class Resuming:
    def __init__(self, x):
        self.generator = recording.__wrapped__(x)

    def __enter__(self):
        return next(self.generator)

    def __exit__(self, *_):
        next(self.generator, None)


@contextlib.contextmanager
def nested(x):
    with contextlib.ExitStack() as stack:
        yield stack.enter_context(recording(x))


@contextlib.contextmanager
def popped(x):
    with contextlib.ExitStack() as stack:
        tape = stack.enter_context(gs.GradientTape(persistent=True))
        tape.watch(x)
        rest = stack.pop_all()
    with rest:
        yield tape


MANAGERS = [recording, Recording, Resuming, nested, popped]


@pytest.mark.parametrize("manager", MANAGERS)
def test_a_context_manager_records_its_block(manager, x):
    with manager(x) as tape:
        y = x * x
        assert state().recorders == (tape,)
    assert tape.gradient(y, x).numpy() == 6.0


@pytest.mark.parametrize("manager", MANAGERS)
def test_a_context_manager_within_a_generator(manager, x):
    def steps():
        with manager(x) as tape:
            y = x * x
            yield y
            assert state().recorders == (tape,)
            y = y * x
        yield tape.gradient(y, x).numpy()

    generator = steps()
    assert float(next(generator)) == 9.0
    assert state().recorders == ()
    assert next(generator) == 27.0


@pytest.fixture
def open_tape(x):
    with gs.GradientTape(persistent=True) as tape:
        tape.watch(x)
        yield tape


@pytest.fixture
def through_a_manager(x):
    with recording(x) as tape:
        yield tape


@pytest.mark.parametrize("name", ["open_tape", "through_a_manager"])
def test_a_fixture_records_its_test(name, x, request):
    tape = request.getfixturevalue(name)
    y = x * x
    assert tape.gradient(y, x).numpy() == 6.0


def test_what_is_awaited_is_no_generator(x):
    """A coroutine in the form of a generator waits with its task."""

    @types.coroutine
    def waits():
        with gs.GradientTape() as tape:
            tape.watch(x)
            y = x * x
            yield from asyncio.sleep(0).__await__()
        return tape.gradient(y, x).numpy()

    async def main():
        return await waits()

    assert asyncio.run(main()) == 6.0


# --- recording is stopped


def test_stopped_recording_is_the_generators_alone(x):
    def steps(tape):
        with tape.stop_recording():
            yield x * x
            assert tape not in state().recorders
            yield x * x

    with gs.GradientTape() as tape:
        tape.watch(x)
        generator = steps(tape)
        unseen = next(generator)
        y = x * x + unseen
        assert state().recorders == (tape,)
        unseen = next(generator)
        y = y * x + unseen
        generator.close()
        assert state().recorders == (tape,)
    assert tape.gradient(y, x).numpy() == 36.0


def test_a_tape_that_closes_while_it_is_stopped_stays_closed(x):
    tape = gs.GradientTape()
    tape.__enter__()
    stopped = tape.stop_recording()
    stopped.__enter__()
    tape.__exit__()
    stopped.__exit__(None, None, None)
    assert state().recorders == ()


def test_a_stop_of_a_generators_tape_by_its_consumer(x):
    def steps():
        with gs.GradientTape() as tape:
            yield tape

    generator = steps()
    with (
        pytest.raises(gs.TapeError, match="not recording"),
        next(generator).stop_recording(),
    ):
        pass
    generator.close()


# --- within what runs with other recorders


@pytest.mark.parametrize("opened_first", [False, True])
@pytest.mark.parametrize(
    "within",
    [
        lambda f: gs.grad(f)(2.0),
        lambda f: gs.jvp(f, (2.0,), (1.0,)),
        lambda f: gs.hessian(f)(2.0),
        lambda f: gs.grad(gs.checkpoint(f))(2.0),
        lambda f: gs.grad(lambda z: advanced_by(f, z))(2.0),
    ],
    ids=["grad", "jvp", "hessian", "checkpoint", "operation"],
)
def test_a_generator_is_resumed_within(within, opened_first, x):
    generator = itertools.chain(cubes(x), itertools.repeat(None))
    values = [next(generator)] if opened_first else []

    def f(z):
        values.append(next(generator))
        return z * z

    within(f)
    values += itertools.islice(generator, 3)
    assert 27.0 in values


def advanced_by(f, z):
    @gs.custom_gradient
    def op(z):
        return f(z), lambda dy: dy

    return op(z)


def test_a_generators_tape_is_no_matter_of_the_gradient_that_opened_it(x):
    opened = []

    def f(z):
        opened.append(cubes(x))
        next(opened[0])
        return z * z

    assert gs.grad(f)(2.0) == 4.0
    assert next(opened[0]) == 27.0


# --- asynchronous generators


def test_an_async_generator_has_its_tape_for_itself(x):
    async def steps():
        with gs.GradientTape() as tape:
            tape.watch(x)
            y = x * x
            yield y
            await asyncio.sleep(0)
            y = y * x
        yield tape.gradient(y, x).numpy()

    async def main():
        values = []
        async for value in steps():
            assert state().recorders == ()
            values.append(float(value))
        return values

    assert asyncio.run(main()) == [9.0, 27.0]


def test_tasks_that_an_async_generator_starts_are_recorded(x):
    async def square(x):
        await asyncio.sleep(0)
        return x * x

    async def steps():
        with gs.GradientTape() as tape:
            tape.watch(x)
            a, b = await asyncio.gather(square(x), square(x * 2.0))
            yield a
            y = a + b + await asyncio.create_task(square(x))
        yield tape.gradient(y, x).numpy()

    async def main():
        return [float(value) async for value in steps()]

    assert asyncio.run(main()) == [9.0, 36.0]


def test_an_async_generator_that_is_left_alone(x):
    async def steps():
        with gs.GradientTape() as tape:
            tape.watch(x)
            yield x * x

    async def main():
        value = await anext(steps())
        assert state().recorders == ()
        gc.collect()
        await asyncio.sleep(0)
        return float(value)

    assert asyncio.run(main()) == 9.0


def test_an_async_context_manager_records_its_block(x):
    @contextlib.asynccontextmanager
    async def recorded():
        with gs.GradientTape() as tape:
            tape.watch(x)
            yield tape

    async def steps():
        async with recorded() as tape:
            y = x * x
            yield y
            y = y * x
        yield tape.gradient(y, x).numpy()

    async def main():
        async with recorded() as tape:
            y = x * x
            await asyncio.sleep(0)
        async with contextlib.AsyncExitStack() as stack:
            other = await stack.enter_async_context(recorded())
            z = x * x * x
        values = [float(value) async for value in steps()]
        return tape.gradient(y, x).numpy(), other.gradient(z, x).numpy(), values

    assert asyncio.run(main()) == (6.0, 27.0, [9.0, 27.0])


# --- at random


def program(seed, x, depth=0):
    """A generator that yields at random, and at last its gradients."""
    choose = random.Random(seed)
    found = []
    with gs.GradientTape(persistent=choose.random() < 0.5) as tape:
        tape.watch(x)
        y = x * 1.0
        for i in range(choose.randrange(1, 6)):
            kind = choose.randrange(6)
            if kind == 0:
                y = y * x
            elif kind == 1:
                y = y + np.sin(x)
            elif kind == 2 and depth < 2:
                inner = program(f"{seed}.{i}", x, depth + 1)
                found += yield from inner
            elif kind == 3:
                with tape.stop_recording():
                    yield x * 2.0
                    z = x * 3.0
                y = y * z
            elif kind == 4:
                with gs.ForwardAccumulator(x, gs.Tensor(1.0)) as acc:
                    yield None
                    z = x * x * x
                    yield None
                found.append(float(gs.stop_gradient(acc.jvp(z)).numpy()))
            else:
                for inner in [
                    program(f"{seed}.{i}", x, 2),
                    program(f"{seed}.{i}", x, 2),
                ]:
                    next(inner, None)
                    yield None
                    inner.close()
            yield y
    found.append(float(tape.gradient(y, x).numpy()))
    return found


def result_of(generator):
    while True:
        try:
            next(generator)
        except StopIteration as stop:
            return stop.value


@pytest.mark.parametrize("seed", range(40))
def test_generators_are_as_right_together_as_alone(seed, x):
    choose = random.Random(seed)
    alone = [result_of(program(f"{seed}/{i}", x)) for i in range(4)]
    running = {i: program(f"{seed}/{i}", x) for i in range(4)}
    together = {}

    def advance(i, plain):
        try:
            y = next(running[i])
        except StopIteration as stop:
            together[i] = stop.value
            del running[i]
        else:
            assert y is None or np.isfinite(plain(y))

    while running:
        i = choose.choice([*running])
        if choose.random() < 0.5:
            advance(i, float)
            assert state().recorders == ()
            continue
        with gs.GradientTape() as outer:
            outer.watch(x)
            z = x * x
            advance(i, gs.Tensor.numpy)
            assert state().recorders == (outer,)
            z = z * x
        assert outer.gradient(z, x).numpy() == 27.0
    assert [together[i] for i in range(4)] == alone
