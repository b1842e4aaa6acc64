"""Other inputs like the ones given: where wrong gradients hide.

Each scenario has the structure of the given inputs, other values or other sizes. One on
which the operation itself fails, or is not finite, is omitted: it is outside of its
domain. If the arguments have bounds, values stay inside. Values of another kind than
the given ones (another sign, a much larger scale) make the scenario a far one. With
those an operation that iterates may go on for ever: it is not tried.

An argument beside others that was given with one sign may be a parameter that has to
have it (a scale, a concentration), whatever the value is for the other sign. It alone
changes its sign then, and only its own gradient is judged by that.

An elementwise operation takes all kinds of values at once, in one long vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from ...core import trees
from ...core.reach import captured
from .flat import is_symmetric
from .kinds import Kind, kinds_of
from .problem import Arrays, Problem
from .sizes import SINGLE, resized
from .structure import Structure, structure_of, symmetric

LARGE = (20.0, 100.0, 750.0, 1e4)
SEVERAL = 3  # elements that have the same sign by chance


@dataclass(frozen=True)
class Scenario:
    """A problem, and in words what is special about its inputs."""

    name: str
    problem: Problem
    even: bool = False  # equal elements are perturbed alike too: ties stay ties
    is_given: bool = False
    is_far: bool = False  # some values are of another kind than the given ones
    is_single: bool = False  # an axis has one element, where deviations are all zero
    repeats: bool = False  # indices, of which each place was given once
    reversed: str | None = None  # the argument that has not the sign that was given

    @property
    def is_inside(self) -> bool:
        """Whether no index is out of bounds, which some frameworks don't report."""
        return self.is_given or self.problem.is_inside()

    def reversing(self, i: int) -> Scenario:
        """The same, where it is one argument alone that has not the given sign."""
        name = self.problem.perturbed[i]
        return replace(self, name=f"{self.name} of {name}", reversed=name)


def scenarios(
    problem: Problem, constants: Sequence[float], random: np.random.Generator
) -> Iterator[Scenario]:
    """What is derived from the given inputs, or from some of them."""
    xs, kinds = problem.xs, kinds_of(problem, random)
    structures = [structure_of(x) for x in xs]
    pool = None
    if _is_elementwise(problem, xs):
        pool = _pooled(problem, structures, kinds, constants, random)
    signs = _signs(problem, kinds, structures)
    if pool is not None:
        yield from _ranges(problem, pool, kinds, signs)
    parameters = problem.info.captured or {}
    for name, change in VALUES.items() if pool is None else ():
        new = [
            x
            if arg in parameters and name not in SIGNS
            else change(x, constants, random)
            for arg, x in zip(problem.perturbed, xs, strict=True)
        ]
        pairs = zip(structures, new, strict=True)
        new = [x if structure is None else structure.keep(x) for structure, x in pairs]
        alone = {}
        for i, sign in signs.items():
            if name in SIGNS:
                alone[i] = [new[i] if k == i else x for k, x in enumerate(xs)]
            new[i] = xs[i] if name in SIGNS else sign * np.abs(new[i])
        for i, values in {None: new, **alone}.items():
            if all(map(np.array_equal, values, xs)):
                continue
            other = problem.with_perturbed(values)
            pairs = zip(kinds, other.xs, strict=True)
            far = not all(np.all(kind.holds(x)) for kind, x in pairs)
            pairs = zip(xs, values, strict=True)
            far |= name in DEGENERATE and any(_degenerates(x, y) for x, y in pairs)
            if far and problem.traits.iterates:
                continue
            scenario = Scenario(name, other, even=name in EVEN, is_far=far)
            yield scenario if i is None else scenario.reversing(i)
    yield from _not_symmetric(problem, structures)
    if (moved := _with_indices_moved(problem)) is not None:
        yield Scenario("the indices of other rows", moved)
    for name, other in resized(problem, random):
        single, repeats = name.startswith(SINGLE), _repeats(problem, other)
        yield Scenario(name, other, is_single=single, repeats=repeats)
    if (
        pool is not None
    ):  # of the given shape, by which a rule may keep its first values
        turned = [np.roll(x, 1) for x in xs]
        yield Scenario("the values in another order", problem.with_perturbed(turned))


# --- values

ValueChange = Callable[[np.ndarray, Sequence[float], np.random.Generator], np.ndarray]


def _sign(x: np.ndarray) -> np.ndarray:
    return np.where(x < 0, -1.0, 1.0)


def _some_zeros(
    x: np.ndarray, constants: Sequence[float], random: np.random.Generator
) -> np.ndarray:
    zero = random.random(x.shape) < 0.5
    zero.reshape(-1)[: x.size // 3] = True
    return np.where(zero, 0.0 * x, x)


def _pairs(
    x: np.ndarray, constants: Sequence[float], random: np.random.Generator
) -> np.ndarray:
    """Each value twice, along every axis."""
    for axis, n in enumerate(x.shape):
        x = np.take(x, np.arange(n) // 2 * 2, axis)
    return x


def _thresholds(
    x: np.ndarray, constants: Sequence[float], random: np.random.Generator
) -> np.ndarray:
    """On both sides of each number in the code."""
    if not constants:
        return x
    near = np.array(constants)[random.integers(0, len(constants), x.shape)]
    side = 1 + random.choice([-1, 1], x.shape) * random.uniform(0.01, 0.3, x.shape)
    return random.choice([-1.0, 1.0], x.shape) * near * side


VALUES: dict[str, ValueChange] = {
    "the opposite signs": lambda x, constants, random: -x,
    "mixed signs": lambda x, constants, random: x * random.choice([-1.0, 1.0], x.shape),
    "mixed magnitudes": lambda x, constants, random: (
        _sign(x) * 10.0 ** random.uniform(-6, 1, x.shape)
    ),
    "small values": lambda x, constants, random: x * 1e-4,
    "moderate values": lambda x, constants, random: (
        _sign(x) * random.uniform(0.5, 8.0, x.shape)
    ),
    "some zeros": _some_zeros,
    "all zeros": lambda x, constants, random: np.zeros_like(x),
    "equal values": lambda x, constants, random: np.full_like(
        x, x.flat[0] if x.size else 0
    ),
    "pairs of equal values": _pairs,
    "large values": lambda x, constants, random: (
        _sign(x) * random.choice(LARGE, x.shape)
    ),
    "values near the numbers in the code": _thresholds,
}
# What becomes of the parameters of a module too: weights are not any numbers
SIGNS = ("the opposite signs", "mixed signs")
# Zeros and ties, where matrices are singular and norms have kinks
DEGENERATE = ("some zeros", "all zeros", "equal values", "pairs of equal values")
EVEN = ("equal values", "pairs of equal values", "all zeros", "large values")


def _degenerates(x: np.ndarray, new: np.ndarray) -> bool:
    """Whether an argument changes, and was given without zeros and equal numbers."""
    return not _is_degenerate(x) and not np.array_equal(x, new)


def _is_degenerate(x: np.ndarray) -> bool:
    """Whether there are zeros or equal numbers in an array, but for mirror images."""
    if is_symmetric(x):
        x = x[(..., *np.tril_indices(x.shape[-1]))]
    return bool(np.any(x == 0) or np.unique(x).size < x.size)


def _signs(
    problem: Problem, kinds: Sequence[Kind], structures: Sequence[Structure | None]
) -> dict[int, float]:
    """The sign of each argument beside others that has one, and could have another."""
    if len(problem.xs) < 2:
        return {}
    rows = zip(problem.perturbed, problem.xs, kinds, structures, strict=True)
    return {
        i: float(np.sign(x.flat[0]))
        for i, (name, x, kind, structure) in enumerate(rows)
        if name not in (problem.info.captured or {})
        and structure is None
        and not kind.has_sign
        and (x.size >= SEVERAL or not x.ndim)
        and (np.all(x > 0) or np.all(x < 0))
    }


# --- matrices


def _not_symmetric(
    problem: Problem, structures: Sequence[Structure | None]
) -> Iterator[Scenario]:
    """Each symmetric matrix with more above its diagonal, if both halves are read.

    A matrix that the rule forgot to transpose shows there alone. That it is symmetric
    may be meant: it makes a limit.
    """
    if problem.traits.iterates:
        return
    for i, (name, x) in enumerate(zip(problem.perturbed, problem.xs, strict=True)):
        structure = structures[i]
        if structure is None or structure.tangent is not symmetric:
            continue
        values = [
            x + np.triu(x, 1) / 4 if k == i else z for k, z in enumerate(problem.xs)
        ]
        if name not in problem.symmetric and not is_symmetric(values[i]):
            other = problem.with_perturbed(values)
            yield Scenario(f"{name} not symmetric", other, is_far=True)


# --- indices


def _with_indices_moved(problem: Problem) -> Problem | None:
    """With each integer and flag where the next along the first axis was.

    So that elements count which no index has named. None if there are none, or if they
    have an order: offsets, sorted segments, a permutation beside its inverse (alone, it
    may be its own inverse, which another is not).
    """
    args, kwargs = problem.inputs
    held = problem.info.captured or {}
    given = args, {name: x for name, x in kwargs.items() if name not in held}
    integers = [x for x in trees.leaves(given) if _is_data(x) and x.dtype.kind in "iu"]
    if not integers or any(map(_is_sorted, integers)):
        return None
    if len(integers) > 1 and any(map(_is_unique, integers)):
        return None
    roll = lambda x: np.roll(x, 1, axis=0) if _is_data(x) else x
    args, others = trees.map(roll, given)
    return problem.with_inputs((args, {**kwargs, **others}))


def _is_data(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.ndim > 0 and x.dtype.kind in "iub"


def _repeats(given: Problem, other: Problem) -> bool:
    """Whether integers are there twice that were given once."""
    pairs = zip(trees.leaves(given.inputs), trees.leaves(other.inputs), strict=True)
    integers = [(x, y) for x, y in pairs if _is_data(x) and x.dtype.kind in "iu"]
    once = lambda x: np.unique(x).size == x.size
    return any(once(x) and not once(y) for x, y in integers)


def _is_sorted(x: np.ndarray) -> bool:
    """Whether it is one row, up or down; unsigned integers have no differences."""
    if x.ndim > 1:
        return False
    return bool(np.all(x[1:] >= x[:-1]) or np.all(x[1:] <= x[:-1]))


def _is_unique(x: np.ndarray) -> bool:
    """Whether it is one row, without anything twice."""
    return x.ndim == 1 and np.unique(x).size == x.size


# --- elementwise operations


def _ranges(
    problem: Problem, pool: Arrays, kinds: Sequence[Kind], signs: dict[int, float]
) -> Iterator[Scenario]:
    pairs = zip(kinds, pool, strict=True)
    near = np.logical_and.reduce([kind.holds(x) for kind, x in pairs])
    zero = np.logical_or.reduce([x == 0 for x in pool])  # it may have a kink there
    for x, given in zip(pool, problem.xs, strict=True):
        if not _is_degenerate(given):
            near &= x != 0
    turned = {i: sign * pool[i] < 0 for i, sign in signs.items()}
    count = np.sum([*turned.values(), 0 * near], axis=0)

    def chosen(name: str, some: np.ndarray, is_far: bool = False) -> Iterator[Scenario]:
        if np.any(some):
            other = problem.with_perturbed([x[some] for x in pool])
            yield Scenario(name, other, is_far=is_far)

    yield from chosen("a range of values", near & (count == 0))
    for i, some in turned.items():
        for scenario in chosen("the opposite signs", near & some & (count == 1)):
            yield scenario.reversing(i)
    yield from chosen("a wider range", (~near & ~zero) | (count > 1), is_far=True)
    yield from chosen("zeros", ~near & zero, is_far=True)


def _is_elementwise(problem: Problem, xs: Arrays) -> bool:
    """Whether each output element depends only on its own element of the arguments."""
    shapes = {x.shape for x in xs}
    if len(shapes) != 1 or xs[0].size < 4 or any(map(np.iscomplexobj, xs)):
        return False
    moves = np.arange(xs[0].size).reshape(xs[0].shape) % 3 == 0
    ys = problem.value(xs)
    if any(y.shape != xs[0].shape for y in ys):
        return False
    try:
        others = problem.value([np.where(moves, 1.25 * x, x) for x in xs])
    except Exception:
        return False
    pairs = zip(ys, others, strict=True)
    return all(np.array_equal(a[~moves], b[~moves], equal_nan=True) for a, b in pairs)


def _pooled(
    problem: Problem,
    structures: Sequence[Structure | None],
    kinds: Sequence[Kind],
    constants: Sequence[float],
    random: np.random.Generator,
) -> Arrays | None:
    """One long vector of all kinds of values; several arguments in random pairs.

    None if the operation doesn't take that shape.
    """
    xs = problem.xs
    pools = [_pool(x, constants, random) for x in xs]
    if len(xs) > 1:
        pools = [_shuffled(pool, random) for pool in pools]
    pairs = zip(structures, pools, strict=True)
    pools = [s.element(x) if s is not None and s.element else x for s, x in pairs]
    if problem.traits.iterates:
        pairs = zip(kinds, pools, strict=True)
        near = np.logical_and.reduce([kind.holds(x) for kind, x in pairs])
        pools = [x[near] for x in pools]
    try:
        (y, *_) = problem.value(pools)
    except Exception:
        return None
    if y.shape != pools[0].shape:
        return None  # it was broadcast with an argument that is kept constant
    inside = np.isfinite(y)
    return [pool[inside] for pool in problem.with_perturbed(pools).xs]


def _shuffled(pool: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """In random order, but for some that are zero or alike in all arguments."""
    alike = np.array([0.0, 0.0, 0.5, -0.5, 3.0, -3.0])
    return np.concatenate([random.permutation(np.resize(pool, 512)), alike])


def _pool(
    x: np.ndarray, constants: Sequence[float], random: np.random.Generator
) -> np.ndarray:
    given = x.reshape(-1)[:64]
    spread = 10.0 ** random.uniform(-8, 3, 48)
    near = [c * side for c in constants for side in (0.8, 0.97, 1, 1.03, 1.2)]
    values = np.concatenate([given, spread, random.uniform(0, 8, 48), near, LARGE])
    return np.concatenate([values, -values, [0.0, -0.0]])


# --- the numbers in an operation's code: thresholds where it may behave differently
#
# A threshold (`where(x > 1.5, ...)`) is a constant of the body or of the rule, of a
# function that they call, or of what they enclose.


# Where operations of ours, and wrappers, keep the functions that they are made of.
_ATTRIBUTES = (
    "fn", "vjp_rule", "jvp_rule", "func", "__wrapped__", "__func__", "__self__",
)  # fmt: skip
_DEPTH = 8
_LIMIT = 32
_SMALL, _LARGE = 1e-12, 1e9


def constants_of(op: Any, attributes: Iterable[str] = ()) -> list[float]:
    """The constants in the code of an operation, each once, in order.

    `attributes` are those in which a framework's operations keep their functions.

    >>> constants_of(lambda x: x if x > 1.5 else 0.25 * x)
    [0.25, 1.5]
    """
    found: dict[float, None] = {}
    for c in _numbers(op, _DEPTH, set(), (*_ATTRIBUTES, *attributes)):
        if _SMALL < abs(c) < _LARGE:
            found[abs(float(c))] = None
    return sorted(found)[:_LIMIT]


def _numbers(
    thing: Any, depth: int, seen: set[int], attributes: Sequence[str]
) -> Iterator[float]:
    if depth < 0 or id(thing) in seen or isinstance(thing, ModuleType):
        return
    seen.add(id(thing))
    if isinstance(thing, (int, float)) and not isinstance(thing, bool):
        yield thing
    elif isinstance(thing, CodeType):
        for constant in thing.co_consts:
            yield from _numbers(constant, depth, seen, attributes)
    elif isinstance(thing, (tuple, list)):
        for each in thing[:_LIMIT]:
            yield from _numbers(each, depth - 1, seen, attributes)
    elif isinstance(thing, FunctionType):
        for part in _parts(thing):
            yield from _numbers(part, depth - 1, seen, attributes)
    elif callable(thing):
        for name in attributes:
            yield from _numbers(_held(thing, name), depth - 1, seen, attributes)


def _parts(fn: FunctionType) -> Iterator[Any]:
    """What a function is made of, and what it names of its own module."""
    yield fn.__code__
    yield from fn.__defaults__ or ()
    yield from (fn.__kwdefaults__ or {}).values()
    yield from (x for _, x in captured(fn))
    for name in fn.__code__.co_names:
        used = fn.__globals__.get(name)
        if getattr(used, "__module__", None) == fn.__module__ or isinstance(
            used, (int, float)
        ):
            yield used
    yield getattr(fn, "__wrapped__", None)


def _held(thing: Any, name: str) -> Any:
    try:
        return getattr(thing, name, None)
    except Exception:  # a property of somebody else's class
        return None
