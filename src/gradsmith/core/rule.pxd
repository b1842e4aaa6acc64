# C types for the compiled engine; see tape.pxd.

cdef class Rule:
    cdef public object fn, name, domain, kinks, note


cdef class Elementwise(Rule):
    cdef public object of_scalars, partials, is_product, wants, quick


cdef class Function(Rule):
    cdef public object run, vjp, jvp, arrays, list_at, saves_y, saved_args
    cdef public Py_ssize_t leading, out_at
    cdef public bint of_one, saves_nothing


cpdef bint is_basic(object key)

cpdef unchanged(object dy)
