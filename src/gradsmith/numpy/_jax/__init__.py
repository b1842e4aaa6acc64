"""JAX's kernels: native calls whose dtypes and axes are settled."""

from .arrays import (
    arange as arange,
)
from .arrays import (
    as_floats as as_floats,
)
from .arrays import (
    broadcast_shape as broadcast_shape,
)
from .arrays import (
    cast as cast,
)
from .arrays import (
    constant as constant,
)
from .arrays import (
    degrees_of_freedom as degrees_of_freedom,
)
from .arrays import (
    dtype_of as dtype_of,
)
from .arrays import (
    evaluated as evaluated,
)
from .arrays import (
    finfo as finfo,
)
from .arrays import (
    is_float as is_float,
)
from .arrays import (
    kind as kind,
)
from .arrays import (
    loop as loop,
)
from .arrays import (
    ndim as ndim,
)
from .arrays import (
    ones_like as ones_like,
)
from .arrays import (
    operand_kind as operand_kind,
)
from .arrays import (
    result_type as result_type,
)
from .arrays import (
    shape as shape,
)
from .arrays import (
    stop_gradient as stop_gradient,
)
from .arrays import (
    zeros_like as zeros_like,
)
from .axes import (
    all as all,
)
from .axes import (
    any as any,
)
from .axes import (
    argmax as argmax,
)
from .axes import (
    argmin as argmin,
)
from .axes import (
    argsort as argsort,
)
from .axes import (
    broadcast_to as broadcast_to,
)
from .axes import (
    concat as concat,
)
from .axes import (
    cumprod as cumprod,
)
from .axes import (
    cumsum as cumsum,
)
from .axes import (
    diag as diag,
)
from .axes import (
    diagonal as diagonal,
)
from .axes import (
    expand_dims as expand_dims,
)
from .axes import (
    flip as flip,
)
from .axes import (
    log_softmax as log_softmax,
)
from .axes import (
    logsumexp as logsumexp,
)
from .axes import (
    max as max,
)
from .axes import (
    mean as mean,
)
from .axes import (
    min as min,
)
from .axes import (
    pad as pad,
)
from .axes import (
    prod as prod,
)
from .axes import (
    repeat as repeat,
)
from .axes import (
    reshape as reshape,
)
from .axes import (
    roll as roll,
)
from .axes import (
    searchsorted as searchsorted,
)
from .axes import (
    softmax as softmax,
)
from .axes import (
    sort as sort,
)
from .axes import (
    split as split,
)
from .axes import (
    squeeze as squeeze,
)
from .axes import (
    stack as stack,
)
from .axes import (
    sum as sum,
)
from .axes import (
    take as take,
)
from .axes import (
    take_along_axis as take_along_axis,
)
from .axes import (
    tile as tile,
)
from .axes import (
    transpose as transpose,
)
from .axes import (
    tril as tril,
)
from .axes import (
    triu as triu,
)
from .axes import (
    unbroadcast as unbroadcast,
)
from .axes import (
    unstack as unstack,
)
from .elementwise import (
    ELEMENTWISE as ELEMENTWISE,
)
from .elementwise import (
    SPECIAL as SPECIAL,
)
from .elementwise import (
    complex as complex,
)
from .elementwise import (
    imag as imag,
)
from .elementwise import (
    real as real,
)
from .elementwise import (
    where as where,
)
from .linalg import (
    cholesky as cholesky,
)
from .linalg import (
    det as det,
)
from .linalg import (
    eigh as eigh,
)
from .linalg import (
    eigvalsh as eigvalsh,
)
from .linalg import (
    einsum as einsum,
)
from .linalg import (
    inv as inv,
)
from .linalg import (
    matmul as matmul,
)
from .linalg import (
    pinv as pinv,
)
from .linalg import (
    qr as qr,
)
from .linalg import (
    slogdet as slogdet,
)
from .linalg import (
    solve as solve,
)
from .linalg import (
    svd as svd,
)
from .linalg import (
    svdvals as svdvals,
)
from .linalg import (
    tensordot as tensordot,
)
