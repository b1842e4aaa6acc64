# C types for the compiled engine; see tape.pxd.

cimport cython

from .rule cimport Elementwise, Rule
from .tape cimport (
    Tape, Traced, holds_objects, record_lifted, record_of_one, record_of_two
)
from .tensor cimport frozen, unwrap, wrap


@cython.locals(y=Traced, marks=dict)
cpdef call_unary(Elementwise rule, Traced x)

@cython.locals(y=Traced, marks=dict)
cpdef call_with_number(Elementwise rule, Traced x, tuple inputs, Py_ssize_t i)

@cython.locals(y=Traced, marks=dict)
cpdef call_binary(Elementwise rule, object x1, object x2)

cpdef call_elementwise(Elementwise rule, object inputs)

@cython.locals(marks1=dict, marks2=dict)
cpdef _tell_elementwise(
    object active, Elementwise rule, object inputs, object values, Traced y
)

cpdef tell(object rule, object inputs, object call, object plain, object y)
