"""Every error Gradsmith raises.

Each message names the operation, the argument, what was expected, what came, and what
to do next. An exception raised by the user's own code is never replaced: it passes
through with a note (`annotate`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class GradsmithError(Exception):
    """Base class of every error that Gradsmith raises on purpose.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> try:
    ...     gs.grad(lambda x: x)(np.ones(2))
    ... except gs.GradsmithError as error:
    ...     print(str(error).split(". ")[0])
    gs.grad takes a function that returns one real number, and <lambda> returned an
    array of shape (2,) and dtype float64
    """


class GradientContractError(GradsmithError):
    """A custom rule returned something that cannot be the gradient it stands for.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> @gs.custom_gradient
    ... def double(x):
    ...     return 2 * x, lambda dy: np.ones(3)
    >>> try:
    ...     gs.grad(lambda x: np.sum(double(x)))(np.ones(2))
    ... except gs.GradientContractError as error:
    ...     print(str(error).splitlines()[0])
    the gradient of operation 'double' for 'x' has the wrong shape
    """


class NotDifferentiableError(GradsmithError):
    """A gradient was requested that the rule declares not to exist.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> @gs.custom_gradient
    ... def scaled(x, by):
    ...     return x * by, lambda dy: (dy * by, gs.not_differentiable("by is data"))
    >>> try:
    ...     gs.grad(scaled, argnums=1)(2.0, np.array(3.0))
    ... except gs.NotDifferentiableError as error:
    ...     print(str(error).split(".")[0])
    operation 'scaled' has no gradient for argument 'by': by is data
    """


class UnsupportedOperationError(GradsmithError, NotImplementedError):
    """The engine has no rule for this call; it never guesses a constant.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> try:
    ...     gs.grad(lambda x: np.sum(np.asarray(x) ** 2))(np.ones(2))
    ... except gs.UnsupportedOperationError as error:
    ...     print(str(error).split(":")[0])
    np.array, np.asarray or an assignment to an array would make a constant of a
    value that is being differentiated
    """


class TapeError(GradsmithError, RuntimeError):
    """A tape or an accumulator was used in a way that can't work.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> tape = gs.GradientTape()
    >>> try:
    ...     tape.watch(np.ones(2))
    ... except gs.TapeError as error:
    ...     print(error)
    tape.watch takes tensors, and the argument is an ndarray. Make it one first:
    x = gs.Tensor(x).
    """


class GradientError(GradsmithError, AssertionError):
    """A gradient that `gs.assert_gradients` found not to be right; see `report`.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> @gs.custom_gradient
    ... def square(x):
    ...     return x * x, lambda dy: -2 * x * dy
    >>> try:
    ...     gs.assert_gradients(square, np.array([1.0, 2.0]))
    ... except gs.GradientError as error:
    ...     error.report.findings[0].diagnosis
    'sign'
    """

    def __init__(self, report: Any) -> None:
        super().__init__(str(report))
        self.report = report  # the gs.CheckReport


@contextmanager
def annotate(note: str) -> Iterator[None]:
    """Let an exception of the user's code pass through, with a note of where it was.

    >>> with annotate("raised by the gradient of 'cube'"):
    ...     raise ValueError("mine")
    Traceback (most recent call last):
    ...
    ValueError: mine
    raised by the gradient of 'cube'
    """
    try:
        yield
    except Exception as error:
        add_note(error, note)
        raise


def add_note(error: Exception, note: str) -> None:
    """Add a note; a function, since Dynamo knows no notes and is told to omit them."""
    error.add_note(note)


def first_line(error: BaseException) -> str:
    r"""An exception's type and the first line of what it says.

    >>> first_line(ValueError("mine\nand more"))
    'ValueError: mine'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if lines and lines[0] == "in user code:":  # a traceback follows, then the message
        lines = lines[-1:]
    name = type(error).__name__
    return f"{name}: {lines[0].removeprefix(f'{name}: ')}" if lines else name


def type_of(x: Any) -> str:
    """What something is, in a sentence.

    >>> type_of(1), type_of(1.5), type_of([])
    ('an int', 'a float', 'a list')
    """
    name = type(x).__name__
    return f"{'an' if name[0] in 'aeioAEIO' or name == 'ndarray' else 'a'} {name}"
