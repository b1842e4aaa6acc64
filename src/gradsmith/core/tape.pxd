# C types for the compiled engine: what values, nodes and tapes hold is read from structs
# and not looked up. The code is in tape.py; without a compiler nobody reads this.

cimport cython


cdef class Traced:
    cdef public object value
    cdef public dict marks


cdef class Key:
    cdef public object recorder


@cython.locals(marks=dict)
cpdef forget_the_dead(Traced x)


cdef class Node:
    cdef object __weakref__
    cdef public object index, rule, parents, pull, saved


@cython.locals(value=Traced, marks=dict, tape=Tape)
cpdef _follower(tuple tapes, object xs)


cdef class Tape:
    cdef object __weakref__
    cdef public object key, leaves, lifts, records_one, watch_variables


@cython.locals(node=Node)
cpdef record_of_one(
    Tape tape, object rule, Py_ssize_t i, Node parent, tuple call, Traced y, bint same
)

@cython.locals(node=Node)
cpdef record_of_two(Tape tape, object rule, tuple parents, tuple call, Traced y)

cpdef record_lifted(
    Tape tape, object rule, Py_ssize_t i, Node parent, object call, Traced y
)

cpdef record_pull(Tape tape, object rule, object parents, object pull, Traced y)

cpdef Node _node(object rule, object parents, object pull, object saved)

cpdef bint holds_objects(object value)

cpdef leave_mark(Traced y, object key, object mark)

@cython.locals(queue=list, node=Node, parent=Node, deferred=bint)
cpdef dict _walk(
    dict cotangents, dict found, set relevant, object silent, bint keep, bint inner
)

cpdef _receive(dict cotangents, list queue, Node node, object dy)
