"""What a framework is: names, arrays, and parts that say what can be done with them.

A framework is one folder and one row in `frameworks/__init__.py`. The folder has a
module (or a package, if it is long) for each part below, under the same name in every
folder; it is imported when a tool first asks for it. A part that a framework can't
offer is left out, and `Framework.cannot` says why; the tool that asks passes the words
on. What a framework does not publish is touched in one file of its folder, `private`.

A static method or a value below is what holds where a part does not say otherwise.

Everywhere `fn` is a function from a list of the framework's arrays to another, `xs` are
its arguments and `ys` its results, `dys` are cotangents of results, `dxs` gradients or
tangents of arguments.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from importlib.util import find_spec
from operator import attrgetter
from types import FunctionType, MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ..core.cotangent import Spec
from ..core.errors import GradsmithError, UnsupportedOperationError
from ..core.places import Place
from ._calculus import PLAIN, Traits

if TYPE_CHECKING:
    from ..operations.info import OperationInfo
    from ..operations.parameters import Bound
    from ._calculus import Script
    from ._intercept import Context, Target
    from ._observe import Observer, Operand
    from ._recompute import ScanPlan
    from ._recording import Recorder, Seen
    from ._transformations import Row


class Arrays(Protocol):
    """`arrays`: making arrays, reading them, and where they are computed."""

    version: str  # of the framework
    numbers_differentiable: bool = (
        False  # a Python number among outputs may have a gradient
    )

    def array(self, x: Any, dtype: str | None = None) -> Any:
        """A new array with the values of NumPy's, of one of its own, or of a number.

        `dtype` is a NumPy name, or "bfloat16". Nothing records where it came from.
        """
        ...

    def as_array(self, x: Any) -> Any:
        """Its own arrays as they are, also recorded ones; anything else converted."""
        ...

    def numpy(self, x: Any) -> np.ndarray:
        """A copy as a dense NumPy array; bfloat16 as float32."""
        ...

    def floats(self, x: Any) -> np.ndarray | None:
        """The floating numbers in an array or number; None for all that has none.

        Not copied where that can be avoided: for reading at once. Of a gradient that
        is spread over some rows only these rows, where the framework keeps them apart.
        """
        ...

    @staticmethod
    def spec(x: Any) -> Spec:
        """What the contract knows of an array: shape and dtype, also of a traced one.

        The shape is None where it is open, or has None for an open axis. A dtype is
        NumPy's, or an object with the `kind` that the contract is to take it for.
        """
        return Spec(tuple(x.shape), x.dtype)

    @staticmethod
    def dtype_name(x: Any) -> str:
        """The NumPy name of the dtype of an array, or "bfloat16"."""
        return str(x.dtype)

    @staticmethod
    def precision(dtype: str) -> AbstractContextManager[Any]:
        """The context in which arrays of a dtype exist: JAX's 64 bits are an option."""
        return nullcontext()

    @staticmethod
    def single_threaded() -> AbstractContextManager[Any]:
        """The context in which small arrays are computed without waiting for threads.

        Nothing changes where threads cost nothing.
        """
        return nullcontext()

    def stack(self, arrays: Sequence[Any]) -> Any:
        """Arrays of one shape along a new first axis."""
        ...

    # By name, functions that give the same values in another layout in memory. Empty
    # where a user can't choose one.
    LAYOUTS: Mapping[str, Callable[[Any], Any]] = MappingProxyType({})

    @staticmethod
    def repeated(x: Any) -> Any:
        """The first element of x everywhere, with strides of 0 where there are any.

        Where there are no layouts, x.
        """
        return x


class Calculus(Protocol):
    """`calculus`: values and derivatives of functions of lists of arrays.

    A gradient of a complex argument is dL/dRe + i dL/dIm, in every framework: L changes
    by Re<conj(gradient), dx>.

    `nested` says where a call stands. Without it, it stands on its own: `xs` are
    constants, nothing is promised to an outer recorder, and a framework may compile the
    call as a whole and keep that for the next one with an equal `fn`. With it, the call
    is part of what somebody differentiates, compiles or vectorizes: nothing is cut off
    or kept, results can be differentiated again, and a gradient is never None.
    """

    compiles: bool = (
        False  # each new shape is compiled, also where operations run one by one
    )
    REPRODUCER: Script  # how a user writes a gradient

    @staticmethod
    def value(fn: Any, xs: Sequence[Any]) -> list[Any]:
        """fn(xs), for its values alone. Never nested."""
        return fn(xs)

    def vjp(
        self, fn: Any, xs: Sequence[Any], *, nested: bool = False, eager: bool = False
    ) -> tuple[list[Any], Callable[[Sequence[Any]], list[Any]]]:
        """ys, and `pull` from dys to dxs, which may be called any number of times.

        Where y does not depend on x, `pull` gives None (or zeros, if the framework
        does not know); zeros if `nested`. With `eager` operations run one by one, as
        a user runs them who compiles nothing.
        """
        ...

    def jvp(
        self, fn: Any, xs: Sequence[Any], dxs: Sequence[Any], *, nested: bool = False
    ) -> tuple[list[Any], list[Any]]:
        """ys and dys; zeros where y does not depend on x."""
        ...

    def second(
        self, fn: Any, xs: Sequence[Any], dys: Sequence[Any], vs: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """The gradients of Re<conj(vs), pull(dys)>: by xs, and by dys.

        That is: the rule is differentiated. None as from `vjp`. Never nested.
        """
        ...

    @staticmethod
    def abstract(fn: Any, xs: Sequence[Any]) -> bool:
        """Run any function of xs on shapes and dtypes alone, where that is quicker.

        False, with nothing run, where a framework can't, or has no use for it.
        """
        return False

    @staticmethod
    def traits(fn: Any, xs: Sequence[Any]) -> Traits:
        """What fn is made of, as far as the framework can tell without running it."""
        return PLAIN

    @staticmethod
    def unstopped() -> AbstractContextManager[None]:
        """Within it, what users call to stop gradients lets them through.

        Where the framework can't do that, it stops them.
        """
        return nullcontext()

    @staticmethod
    def in_bounds(fn: Any, xs: Sequence[Any]) -> bool:
        """Whether no index in fn is out of bounds.

        True where the framework raises by itself, and where it can't tell.
        """
        return True


class Compiled(Protocol):
    """`compiled`: what runs compiled or vectorized, and what runs inside of that."""

    JIT: str  # how users call what compiles; "" where nothing does
    VMAP: str  # how users call what vectorizes; "" where nothing does

    def jit(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """A function of lists of arrays, compiled anew. Without JIT it raises."""
        ...

    def vmap(self, fn: Callable[..., Any], *lists: Any) -> list[Any]:
        """fn over the first axis of all arrays in the lists. Without VMAP it raises.

        It raises, too, what can't be vectorized: nothing falls back to a loop.
        """
        ...

    def loop(
        self, going: Callable[[Any], Any], step: Callable[[Any], Any], state: list[Any]
    ) -> list[Any]:
        """state = step(state) while going(state), also where values are not known.

        Under `vmap` it goes on while one goes on, and those that are done stay as they
        are. Reverse mode through it is not promised.
        """
        ...

    @staticmethod
    def scan(
        step: Callable[..., tuple[Any, Any]], state: Any, xs: list[Any], beside: Any
    ) -> Any:
        """What `state, out = step(state, *rows)` gives for each row of xs, stacked.

        Differentiable, and compiled once for all rows. NotImplemented where the steps
        are run one by one, as with none of these arrays, and those `beside`, traced.
        """
        return NotImplemented

    @staticmethod
    def unrecorded() -> AbstractContextManager[Any]:
        """The context in which nothing is recorded that nobody asks for.

        Nothing changes where recording is up to the caller. Derivatives within it work.
        """
        return nullcontext()

    @staticmethod
    def converted(
        fn: Callable[..., Any], x: Any, arrays: list[Any]
    ) -> tuple[Callable[..., Any], list[Any]]:
        """fn(x, arrays), with the arrays that it captures among `arrays`.

        Only where nothing else would differentiate by them; else both as they are.
        """
        return fn, arrays

    def columns(self, push: Callable[[Any], Any], like: Any) -> Any:
        """The matrix of a linear map of vectors like `like`."""
        ...

    def insist(self, x: Any, holds: Any, text: str, **facts: Any) -> Any:
        """x; unless `holds`, raise `text.format(**facts)` once that is known.

        Where nothing can be raised, x becomes NaN.
        """
        ...


class Natives(Protocol):
    """`natives`: the framework's own functions and custom gradients."""

    axis: str = "axis"  # how its functions call NumPy's `axis`
    # By name, the options of its functions that are not what they usually are.
    defaults: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    functions: tuple[str, ...] = ()  # attributes with functions that they are made of
    # Whether it sums a gradient that was not summed where x was broadcast.
    sums_gradients: bool = False
    # Whether a custom gradient of its own can have a rule for forward mode. Without
    # one, forward mode may follow the operations inside instead of the gradient.
    forward_rules: bool = True

    @staticmethod
    def info_of(op: Any) -> OperationInfo | None:
        """What is known of a custom gradient of its own; None for anything else.

        Also of a callable object that holds parameters: as a function of these, too.
        """
        return None

    @staticmethod
    def gradients_in(
        info: OperationInfo, args: Any, kwargs: Any, returned: Any
    ) -> Iterable[tuple[str, Any]]:
        """Each gradient in what a rule returned, by the name of its argument.

        Raises `_natives.StructureError` if there are too many or too few.
        """
        return ()


class Calls(Protocol):
    """`call`: operations of ours as operations of the framework.

    Loading it may enter a faster way for the usual call in `core.arrays.QUICK`. Where
    kernels may be refused, `refusal(plan)` says why they are, or nothing. If it has
    `GRADIENTS_AHEAD`, kernels of its forward pass may make gradients.
    """

    def call(self, operation: Any, bound: Bound) -> Any:
        """Run an operation, so that the framework differentiates it by its rule.

        `bound` has at least one array of the framework. The result is what the body
        returned. It is differentiated by the rule in each mode, order and
        transformation of the framework, or an error says why not; the body alone is
        never differentiated in its place. In rules the gradient of a complex number is
        the direction of steepest ascent; where the framework's is the conjugate of it,
        both are converted. The contract is checked when a rule runs, under a compiler
        when it is traced. Arrays that the body captures keep their own gradient.
        """
        ...

    def host(
        self,
        fn: Callable[..., Sequence[Any]],
        arrays: Sequence[Any],
        specs: Sequence[Spec],
        name: str,
    ) -> list[Any]:
        """Run a function of NumPy arrays, also where the framework compiles.

        It is given the arrays as NumPy's, and returns one for each spec. Nothing is
        differentiated here.
        """
        ...


class Observe(Protocol):
    """`observe`: seeing every operation of a function and of its backward pass."""

    WHERE: str  # how users write `where`

    def observe(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        named: Sequence[tuple[str, Any]],
        observer: Observer,
    ) -> list[Operand] | None:
        """Run `fn(*args, **kwargs)` and its backward pass; report each operation.

        `named` are the arrays among the arguments to differentiate by, with their
        names; they are replaced by arrays that are recorded. Compiled functions, loops
        and branches are run operation by operation. The backward pass computes the
        gradient of the sum of all outputs, if the observer wants it. Lines of rules
        that users wrote are events of the backward pass; any other event in it is the
        gradient of an operation, and its place is the line of that. Where a framework
        knows an operation with a rule as one, an event encloses what is inside.

        Returns the gradients by name, also those of variables and parameters that `fn`
        reads, where the framework knows them; the array is None if there is no
        gradient. None altogether if no output depends on the arguments, and an empty
        list if the observer did not want gradients.
        """
        ...


class Kernels(Protocol):
    """`kernels`: native functions for `gradsmith.numpy`.

    `gradsmith.numpy` does what NumPy promises (promotion, options, errors); a kernel is
    given arrays of the framework, dtypes by their NumPy names, and axes from 0 up, each
    once. Where nothing else is said, it does what NumPy's function of the name does, in
    the dtype that it is given, and is differentiated by the framework. It runs under
    the framework's compilers, so it never reads values.
    """

    # NumPy's ufuncs by name: of arrays of one dtype, which NumPy's loop computes in,
    # or of an array and the number that `as_floats` left. For some that are missing
    # there are formulas.
    ELEMENTWISE: Mapping[str, Callable[..., Any]]
    # Whether comparisons of whole numbers take one of Python's as it is, as the second
    COMPARES_NUMBERS: bool
    # SciPy's functions by name, of float32 and float64. There are formulas for all; a
    # kernel returns NotImplemented where it is less precise.
    SPECIAL: Mapping[str, Callable[..., Any]]

    # Dtypes

    def kind(self, x: Any) -> str: ...  # the NumPy name of its dtype
    def operand_kind(self, x: Any) -> str | type:
        """Its kind in promotion; a Python type if it counts as a number of Python."""
        ...

    def is_float(self, x: Any) -> bool:
        """Whether it is one of its arrays, of real floating numbers."""
        ...

    def is_bool(self, x: Any) -> bool: ...  # likewise, of booleans
    def as_floats(self, name: str, x1: Any, x2: Any) -> tuple[Any, Any] | None:
        """Operands of a ufunc (or of `where`) as it takes them, without promotion.

        None unless both are arrays of one floating dtype, or one is a Python number.
        """
        ...

    def dtype_of(self, name: str) -> Any: ...  # raises TypeError if it has none
    def finfo(self, x: Any, /) -> Any: ...
    def fits(self, number: int, name: str) -> bool: ...
    def loop(self, *kinds: Any) -> tuple[str, ...]:
        """`_dtypes.loop`, and below `_dtypes.result_type`, as a compiler runs them."""
        ...

    def result_type(self, *kinds: Any) -> str: ...
    def evaluated(self, fn: Callable[..., Any], *args: Any) -> Any:
        """A function of Python values, which a compiler is not to trace."""
        ...

    # Arrays

    def adopted(self, x: Any) -> Any: ...  # an array of an object that becomes one
    def cast(self, x: Any, name: str) -> Any:
        """x in a dtype; x itself if it has it. Of complex numbers the real part."""
        ...

    def constant(self, x: Any, name: str, like: Any) -> Any:
        """An array of numbers, where `like` is; OverflowError if they don't fit."""
        ...

    def arange(self, start: Any, stop: Any, step: Any, name: str, like: Any) -> Any: ...
    def zeros_like(self, x: Any, /) -> Any: ...
    def ones_like(self, x: Any, /) -> Any: ...
    def stop_gradient(self, x: Any, /) -> Any: ...
    def ndim(self, x: Any, /) -> int: ...
    def shape(self, x: Any, /) -> tuple[Any, ...]:
        """Its lengths; an array of a number for one that a graph leaves open."""
        ...

    def is_empty(self, x: Any) -> bool: ...  # as far as that is known
    def known_values(self, x: Any) -> Any:
        """A NumPy array, if the values are there and cost nothing to read; or None."""
        ...

    def is_eager(self, x: Any) -> bool:
        """Whether what is done to it is done at once, with no compiler behind it."""
        ...

    def calls_kernels(self, x: Any) -> bool:
        """Whether a compiler calls our kernels where a loss of it is added up."""
        ...

    def is_unwatched(self, x: Any) -> bool:
        """Whether nobody, no debugger or check, is told of a NaN that is masked."""
        ...

    @staticmethod
    def leaves_out_unused(x: Any) -> bool:
        """Whether a compiler leaves out a value whose gradient alone a rule uses.

        So in each mode of differentiation, and nobody is told of a NaN that is masked.
        """
        return False

    def broadcast_shape(self, shapes: Any) -> Any: ...
    def degrees_of_freedom(self, x: Any, axes: Any, ddof: float) -> Any:
        """How many elements there are along these axes, less ddof, and at least 0."""
        ...

    def if_any(self, wanted: Any, then: Any, otherwise: Any) -> Any:
        """then() if any of `wanted` holds, else otherwise(), which is the same there.

        A framework whose compiler can't choose runs `then`.
        """
        ...

    # Elements

    def where(self, condition: Any, x1: Any, x2: Any, /) -> Any: ...
    def clip(self, x: Any, low: Any, high: Any) -> Any:
        """The derivative at a bound is that of x; a bound may be None."""
        ...

    def real(self, x: Any, /) -> Any: ...
    def imag(self, x: Any, /) -> Any: ...
    def complex(self, real: Any, imag: Any, /) -> Any: ...

    # Reductions, along all of the given axes

    def sum(self, x: Any, axes: Any, keepdims: bool) -> Any: ...  # in its own dtype
    def count(self, x: Any, axes: Any, keepdims: bool) -> Any: ...  # of what is true
    def prod(self, x: Any, axes: Any, keepdims: bool) -> Any: ...
    def mean(self, x: Any, axes: Any, keepdims: bool) -> Any: ...
    def max(self, x: Any, axes: Any, keepdims: bool) -> Any: ...
    def min(self, x: Any, axes: Any, keepdims: bool) -> Any: ...
    def any(self, x: Any, axes: Any, keepdims: bool) -> Any: ...
    def all(self, x: Any, axes: Any, keepdims: bool) -> Any: ...
    def logsumexp(self, x: Any, axes: Any, keepdims: bool) -> Any: ...

    # Along one axis. Order is stable, NaN comes last; positions are of any whole type.

    def softmax(self, x: Any, axis: int) -> Any: ...
    def log_softmax(self, x: Any, axis: int) -> Any: ...
    def cumsum(self, x: Any, axis: int) -> Any: ...
    def cumprod(self, x: Any, axis: int) -> Any: ...
    def argmax(self, x: Any, axis: int) -> Any: ...
    def argmin(self, x: Any, axis: int) -> Any: ...
    def sort(self, x: Any, axis: int) -> Any: ...
    def argsort(self, x: Any, axis: int) -> Any: ...
    def searchsorted(self, x1: Any, x2: Any, side: str) -> Any: ...

    # Shapes and indices

    def reshape(self, x: Any, shape: Any) -> Any: ...
    def transpose(self, x: Any, axes: Any) -> Any: ...
    def expand_dims(self, x: Any, axis: int) -> Any: ...
    def squeeze(self, x: Any, axes: Any) -> Any: ...
    def broadcast_to(self, x: Any, shape: Any) -> Any: ...
    def unbroadcast(self, dy: Any, shape: Any) -> Any: ...  # if lengths are open
    def concat(self, xs: Sequence[Any], axis: int) -> Any: ...
    def stack(self, xs: Sequence[Any], axis: int) -> Any: ...
    def unstack(self, x: Any, axis: int) -> Sequence[Any]: ...
    def split(self, x: Any, sections: int, axis: int) -> Sequence[Any]: ...
    def pad(self, x: Any, widths: Any, value: Any) -> Any: ...  # with a constant
    def flip(self, x: Any, axes: Any) -> Any: ...
    def roll(self, x: Any, shifts: Any, axes: Any) -> Any: ...
    def tile(self, x: Any, times: Any) -> Any: ...
    def repeat(self, x: Any, repeats: Any, axis: int) -> Any: ...
    def take(self, x: Any, indices: Any, axis: int) -> Any: ...
    def take_along_axis(self, x: Any, indices: Any, axis: int) -> Any: ...
    def diagonal(self, x: Any, offset: int) -> Any: ...  # of the last two axes
    def diag(self, x: Any, k: int) -> Any: ...  # the matrix of a vector
    def tril(self, x: Any, k: int) -> Any: ...
    def triu(self, x: Any, k: int) -> Any: ...

    # Linear algebra, of stacks of matrices

    def matmul(self, x1: Any, x2: Any) -> Any: ...
    def tensordot(self, x1: Any, x2: Any, axes: Any) -> Any: ...
    def einsum(self, subscripts: str, *xs: Any) -> Any: ...
    def solve(self, A: Any, b: Any) -> Any: ...  # b is a stack of matrices
    def inv(self, x: Any) -> Any: ...
    def det(self, x: Any) -> Any: ...
    def slogdet(self, x: Any) -> Any: ...
    def cholesky(self, x: Any) -> Any: ...  # reads the lower triangle
    def eigh(self, x: Any) -> Any: ...  # likewise
    def eigvalsh(self, x: Any) -> Any: ...
    def svd(self, x: Any, full_matrices: bool) -> Any: ...
    def svdvals(self, x: Any) -> Any: ...
    def qr(self, x: Any, complete: bool) -> Any: ...
    def pinv(self, x: Any, rcond: float) -> Any: ...


class Transformations(Protocol):
    """`transformations`: what users do with a function, as `survives` runs it."""

    # The first one gives the plain eager gradient, with which all others are compared.
    ROWS: Sequence[Row]


class Recompute(Protocol):
    """`recompute`: running a function again in the backward pass, storing little.

    Wherever something is rerun, random generators have the states that they had in the
    first run, variables and buffers their values; afterwards they are what they were
    before the rerun. A compiler that can't trace `checkpoint` is given a function that
    it can (`_recompute.COMPILERS`).
    """

    def checkpoint(
        self,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        *,
        verify: bool = False,
    ) -> Any:
        """`fn(*args, **kwargs)`, of which only the arguments are kept for the gradient.

        Arguments and results are trees; what is no array in them passes through, and
        what `fn` captures gets its gradient too. Every order of derivative, both modes,
        nested, and under the framework's transformations and compiler. It just calls
        `fn` where nothing is recorded. With `verify` it also runs `fn` plainly, and
        raises if a value or a gradient differs.
        """
        ...

    def scan(self, plan: ScanPlan) -> list[Any]:
        """The leaves of the last state, of which the gradient stores what is planned.

        At most as many states as the plan says are alive between the passes.
        """
        ...

    def unstack(self, x: Any) -> Sequence[Any]:
        """The rows of an array, each with its gradient."""
        ...

    def unchanged(self, *roots: Any) -> AbstractContextManager[None]:
        """The context after which what is reached from here is what it was before.

        These are random generators (the global ones too), variables and buffers, and
        losses that layers collect. It is for calls whose results alone are wanted. What
        a framework keeps where nobody can read it goes on.
        """
        ...

    def rewinding(self, *roots: Any) -> Callable[[], AbstractContextManager[None]]:
        """Makes contexts, in each of which the same random numbers are drawn."""
        ...


class Intercept(Protocol):
    """`intercept`: calls of the framework's functions, answered by something else.

    An interceptor is installed by a context of a `Target`. It makes calls by
    `call_intercepted` (`_intercept.py`), which finds out what the open scopes have in
    their place, and those of a model `inside_model`. Where that would cost too much it
    asks `is_intercepted` first, and tells of other calls by `note_call`. What the
    framework computes itself (a gradient, a rule) is no call.
    """

    TARGETS: str  # what can be a target, in words for a message
    # In these contexts nothing that was compiled before is used: its Python runs again,
    # eagerly or in a new trace, and what is compiled inside is not used outside.
    RECOMPILE: tuple[Context, ...]

    def target_of(self, given: Any) -> Target | None:
        """What a user names as a target; None if it is nothing of this framework's.

        An error (`not_interceptable`) if it is, and its calls can't be intercepted. A
        target that runs only where the framework runs brings `RECOMPILE` itself; with
        `compiled=True` those of all frameworks are entered.
        """
        ...

    @staticmethod
    def model_of(model: Any) -> Target | None:
        """What tells when a model, a layer or module, is called; None for others."""
        return None

    @staticmethod
    def converted(fn: Callable[..., Any]) -> Callable[..., Any]:
        """A user's function that we call, as the framework would run it here.

        For one that rewrites Python and does not look into our code; else `fn`.
        """
        return fn


class Recording(Protocol):
    """`recording`: telling a recorder of each call of a custom gradient."""

    # How the modules begin whose custom gradients only run those of others, which are
    # recorded themselves.
    MACHINERY: tuple[str, ...] = ()

    @staticmethod
    def recorded(recorder: Recorder) -> AbstractContextManager[None]:
        """The context in which the recorder is told of its own custom gradients.

        Of those that users defined before, too, and in each transformation; under a
        compiler when it traces. Results and errors don't change, and nobody who
        observes the framework's operations sees the recorder. A compiler that traces
        Python code also tells of operations of ours, and leaves out `recorder.see`.
        """
        return nullcontext()

    def read(self, x: Any) -> Seen | None:
        """What is seen of an array, also of NumPy's where it takes these; else None.

        Where it is mapped over, one example of the batch. Nothing is copied yet, and
        nothing of it is recorded or traced.
        """
        ...


class Residual(NamedTuple):
    """An array that an operation keeps for its gradient."""

    operation: str
    place: Place | None  # the line of the operation
    nbytes: int


class Residuals(Protocol):
    """`residuals`: what a gradient keeps alive between the passes."""

    NOTES: tuple[str, ...] = ()  # what is to be known of the numbers, in words

    def residuals(
        self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> list[Residual]:
        """The arrays that are alive after `fn(*args, **kwargs)` for its gradient.

        It is differentiated by all floating arrays among the arguments. These don't
        count, nor do variables and parameters, which are alive anyway; each memory
        counts once. What is compiled is counted operation by operation.
        """
        ...


class Framework:
    """One framework: what it is called, which arrays are its own, and its parts.

    Parameters
    ----------
    name : by which users give `framework=`; the name of its module, if `module` is none
    title : how messages call it
    arrays : the names of its array types, from its module on
    example : how an array of another framework is converted into one of its own
    package : the folder with its parts
    module : what users import, if it is not called `name`
    roots : the packages whose classes its arrays are of, beside `module`
    packages : those that come with it beside these; no line in them is the user's
    oldest : the oldest release whose interfaces the folder uses
    install : what `pip install` is given
    gpu_kernels : the package that runs our GPU kernels in it: name, oldest, our extra
    custom_gradients : how messages call its own means of custom gradients
    derivatives : how users differentiate a function of its arrays
    becomes : the method by which an object of another kind becomes one of its arrays
    untouched : the attribute of functions that its compiler is not to rewrite
    generated : how the names of files begin into which it writes Python code
    early : modules; once somebody imports one, the part `early` is loaded
    quiet : environment variables with which it prints less
    cannot : for a part that is not there, the words that say so
    """

    arrays: Arrays
    calculus: Calculus
    compiled: Compiled
    natives: Natives
    call: Calls
    observe: Observe
    residuals: Residuals
    intercept: Intercept
    kernels: Kernels
    transformations: Transformations
    recompute: Recompute
    recording: Recording

    def __init__(
        self,
        name: str,
        title: str,
        *,
        arrays: str = "",
        example: str,
        package: str = "",
        module: str = "",
        roots: tuple[str, ...] = (),
        packages: tuple[str, ...] = (),
        oldest: tuple[int, ...] = (),
        install: str = "",
        gpu_kernels: tuple[str, str, str] | None = None,
        custom_gradients: tuple[str, ...] = (),
        derivatives: str = "",
        becomes: str = "",
        untouched: str = "",
        generated: str = "",
        early: tuple[str, ...] = (),
        quiet: Mapping[str, str] | None = None,
        cannot: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.title = title
        self.module = module or name
        self.roots = (self.module, *roots)
        self.packages = (*self.roots, *packages)
        self.example = example
        self.package = package or f"{__package__}.{name}"
        self.oldest = oldest
        self.install = install or name
        self.gpu_kernels = gpu_kernels
        self.custom_gradients = custom_gradients
        self.derivatives = derivatives or f"{title}'s own functions"
        self.becomes = becomes
        self.untouched = untouched
        self.generated = generated
        self.loads_with = early
        self.quiet = dict(quiet or {})
        self.cannot = dict(cannot or {})
        self._arrays = arrays.split()
        self._missing: set[str] = set()  # a failed import is not tried again

    def __repr__(self) -> str:
        return f"<framework {self.title}>"

    @property
    def is_imported(self) -> bool:
        """Whether somebody has imported it, so that its arrays and operations exist."""
        return self.module in sys.modules

    @property
    def is_installed(self) -> bool:
        """Whether it could be imported."""
        return find_spec(self.module.partition(".")[0]) is not None

    def owns(self, x: Any) -> bool:
        """Whether an object counts as one of its arrays."""
        module = sys.modules[self.module]
        return isinstance(x, tuple(attrgetter(name)(module) for name in self._arrays))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.part(name)

    def part(self, name: str) -> Any:
        """A part by its name, which is an attribute from then on."""
        if name not in vars(self):
            setattr(self, name, self._load(name))
        return vars(self)[name]

    def has(self, part: str) -> bool:
        """Whether there is such a part, and the framework is installed."""
        if part not in self._missing:
            try:
                self.part(part)
            except GradsmithError:
                self._missing.add(part)
        return part not in self._missing

    def _load(self, part: str) -> Any:
        self._require_recent()
        name = f"{self.package}.{part}"
        try:
            return self._completed(part, import_module(name))
        except ModuleNotFoundError as error:
            if error.name == name:
                words = f": {self.cannot[part]}" if part in self.cannot else ""
                raise UnsupportedOperationError(
                    f"{self.title} has no {part.replace('_', ' ')} in Gradsmith{words}"
                ) from None
            if error.name not in self.roots:
                raise
            raise GradsmithError(
                f"{self.title} is not installed: pip install {self.install}"
            ) from None

    def _completed(self, part: str, module: Any) -> Any:
        """A part, with the protocol's defaults for what it does not say."""
        protocol = globals().get(Framework.__annotations__.get(part, ""))
        for name, default in vars(protocol).items() if protocol else ():
            is_required = isinstance(default, FunctionType) or name.startswith("_")
            if not is_required and not hasattr(module, name):
                plain = isinstance(default, staticmethod)
                setattr(module, name, default.__func__ if plain else default)
        return module

    def _require_recent(self) -> None:
        if self.is_too_old():
            oldest = ".".join(map(str, self.oldest))
            raise UnsupportedOperationError(
                f"this is {self.title} {sys.modules[self.module].__version__}, and "
                f"operations run on {oldest} and later: pip install --upgrade "
                f"{self.install}"
            )

    def is_too_old(self) -> bool:
        if not self.oldest or not self.is_imported:
            return False
        version = sys.modules[self.module].__version__.partition("+")[0]
        return tuple(map(int, version.split(".")[:2])) < self.oldest
