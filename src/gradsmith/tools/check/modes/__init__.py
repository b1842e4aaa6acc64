"""How a framework compiles and vectorizes, one module each.

compiled(fn)              fn of a list of arrays, compiled; fn may return a list
mapped(fn, xs)            fn over the first axis of each array
gradient(fn, xs, dys)     vjp and pull in one, of what may be compiled or mapped
"""

from typing import Any

from ..._inputs import module_for


def modes_of(framework: str) -> Any:
    """The module of a framework; the engine neither compiles nor vectorizes."""
    return None if framework == "numpy" else module_for(__name__, framework)
