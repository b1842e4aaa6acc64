# C types for the compiled engine; see tape.pxd.

cdef class Spec:
    cdef public object shape, dtype


cpdef unbroadcast(object dy, object shape)

cpdef cast(object dx, object dtype)

cpdef project(object dx, object like)
