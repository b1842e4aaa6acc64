# C types for the compiled engine; see tape.pxd.

cimport cython

from .tape cimport Traced


@cython.locals(y=Traced)
cpdef wrap(object value, object marks=*)
