# C types for the compiled engine; see tape.pxd.

from .calls cimport call_function
from .elementwise cimport call_binary, call_unary, call_with_number
from .tensor cimport wrap
