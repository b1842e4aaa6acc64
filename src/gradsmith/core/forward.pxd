# C types for the compiled engine; see tape.pxd.

cimport cython

from .rule cimport Elementwise
from .tape cimport Traced, holds_objects, leave_mark
from .tensor cimport finished, unwrap, wrap


cdef class _View:
    cdef public object now, outside, plain, _run, _thread

    cpdef run(self, object push, tuple args)


cpdef _record_one(
    object accumulator, _View view, Elementwise rule, Py_ssize_t i, object dx,
    object call, Traced y
)

cpdef _record_two(
    object accumulator, _View view, Elementwise rule, tuple dxs, object call, Traced y
)

cpdef _push_one(tuple quick, object dx, object call, object y)

cpdef push_array(Elementwise rule, object dx1, object dx2, object call, object y)
