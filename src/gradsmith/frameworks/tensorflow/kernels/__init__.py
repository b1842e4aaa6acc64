"""TensorFlow's kernels: native calls whose dtypes and axes are settled."""

from ..._kernels import gathered
from . import arrays, axes, elementwise, linalg

globals().update(gathered(arrays, axes, elementwise, linalg))
