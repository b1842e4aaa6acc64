"""Every argument of every ruled function, followed: it is differentiated, or it raises.

A call of each function is taken from the cases of its family. One argument at a time
depends on a number t, as a tensor, as a list of tensors, by its keyword; so do options
that the call does not use. The derivative by t either agrees with differences, or there
is an error of ours: no part of it gets lost.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.special as sp

import gradsmith as gs
from gradsmith.core.rule import RULES, Composite, Elementwise, Function, name_of
from gradsmith.rules.nondifferentiable import IN_PLACE

from .cases import ALL
from .harness import Case, difference, inner

_A = np.array([[1.2, 0.3], [-0.4, 0.8]])
OF_EACH = 3  # calls of a function, as different ones as there are
# Options that take values, and such a value
OPTIONS: dict[str, Any] = {
    "initial": 0.37, "default": 0.37, "constant_values": 0.37, "end_values": 0.37,
    "prepend": 0.37, "append": 0.37, "to_begin": 0.37, "to_end": 0.37, "left": 0.37,
    "right": 0.37, "fill_value": 0.37, "nan": 0.37, "posinf": 0.37, "neginf": 0.37,
    "base": 2.3, "dx": 0.37, "period": 6.1, "rcond": 1e-9, "rtol": 1e-9, "b": 0.37,
}  # fmt: skip


# Of which the cases have none that is called by its own name
MORE = [
    Case(np.copysign, (np.array([1.3, -0.4]), np.array([0.7, -2.1]))),
    Case(np.linalg.multi_dot, ([_A, _A.T, _A],)),
    Case(np.linalg.matrix_power, (_A, 3)),
    Case(np.linalg.eig, (_A @ _A.T,)),
    Case(np.nanquantile, (np.array([0.4, np.nan, 1.1, 0.9]), 0.3)),
    Case(sp.multigammaln, (3.7, 2)),
    *[
        Case(fn, (0.6, 1.4, 0.35))
        for fn in (sp.betainc, sp.betaincc, sp.betaincinv, sp.betainccinv, sp.hyp1f1)
    ],
    *[
        Case(fn, (1.4, 0.35))
        for fn in (
            sp.gammainc,
            sp.gammaincc,
            sp.gammaincinv,
            sp.gammainccinv,
            sp.hyp0f1,
        )
    ],
    *[Case(fn, (2, 0.7)) for fn in (sp.iv, sp.ive, sp.jv, sp.kn, sp.kv, sp.kve)],
    *[Case(fn, (2, 0.7)) for fn in (sp.yn, sp.yv)],
    Case(sp.hyp2f1, (0.6, 1.4, 2.2, 0.35)),
]
PRIVATE = {"scipy.special._lambertw", "scipy.special._zeta"}  # by others' names


def calls() -> dict[str, list[Case]]:
    """Some cases of each function."""
    found: dict[str, dict[str, Case]] = {}
    for case in (*ALL, *MORE):
        if not any(map(is_value, case.args)):
            continue
        kinds = [type(x).__name__ + str(np.ndim(x)) for x in flat(case.args)]
        kind = f"{kinds} {sorted(case.kwargs)}"
        found.setdefault(name_of(case.fn), {}).setdefault(kind, case)
    return {name: list(cases.values())[:OF_EACH] for name, cases in found.items()}


def flat(x: Any) -> Iterator[Any]:
    if isinstance(x, (list, tuple)):
        for part in x:
            yield from flat(part)
    else:
        yield x


def is_value(x: Any) -> bool:
    """Whether it may be followed: a floating array or number, or a list with one."""
    if isinstance(x, (list, tuple)):
        return any(map(is_value, x))
    if isinstance(x, (np.ndarray, np.generic)):
        return x.dtype.kind in "fc" and x.size > 0
    return isinstance(x, (float, complex)) and np.isfinite(x)


def moved(x: Any, t: Any, rng: np.random.Generator) -> Any:
    """A value that depends on t; a list becomes a list of such values."""
    if isinstance(x, (list, tuple)):
        return type(x)(moved(part, t, rng) for part in x)
    if not is_value(x):
        return x
    return np.asarray(x) + t * rng.standard_normal(np.shape(x))


def in_lists(x: Any) -> Any:
    """The elements of an array in nested lists: tensors, if it is one."""
    if isinstance(x, (list, tuple)):
        return type(x)(map(in_lists, x))
    return [in_lists(part) for part in x] if np.ndim(x) else x


def by_rows(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return type(x)(map(by_rows, x))
    return list(x) if np.ndim(x) else [x]


FORMS = {"tensor": lambda x: x, "lists": in_lists, "rows": by_rows}
BESIDE = {
    "plain": lambda x: x,
    "tensors": lambda x: as_tensors(x),
    "lists": lambda x: x.tolist() if isinstance(x, np.ndarray) else x,
}


def as_tensors(x: Any) -> Any:
    """Arrays as tensors that nobody follows, so that NumPy asks the engine."""
    if isinstance(x, (list, tuple)):
        return type(x)(map(as_tensors, x))
    return gs.Tensor(x) if isinstance(x, np.ndarray) and is_value(x) else x


def variants(case: Case) -> Iterator[tuple[str, Any]]:
    """Functions from (t, beside) to the arguments of a call, each with its name."""
    names = parameters(case.fn)
    for form, shape in FORMS.items():
        for i, arg in enumerate(case.args):
            if not is_value(arg):
                continue

            def by_position(t: Any, beside: Any, i: int = i, shape: Any = shape) -> Any:
                args = [beside(x) for x in case.args]
                args[i] = shape(moved(case.args[i], t, np.random.default_rng(i)))
                return args, dict(case.kwargs)

            yield f"{form} as argument {i}", by_position
            if i < len(names):

                def by_name(
                    t: Any, beside: Any, i: int = i, f: Any = by_position
                ) -> Any:
                    args, kwargs = f(t, beside)
                    named = dict(zip(names[i:], args[i:], strict=False))
                    return args[:i], {**named, **kwargs}

                yield f"{form} as {names[i]}=", by_name
        for name, value in case.kwargs.items():
            if is_value(value):
                yield f"{form} as {name}=", option(case, name, value, shape)
    for name in options(case.fn):
        if name not in case.kwargs and name not in names[: len(case.args)]:
            yield f"{name}=", option(case, name, OPTIONS[name], lambda x: x)
            yield f"{name}=[]", option(case, name, OPTIONS[name], lambda x: [x])


def option(case: Case, name: str, value: Any, shape: Any) -> Any:
    def call(t: Any, beside: Any) -> Any:
        args = [beside(x) for x in case.args]
        changed = shape(moved(value, t, np.random.default_rng(9)))
        return args, {**case.kwargs, name: changed}

    return call


def parameters(fn: Any) -> list[str]:
    """The names by which arguments can be given, in their order."""
    try:
        found = inspect.signature(fn).parameters.values()
    except ValueError:
        return []
    kinds = {p.kind for p in found}
    if inspect.Parameter.VAR_POSITIONAL in kinds or isinstance(fn, np.ufunc):
        return []
    return [p.name for p in found if p.kind is p.POSITIONAL_OR_KEYWORD]


def options(fn: Any) -> list[str]:
    try:
        names = set(inspect.signature(fn).parameters)
    except ValueError:
        return []
    if fn is np.pad:
        names |= {"constant_values", "end_values"}
    return sorted(names & set(OPTIONS))


def is_ours(error: BaseException | None) -> bool:
    """Whether an error is ours, or NumPy's that was caused by ours."""
    return error is not None and (
        isinstance(error, gs.GradsmithError)
        or is_ours(error.__cause__ or error.__context__)
    )


def outputs(fn: Any, args: Any, kwargs: Any) -> list[Any]:
    ys = gs.core.trees.leaves(fn(*args, **kwargs))
    return [y for y in ys if hasattr(y, "dtype") and y.dtype.kind in "fc"]


def takes(fn: Any, args: Any, kwargs: Any) -> bool:
    """Whether NumPy takes these arguments: not all functions take lists."""
    try:
        fn(*args, **kwargs)
    except Exception:
        return False
    return True


def check(case: Case, call: Any, counts: Counter[str]) -> None:
    """Count what became of one followed argument: right, or refused."""

    def along(t: Any, beside: Any = BESIDE["plain"]) -> Any:
        return inner(us, outputs(case.fn, *call(t, beside)))

    try:
        ys = outputs(case.fn, *call(0.0, BESIDE["plain"]))
        us = [np.cos(np.arange(y.size)).reshape(y.shape) for y in ys]
        truth, noise = difference(along, case.step)
    except Exception:  # NumPy takes no list there, say
        counts["no such call"] += 1
        return
    noise += 1e-9 * (abs(truth) + sum(np.abs(u).sum() for u in us))
    for where, beside in BESIDE.items():
        if where == "lists" and not takes(case.fn, *call(0.0, beside)):
            continue
        followed = lambda t, beside=beside: along(t, beside) + 0 * t
        try:
            found = gs.grad(followed)(0.0), gs.jvp(followed, (0.0,), (1.0,))[1]
        except Exception as error:
            if not is_ours(error):
                raise AssertionError(f"beside {where}: {error!r}") from error
            counts["refused"] += 1
            continue
        assert np.allclose(found, truth, 0, noise), f"beside {where}: {found} {truth}"
        counts["right"] += 1


CALLS = calls()


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_no_argument_is_a_constant_without_a_word(name):
    wrong, counts = [], Counter[str]()
    for case in CALLS[name]:
        for words, call in variants(case):
            try:
                check(case, call, counts)
            except AssertionError as error:
                wrong.append(f"{case}: {words}, {str(error)[:200]}")
    assert not wrong, "\n".join(wrong)
    assert counts["right"], counts


def test_every_ruled_function_is_called():
    kinds = (Elementwise, Function, Composite)
    ruled = {name_of(fn) for fn, rule in RULES.items() if isinstance(rule, kinds)}
    inner = {name for name in ruled if name.startswith("gradsmith.")}
    in_place = {name_of(fn) for fn in IN_PLACE}  # these raise in any case
    assert ruled - inner - in_place - PRIVATE <= set(CALLS)
