"""Functions of NumPy on tensors, as one who wraps the hook sees them."""

import threading
import time

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.core import hooks
from gradsmith.core.hooks import FUNCTION

X = np.array([0.5, 2.0])

CALLS = {
    "ufunc": (lambda x: np.exp(x), np.exp),
    "dtype=": (lambda x: np.exp(x, dtype=np.float32), np.exp),
    "function": (lambda x: np.sum(x), np.sum),
    "operator": (lambda x: x * x, np.multiply),
    "with a number": (lambda x: x * 2.0, np.multiply),
    "reflected": (lambda x: 2.0 - x, np.subtract),
    "beside an array": (lambda x: X * x, np.multiply),
    "unary operator": (lambda x: -x, np.negative),
    "comparison": (lambda x: x > 1, np.greater),
    "matmul": (lambda x: x @ x, np.matmul),
    "method": (lambda x: x.sum(), np.sum),
    "reduce": (lambda x: np.add.reduce(x), np.sum),
    "outer": (lambda x: np.multiply.outer(x, x), np.multiply),
}


@pytest.mark.parametrize(("call", "fn"), CALLS.values(), ids=CALLS)
def test_a_call_is_seen_once_and_gives_what_it_gave(call, fn):
    seen = []

    def look(proceed, called, args, kwargs):
        seen.append(called)
        return proceed(called, args, kwargs)

    with gs.GradientTape() as tape:
        x = gs.Tensor(X)
        tape.watch(x)
        with FUNCTION.wrapped(look):
            y = call(x)
        plain = call(x)
    assert seen.count(fn) == 1
    np.testing.assert_array_equal(np.asarray(y.value), np.asarray(plain.value))


def test_a_wrapper_may_give_another_result():
    def doubled(proceed, fn, args, kwargs):
        return proceed(fn, args, kwargs) if fn is not np.exp else args[0] * 2

    with FUNCTION.wrapped(doubled):
        assert gs.grad(lambda x: np.sum(np.exp(x)))(X).tolist() == [2, 2]
    np.testing.assert_allclose(gs.grad(lambda x: np.sum(np.exp(x)))(X), np.exp(X))


def test_what_a_definition_calls_is_seen_too():
    seen = []

    def look(proceed, fn, args, kwargs):
        seen.append(fn)
        return proceed(fn, args, kwargs)

    with FUNCTION.wrapped(look):
        gs.grad(lambda x: np.sum(np.trapezoid(x)))(X)
    assert seen[0] is np.trapezoid
    assert len(seen) > 2


class Slow:
    """A wrapper; while it is compared with others, another thread runs."""

    def __call__(self, proceed, *what):
        return proceed(*what)

    def __eq__(self, other):
        time.sleep(0.001)
        return self is other

    __hash__ = None


def test_wrappers_of_many_threads_leave_nothing_behind():
    hook = hooks.Hook()

    def use():
        for _ in range(10):
            with hook.wrapped(Slow()):
                time.sleep(0.001)

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert hook.wrappers == ()
