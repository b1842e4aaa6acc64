"""Every operation at the ends of the floating range: formulas, points, promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
from flint import arb

import gradsmith.numpy as gnp
from gradsmith import ops
from gradsmith.tools.audit.formats import FORMATS, Format
from tests.ops.truth import EXPONENTS, INF, NAN

BEYOND = arb(2) ** EXPONENTS[0]
NOT_64 = ("float16", "bfloat16", "float32")
WEIGHTS = (1.0, 0.5, -0.25)  # of the elements of a row, upstream


@dataclass(frozen=True, eq=False)
class Case:
    """An operation `fn` of arrays, and its formula `true` of balls.

    `points` are given a format. `slopes` are its derivatives, where a difference of the
    formula is not it; `declared` gives results at points of its own, as (value, slopes)
    of which None is as the formula says. `terms` are (of the value, of the slopes) the
    largest in a sum whose terms may cancel: errors are in units of theirs. A case of
    rows has vectors as points, and a formula that returns a list of values or one.
    """

    name: str
    fn: Callable[..., Any]
    true: Callable[..., Any]
    points: Callable[[Format], list[tuple[float, ...]]]
    slopes: Callable[..., Any] | None = None
    declared: Callable[..., Any] = lambda *xs: None
    terms: Callable[..., Any] | None = None
    rows: bool = False
    promise: dict[str, float] = field(default_factory=dict)  # by dtype; else 4 ULP
    floor: float = 1.0  # so many smallest normal numbers may be flushed to 0
    flushes: bool = False  # numbers below the normal ones to 0, in every framework
    dtypes: tuple[str, ...] = tuple(FORMATS)

    def __str__(self) -> str:
        return self.name


# Points

SIZES = [
    0.0, 1e-3, 0.3, 0.5, 0.69, 0.7, 0.7517916, 1.0, 1.1, 1.27846, 1.2784645, 1.5, 2.0,
    3.0, 5.5, 8.0, 10.0, 11.09, 12.9, 13.2, 13.4, 14.3, 17.0, 20.0, 26.5, 37.5, 38.4,
    40.0, 64.0, 87.3, 88.0, 88.7, 88.8, 91.0, 92.5, 103.0, 103.9, 104.2, 150.0, 512.0,
    708.0, 709.0, 709.7, 710.0, 713.0, 745.0, 746.0, 1e3, 1e4, 65504.0, 1e19, 1e30,
    1e38, 1e154, 1e300,
]  # fmt: skip


def numbers(form: Format, sizes: Any = SIZES) -> list[float]:
    """Sizes as the format has them, with its own ends, infinity and NaN."""
    normal = form.smallest_normal
    least = normal * 2.0 ** (1 - form.digits)
    largest = float(form.numbers(form.largest_code))
    own = [least, normal - least, normal, 2.0**-form.digits, 2.0 ** (2 - form.digits)]
    own += [largest**0.5, largest / 2, largest]
    with np.errstate(over="ignore"):
        sized = [float(form.rounded(x)) for x in [*sizes, *own]]
    found = {*sized, INF}
    return [*sorted(found), *sorted(-x for x in found), NAN]


def each(form: Format) -> list[tuple[float, ...]]:
    return [(x,) for x in numbers(form)]


FEW = [0.0, 0.3, 1.0, 88.7]


def pairs(*others: float) -> Callable[[Format], list[tuple[float, ...]]]:
    """All numbers with some others; with a few of all, if none are given."""
    return lambda form: list(
        product(numbers(form, SIZES[::4]), others or numbers(form, FEW)[::2])
    )


def counted(form: Format) -> list[tuple[float, ...]]:
    """All numbers with some counts."""
    return list(product(numbers(form, SIZES[::2]), [0.0, 1.0, 17.0, 1e4, NAN]))


def triples(form: Format) -> list[tuple[float, ...]]:
    """A few of all, with a variance; not both infinite, whose quotient has no limit."""
    some = numbers(form, [0.0, 1.0, 1e4])
    variances = [0.0, form.smallest_normal, 0.3, 1.0, 1e4, INF, NAN]
    variances = [float(form.rounded(x)) for x in variances]
    found = product([*some[::2], INF, -INF, NAN], [0.0, 1.0, -INF], variances)
    return [p for p in found if p[2] != INF or abs(p[0]) != INF != abs(p[1])]


def _logits(form: Format) -> list[float]:
    largest = float(form.numbers(form.largest_code))
    least = form.smallest_normal / 2
    sizes = [0.0, 1.0, -17.0, -40.0, 88.7, -103.9, largest, -largest, least]
    return [*(float(form.rounded(x)) for x in sizes), INF, -INF, NAN]


def vectors(form: Format) -> list[tuple[float, ...]]:
    return list(combinations_with_replacement(_logits(form), 3))


def led(form: Format) -> list[tuple[float, ...]]:
    """Any number first, with a few pairs of others behind it."""
    x = _logits(form)
    others = combinations_with_replacement([x[i] for i in (0, 2, 3, 6, 7, 9, 10)], 2)
    return [(a, *b) for a, b in product(x, others)] + [
        (0.0, NAN, 0.0),
        (-INF, NAN, 0.0),
        (-INF, INF, NAN),
    ]


def apart(form: Format) -> list[tuple[float, ...]]:
    """Without two that are plus infinity, and differences that overflow."""
    most = float(form.numbers(form.largest_code))
    return [p for p in led(form) if p.count(INF) < 2 and not {most, -most} <= {*p}]


# Formulas


def exp(x: arb) -> arb:
    return x.exp() if x > -(2**20) else arb(0)


def log(x: arb) -> arb:
    """Of a stand-in for infinity another one."""
    return BEYOND if 2 * x >= BEYOND else x.log()


def sqrt(x: arb) -> arb:
    return BEYOND if 2 * x >= BEYOND else x.sqrt()


def sigmoid(x: arb) -> arb:
    return (exp(x) if x < 0 else 1) / (1 + exp(-abs(x)))


def softplus(x: arb) -> arb:
    return max(x, arb(0)) + exp(-abs(x)).log1p()


def gelu(x: arb) -> arb:
    return x * (-x / arb(2).sqrt()).erfc() / 2


def inner(x: arb) -> arb:
    return 2 * (2 / arb.pi()).sqrt() * (x + arb(0.044715) * x**3)


def gelu_tanh(x: arb) -> arb:
    return x * sigmoid(inner(x))


def log1mexp(x: arb) -> arb:
    return (-exp(-x)).log1p() if x > 0 else arb.nan()


def xlogy(x: arb, y: arb) -> arb:
    return x * log(y) if y > 0 else arb.nan()


def xlogy_slopes(x: arb, y: arb) -> Any:
    return (log(y), x / y) if y > 0 else (arb.nan(), arb.nan())


def xlogy_declared(x: float, y: float) -> Any:
    value, dx, dy = None, None, None
    if y == 0:
        value = 0.0 if x == 0 else -x * INF
        dx, dy = 0.0, 0.0
    if x == 0 and y < 0:
        value, dx, dy = 0.0, 0.0, 0.0
    if abs(x) == INF and y == 1:
        value = NAN  # 0 times infinity
    return (None if x != x else value), (dx, dy)


def at_zero(value: float | None, dx: float) -> Callable[..., Any]:
    return lambda x: (value, (dx,)) if x == 0 else None


def divide_declared(x1: float, x2: float) -> Any:
    return (0.0, (0.0, 0.0)) if x2 == 0 else None


def softmax(*xs: arb) -> list[arb]:
    top = max(xs)
    es = [exp(x - top) for x in xs]
    return [e / sum(es) for e in es]


def logsumexp(*xs: arb) -> arb:
    # Of the others than the greatest: log(1 + 0) would lose them
    top = max(xs)
    rest = list(xs)
    rest.remove(top)
    return top + sum(exp(x - top) for x in rest).log1p()


def log_softmax(*xs: arb) -> list[arb]:
    top = max(xs)
    rest = list(xs)
    rest.remove(top)
    off = sum(exp(x - top) for x in rest).log1p()
    return [(x - top) - off for x in xs]


def masked_out(value: Any, slopes: Any = (0.0,) * 3) -> Callable[..., Any]:
    """Declared results of a row that is all minus infinity."""
    return lambda *xs: (value, slopes) if all(x == -INF for x in xs) else None


def norm(*xs: arb) -> arb:
    return sum(x * x for x in xs).sqrt()


def huber(x: arb, t: arb) -> arb:
    size = abs(x - t)
    return size * size / 2 if size <= 1 else size - arb(1) / 2


def binary(weight: float, x: arb, t: arb) -> arb:
    return weight * t * softplus(-x) + (1 - t) * softplus(x)


def binary_slopes(weight: float, x: arb, t: arb) -> Any:
    dx = (1 - t) * sigmoid(x) - weight * t * sigmoid(-x)
    return dx, weight * softplus(-x) - softplus(x)


def binary_terms(weight: float, x: arb, t: arb) -> Any:
    dx = abs(1 - t) * sigmoid(x) + abs(weight * t) * sigmoid(-x)
    return 0, (dx, abs(x) + softplus(-abs(x)) if weight != 1 else 0)


def focal(gamma: float, weight: float, z: arb) -> arb:
    return arb(weight) * sigmoid(-z) ** arb(gamma) * softplus(-z)


def poisson(x: arb, t: arb) -> arb:
    return exp(x) - t * x


def poisson_slopes(x: arb, t: arb) -> Any:
    return exp(x) - t, -x


def poisson_terms(x: arb, t: arb) -> Any:
    return abs(t * x) + exp(x), (exp(x) + abs(t), 0)


def gaussian(x: arb, t: arb, v: arb) -> arb:
    v = max(v, arb(1e-6))
    return (log(v) + (x - t) ** 2 / v + log(2 * arb.pi())) / 2


def gaussian_slopes(x: arb, t: arb, v: arb) -> Any:
    held = max(v, arb(1e-6))
    dx = (x - t) / held
    return dx, -dx, ((1 / held - dx * dx) / 2 if v >= arb(1e-6) else arb(0))


def gaussian_terms(x: arb, t: arb, v: arb) -> Any:
    held = max(v, arb(1e-6))
    value = abs(log(held)) + (abs(x) + abs(t)) ** 2 / held
    return value, (0, 0, 1 / held + ((x - t) / held) ** 2)


def _none(op: Any, **options: Any) -> Any:
    return partial(op, reduction="none", **options)


UNARY = [
    Case("sigmoid", ops.sigmoid, sigmoid, each),
    Case("silu", ops.silu, lambda x: x * sigmoid(x), each),
    Case("gelu", ops.gelu, gelu, each, dtypes=NOT_64),
    Case(
        "gelu-64",
        ops.gelu,
        gelu,
        each,
        terms=lambda x: (0, (gelu(x) / x if x else 0.5,)),
        promise={"float64": 1000},
        floor=40,
        dtypes=("float64",),
    ),
    Case(
        "gelu-tanh",
        lambda x: ops.gelu(x, "tanh"),
        gelu_tanh,
        each,
        terms=lambda x: (0, (sigmoid(inner(x)),)),
        promise={"float32": 20, "float64": 400},
    ),
    Case("softplus", ops.softplus, softplus, each),
    Case("log_sigmoid", ops.log_sigmoid, lambda x: -softplus(-x), each),
    Case("log1mexp", ops.log1mexp, log1mexp, each, declared=at_zero(-INF, 0.0)),
    Case("sqrt", ops.sqrt, sqrt, each, declared=at_zero(0.0, 0.0)),
    Case(
        "safe_where",
        lambda x: ops.safe_where(x > 0, lambda x: 1 + x, x, -7.0),
        lambda x: 1 + x if x > 0 else arb(-7),
        each,
        slopes=lambda x: (arb(1) if x > 0 else arb(0),),
        declared=lambda x: (-7.0, (0.0,)) if x != x else None,
    ),
]
BINARY = [
    Case("xlogy", ops.xlogy, xlogy, pairs(), xlogy_slopes, xlogy_declared),
    Case(
        "divide",
        ops.divide,
        lambda x1, x2: x1 / x2,
        pairs(),
        slopes=lambda x1, x2: (1 / x2, -x1 / x2 / x2),
        declared=divide_declared,
    ),
    Case("huber", _none(ops.huber), huber, pairs()),
    Case(
        "binary",
        _none(ops.binary_cross_entropy_with_logits),
        partial(binary, 1),
        pairs(0.0, 0.25, 1.0),
        partial(binary_slopes, 1),
        terms=partial(binary_terms, 1),
    ),
    Case(
        "binary-weight",
        _none(ops.binary_cross_entropy_with_logits, pos_weight=3.0),
        partial(binary, 3),
        pairs(0.0, 0.25, 1.0),
        partial(binary_slopes, 3),
        terms=partial(binary_terms, 3),
        promise={"float32": 6},
        floor=3.0,
    ),
    Case(
        "poisson_nll",
        _none(ops.poisson_nll),
        poisson,
        counted,
        poisson_slopes,
        terms=poisson_terms,
    ),
    Case(
        "gaussian_nll",
        _none(ops.gaussian_nll),
        gaussian,
        triples,
        gaussian_slopes,
        terms=gaussian_terms,
    ),
]


def of_focal(gamma: float, alpha: float | None, target: float) -> Case:
    weight = 1.0 if alpha is None else alpha if target else 1 - alpha
    options = {"gamma": gamma, "alpha": alpha, "reduction": "none"}
    return Case(
        f"focal-{gamma}-{target:.0f}",
        lambda x: ops.focal(x, target, **options),
        lambda x: focal(gamma, weight, x if target else -x),
        each,
        promise={"float32": 8, "float64": 8},
    )


FOCAL = [of_focal(2.0, None, 1.0), of_focal(2.0, 0.25, 0.0), of_focal(0.5, None, 1.0)]


# Rows: the unit of a gradient is that of the largest term in its sum


def loss_of_precision(*xs: arb) -> Any:
    """What rounding x - max(x) does to its exponential."""
    spread = max(xs) - min(x for x in xs if x > max(xs) - 800)
    return 1 + spread


def softmax_slopes(*xs: arb) -> Any:
    ys = softmax(*xs)
    mean = sum(w * y for w, y in zip(WEIGHTS, ys, strict=True))
    return [y * (w - mean) for w, y in zip(WEIGHTS, ys, strict=True)]


def softmax_terms(*xs: arb) -> Any:
    ys = [y * loss_of_precision(*xs) for y in softmax(*xs)]
    return ys, ys


def log_softmax_slopes(*xs: arb) -> Any:
    ps = softmax(*xs)
    return [w - p * sum(WEIGHTS) for w, p in zip(WEIGHTS, ps, strict=True)]


def log_softmax_terms(*xs: arb) -> Any:
    k = loss_of_precision(*xs)
    return [y * k for y in log_softmax(*xs)], [1 + p for p in softmax(*xs)]


def logsumexp_terms(*xs: arb) -> Any:
    k = loss_of_precision(*xs)
    return logsumexp(*xs) * (k if abs(max(xs)) < 1 else 1), [
        p * k for p in softmax(*xs)
    ]


def cross_entropy_slopes(smoothing: float, z_loss: float, *xs: arb) -> Any:
    ps, each = softmax(*xs), arb(smoothing) / len(xs)
    others = softmax_of_others(*xs)
    z = 2 * arb(z_loss) * logsumexp(*xs) if z_loss else arb(0)
    dx = [p * z + (p - each) for p in ps]
    dx[0] = ps[0] * z - others + arb(smoothing) - each
    return dx


def softmax_of_others(*xs: arb) -> arb:
    """1 less the share of the first, which at infinity has no digits left."""
    return sum(softmax(*xs)[1:])


def cross_entropy_terms(smoothing: float, *xs: arb) -> Any:
    k = loss_of_precision(*xs)
    value = log_softmax(*xs)[0] * k
    ps = softmax(*xs)
    if smoothing:
        return 0, [1 + p for p in ps]
    return value, [(p if i else softmax_of_others(*xs)) * k for i, p in enumerate(ps)]


def cross_entropy(smoothing: float, z_loss: float, *xs: arb) -> arb:
    n = len(xs)
    q = [arb(1 - smoothing) + arb(smoothing) / n] + [arb(smoothing) / n] * (n - 1)
    return of_shares(z_loss, q, xs)


def of_shares(z_loss: float, q: Any, xs: Any) -> arb:
    logs = log_softmax(*xs)
    y = sum(-a * b for a, b in zip(q, logs, strict=True) if a != 0)
    return y + arb(z_loss) * logsumexp(*xs) ** 2 if z_loss else y


def divergence(q: Any, *xs: arb) -> arb:
    logs = log_softmax(*xs)
    return sum(a * (a.log() - b) for a, b in zip(q, logs, strict=True) if a != 0)


def _first(op: Any, **options: Any) -> Any:
    """The loss of the first class."""
    return lambda x: op(
        x, gnp.astype(gnp.zeros_like(x[..., 0]), "int32"), reduction="none", **options
    )


def _with(q: Any, op: Any) -> Any:
    def loss(x: Any) -> Any:
        shares = gnp.zeros_like(x) + gnp.asarray(q, dtype=x.dtype, like=x)
        return op(x, shares, reduction="none")

    return loss


def shares_slopes(q: Any, *xs: arb) -> Any:
    return [p - a for p, a in zip(softmax(*xs), q, strict=True)]


def shares_terms(q: Any, *xs: arb) -> Any:
    size = 1 + sum(abs(a * b) for a, b in zip(q, log_softmax(*xs), strict=True))
    return size, [1 + p for p in softmax(*xs)]


SHARES = (0.25, 0.75, 0.0)
ROWS = [
    Case(
        "softmax", ops.softmax, softmax, vectors, softmax_slopes,
        masked_out((0.0,) * 3), softmax_terms, rows=True, floor=3,
    ),
    Case(
        "log_softmax", ops.log_softmax, log_softmax, vectors, log_softmax_slopes,
        masked_out(-INF, WEIGHTS), log_softmax_terms, rows=True, floor=3,
    ),
    Case(
        "logsumexp", lambda x: ops.logsumexp(x, -1), logsumexp, vectors, softmax,
        masked_out(-INF), logsumexp_terms, rows=True, floor=3,
    ),
    Case("norm", lambda x: ops.norm(x, -1), norm, vectors, rows=True),
    Case(
        "cross_entropy", _first(ops.cross_entropy), partial(cross_entropy, 0.0, 0.0),
        led, partial(cross_entropy_slopes, 0.0, 0.0), masked_out(INF, (-1.0, 0.0, 0.0)),
        terms=partial(cross_entropy_terms, 0.0), rows=True, floor=3,
    ),
    Case(
        "cross_entropy-all",
        _first(ops.cross_entropy, label_smoothing=0.1, z_loss=1e-4),
        partial(cross_entropy, 0.1, 1e-4), led,
        partial(cross_entropy_slopes, 0.1, 1e-4),
        masked_out(INF, (0.1 - 0.1 / 3 - 1, -0.1 / 3, -0.1 / 3)),
        terms=partial(cross_entropy_terms, 0.1), rows=True, floor=3,
    ),
]  # fmt: skip
SHARED = {
    "slopes": partial(shares_slopes, SHARES),
    "declared": masked_out(INF, tuple(-q for q in SHARES)),
    "terms": partial(shares_terms, SHARES),
    "rows": True,
}
ROWS += [
    Case(
        "cross_entropy-shares", _with(SHARES, ops.cross_entropy),
        lambda *xs: of_shares(0.0, map(arb, SHARES), xs), apart, **SHARED,
    ),
    Case(
        "kl_divergence", _with(SHARES, ops.kl_divergence),
        lambda *xs: divergence([arb(q) for q in SHARES], *xs), apart, **SHARED,
    ),
]  # fmt: skip

# Values that are steps, and gradients that are not theirs


def _whole(x: arb) -> arb:
    return arb(round(float(x))) if abs(x) < 2**60 else x


def _clipped(x: arb) -> arb:
    return max(min(x, arb(2)), arb(-1))


def _within(low: float, high: float) -> Callable[..., Any]:
    return lambda x: (None, (float(low <= x <= high),))


def _through(x: float) -> Any:
    return None, (1.0,)


def _chosen(*xs: float) -> Any:
    first = xs.index(max(xs))
    slopes = (0.0 if max(xs) == -INF else None,) * len(xs)
    return tuple(float(i == first) for i in range(len(xs))), slopes


def _without_nan(form: Format) -> list[tuple[float, ...]]:
    return [xs for xs in vectors(form) if xs == tuple(x for x in xs if x == x)]


def _fast_sigmoid(x: arb) -> Any:
    return (1 / (1 + 25 * abs(x - 1)) ** 2,)


def _arctan(x: arb) -> Any:
    return (1 / (1 + (arb.pi() * (x - 1)) ** 2),)


STEPS = [
    Case("round", ops.round, _whole, each, declared=_through),
    Case("floor", ops.floor, lambda x: x.floor(), each, declared=_through),
    Case("clamp", lambda x: ops.clamp(x, -1, 2), _clipped, each, declared=_through),
    Case("sign", ops.sign, lambda x: x.sgn(), each, declared=_within(-1, 1)),
    Case(
        "quantize", lambda x: ops.quantize(x, 2, -1.0, 2.0),
        lambda x: _whole(_clipped(x) + 1) - 1, each,
        declared=_within(-1, 2), terms=lambda x: (1, (0,)),
    ),
    Case(
        "spike_fast_sigmoid", ops.spike_fast_sigmoid, lambda x: arb(int(x >= 1)), each,
        _fast_sigmoid,
    ),
    Case(
        "spike_arctan", ops.spike_arctan, lambda x: arb(int(x >= 1)), each, _arctan,
        flushes=True,
    ),
    Case(
        "one_hot_argmax", ops.one_hot_argmax, softmax, _without_nan, softmax_slopes,
        _chosen, softmax_terms, rows=True, floor=3,
    ),
]  # fmt: skip
CASES = [*UNARY, *BINARY, *FOCAL, *ROWS, *STEPS]
