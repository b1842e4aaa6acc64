# C types for the compiled engine; see tape.pxd.

cimport cython

from .rule cimport Elementwise
from .tape cimport Traced


@cython.locals(y=Traced, marks=dict)
cpdef call_unary(Elementwise rule, Traced x)

@cython.locals(y=Traced, marks=dict)
cpdef call_with_number(Elementwise rule, Traced x, tuple inputs, Py_ssize_t i)

@cython.locals(y=Traced, marks=dict)
cpdef call_binary(Elementwise rule, object x1, object x2)
