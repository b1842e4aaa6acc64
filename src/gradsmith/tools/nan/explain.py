"""Why an operation made NaN or inf, in words, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...frameworks._observe import SUM
from .origins import Step
from .values import KINDS

# By the operation's name, in any framework: what goes wrong, and the repair.
_CAUSES = {
    r"x?log(2|10|1p|_ndtr)?|xlogy": (
        "a logarithm is -inf at the edge of its domain and NaN beyond, and its "
        "derivative grows without bound there",
        "keep its argument away from that edge, or use a stable form (log_softmax, "
        "logsumexp, log_sigmoid, xlogy)",
    ),
    r"r?sqrt|cbrt|.*norm|hypot": (
        "a root is NaN below 0, and its derivative is infinite at 0",
        "keep 0 and less out of the root, or add a small number to its argument",
    ),
    r"exp(2|m1)?|cosh|sinh": (
        "an exponential overflows: float32 holds up to exp(88.7), float64 up to "
        "exp(709.7), float16 up to exp(11.09)",
        "subtract the largest exponent first, or use a stable form (softmax, "
        "logsumexp, sigmoid, softplus)",
    ),
    r"(true_|real|floor_?)?div(ide|nonan)?|reciprocal|remainder|fmod|mod": (
        "a quotient and its derivative are not finite where the divisor is 0",
        "keep the divisor away from 0",
    ),
    r"(float_|integer_)?pow(er)?": (
        "a power of 0 with a negative exponent is infinite, that of a negative number "
        "is real for whole exponents alone, and the derivative by the exponent is a "
        "logarithm of the base",
        "keep the base away from 0 and less",
    ),
    r"a(rc)?(sin|cos|tanh|cosh)|erfinv|logit": (
        "it is NaN outside its domain, and its derivative is infinite at the edge",
        "clip its argument to the inside of its domain",
    ),
}
_GROWS = re.compile(
    "mul(tiply)?|add(v|mm)?|sub(tract)?|square|(cum|reduce_)?sum|(cum|reduce_)?prod|mean"
    "|.*matmul|b?mm|dot(_general)?|einsum|tensordot|.*norm|addn|batchmatmulv"
)


def explained(origin: Step, chain: Sequence[Step], where: str) -> tuple[str, str]:
    """Why, and what to do; `where` is how the framework calls `where`."""
    if origin.phase in ("argument", "constant"):
        return _given(origin)
    before = chain[: chain.index(origin)]
    given = bool(before) and before[0].phase in ("argument", "constant")
    cause, repair = _of_inf(origin) if given else _cause(origin)
    if origin.masked:
        return _masked(origin, where)
    parts = []
    if origin.phase == "backward" and origin.zero_upstream and origin.kind == "nan":
        parts.append(
            "the gradient that comes in is 0 there, the derivative is not finite, and "
            "0 * inf is NaN"
        )
    if cause:
        parts.append(cause)
    parts += [_before(step) for step in before[:1]]
    after = _after(origin, chain)
    if after is not None:
        parts.append(f"it becomes NaN in {_described(after)}")
        zero = any(x == 0 for value in after.inputs for x in value.elements)
        if zero and origin.phase == "forward":
            parts.append("a product with 0 does not take it away")
            repair = f"choose with {where} in place of the product, and {_safe(where)}"
    return "; ".join(parts), repair


def _given(origin: Step) -> tuple[str, str]:
    if origin.phase == "argument":
        return "the function was called with it", "look where this argument comes from"
    return (
        "an array or a number that does not depend on the inputs holds it",
        "look where it is made",
    )


def _masked(origin: Step, where: str) -> tuple[str, str]:
    at = f" ({origin.mask})" if origin.mask is not None else ""
    chooses = re.search("where|select", origin.chooser.lower()) is not None
    chooser = where if chooses else origin.chooser
    return (
        f"a masked branch is to blame: {chooser}{at} takes the other branch there, so "
        "the gradient that comes in is 0, but the derivative of the branch that is not "
        "taken is not finite, and 0 * inf is NaN",
        _safe(where),
    )


def _safe(where: str) -> str:
    return (
        "give the masked branch a safe argument too: "
        f"safe = {where}(mask, x, 1.0), then {where}(mask, f(safe), 0.0)"
    )


def _before(step: Step) -> str:
    """What the forward pass had made, and the value survived."""
    kind = KINDS[step.kind]
    if step.phase == "argument":
        return f"the {kind} among its inputs was given: {step.inputs[0]}"
    if step.phase == "constant":
        return f"the {kind} among its inputs was a constant of {_described(step)}"
    return f"the {kind} among its inputs is from the forward pass: {_described(step)}"


def _described(step: Step) -> str:
    """An operation, where it is, and its inputs."""
    at = f" ({step.place})" if step.place is not None else ""
    given = "; ".join(str(x) for x in step.inputs if x.indices)
    return f"{step.operation}{at}" + f", of {given}" * bool(given)


def _after(origin: Step, chain: Sequence[Step]) -> Step | None:
    """Where inf became NaN, if it did."""
    if origin.kind == "nan":
        return None
    later = chain[chain.index(origin) + 1 :]
    return next((step for step in later if step.kind == "nan"), None)


def _of_inf(origin: Step) -> tuple[str, str]:
    given = [x for value in origin.inputs for x in value.elements]
    if origin.kind == "nan" and any(x - x != 0 for x in given):
        return "inf - inf, inf / inf and 0 * inf are NaN, alone or inside a sum", ""
    return "", ""


def _cause(origin: Step) -> tuple[str, str]:
    plain = origin.operation.partition(" ")[0].rpartition(".")[2].lower()
    name = plain.rstrip("_0123456789")
    for pattern, words in _CAUSES.items():
        if re.fullmatch(pattern, name) or re.fullmatch(pattern, plain):
            return words
    if origin.kind == "inf" and (origin.operation == SUM or _GROWS.fullmatch(name)):
        dtype = origin.outputs[0].dtype if origin.outputs else "its dtype"
        return (
            f"the result is larger than {dtype} can hold",
            "scale what goes in, or compute it in a wider dtype or by its logarithm",
        )
    return _of_inf(origin)
