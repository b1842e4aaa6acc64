"""The peers' checkers, each used as its documentation shows it.

An exception is how most of them say "wrong", whatever its type, so every exception
counts as an alarm.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks._peers import load

from .corpus import Subject
from .natives import inputs
from .outcome import Outcome, outcome


@dataclass(frozen=True)
class Checker:
    """A peer: where it looks (`framework` of the subjects), and its own package."""

    name: str
    peer: str
    framework: str
    dtype: str
    call: Callable[[Any, tuple[Any, ...]], Any]  # False or an exception: wrong


def _torch(name: str, **options: Any) -> Callable[..., Any]:
    def call(op: Any, xs: tuple[Any, ...]) -> Any:
        check = getattr(load("torch").autograd, name)
        xs = tuple(x.requires_grad_() if x.is_floating_point() else x for x in xs)
        return check(op, xs, **options)

    return call


def _jax(op: Any, xs: tuple[Any, ...]) -> Any:
    check = load("jax.test_util").check_grads
    f, floats = _of_floats(op, xs)
    check(f, floats, order=2, modes=["rev"])


def _tensorflow(op: Any, xs: tuple[Any, ...]) -> Any:
    # tf.test's own example: assertAllClose(theoretical, numerical), whose tolerances
    # are 1e-6
    f, floats = _of_floats(op, xs)
    theoretical, numerical = load("tensorflow").test.compute_gradient(f, list(floats))
    for a, b in zip(theoretical, numerical, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


def _autograd(op: Any, xs: tuple[Any, ...]) -> Any:
    check = load("autograd.test_util").check_grads
    f, floats = _of_floats(op, xs)
    every = tuple(range(len(floats)))  # it looks at the first argument alone otherwise
    check(f, every, modes=["rev"], order=1)(*floats)  # rules have no second order there


def _of_floats(op: Any, xs: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """The operation as a function of its floating arguments, and these."""
    places = [i for i, x in enumerate(xs) if "float" in str(x.dtype)]

    def f(*floats: Any) -> Any:
        full = list(xs)
        for i, x in zip(places, floats, strict=True):
            full[i] = x
        return op(*full)

    return f, tuple(xs[i] for i in places)


CHECKERS = (
    Checker("torch gradcheck", "torch", "torch", "float64", _torch("gradcheck")),
    Checker(
        "torch fast_mode",
        "torch",
        "torch",
        "float64",
        _torch("gradcheck", fast_mode=True),
    ),
    Checker(
        "torch gradgradcheck", "torch", "torch", "float64", _torch("gradgradcheck")
    ),
    Checker("jax check_grads f64", "jax", "jax", "float64", _jax),
    Checker("jax check_grads f32", "jax", "jax", "float32", _jax),
    Checker("tf f64", "tensorflow", "tensorflow", "float64", _tensorflow),
    Checker("tf f32", "tensorflow", "tensorflow", "float32", _tensorflow),
    Checker("HIPS check_grads", "autograd", "numpy", "float64", _autograd),
)


def can_check(checker: Checker, subject: Subject) -> bool:
    """TensorFlow's takes one output, and HIPS' primitives give one here."""
    several = subject.operation in ("sine_and_cosine", "mean_and_deviation")
    alone = checker.peer in ("tensorflow", "autograd")
    return checker.framework == subject.framework and not (several and alone)


def peers(checker: Checker, subject: Subject, seed: int) -> Outcome:
    """What a peer says of a subject."""
    where = "autograd" if checker.peer == "autograd" else subject.framework
    op = subject.build(where)
    xs = inputs(where, subject.arrays(checker.dtype, seed))
    result = outcome(subject, checker.dtype, seed, checker.name)
    start, verdict, text = time.perf_counter(), "right", ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if checker.call(op, xs) is False:
                verdict = "wrong"
        except Exception as error:
            verdict, text = "wrong", f"{type(error).__name__}: {error}"[:200]
    return replace(
        result, verdict=verdict, seconds=time.perf_counter() - start, text=text
    )
