"""Custom gradients in Python: write an operation with its gradient once."""

from ._contract import not_differentiable, zero
from ._cotangent import unbroadcast
from ._errors import (
    GradientContractError,
    GradsmithError,
    NotDifferentiableError,
    TapeError,
    UnsupportedOperationError,
)
from ._forward import ForwardAccumulator
from ._gradient_tape import GradientTape, UnconnectedGradients
from ._operation import Operation, custom_gradient, operation, with_gradient
from ._tensor import Tensor, Variable, constant
from ._transforms import (
    grad,
    hessian,
    hvp,
    jacobian,
    jvp,
    stop_gradient,
    value_and_grad,
    vjp,
)
