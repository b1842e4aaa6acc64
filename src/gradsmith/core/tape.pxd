# C types for the compiled engine: what values, nodes and tapes hold is read from structs
# and not looked up. The code is in tape.py; without a compiler nobody reads this.

cimport cython


cdef class Traced:
    cdef public object value
    cdef public dict marks


cdef class Node:
    cdef object __weakref__
    cdef public object index, rule, parents, pull, saved


cdef class Tape:
    cdef object __weakref__
    cdef public object key, leaves, lifts, plain, records_one, watch_variables

    @cython.locals(node=Node)
    cpdef record_one(
        self, object rule, Py_ssize_t i, Node parent, tuple call, Traced y, bint same
    )

    @cython.locals(node=Node)
    cpdef record_two(self, object rule, tuple parents, tuple call, Traced y)

    cpdef record_pull(self, object rule, object parents, object pull, Traced y)


cpdef Node _node(object rule, object parents, object pull, object saved)

cpdef leave_mark(Traced y, object key, object mark)

@cython.locals(queue=list, node=Node, parent=Node)
cpdef dict _walk(
    dict cotangents, dict found, set relevant, object silent, bint keep, bint inner
)

cpdef _receive(dict cotangents, list queue, Node node, object dy)
