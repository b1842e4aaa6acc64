# C types for the compiled engine; see tape.pxd.

cimport cython

from .tape cimport Traced


@cython.locals(y=Traced)
cpdef wrap(object value, object marks=*)

cpdef finished(object dx)

cpdef unwrap(object x)

cpdef frozen(object x)
