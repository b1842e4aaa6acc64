"""`python_op`: a body in NumPy, SciPy or C, with its NumPy gradient, in any framework.

On NumPy arrays it is an operation like others. In a framework body and rules become
functions that the framework calls back, also from compiled code.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from types import CodeType
from typing import Any, overload

import numpy as np

from ..core import trees
from ..core.arrays import framework_of, same_shape
from ..core.cotangent import Spec, cast, spec_of
from ..core.errors import GradientContractError, GradsmithError, type_of
from ..core.specs import AnySpec
from ..core.symbolic import is_symbolic
from ..core.tensor import readonly, unwrap
from .application import OutputSpecs, run_body
from .callbacks import array_spec, call_back, differentiable, has_tangent
from .contract.causes import written
from .engine_rule import gradients_of, tangents_of
from .operation import F, Operation, P, R_co
from .parameters import Bound, Signature
from .spec import as_dtype
from .trial import Trials, specs_by_trial, try_rule


@overload
def python_op(
    fn: None = None,
    grad: Callable[..., Any] | None = None,
    *,
    jvp: Callable[..., Any] | None = None,
    spec: Any = None,
    dtype: Any = None,
    surrogate: str | None = None,
    linear: bool = True,
) -> Callable[[Callable[P, R_co]], PythonOperation[P, R_co]]: ...
@overload
def python_op(
    fn: Callable[P, R_co],
    grad: Callable[..., Any] | None = None,
    *,
    jvp: Callable[..., Any] | None = None,
    spec: Any = None,
    dtype: Any = None,
    surrogate: str | None = None,
    linear: bool = True,
) -> PythonOperation[P, R_co]: ...
def python_op(
    fn: Callable[..., Any] | None = None,
    grad: Callable[..., Any] | None = None,
    *,
    jvp: Callable[..., Any] | None = None,
    spec: Any = None,
    dtype: Any = None,
    surrogate: str | None = None,
    linear: bool = True,
) -> Any:
    """Make an operation of a function that computes with NumPy, SciPy or C.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> @gs.python_op
    ... def interpolate(x, table):
    ...     return np.interp(x, np.arange(len(table)), table)
    >>> @interpolate.vjp
    ... def _(dy, y, x, table):
    ...     i = np.clip(np.floor(x).astype(int), 0, len(table) - 2)
    ...     return dy * (table[i + 1] - table[i]), None
    >>> table = np.array([0.0, 1.0, 4.0])
    >>> float(gs.grad(lambda x: interpolate(x, table))(1.5))
    3.0

    Give the rules as `@op.vjp` and `@op.jvp`, as `grad=` and `jvp=`, or with the body:
    it may return its gradient function (`return y, grad`), or be an operation already
    (`gs.custom_gradient` or `gs.operation`). Rules receive NumPy arrays, too, whatever
    framework calls the operation: TensorFlow in `tf.function`, JAX under `jit` and
    `vmap`, PyTorch under `torch.compile`.

    A compiler must know the shapes and dtypes of the outputs. A trial run on made-up
    values finds them (a few, if the size of an axis is open). Or give `spec`: specs
    (`gs.spec(shape, dtype)`) structured like the outputs, or a function that makes them
    from the arguments, in which the arrays are specs too.

    For code that only handles doubles, pass `dtype="float64"`. Body and rules then
    receive floating arrays, upstream gradients and tangents in this dtype (complex ones
    in the complex dtype of the same precision), and integers and bools unchanged.
    Floating outputs have the dtype that NumPy promotes the floating arguments to
    (`np.result_type`), real or complex as the body made them, even if `spec` says
    another precision; without floating arguments they are unchanged. NumPy scalars
    count as NumPy arrays; in frameworks they are static, like Python numbers. Gradients
    have the dtype of their argument.

    Raises
    ------
    GradsmithError
        If dtype is not a floating one, or spec gives something other than specs.
    GradientContractError
        If the body returns something that is not an array of numbers, or other
        outputs than spec says, or a rule breaks the contract.
    """
    dtype = None if dtype is None else _floating(dtype)
    if fn is None:
        return lambda fn: python_op(
            fn,
            grad,
            jvp=jvp,
            spec=spec,
            dtype=dtype,
            surrogate=surrogate,
            linear=linear,
        )
    closure, rules, examples = _returns_function(fn), (grad, jvp), ()
    if isinstance(fn, Operation):
        closure, rules = fn.closure, (grad or fn.vjp_rule, jvp or fn.jvp_rule)
        surrogate, linear = surrogate or fn.surrogate, linear and fn.linear
        fn, examples = fn.fn, fn.examples
    result = PythonOperation(fn, closure=closure, surrogate=surrogate, linear=linear)
    result.spec, result.dtype, result.examples = spec, dtype, examples
    for give, rule in zip((result.vjp, result.jvp), rules, strict=True):
        if rule is not None:
            give(rule)
    return result


def _returns_function(fn: Any) -> bool:
    """Whether a body returns a function of its own last: `return y, grad`.

    >>> _returns_function(lambda x: (x * 2, lambda dy: dy * 2))
    True
    >>> _returns_function(lambda x: (x, x))
    False
    """
    code = getattr(fn, "__code__", None)
    if code is None:  # a C function
        return False
    inner = {c.co_name for c in code.co_consts if isinstance(c, CodeType)}
    steps = [i for i in dis.get_instructions(code) if i.opname != "CACHE"]
    for last, built, end in zip(steps, steps[1:], steps[2:], strict=False):
        if (built.opname, end.opname) == ("BUILD_TUPLE", "RETURN_VALUE"):
            made = last.opname in ("MAKE_FUNCTION", "SET_FUNCTION_ATTRIBUTE")
            name = last.argval[-1] if isinstance(last.argval, tuple) else last.argval
            if made or (isinstance(name, str) and name in inner):
                return True
    return False


class PythonOperation(Operation[P, R_co]):
    """An operation whose body and rules run on NumPy arrays in every framework."""

    spec: Any = None
    dtype: np.dtype[Any] | None = None  # what body and rules compute in; None: any

    def __init__(self, fn: Callable[..., Any], **declared: Any) -> None:
        super().__init__(fn, **declared)
        self._callbacks = Callbacks(self, self.signature)
        # The operation that a framework sees: callbacks, in rule form.
        body = wraps(fn)(lambda *args, **kwargs: self._callbacks.body(*args, **kwargs))
        options: dict[str, Any] = {**declared, "closure": False}
        self.callback = Operation(body, **options)
        self.callback.hosted, self.callback.original = True, self
        if self.closure:
            self._give_rules()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        bound = self.signature.bind(args, kwargs)
        traced = any(map(is_symbolic, bound.leaves))
        if not traced and all(framework_of(x) == "numpy" for x in bound.leaves):
            if self.dtype is None:
                return super().__call__(*args, **kwargs)
            return self._call_converted(bound, self.dtype)
        return self.callback(*args, **kwargs)

    def _call_converted(self, bound: Bound, dtype: np.dtype[Any]) -> Any:
        back = promoted([*bound.leaves, *_scalars(bound)])
        bound = _with_scalars(bound, dtype)
        bound = bound.with_leaves([_converted(x, dtype) for x in bound.leaves])
        call: Any = super().__call__
        args, kwargs = bound.given_arguments()
        # The engine follows the conversions, and with them those of the derivatives.
        ys = call(*args, **kwargs)
        return trees.map(lambda y: _converted(_number(y), back), ys)

    def vjp(self, rule: F) -> F:
        """Give the gradient, of NumPy arrays: `rule(dy, y, *arguments)`."""
        self._give_rules()
        return super().vjp(rule)

    def jvp(self, rule: F) -> F:
        """Give the tangent, of NumPy arrays: `rule(dx, y, *arguments)`."""
        self._give_rules()
        return super().jvp(rule)

    def _give_rules(self) -> None:
        """Both follow from one."""
        self.callback.vjp(self._callbacks.vjp)
        self.callback.jvp(self._callbacks.jvp)


# Body and rules, as a framework calls them back


class Callbacks:
    """Body, vjp and jvp of an operation in terms of callbacks."""

    def __init__(self, operation: Any, signature: Signature) -> None:
        self.operation = operation
        self.signature = signature
        self.trials = Trials()

    def body(self, *args: Any, **kwargs: Any) -> Any:
        call, xs = self._bound(args, kwargs)
        return call.run(xs)

    def vjp(self, dy: Any, y: Any, *args: Any, needs: Any, **kwargs: Any) -> Any:
        call, xs = self._bound(args, kwargs)
        return call.gradients(dy, y, xs, needs)

    def jvp(self, dx: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
        call, xs = self._bound(args, kwargs)
        return call.tangents(dx, y, xs)

    def _bound(self, args: Any, kwargs: Any) -> tuple[_SpecCall, Sequence[Any]]:
        # A rule is told the defaults too, which not every body takes (a ufunc's)
        bound = self.signature.bind(args, kwargs).without_defaults()
        bound = _with_scalars(bound, self.operation.dtype)
        specs = [array_spec(x) for x in bound.leaves]
        call = _SpecCall(self.operation, bound.with_leaves(specs), specs, self.trials)
        return call, bound.leaves


class _SpecCall:
    """One call in a framework, with specs in place of its arrays.

    What is called back are functions of flat arrays: those of the arguments, for rules
    after the cotangents or tangents and the outputs. A compiled graph keeps them, and
    with them this, but none of the arrays.
    """

    def __init__(
        self, operation: Any, bound: Bound, specs: list[Spec], trials: Trials
    ) -> None:
        self.operation = operation
        self.bound = bound
        self.specs = specs
        self.trials = trials
        self.name = f"operation {operation.name!r}"
        self.outputs: Any = None  # a tree of the specs, once it is known

    def run(self, xs: Sequence[Any]) -> Any:
        def flat(*xs: Any) -> list[Any]:
            ys = self._ran(xs)
            found = trees.map(spec_of, ys)
            if self.outputs is None:  # run at once: nobody asked before
                self.outputs = found
            _require_specs(self.name, trees.leaves(self.outputs), trees.leaves(found))
            return trees.leaves(ys)

        ys = call_back(flat, xs, self._output_specs, self.operation.name)
        return trees.unflatten(self.outputs, ys)

    def gradients(
        self, dy: Any, y: Any, xs: Sequence[Any], needs: dict[str, bool]
    ) -> dict[str, Any]:
        outputs = _described_outputs(y)
        wanted = [*self._wanted(needs)]

        def flat(*arrays: Any) -> list[Any]:
            dys, y, bound = self._taken_apart(arrays, len(outputs.flat), outputs)
            made = _described_outputs(y)  # in a graph the sizes may be other ones now
            dxs = gradients_of(self.operation, bound, made, y, dys, wanted)
            xs = arrays[len(arrays) - len(self.specs) :]
            pairs = zip(dxs, wanted, strict=True)
            return [cast(dx, xs[i].dtype) for dx, i in pairs]

        def specs(arrays: Sequence[Any]) -> list[Spec]:
            if self.operation.spec is None:
                # A broken contract is seen before anything is compiled.
                run = lambda: try_rule(flat, [array_spec(x) for x in arrays])
                self.trials.once(tuple(wanted), self.bound, run, self.name)
            return [self.specs[i] for i in wanted]

        rule = self._differentiable(flat, "the gradient", specs)
        dys = [d for d in trees.leaves(dy) if d is not None]
        found = rule(*dys, *trees.leaves(y), *xs)
        by_place = dict(zip(wanted, found, strict=True))
        flat_gradients = [by_place.get(i) for i in range(len(self.specs))]
        return dict(self._by_argument(flat_gradients))

    def tangents(self, dx: Any, y: Any, xs: Sequence[Any]) -> Any:
        outputs = _described_outputs(y)
        dxs = [d for d in trees.leaves(dx) if d is not None]
        moved = [i for i, spec in enumerate(self.specs) if has_tangent(spec)]
        if len(dxs) == len(self.specs):
            dxs = [dxs[i] for i in moved]

        def flat(*arrays: Any) -> list[Any]:
            given, y, bound = self._taken_apart(arrays, len(moved), outputs)
            by_place = dict(zip(moved, given, strict=True))
            dxs = [by_place.get(i) for i in range(len(self.specs))]
            made = _described_outputs(y)
            dys = tangents_of(self.operation, bound, made, y, dxs)
            ys = arrays[len(moved) : len(arrays) - len(self.specs)]
            pairs = zip(dys, filter(has_tangent, ys), strict=True)
            return [cast(dy, y.dtype) for dy, y in pairs]

        rule = self._differentiable(flat, "the tangent", lambda arrays: outputs.flat)
        found = rule(*dxs, *trees.leaves(y), *xs)
        return outputs.structured(found)

    def _differentiable(self, flat: Any, what: str, find: Any) -> Any:
        name, trials = f"{what} of {self.name}", self.operation.spec is None
        return differentiable(flat, name, find, trials=trials)

    # Between flat arrays and the call

    def _ran(self, xs: Sequence[Any]) -> Any:
        """The outputs of the body, each an array."""
        given = [_converted(x, self.operation.dtype) for x in xs]
        outputs, _ = run_body(self.operation, self.bound.with_leaves(given))
        back = self._back(xs)
        return trees.map(lambda y: _converted(_as_array(self.name, y), back), outputs)

    def _back(self, arrays: Sequence[Any]) -> Any:
        """The dtype that outputs are converted to."""
        return None if self.operation.dtype is None else promoted(arrays)

    def _taken_apart(
        self, arrays: Sequence[Any], count: int, outputs: OutputSpecs
    ) -> tuple[Sequence[Any], Any, Bound]:
        """The cotangents or tangents, the outputs, and the call."""
        arrays = [_converted(x, self.operation.dtype) for x in arrays]
        start = len(arrays) - len(self.specs)
        y = trees.unflatten(outputs.tree, [*arrays[count:start]])
        return arrays[:count], y, self.bound.with_leaves(arrays[start:])

    def _wanted(self, needs: dict[str, bool]) -> Iterator[int]:
        """The positions of the arrays whose gradients will be used."""
        place = 0
        for name, value in self.bound.arguments():
            for leaf in trees.leaves(value):
                if isinstance(leaf, AnySpec):
                    if needs.get(name) and has_tangent(leaf):
                        yield place
                    place += 1

    def _by_argument(self, gradients: list[Any]) -> Iterator[tuple[str, Any]]:
        """Each argument that has arrays, with its gradients in the same structure."""
        structured = self.bound.with_leaves(gradients)
        pairs = zip(self.bound.arguments(), structured.arguments(), strict=True)
        for (name, value), (_, gradient) in pairs:
            if any(isinstance(leaf, AnySpec) for leaf in trees.leaves(value)):
                yield name, gradient

    # What a compiler must know before anything is run

    def _output_specs(self) -> list[Spec]:
        if self.outputs is None:
            self.outputs = self._told() or self._inferred()
        return trees.leaves(self.outputs)

    def _told(self) -> Any:
        spec = self.operation.spec
        if callable(spec):
            args, kwargs = self.bound.arguments_for(spec, before=0)
            spec = spec(*args, **kwargs)
        if spec is None:
            return None
        back = self._back(self.specs)
        return trees.map(lambda told: _converted_spec(_told_spec(told), back), spec)

    def _inferred(self) -> Any:
        def run() -> Any:
            return specs_by_trial(self._ran, self.specs, self.name)

        return self.trials.once("outputs", self.bound, run, self.name)


def _described_outputs(y: Any) -> OutputSpecs:
    specs = trees.map(array_spec, y)
    tree = trees.map(lambda spec: spec if has_tangent(spec) else None, specs)
    return OutputSpecs(tree, [s for s in trees.leaves(tree) if s is not None])


def _as_array(name: str, y: Any) -> Any:
    array = y if hasattr(y, "dtype") else np.asarray(unwrap(y))
    if array.dtype.kind not in "biufcV":
        raise GradientContractError(
            f"{name} returned something that is not an array of numbers\n"
            f"  expected: arrays, or trees of them\n  got: {type_of(y)}\n"
            "  likely cause: frameworks pass on nothing else; omit it"
        )
    return array


def _told_spec(spec: Any) -> Spec:
    if hasattr(spec, "shape") and hasattr(spec, "dtype"):
        shape: Any = None if spec.shape is None else tuple(spec.shape)
        return Spec(shape, np.dtype(spec.dtype))
    raise GradsmithError(
        f"spec= must give gs.spec(shape, dtype) for each output, not {spec!r}"
    )


def _known_sizes(shape: Any) -> Any:
    """A shape with symbols left open: what they are in this call, the graph knows."""
    return shape and tuple(n if isinstance(n, int) else None for n in shape)


def _require_specs(name: str, told: Sequence[Spec], got: Sequence[Spec]) -> None:
    pairs = zip(told, got, strict=False)
    if len(told) == len(got) and all(
        same_shape(_known_sizes(t.shape), g.shape) and t.dtype == g.dtype
        for t, g in pairs
    ):
        return
    raise GradientContractError(
        f"{name} returned other outputs than expected\n"
        f"  expected: {'; '.join(map(written, told))}\n"
        f"  got: {'; '.join(map(written, got))}\n"
        "  likely cause: spec= is wrong, or shapes or dtypes depend on the values"
    )


# The dtype that body and rules compute in


def _floating(dtype: Any) -> np.dtype[Any]:
    try:
        found = as_dtype(dtype)
    except TypeError:
        found = None
    if found is None or found.kind != "f":
        raise GradsmithError(
            f"dtype={dtype!r} is no floating dtype of NumPy\n"
            "  what to do: give the one that the code computes in, such as "
            "dtype='float64'; complex arrays are converted to its precision too"
        )
    return found


def promoted(arrays: Sequence[Any]) -> Any:
    """The dtype that NumPy promotes those of floating arrays to; None without any.

    >>> promoted([np.float16(1), np.ones(2, "float32"), np.arange(3)])
    dtype('float32')
    """
    dtypes = [x.dtype for x in arrays if has_tangent(x)]
    return np.result_type(*dtypes) if dtypes else None


def _precise(kind: str, dtype: Any) -> Any:
    """The dtype of this precision for complex (`c`) or real numbers.

    >>> _precise("c", np.dtype("float64")), _precise("f", np.dtype("complex64"))
    (dtype('complex128'), dtype('float32'))
    """
    if kind == "c":
        return np.result_type(dtype, np.complex64)
    return np.zeros((), dtype).real.dtype


def _converted(x: Any, dtype: Any) -> Any:
    """An array in the precision of a dtype; as it is if it has no floating numbers."""
    if dtype is None or not hasattr(x, "dtype") or not has_tangent(x):
        return x
    wanted = _precise(x.dtype.kind, dtype)
    return x if x.dtype == wanted else readonly(x.astype(wanted))


def _scalars(bound: Bound) -> list[Any]:
    """The floating scalars of NumPy in a call, which are no arrays."""
    values = bound.values[bound.signature.static :]
    return [x for x in trees.leaves(values) if isinstance(x, np.inexact)]


def _with_scalars(bound: Bound, dtype: Any) -> Bound:
    """The same call with NumPy's scalars in the precision of a dtype."""
    if dtype is None or not _scalars(bound):
        return bound
    values, static = bound.values.copy(), bound.signature.static
    values[static:] = trees.map(
        lambda x: _converted(x, dtype) if isinstance(x, np.inexact) else x,
        values[static:],
    )
    return bound.with_values(values)


def _converted_spec(spec: Spec, dtype: Any) -> Spec:
    if dtype is None or not has_tangent(spec):
        return spec
    return Spec(spec.shape, _precise(spec.dtype.kind, dtype))


def _number(y: Any) -> Any:
    """A Python number as an array."""
    return np.asarray(y) if type(y) in (float, complex) else y
