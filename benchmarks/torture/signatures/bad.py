"""Bad rules and bad arrays: an error that says what is wrong, or the right answer."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith.core.errors import first_line

from ..aliasing import NEVER
from ..modes import Mode, numpy
from ..outcome import Outcome

PART = "signatures"
X = np.array([0.5, -1.25, 2.0])
TOLD = (gs.GradsmithError, TypeError, ValueError, NotImplementedError, OverflowError)


def _rule(grad: Callable[..., Any]) -> Callable[[Mode], Any]:
    """The operation x * x with that gradient: it must be refused."""

    def run(mode: Mode) -> None:
        op = gs.custom_gradient(lambda x: (x * x, lambda dy: grad(dy, x)))
        _, pull = mode.vjp(lambda x: gnp.sum(op(x)), mode.array(X))
        found = numpy(pull(mode.array(np.array(1.0)))[0])
        raise AssertionError(f"the gradient {found} is accepted")

    return run


def _call(*args: Any, **kwargs: Any) -> Callable[[Mode], None]:
    """A call that does not fit the signature."""

    def run(mode: Mode) -> None:
        op = gs.custom_gradient(lambda x, k=2.0: (x * k, lambda dy: dy * k))
        mode.vjp(lambda x: op(*args, **kwargs), mode.array(X))
        raise AssertionError("the call is accepted")

    return run


def _body(body: Callable[[Any], Any]) -> Callable[[Mode], None]:
    def run(mode: Mode) -> None:
        mode.vjp(gs.custom_gradient(body), mode.array(X))
        raise AssertionError("what the body returns is accepted")

    return run


EVERYWHERE: dict[str, Callable[[Mode], Any]] = {
    "gradient of another shape": _rule(lambda dy, x: (2 * x * dy)[:2]),
    "gradient of one axis more": _rule(lambda dy, x: (2 * x * dy)[None]),
    "scalar gradient": _rule(lambda dy, x: gnp.sum(2 * x * dy)),
    "two gradients for one argument": _rule(lambda dy, x: (2 * x * dy, dy)),
    "no gradients for one argument": _rule(lambda dy, x: ()),
    "the return forgotten": _rule(lambda dy, x: None),
    "a string as gradient": _rule(lambda dy, x: "gradient"),
    "bytes as gradient": _rule(lambda dy, x: b"gradient"),
    "a function as gradient": _rule(lambda dy, x: len),
    "a dict of unknown names": _rule(lambda dy, x: {"unknown": dy}),
    "a list that is too long": _rule(lambda dy, x: [dy, dy, dy]),
    "a set as gradient": _rule(lambda dy, x: {1.0, 2.0}),
    "an array of objects as gradient": _rule(
        lambda dy, x: np.array([Fraction(1), Fraction(2), Fraction(3)])
    ),
    "an array of strings as gradient": _rule(lambda dy, x: np.array(["a", "b", "c"])),
    "no arguments": _call(),
    "too many arguments": _call(X, 1.0, 2.0),
    "an unknown keyword": _call(X, other=1.0),
    "an argument given twice": _call(X, x=X),
    "no gradient function": _body(lambda x: x * x),
    "nothing returned": _body(lambda x: None),
    "a string returned": lambda mode: _string(mode),
    "the gradient function first": _body(lambda x: (lambda dy: dy, x * x)),
}


def _string(mode: Mode) -> None:
    """What is no array passes through."""
    op = gs.custom_gradient(lambda x: ("text", lambda dy: dy))
    assert op(mode.array(X)) == "text", "the string is lost"


class Unusual(np.ndarray):
    """An array with arithmetic of its own."""

    def __array_ufunc__(self, ufunc: Any, method: str, *xs: Any, **options: Any) -> Any:
        plain = [np.asarray(x) for x in xs]
        return getattr(ufunc, method)(*plain, **options) + 1.0


def _sum(x: Any) -> Any:
    return np.sum(np.sin(x) * x)


ARRAYS = {
    "big-endian": X.astype(">f8"),
    "objects": X.astype(object),
    "fractions": np.array([Fraction(1, 2), Fraction(3, 2)]),
    "strings": np.array(["a", "b"]),
    "bytes": np.array([b"a", b"b"]),
    "a matrix": np.ones((2, 2)).view(np.matrix),
    "a masked array": np.ma.masked_array(X, [False, True, False]),
    "records": np.array([(1.0, 2)], [("a", "f8"), ("b", "i4")]),
    "a record array": np.rec.array([(1.0, 2)], [("a", "f8"), ("b", "i4")]),
    "dates": np.array(["2020-01-01"], "datetime64[D]"),
    "durations": np.array([3], "timedelta64[s]"),
    "booleans": np.array([True, False]),
    "integers": np.array([1, 2]),
    "unsigned integers": np.array([1, 2], np.uint8),
    "long doubles": X.astype(np.longdouble),
    "half precision": X.astype(np.float16),
    "long complex": X.astype(np.clongdouble),
    "arithmetic of its own": X.view(Unusual),
    "not aligned": np.frombuffer(b"\0" + X.tobytes(), np.uint8)[1:].view(np.float64),
    "read-only": np.frombuffer(X.tobytes()),
    "negative strides": X[::-1],
    "empty": np.zeros((0, 3)),
    "many axes": np.ones((1,) * 32),
    "a Python bool": True,
    "a Python integer": 2,
    "a Python complex": 1 + 2j,
    "a string": "text",
    "a list": [1.0, 2.0],
    "a ragged list": [[1.0], [1.0, 2.0]],
    "None": None,
    "an object": object(),
    "a set": {1.0, 2.0},
    "a generator": (x for x in (1.0, 2.0)),
    "a class": float,
    "a huge integer": 10**400,
    "a scalar in float32": np.float32(0.5),
    "a NumPy bool": np.bool_(True),
}


def _compare(found: Any, given: Any) -> None:
    """Of floats in plain arrays the gradient is known."""
    if type(given) is not np.ndarray or given.dtype.kind != "f":
        return
    x = given.astype(float)
    right = np.cos(x) * x + np.sin(x)
    if not np.allclose(np.asarray(found, float), right, rtol=1e-2):
        raise AssertionError(f"the gradient is {found}, expected {right}")


def _gradient(call: Callable[[Any], Any], title: str) -> Callable[[Mode], None]:
    return lambda mode: _compare(call(ARRAYS[title]), ARRAYS[title])


def _runs(call: Callable[[Any], Any], title: str) -> Callable[[Mode], None]:
    return lambda mode: call(ARRAYS[title])


GRADIENTS = {
    "grad": gs.grad(_sum),
    "vjp": lambda x: gs.vjp(_sum, x)[1](1.0)[0],
    "jacobian": gs.jacobian(_sum),
    "tape": lambda x: _taped(x),
    "checkpoint": gs.grad(gs.checkpoint(_sum)),
}
OTHERS = {
    "jvp": lambda x: gs.jvp(lambda x: np.sin(x) * x, (x,), (x,)),
    "constant": lambda x: _beside(lambda v: np.sum(v * x)),
    "other argument": lambda x: _beside(lambda v: np.sum(np.arctan2(v, x))),
    "check": lambda x: gs.check(gs.operation(np.sin), x),
    "memory": lambda x: gs.memory(np.sin, x),
    "find_nan": lambda x: gs.find_nan(np.sin, x),
}


def _beside(fun: Callable[[Any], Any]) -> None:
    """What NumPy refuses by any error is refused."""
    try:
        fun(1.5)
    except Exception as error:
        raise TypeError(f"NumPy: {error}") from error
    gs.grad(fun)(1.5)


IN_ENGINE: dict[str, Callable[[Mode], None]] = {
    f"{name} of {title}": make(call, title)
    for calls, make in ((GRADIENTS, _gradient), (OTHERS, _runs))
    for name, call in calls.items()
    for title in ARRAYS
}


def _taped(x: Any) -> Any:
    with gs.GradientTape() as tape:
        x = gs.constant(x)
        tape.watch(x)
        y = _sum(x)
    return tape.gradient(y, x)


def judge_bad(name: str, mode: Mode, title: str) -> Outcome:
    run = EVERYWHERE.get(title) or IN_ENGINE[title]
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            run(mode)
    except AssertionError as error:
        return Outcome(PART, name, "wrong", f"{title}: {str(error)[:160]}")
    except Exception as error:
        return _judged(name, mode, title, error)
    return Outcome(PART, name, "right", checks=("bad input",))


def _judged(name: str, mode: Mode, title: str, error: Exception) -> Outcome:
    told = isinstance(error, TOLD) and str(error)
    # A framework wraps what we say in an error of its own
    wrapped = mode.framework != "numpy" and not isinstance(error, NEVER) and str(error)
    if told or wrapped:
        return Outcome(PART, name, "right", checks=("bad input",))
    return Outcome(PART, name, "crash", f"{title}: {first_line(error)[:160]}")
