# C types for the compiled engine; see tape.pxd.

cdef class Rule:
    cdef public object fn, name, domain, kinks, note


cdef class Elementwise(Rule):
    cdef public object of_scalars, partials, is_product, wants, quick
