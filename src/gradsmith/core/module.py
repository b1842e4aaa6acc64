"""Module: an object that knows the variables in its attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .errors import GradsmithError
from .tensor import Variable


class Module:
    """A part of a model: assign variables and modules as attributes, define `call`.

    It also finds those in lists, tuples and dicts, at any depth.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> class Linear(gs.Module):
    ...     def __init__(self, inputs, outputs):
    ...         self.kernel = gs.Variable(np.zeros((inputs, outputs)))
    ...         self.bias = gs.Variable(np.zeros(outputs))
    ...
    ...     def call(self, x):
    ...         return x @ self.kernel + self.bias
    >>> class Net(gs.Module):
    ...     def __init__(self):
    ...         self.layers = [Linear(3, 5), Linear(5, 1)]
    >>> [path for path, _ in Net().named_variables()]
    ['layers[0].kernel', 'layers[0].bias', 'layers[1].kernel', 'layers[1].bias']
    >>> Linear(3, 5)(np.ones((2, 3))).shape
    (2, 5)

    Raises
    ------
    GradsmithError
        When it is called, if the class has no method `call`; from
        `load_state`, if the state does not fit.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = getattr(self, "call", None)
        if call is None:
            raise GradsmithError(
                f"{type(self).__name__} can't be called: define call(self, ...) in it"
            )
        return call(*args, **kwargs)

    @property
    def variables(self) -> list[Variable]:
        """Every variable once, in the order in which the attributes were assigned."""
        return [x for _, x in self.named_variables()]

    @property
    def trainable_variables(self) -> list[Variable]:
        """Those of the variables that are trainable."""
        return [x for x in self.variables if x.trainable]

    def named_variables(self) -> list[tuple[str, Variable]]:
        """Every variable with the path that reaches it: `layers[0].kernel`.

        One that several paths reach has the first of them.
        """
        return list(_variables_in(self))

    def freeze(self) -> Module:
        """Make no variable trainable, until `unfreeze`."""
        self._frozen = {*getattr(self, "_frozen", ()), *self.trainable_variables}
        for x in self._frozen:
            x.trainable = False
        return self

    def unfreeze(self) -> Module:
        """Make trainable again what `freeze` froze."""
        for x in self.__dict__.pop("_frozen", ()):
            x.trainable = True
        return self

    def state(self) -> dict[str, Any]:
        """Return copies of the values by path, for `np.savez(file, **state)`."""
        return {path: np.array(x.value) for path, x in self.named_variables()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Assign the values of a state, also from `np.load`, to the same paths."""
        variables = dict(self.named_variables())
        differences = [f"{path} is missing" for path in variables if path not in state]
        differences += [f"{path} is unknown" for path in state if path not in variables]
        values = {path: np.asarray(state[path]) for path in variables if path in state}
        differences += [
            f"{path} has shape {value.shape}, the variable {variables[path].shape}"
            for path, value in values.items()
            if value.shape != variables[path].shape
        ]
        differences += [
            f"{path} has dtype {value.dtype}, the variable {variables[path].dtype}"
            for path, value in values.items()
            if not np.can_cast(value.dtype, variables[path].dtype, "same_kind")
        ]
        if differences:
            raise GradsmithError(
                f"the state does not fit this {type(self).__name__}: "
                + "; ".join(differences)
            )
        for path, value in values.items():
            variables[path].assign(value)


def _variables_in(module: Module) -> Iterator[tuple[str, Variable]]:
    """The variables in a module, each once, though modules may refer to one another."""
    seen: set[int] = set()
    stack: list[tuple[str, Any]] = [("", module)]
    while stack:
        path, x = stack.pop()
        if not isinstance(x, (Variable, Module, list, tuple, dict)) or id(x) in seen:
            continue
        seen.add(id(x))
        if isinstance(x, Variable):
            yield path.removeprefix("."), x
        else:
            stack += [(path + step, part) for step, part in reversed([*_parts(x)])]


def _parts(x: Any) -> Iterator[tuple[str, Any]]:
    """The attributes or items of a value, with what follows its own path."""
    if isinstance(x, Module):
        return ((f".{name}", part) for name, part in vars(x).items())
    if isinstance(x, dict):
        return ((f"[{key!r}]", part) for key, part in x.items())
    if hasattr(x, "_fields"):
        return ((f".{name}", getattr(x, name)) for name in x._fields)
    return ((f"[{i}]", part) for i, part in enumerate(x))
