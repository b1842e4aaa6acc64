"""Calling elementwise functions on tensors: the engine's hot path."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Rational
from typing import Any
from weakref import ref

import numpy as np

from .foreign import answer_of, computes_differently, read
from .pool import SMALLEST, LargePull, computed
from .rule import Elementwise, Rule
from .tape import (
    NOTHING,
    REUSABLE,
    State,
    Tape,
    Traced,
    holds_objects,
    record_lifted,
    record_of_one,
    record_of_two,
    refuse_tensors_in,
    state,
)
from .tensor import Kept, Tensor, frozen, joined, unwrap, wrap


def call_elementwise(rule: Elementwise, inputs: Sequence[Any]) -> Tensor:
    """Run an elementwise function and tell the recorders."""
    if len(inputs) == 1:
        return call_unary(rule, inputs[0])
    if len(inputs) == 2:
        return call_binary(rule, *inputs)
    inputs = [_operand(x, rule.fn) for x in inputs]
    values = unwrap(tuple(inputs))
    y = wrap(rule.fn(*values))
    if state().recorders:
        tell(rule, inputs, inputs, values, y)
    return y


# The three functions below are the hot path, hence alike and not one. A chain of small
# operations takes 2.7 us each with its gradient, of which 1.1 are NumPy's; through
# `tell` alone it was 5.0.


def call_unary(rule: Elementwise, x: Tensor) -> Tensor:
    value = x.value
    if value.nbytes >= SMALLEST:
        return _call_large(rule, (x,), (value,))
    y = Traced.__new__(Tensor)
    y.value = rule.fn(value)
    y.marks = None
    active = state()
    tape = active.sole or active.follower((x,))
    if tape:
        marks = x.marks
        node: Any = (marks and marks.get(tape.key)) or tape.mark_of(x)
        if node is not None:
            record_of_one(tape, rule, 0, node, (value,), y, True)
    elif tape is None and active.recorders:
        _tell_elementwise(active, rule, (x,), (value,), y)
    return y


def call_with_number(
    rule: Elementwise, x: Tensor, inputs: tuple[Any, Any], i: int
) -> Tensor:
    """`call_binary` for a tensor x, the i-th of the inputs, and a number."""
    value = x.value
    values = (inputs[0], value) if i else (value, inputs[1])
    if value.nbytes >= SMALLEST:
        return _call_large(rule, inputs, values)
    y = Traced.__new__(Tensor)
    y.value = (rule.of_scalars if value.__class__ is _FLOAT64 else rule.fn)(*values)
    y.marks = None
    active = state()
    tape = active.sole or active.follower((x,))
    if tape:
        marks = x.marks
        node: Any = (marks and marks.get(tape.key)) or tape.mark_of(x)
        if node is not None:
            record_of_one(tape, rule, i, node, values, y, True)
    elif tape is None and active.recorders:
        _tell_elementwise(active, rule, inputs, values, y)
    return y


def call_binary(rule: Elementwise, x1: Any, x2: Any) -> Tensor:
    traced1, traced2 = isinstance(x1, Traced), isinstance(x2, Traced)
    if not (traced1 and traced2) and (x2 if traced1 else x1).__class__ not in _PLAIN:
        x1, x2 = _operand(x1, rule.fn), _operand(x2, rule.fn)
        traced1, traced2 = isinstance(x1, Traced), isinstance(x2, Traced)
    values = (x1.value if traced1 else x1, x2.value if traced2 else x2)
    if values[not traced1].nbytes >= SMALLEST:
        return _call_large(rule, (x1, x2), values)
    scalars = values[0].__class__ is _FLOAT64 and values[1].__class__ is _FLOAT64
    y = Traced.__new__(Tensor)
    y.value = (rule.of_scalars if scalars else rule.fn)(*values)
    y.marks = None
    active = state()
    tape = active.sole or active.follower((x1, x2))
    if tape:
        node1 = node2 = None
        if traced1:
            marks = x1.marks
            node1 = (marks and marks.get(tape.key)) or _asked(tape, x1)
        if traced2:
            marks = x2.marks
            node2 = (marks and marks.get(tape.key)) or _asked(tape, x2)
        if node1 is not None and node2 is not None:
            record_of_two(tape, rule, (node1, node2), values, y)
        elif node1 is not None:
            record_of_one(tape, rule, 0, node1, values, y, False)
        elif node2 is not None:
            record_of_one(tape, rule, 1, node2, values, y, False)
        elif holds_objects(y.value):
            refuse_tensors_in(values, tape)
    elif active.recorders and (tape is None or holds_objects(y.value)):
        _tell_elementwise(active, rule, (x1, x2), values, y)
    return y


def _asked(tape: Any, x: Traced) -> Any:
    """The node of a value without a mark, which a private tape has on all of its."""
    return None if tape.private else tape.mark_of(x)


def _call_large(rule: Elementwise, inputs: Sequence[Any], values: Any) -> Tensor:
    """Put a large result into reused memory, which matters more than the path here."""
    y = wrap(computed(rule.fn, *values))
    tape = state().follower(inputs)
    if not tape:
        if state().recorders:
            tell(rule, inputs, inputs, values, y)
        return y
    nodes: list[Any] = [
        tape.mark_of(x) if isinstance(x, Traced) else None for x in inputs
    ]
    followed = [i for i, node in enumerate(nodes) if node is not None]
    if len(followed) == 1:
        i = followed[0]
        record_of_one(tape, rule, i, nodes[i], values, y, False)
        node: Any = tape.mark_of(y)
        node.saved, node.pull = _large(node.saved, node.pull)
    elif followed:
        tape.record(rule, inputs, values, y.value, y)
    return y


def _large(saved: Any, pull: Any) -> tuple[Any, Any]:
    """What a node of a large operation saves and pulls, in reused memory."""
    if type(saved) is np.ndarray:
        return REUSABLE, LargePull(pull, saved)
    if saved.__class__ is float:
        p = pull(saved)
        return NOTHING, lambda dy: computed(np.multiply, dy, p)
    return saved, pull


_FLOAT64 = np.float64
SCALARS = {float, np.float64}  # that Python's own operators compute alike
_PLAIN = (float, int, np.ndarray, np.float64)


def _operand(x: Any, fn: Any) -> Any:
    """What stands beside a tensor, as a rule can read it: no lists, no subclasses."""
    if isinstance(x, (list, tuple)):
        return joined(x)
    if isinstance(x, Rational) and not isinstance(x, (int, np.generic)):
        return float(x)
    if computes_differently(type(x)):
        return answer_of(x, "", fn)  # raises
    return read(x, fn)


def _tell_elementwise(
    active: State, rule: Elementwise, inputs: Any, values: Any, y: Tensor
) -> None:
    """`tell` for one or two inputs: of nested gradients in half of the time.

    What a rule saves nothing of is recorded as if it were plain.
    """
    now = active if active.__class__ is State else active.now()
    tapes = now.each
    if not tapes or y.value.dtype.kind != "f":
        tell(rule, inputs, inputs, values, y)
        return
    x1, x2 = inputs[0], inputs[-1]
    marks1 = x1.marks if isinstance(x1, Traced) else None
    marks2 = x2.marks if len(inputs) > 1 and isinstance(x2, Traced) else None
    saved: Any = None
    for tape in tapes:
        node1 = marks1.get(tape.key) if marks1 else None
        node2 = marks2.get(tape.key) if marks2 else None
        if tape.leaves:
            marked = [
                tape.mark_of(x) if isinstance(x, Traced) else None for x in inputs
            ]
            node1, node2 = (*marked, None)[:2]
        if node1 is None and node2 is None:
            continue
        i = 0 if node2 is None else 1
        one: Any = node2 if i else node1
        both = node1 is not None and node2 is not None
        if saved is not None and (both or rule.wants[i]):
            saved = saved or frozen(inputs)
            if both or not isinstance(tape, Tape):
                tape.record(rule, inputs, saved, y, y)
            else:
                record_lifted(tape, rule, i, one, saved, y)
            continue
        if both:
            tape.record_two(rule, (node1, node2), values, y)
        else:
            tape.record_one(rule, i, one, values, y, False)
        saved = saved or ()  # of the next one's; this one's are plain


def tell(rule: Rule, inputs: Sequence[Any], call: Any, plain: Any, y: Any) -> None:
    """Tell every recorder of an operation.

    A recorder whose rules' computation nobody else can look at saves plain arrays.
    """
    recorders = state().recorders
    recorder = recorders[0]
    if len(recorders) > 1:
        saved = seen = None
        for recorder in recorders:
            if recorder.private and not seen:
                seen = recorder.record(rule, inputs, plain, unwrap(y), y)
                continue
            saved = frozen(call) if saved is None else saved
            seen = recorder.record(rule, inputs, saved, y, y) or seen
            seen = seen or not recorder.private
    elif not recorder.lifts:
        recorder.record(rule, inputs, plain, unwrap(y), y)
    elif isinstance(y, Traced):
        kept = Kept(y)
        recorder.record(rule, inputs, frozen(call), kept, y)
        if y.marks:
            kept.key, kept.node = recorder.key, ref(y.marks[recorder.key])
    else:
        recorder.record(rule, inputs, frozen(call), y, y)
