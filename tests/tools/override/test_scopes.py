"""Which scope holds: nested, in threads and tasks, and closed out of order."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

import gradsmith as gs

from .rules import tenfold

X = torch.tensor([-1.0, 2.0])


def threefold(dy, y, x):
    return 3 * dy


def by_torch(fn=F.relu):
    x = X.clone().requires_grad_()
    return torch.autograd.grad(fn(x).sum(), x)[0].tolist()


def by_engine():
    return gs.grad(lambda x: np.sum(np.tanh(x)))(np.zeros(2)).tolist()


def by_jax():
    return compiled(jnp.array([-1.0, 2.0])).tolist()


traces = []


@jax.jit
@jax.grad
def compiled(x):
    traces.append(x)
    return jnp.sum(jax.nn.relu(x))


CASES = {
    "engine": (by_engine, np.tanh, [1, 1]),
    "torch": (by_torch, F.relu, [0, 1]),
    "jax": (by_jax, jax.nn.relu, [0, 1]),
}
each = pytest.mark.parametrize(
    ("gradient", "target", "plain"), CASES.values(), ids=CASES
)


def held(target, rule, gradient):
    """A scope that is open as long as the generator is."""
    with gs.override({target: rule}):
        yield gradient()
        yield gradient()


@each
def test_the_innermost_holds(gradient, target, plain):
    with gs.override({target: tenfold}):
        with gs.override({target: threefold}):
            assert gradient() == [3, 3]
        assert gradient() == [10, 10]
    assert gradient() == plain


def test_the_innermost_holds_also_if_the_outer_one_is_of_a_model():
    model = nn.ReLU()
    with gs.override(model, {F.relu: tenfold}):
        with gs.override({F.relu: threefold}):
            assert by_torch(model) == [3, 3]
        assert by_torch(model) == [10, 10]
    with gs.override({F.relu: threefold}), gs.override(model, {F.relu: tenfold}):
        assert by_torch(model) == [10, 10]
        assert by_torch() == [3, 3]


@each
def test_scopes_may_close_out_of_order(gradient, target, plain):
    first = held(target, tenfold, gradient)
    assert next(first) == [10, 10]
    with gs.override({target: threefold}):
        assert gradient() == [3, 3]
        first.close()
        assert gradient() == [3, 3]
    assert gradient() == plain
    later = held(target, tenfold, gradient)
    with gs.override({target: threefold}):
        assert gradient() == [3, 3]
        assert next(later) == [10, 10]
    assert next(later) == [10, 10]
    later.close()
    assert gradient() == plain


def test_after_scopes_that_closed_out_of_order_jax_has_what_it_had():
    by_jax()
    first = held(jax.nn.relu, tenfold, by_jax)
    next(first)
    with gs.override({jax.nn.relu: threefold}):
        by_jax()
        first.close()
    before = len(traces)
    assert by_jax() == [0, 1]
    assert len(traces) == before


@pytest.mark.parametrize("name", ["engine", "torch"])
def test_tasks_have_scopes_of_their_own(name):
    gradient, target, plain = CASES[name]

    async def main():
        opened, closed = asyncio.Event(), asyncio.Event()

        async def outer():
            with gs.override({target: tenfold}):
                opened.set()
                found = gradient()
                await asyncio.sleep(0)
                assert gradient() == found == [10, 10]
            closed.set()

        async def inner():
            await opened.wait()
            with gs.override({target: threefold}):
                await closed.wait()
                assert gradient() == [3, 3]

        await asyncio.gather(outer(), inner())

    asyncio.run(main())
    assert gradient() == plain


def test_jax_has_one_cache_for_all_tasks_of_a_thread():
    async def main():
        async def one(rule):
            with gs.override({jax.nn.relu: rule}):
                await asyncio.sleep(0)
                return by_jax()

        return await asyncio.gather(
            one(tenfold), one(threefold), return_exceptions=True
        )

    first, second = asyncio.run(main())
    assert first == [10, 10]
    assert isinstance(second, gs.GradsmithError)
    assert "another task of this thread" in str(second)
    assert by_jax() == [0, 1]


@each
@pytest.mark.parametrize("form", ["call", "with"])
def test_one_override_in_several_threads(gradient, target, plain, form):
    together = Barrier(4)
    waiting = lambda: (together.wait(), gradient(), together.wait())[1]
    changed = gs.override(lambda: waiting(), {target: tenfold})
    scope = gs.override({target: tenfold})

    def one(_):
        if form == "call":
            return changed()
        with scope:
            return waiting()

    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(one, range(4))] == [[10, 10]] * 4
    assert gradient() == plain
