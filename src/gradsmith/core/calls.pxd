# C types for the compiled engine; see tape.pxd.

cimport cython

from .elementwise cimport call_elementwise, call_unary, tell
from .rule cimport Elementwise, Function, is_basic
from .tape cimport Traced, record_pull
from .tensor cimport unwrap, wrap


cpdef call_function(Function rule, object args, dict kwargs)

cpdef bint _are_plain(object options, dict kwargs)

@cython.locals(x=Traced, marks=dict)
cpdef _call_of_one(Function rule, object args, dict kwargs)

cpdef _record_each(object tapes, object rule, Traced x, object pull, Traced y)

cpdef _call_of_reals(Function rule, object args, dict kwargs)
