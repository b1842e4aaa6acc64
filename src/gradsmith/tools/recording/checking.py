"""What was recorded, checked: the rows of the summary."""

from __future__ import annotations

import io
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from fnmatch import fnmatch
from typing import Any

import numpy as np

from ...core import trees
from ...core import trees as _tree
from ...core.arrays import FRAMEWORKS, title_of
from ...core.errors import GradsmithError
from ...core.places import is_users
from ...frameworks._recording import Decorated, Seen
from ...operations.info import is_floating
from .._inputs import info_of
from ..check import CheckReport, check
from ..check.first_order import FIRST_ORDER
from .recorder import MOST_CASES, Case, Recorded, Recorder

MOST, LEAST = 20.0, 0.5  # seconds of a check
SHARE = 2.0  # many take less


def checked(
    recorder: Recorder,
    *,
    seed: int,
    seconds: float,
    ignore: list[str],
    chosen: Callable[[str, str], dict[str, Any]],
) -> list[dict[str, Any]]:
    """One row for each operation, as plain data; none starts after the time is up.

    First the first inputs of each operation, then the second ones. Each check gets the
    time that is left for it and the quicker ones after it. `chosen` gives options of
    the check for an operation, by its name and module.
    """
    entries = [*recorder.operations.values()]
    rows = [_row(entry, ignore) for entry in entries]
    pairs = [pair for pair in zip(entries, rows, strict=True) if not pair[1]["ignored"]]
    end = time.monotonic() + seconds
    for i in range(MOST_CASES):
        turn = [
            (e, row, [*e.cases.values()][i]) for e, row in pairs if len(e.cases) > i
        ]
        for done, (entry, row, case) in enumerate(turn):
            left = end - time.monotonic()
            share = min(MOST, max(LEAST, SHARE * left / (len(turn) - done)))
            seconds = share if left > 0 else 0
            options = chosen(entry.definition.name, entry.definition.module)
            row["cases"].append(_case(entry, case, seconds, seed=seed, **options))
    return rows


def _row(entry: Recorded, ignore: list[str]) -> dict[str, Any]:
    return {
        "operation": entry.definition.name,
        "framework": title_of(entry.framework),
        "module": entry.definition.module,
        "file": entry.definition.file,
        "line": entry.definition.first_line,
        "tests": list(entry.tests),
        "notes": _notes(entry),
        "cases": [],
        "ignored": _is_ignored(entry, ignore),
    }


def _is_ignored(entry: Recorded, patterns: list[str]) -> bool:
    names = (
        entry.definition.name,
        f"{entry.definition.module}.{entry.definition.name}",
    )
    return any(fnmatch(name, pattern) for name in names for pattern in patterns)


def _notes(entry: Recorded) -> list[str]:
    notes = list(entry.notes)
    if entry.dropped:
        n = len(entry.dropped)
        notes.append(f"{n} more signature{'s' * (n > 1)} seen, and not checked")
    if entry.too_large:
        n = len(entry.too_large)
        notes.append(f"{n} too large to be kept (over 10⁶ elements), and not checked")
    return notes


def _case(
    entry: Recorded, case: Case, seconds: float, **options: Any
) -> dict[str, Any]:
    case_row = {
        "inputs": described(case),
        "random": not all(x.has_values for x in case.arrays),
        "report": None,
    }
    if not seconds:
        words = "the time was up: --gradsmith-max-seconds 300 gives more"
        return {**case_row, "verdict": "not checked", "text": words}
    quiet = io.StringIO()
    with warnings.catch_warnings(), redirect_stdout(quiet), redirect_stderr(quiet):
        warnings.simplefilter("ignore")
        try:
            return {**case_row, **_checked(entry, case, seconds, **options)}
        except (InputsError, GradsmithError) as error:
            return {**case_row, "verdict": "not checked", "text": str(error)}
        except Exception as error:
            return {**case_row, "verdict": "not checked", "text": _raised(error)}


def _raised(error: Exception) -> str:
    """An exception of the user's code: where it is from, without us and frameworks."""
    words = traceback.TracebackException.from_exception(error)
    theirs = [frame for frame in words.stack if is_users(frame.filename)]
    ours = not theirs and "/gradsmith/" in words.stack[-1].filename.replace("\\", "/")
    lines = [
        "the check itself failed:"
        if ours
        else "it raises, called as the tests call it:",
        *(f"{f.filename}:{f.lineno} in {f.name}: {f.line}" for f in theirs[-3:]),
        *[line.rstrip() for line in words.format_exception_only()][:MOST_LINES],
    ]
    return "\n".join(lines)


def _checked(
    entry: Recorded, case: Case, seconds: float, *, seed: int, **options: Any
) -> dict[str, Any]:
    op = case.op.operation() if isinstance(case.op, Decorated) else case.op
    args, kwargs = given(op, case, entry, seed)
    checked = check.options(
        framework=entry.framework, seed=seed, seconds=seconds, **options
    )
    start = time.monotonic()
    report = checked(op, *args, **kwargs)
    verdict, text = str(report.verdict), str(report)
    if not (report.findings or any(c.what == FIRST_ORDER for c in report.checks)) and (
        time.monotonic() - start > seconds
    ):
        verdict = "not checked"  # in the time that it had
    unused = _not_differentiated(entry, case, info_of(op, entry.framework).signature)
    if report.findings and all(f.argument in unused for f in report.findings):
        names = ", ".join(sorted({str(f.argument) for f in report.findings}))
        verdict = "could not tell"
        text = f"no test asks for the gradient of {names}: not counted as wrong\n{text}"
    elif report.findings and all(finding.refused for finding in report.findings):
        where = title_of(entry.framework)
        verdict = "could not tell"
        text = (
            f"{where} raises where it is differentiated as it was called: so no test "
            f"asks for that, and it is not counted as wrong\n{text}"
        )
    return {"verdict": verdict, "text": text, "report": _plain(report)}


def _plain(report: CheckReport) -> dict[str, Any]:
    found = report.as_dict()
    found["verdict"] = str(report.verdict)
    return found


def _not_differentiated(entry: Recorded, case: Case, signature: Any) -> set[str]:
    """The arguments, as a finding calls them, whose gradient no test wants."""
    args, kwargs = case.inputs
    names = [] if signature is None else list(signature.parameters)
    names += [f"argument {i}" for i in range(len(names), len(args))]
    trees = [*zip(names, args, strict=False), *kwargs.items()]
    labels = [n for name, x in trees for n, _ in _tree.leaves_with_names(x, name)]
    paths = [path for path, _ in _tree.leaves_with_names(case.inputs)]
    pairs = zip(labels, paths, strict=True)
    return {label for label, path in pairs if entry.differentiated.get(path) is False}


def described(case: Case) -> str:
    """The arguments of a call in a few words."""
    args, kwargs = case.inputs
    words = [_word(x) for x in _tree.leaves(args)]
    for key, tree in kwargs.items():
        words += [f"{n}={_word(x)}" for n, x in _tree.leaves_with_names(tree, key)]
    return ", ".join(words)


def _word(x: Any) -> str:
    text = " ".join(str(x).split() if isinstance(x, Seen) else repr(x).split())
    if " at 0x" in text:
        text = getattr(x, "__name__", None) or f"<{type(x).__qualname__}>"
    return text if len(text) <= 40 else f"{text[:37]}..."


# --- the inputs of a check: those that were seen, random ones where none had values


MOST_LINES = 4  # of an exception
_UNKNOWN = 3  # the length of an axis that is not known
_KNOWN = ("float16", "float32", "float64")

# Most operations are defined everywhere; some for positive numbers, some below 1.
_DRAWS: tuple[Callable[[np.random.Generator, Any], np.ndarray], ...] = (
    lambda random, shape: random.normal(size=shape),
    lambda random, shape: random.uniform(0.1, 0.9, shape),
    lambda random, shape: random.uniform(1.1, 3.0, shape),
)


class InputsError(Exception):
    """No inputs could be made."""


def given(op: Any, case: Case, entry: Recorded, seed: int) -> Any:
    """The arguments to check an operation with."""
    if all(x.value is not None for x in case.arrays):
        return _filled(case, lambda seen: seen.value)
    tries = list(_tries(case, entry, seed))
    return next((inputs for inputs in tries if _is_finite(op, inputs, entry)), tries[0])


def _tries(case: Case, entry: Recorded, seed: int) -> Iterator[Any]:
    name = f"{entry.definition.module}.{entry.definition.name}"
    for draw in _DRAWS:
        random = np.random.default_rng([seed, *name.encode()])
        yield _filled(case, lambda seen: _value(seen, random, draw))  # noqa: B023


def _filled(case: Case, value: Callable[[Seen], Any]) -> Any:
    return trees.map(lambda x: value(x) if isinstance(x, Seen) else x, case.inputs)


def _value(seen: Seen, random: np.random.Generator, draw: Any) -> Any:
    if seen.value is not None:
        return seen.value
    shape = tuple(_UNKNOWN if n is None else n for n in seen.shape)
    kind = seen.dtype.rstrip("0123456789_")
    if kind in ("float", "bfloat"):
        x = draw(random, shape)
        # NumPy has no bfloat16; what is checked first is float64 anyway
        return x.astype(seen.dtype if seen.dtype in _KNOWN else np.float32)
    if kind == "complex":
        return (draw(random, shape) + 1j * draw(random, shape)).astype(seen.dtype)
    if kind == "bool":
        return random.integers(2, size=shape).astype(bool)
    if kind in ("int", "uint"):
        return np.zeros(shape, seen.dtype)  # as an index, zero is always there
    raise InputsError(f"no random values can be made of {seen}")


def _is_finite(op: Any, inputs: Any, entry: Recorded) -> bool:
    arrays = FRAMEWORKS[entry.framework].arrays

    def array(x: Any) -> Any:
        return arrays.array(x, str(x.dtype)) if isinstance(x, np.ndarray) else x

    call = getattr(op, "apply", op)
    with np.errstate(all="ignore"):
        args, kwargs = trees.map(array, inputs)
        ys = [y for y in trees.leaves(call(*args, **kwargs)) if is_floating(y)]
        return all(np.isfinite(arrays.numpy(y)).all() for y in ys)
