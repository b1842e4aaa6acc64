# C types for the compiled engine; see tape.pxd.

from .elementwise cimport call_unary
from .tape cimport Traced
from .tensor cimport wrap
