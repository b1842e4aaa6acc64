"""What the checker asks of a framework, one module each.

    version                         of the framework
    numbers                         whether Python's may be outputs with a gradient
    array(x, dtype)                 NumPy's array as one of the framework's
    dtype_name(x)                   "float32", also of a bfloat16
    numpy(x)                        back, with bfloat16 as float32; always a copy
    precision(dtype)                the context in which arrays of a dtype exist
    alone()                         the context in which small arrays are computed fast
    value(fn, xs)                   fn(xs), with nothing recorded
    vjp(fn, xs) -> ys, pull         pull(dys) may be called often; None: unconnected
    jvp(fn, xs, dxs) -> dys
    hvp(fn, xs, dys, vs)            the gradient of <pull(dys), vs> by xs
    twice(fn, xs, dys, vs)          the same by xs, and by dys
    abstract(fn, xs)                fn without values, where that is quicker
    inside(fn, xs)                  whether all indices are, if that needs to be asked
    LAYOUTS, repeated               other layouts in memory, where there are any

`fn` takes and returns flat lists of the framework's arrays, and so does `pull`.
"""

from typing import Any

from ..._inputs import module_for


def kit_for(framework: str) -> Any:
    """The module of a framework."""
    return module_for(__name__, {"numpy": "engine"}.get(framework, framework))
