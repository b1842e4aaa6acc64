"""Its arrays, made and read."""

import numpy as np

from gradsmith.frameworks.numpy import arrays as _numpy

from . import Array, __version__

version = __version__


def array(x, dtype=None):
    return Array(np.array(getattr(x, "value", x), dtype))


def as_array(x):
    return x if isinstance(x, Array) else array(x)


def numpy(x):
    return np.array(x.value)


def floats(x):
    return _numpy.floats(getattr(x, "value", x))
