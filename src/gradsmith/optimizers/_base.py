"""What all optimizers share: options, steps, buffers, saving and loading."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from math import inf, sqrt, ulp
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from ..core.errors import GradsmithError, annotate
from ..core.places import warn_user
from ..core.tensor import Variable, unwrap

# Options: a dataclass field states its default and, as metadata, what it accepts.


def _number(low: float, high: float, words: str) -> Callable[[str, Any], float]:
    def check(name: str, value: Any) -> float:
        if not isinstance(value, Real) or isinstance(value, bool):
            raise GradsmithError(
                f"{name} must be a number {words}, not {value!r} of type "
                f"{type(value).__name__}"
            )
        if not low <= float(value) < high:
            raise GradsmithError(f"{name} must be a number {words}, not {value!r}")
        return float(value)

    return check


_nonnegative = _number(0, inf, "of at least 0")
_positive = _number(ulp(0.0), inf, "above 0")
_fraction = _number(0, 1, "of at least 0 and below 1")


def _rate(name: str, value: Any) -> Any:
    return value if callable(value) else _nonnegative(name, value)


def _limit(name: str, value: Any) -> float | None:
    return None if value is None else _positive(name, value)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise GradsmithError(f"{name} must be True or False, not {value!r}")
    return bool(value)


def _count(name: str, value: Any) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 0:
        raise GradsmithError(f"{name} must be a whole number from 0 on, not {value!r}")
    return int(value)


RATE, LIMIT, FLAG, COUNT, FRACTION, POSITIVE, NONNEGATIVE = (
    {"check": check}
    for check in (_rate, _limit, _flag, _count, _fraction, _positive, _nonnegative)
)
Rate = float | Callable[[int], float]


@dataclass(eq=False)
class Optimizer:
    """Apply gradients to variables; a subclass says by how much in `step`.

    All parameters are attributes that may be set at any time. `iterations` is the
    number of steps done.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> class SignDescent(gs.optimizers.Optimizer):
    ...     def step(self, g, x, slots, rate):
    ...         return rate * np.sign(g)
    >>> w = gs.Variable([1.0, 2.0])
    >>> SignDescent(0.1).apply_gradients([(np.array([0.5, -3.0]), w)])
    >>> w
    Variable([0.9, 2.1])

    Parameters
    ----------
    learning_rate : a number, or a function from the number of steps done to a number
    clipnorm : scale each gradient down to at most this Euclidean norm
    clipvalue : clip each element of a gradient to between -clipvalue and clipvalue
    global_clipnorm : scale all gradients down to at most this norm of them together

    Raises
    ------
    GradsmithError
        If an option is not known or out of its range, there are two ways of
        clipping, or a gradient does not fit its variable.
    """

    learning_rate: Rate = field(default=0.01, metadata=RATE)
    _: KW_ONLY
    clipnorm: float | None = field(default=None, metadata=LIMIT)
    clipvalue: float | None = field(default=None, metadata=LIMIT)
    global_clipnorm: float | None = field(default=None, metadata=LIMIT)
    iterations: int = field(default=0, init=False, metadata=COUNT)

    squares: ClassVar[tuple[str, ...]] = ()  # the buffers that are never negative

    def __post_init__(self) -> None:
        clips = [
            n for n in ("clipnorm", "clipvalue", "global_clipnorm") if self._has(n)
        ]
        if len(clips) > 1:
            raise GradsmithError(
                f"{type(self).__name__} clips in one way: give {' or '.join(clips)}"
            )
        self._positions: dict[Variable, int] = {}
        # By position; more than there are variables if a state was loaded before them.
        self._names: list[str] = []
        self._slots: list[dict[str, Any]] = []
        self._warned: set[Variable] = set()

    def __setattr__(self, name: str, value: Any) -> None:
        known = type(self).__dataclass_fields__
        if name in known:
            check = known[name].metadata["check"]
            value = check(f"{name} of {type(self).__name__}", value)
        elif not name.startswith("_"):
            raise GradsmithError(
                f"{type(self).__name__} has no option {name!r}; it has "
                + ", ".join(known)
            )
        object.__setattr__(self, name, value)

    def _has(self, name: str) -> bool:
        return getattr(self, name) is not None

    def step(self, g: Any, x: Any, slots: dict[str, Any], rate: float) -> Any:
        """Return a new array with what to subtract from the variable's value x.

        `g` is the gradient, not to be changed; `slots[name]` is a buffer that stays
        from step to step, zero at first. All are real and have at least one axis.
        """
        raise NotImplementedError

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Variable]]) -> None:
        """Do one step for pairs of a gradient and its variable.

        Pairs whose gradient is None are left out with a warning; if all are, it raises.
        Nothing is changed unless all gradients fit.
        """
        pairs = _checked_pairs(grads_and_vars)
        self.build([variable for _, variable in pairs])
        present = self._present(pairs)
        gradients = self._clipped([_gradient(g, x) for g, x in present])
        rate = self._current_rate()
        for (_, variable), g in zip(present, gradients, strict=True):
            x = _as_real(variable.value)
            step = self.step(g, x, self._slots[self._positions[variable]], rate)
            # The step's memory becomes the value. The old value stays as it is, since a
            # tape may have saved it.
            np.subtract(x, step, out=step)
            variable.value = step.view(variable.dtype).reshape(variable.shape)
        self.iterations += 1

    def build(self, variables: Iterable[Variable]) -> None:
        """Tell the order of the variables, by which a state is saved and loaded.

        Without it the order is that of their first coming to `apply_gradients`.
        """
        new = [x for x in dict.fromkeys(variables) if x not in self._positions]
        if not new:
            return
        for x in new:
            _require_trainable_dtype(x)
        positions = {x: i for i, x in enumerate(new, start=len(self._positions))}
        self._names, self._slots = _bound(self._names, self._slots, positions)
        self._positions |= positions

    def _present(self, pairs: list[tuple[Any, Variable]]) -> list[tuple[Any, Variable]]:
        missing = [x for g, x in pairs if g is None]
        if len(missing) == len(pairs):
            raise GradsmithError(
                f"the gradient is None for every variable: {_listed(missing)}. The "
                "loss does not depend on them as far as the tape recorded; "
                "print(tape.explain(loss, variable)) says why."
            )
        new = [x for x in missing if x not in self._warned]
        if new:
            self._warned.update(new)
            warn_user(
                f"the gradient is None, so nothing is updated, for {_listed(new)}. "
                "print(tape.explain(loss, variable)) says why."
            )
        return [(g, x) for g, x in pairs if g is not None]

    def _clipped(self, gradients: list[Any]) -> list[Any]:
        if self.clipvalue is not None:
            return [np.clip(g, -self.clipvalue, self.clipvalue) for g in gradients]
        if self.clipnorm is not None:
            return [_shrunk(g, _norm([g]), self.clipnorm) for g in gradients]
        if self.global_clipnorm is not None:
            norm = _norm(gradients)
            return [_shrunk(g, norm, self.global_clipnorm) for g in gradients]
        return gradients

    def _current_rate(self) -> float:
        rate = self.learning_rate
        if not callable(rate):
            return rate
        with annotate(f"raised by the learning_rate of {type(self).__name__}"):
            now = rate(self.iterations)
        return _nonnegative(f"learning_rate({self.iterations})", _entry(unwrap(now)))

    # Saving and loading

    def state(self) -> dict[str, Any]:
        """Return all that the next step depends on: numbers, strings and arrays.

        The dict is flat, for `np.savez(file, **state)`. A learning rate that is a
        function is not in it.
        """
        state: dict[str, Any] = {
            "optimizer": type(self).__name__,
            "variables": list(self._names),
        }
        for option in fields(self):
            value = getattr(self, option.name)
            if value is not None and not callable(value):
                state[option.name] = value
        buffers = {
            f"{i}/{name}": buffer.copy()
            for i, slots in enumerate(self._slots)
            for name, buffer in slots.items()
        }
        return {**state, "buffers": list(buffers), **buffers}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from a state, options included, with the variables in the same order.

        Accepts what `state` gave, also from `np.load`, or from JSON with its arrays as
        lists.
        """
        entries = {key: _entry(state[key]) for key in state}
        self._require_own(entries)
        options = {o.name: self._restored(o.name, entries) for o in fields(self)}
        names = entries["variables"]
        slots = _loaded_slots(entries, len(names), self.squares)
        self._names, self._slots = _bound(names, slots, self._positions)
        for name, value in options.items():
            setattr(self, name, value)

    def _require_own(self, entries: dict[str, Any]) -> None:
        mine, theirs = type(self).__name__, entries.get("optimizer")
        if theirs != mine:
            raise GradsmithError(
                f"the state of a {mine} was expected, and this is "
                + (f"that of a {theirs}" if theirs else "none of an optimizer")
            )
        for name in ("variables", "buffers"):
            if name not in entries:
                raise GradsmithError(f"the state lacks {name!r}")
        missing = [key for key in entries["buffers"] if key not in entries]
        if missing:
            raise GradsmithError(
                f"the state lacks {', '.join(map(repr, missing))}: the next steps "
                "would be wrong"
            )
        if callable(self.learning_rate) != ("learning_rate" not in entries):
            mine, theirs = "a number", "a function"
            if callable(self.learning_rate):
                mine, theirs = theirs, mine
            raise GradsmithError(
                f"the state was saved with a learning_rate that is {theirs}, and this "
                f"optimizer's is {mine}. Load it with one of the same kind, then set "
                "optimizer.learning_rate again."
            )

    def _restored(self, name: str, entries: dict[str, Any]) -> Any:
        """An option's value from the state, checked; those that are None are absent."""
        option = type(self).__dataclass_fields__[name]
        if name in entries:
            return option.metadata["check"](f"{name} in the state", entries[name])
        if callable(getattr(self, name)):
            return getattr(self, name)
        if option.default is not None:
            raise GradsmithError(f"the state lacks {name!r}")
        return None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file in NumPy's .npz format.

        An interrupted call leaves an earlier file as it was.
        """
        from ..core.files import written_whole  # 2 ms at import, and rarely used

        with written_whole(path) as file:
            np.savez(file, **self.state())

    def load(self, path: str | os.PathLike[str]) -> None:
        """Go on from the state in a file that `save` wrote."""
        from zipfile import BadZipFile  # as above

        try:
            with open(path, "rb") as file, np.load(file) as entries:
                state = dict(entries)
        except (BadZipFile, EOFError, TypeError, ValueError, zlib.error) as error:
            raise GradsmithError(
                f"the state in {os.fspath(path)} can't be read, the file is damaged: "
                f"{error}"
            ) from error
        self.load_state(state)


class _Slots(dict[str, Any]):
    """A variable's buffers, each zero until it is first written."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        super().__init__()
        self.shape, self.dtype = shape, dtype

    def __missing__(self, name: str) -> Any:
        self[name] = np.zeros(self.shape, self.dtype)
        return self[name]


def _as_real(x: Any) -> Any:
    """The same numbers as real ones with at least one axis, so that `out=` works."""
    if x.dtype.kind == "c":
        x = np.ascontiguousarray(x)
        return x.view(x.real.dtype)
    return np.atleast_1d(x)


def _bound(
    names: Sequence[str], slots: Sequence[Any], positions: Mapping[Variable, int]
) -> tuple[list[str], list[dict[str, Any]]]:
    """Give each variable the buffers in its position, or new ones after the last."""
    names, slots = list(names), list(slots)
    for x, i in positions.items():
        if i == len(names):
            names.append(x.name)
            slots.append({})
        slots[i] = _fitted(slots[i], names[i], x, i)
    return names, slots


def _fitted(
    slots: Mapping[str, Any], name: str, variable: Variable, position: int
) -> _Slots:
    """Loaded buffers as those of this variable."""
    x = _as_real(variable.value)
    fitted = _Slots(x.shape, x.dtype)
    # JSON tells an empty array's shape as (0,), whatever it was.
    filled = [buffer for buffer in slots.values() if np.size(buffer) or x.size]
    shapes = {np.shape(buffer) for buffer in filled} - {x.shape}
    if name != variable.name or shapes:
        raise GradsmithError(
            f"in the state, variable {position} is {name!r}"
            + "".join(f" with buffers of shape {shape}" for shape in shapes)
            + f", and here it is {_described(variable)}. Give the variables in the "
            "order in which they were saved: optimizer.build(variables)."
        )
    for key, buffer in slots.items():
        fitted[key] = np.asarray(buffer, x.dtype).reshape(x.shape)
    return fitted


def _loaded_slots(
    entries: dict[str, Any], size: int, squares: Sequence[str]
) -> list[dict[str, Any]]:
    slots: list[dict[str, Any]] = [{} for _ in range(size)]
    for key, value in entries.items():
        position, slash, name = key.partition("/")
        if slash and not (position.isdecimal() and int(position) < size):
            raise GradsmithError(
                f"the state has an entry {key!r} and {size} variables, counted from 0"
            )
        if slash:
            slots[int(position)][name] = _loaded_buffer(key, value, name in squares)
    return slots


def _loaded_buffer(key: str, value: Any, is_square: bool) -> Any:
    try:
        buffer = np.array(value)
    except ValueError:  # a ragged list
        buffer = np.array(None)
    if buffer.dtype.kind not in "fiu" and buffer.size:
        damage = f"holds {buffer.dtype}s"
    elif not np.isfinite(buffer.astype(float)).all():
        damage = "is not finite"
    elif is_square and (buffer < 0).any():
        damage = "is a mean of squares, and negative"
    else:
        return buffer
    raise GradsmithError(
        f"the state's entry {key!r} {damage}: it is damaged, or from a run that "
        "diverged. Go on from an earlier one."
    )


def _entry(value: Any) -> Any:
    """A state's entry as Python's own type, unless it is an array of numbers."""
    if isinstance(value, np.ndarray) and (value.ndim == 0 or value.dtype.kind == "U"):
        return value.tolist()
    if isinstance(value, np.ndarray) and value.size == 0 and value.ndim == 1:
        return []  # so is an empty list saved
    return value


# Pairs of gradients and variables


def _checked_pairs(grads_and_vars: Iterable[Any]) -> list[tuple[Any, Variable]]:
    pairs = [tuple(pair) for pair in grads_and_vars]
    if not pairs:
        raise GradsmithError(
            "apply_gradients was given no pairs. A zip can be iterated only once: "
            "write optimizer.apply_gradients(zip(gradients, variables))."
        )
    seen: set[Variable] = set()
    for i, pair in enumerate(pairs):
        if len(pair) != 2 or not isinstance(pair[1], Variable):
            got = ", ".join(type(part).__name__ for part in pair)
            raise GradsmithError(
                f"apply_gradients takes pairs (gradient, gs.Variable), and pair {i} is "
                f"({got})"
            )
        if pair[1] in seen:
            raise GradsmithError(
                f"variable {_described(pair[1])} is given twice. Its gradient "
                "already includes every use: pass it once."
            )
        seen.add(pair[1])
    return pairs


def _require_trainable_dtype(x: Variable) -> None:
    if x.dtype.kind not in "fc":
        raise GradsmithError(
            f"variable {_described(x)} has dtype {x.dtype}; only floating and complex "
            "ones can be optimized"
        )


def _gradient(gradient: Any, variable: Variable) -> Any:
    """A gradient as a plain real array in its variable's dtype."""
    g = np.asarray(unwrap(gradient))
    if g.shape != variable.shape:
        raise GradsmithError(
            f"the gradient for variable {_described(variable)} has shape {g.shape}"
        )
    if g.dtype.kind not in ("fciub" if variable.dtype.kind == "c" else "fiub"):
        raise GradsmithError(
            f"the gradient for variable {_described(variable)} has dtype {g.dtype}, "
            f"the variable {variable.dtype}"
        )
    return _as_real(g.astype(variable.dtype, copy=False))


def _described(x: Variable) -> str:
    return f"{x.name!r} of shape {x.shape}"


def _listed(variables: Sequence[Variable]) -> str:
    return ", ".join(map(_described, variables))


def _norm(gradients: list[Any]) -> float:
    # In float64, without a copy: the squares of float16 overflow from 256 on.
    return sqrt(
        sum(
            float(np.einsum("i,i", g, g, dtype=np.result_type(g, float)))
            for g in map(np.ravel, gradients)
        )
    )


def _shrunk(g: Any, norm: float, limit: float) -> Any:
    # An infinite element becomes NaN, and NaN stays: clipping must not hide them.
    return g * (limit / norm) if norm > limit else g
