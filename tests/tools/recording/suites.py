"""Test suites of other people, each with operations whose gradient is right or wrong.

`test_plugin.py` runs them with `--gradsmith`.
"""

OURS = """
import numpy as np
import gradsmith as gs

@gs.custom_gradient
def wrong(x):
    return np.sin(x), lambda dy: -dy * np.cos(x)

@gs.operation
def right(x):
    return x**3

@right.vjp
def _(dy, y, x):
    return 3 * x**2 * dy

def test_wrong():
    gs.grad(lambda x: np.sum(wrong(x)))(np.ones(3))

def test_right():
    right(np.linspace(1, 2, 3))

def test_right_again():
    right(np.linspace(1, 2, 3))
"""

# A name that is bound before the tests are collected
TORCH_CONFTEST = """
import torch

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, dy):
        return -2 * dy

double = Double.apply
"""

TORCH = """
import torch
from torch.autograd import Function
from torch.utils._python_dispatch import TorchDispatchMode

class Wrong(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return -dy * x.cos()

class Right(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, n):
        return x**n

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.n = inputs[1]

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return ctx.n * x ** (ctx.n - 1) * dy, None

class Masked(Function):
    "Nobody asks for the gradient of the mask."
    @staticmethod
    def forward(ctx, x, mask):
        if x.isnan().any():
            raise ValueError("x has changed")
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, dy):
        return dy * ctx.saved_tensors[0], None

class Compiled(Function):
    @staticmethod
    def forward(ctx, x, n):
        ctx.n = n
        return x * n

    @staticmethod
    def backward(ctx, dy):
        return -dy * ctx.n, None

@torch.library.custom_op("suite::sine", mutates_args=())
def sine(x: torch.Tensor, a: float = 2.0) -> torch.Tensor:
    return torch.sin(a * x)

def setup(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])
    ctx.a = inputs[1]

def backward(ctx, dy):
    return -ctx.a * torch.cos(ctx.a * ctx.saved_tensors[0]) * dy, None

sine.register_autograd(backward, setup_context=setup)

def inputs(*shape):
    return torch.ones(*shape).requires_grad_()

def test_wrong():
    Wrong.apply(inputs(3, 4)).sum().backward()

def test_right():
    Right.apply(inputs(2), 2).sum().backward()

def test_transformed():
    torch.func.grad(lambda x: Right.apply(x, 3).sum())(torch.ones(4))
    assert torch.func.vmap(Right.apply, (0, None))(torch.ones(5, 2), 4).shape == (5, 2)

def test_masked():
    x = inputs(3)
    Masked.apply(x, torch.tensor([1.0, 0.0, 2.0])).sum().backward()
    with torch.no_grad():
        x.fill_(float("nan"))  # what was seen is kept as it was
    Masked.apply(torch.ones(4), torch.ones(4))

def test_compiled():
    compiled = torch.compile(
        lambda x: Compiled.apply(x, 3).sum(), backend="eager", fullgraph=True
    )
    compiled(inputs(3)).backward()
    torch.compile(Compiled.apply, backend="eager", fullgraph=True)(inputs(3), 3)

import gradsmith as gs

@gs.custom_gradient
def compiled_ours(x):
    return 3 * x, lambda dy: -3 * dy

def test_compiled_operation_of_ours():
    compiled = torch.compile(
        lambda x: compiled_ours(x).sum(), backend="eager", fullgraph=True
    )
    compiled(inputs(3)).backward()

def test_custom_op():
    torch.ops.suite.sine(inputs(3)).sum().backward()

def test_local():
    class Layer(torch.nn.Module):
        class Double(Function):
            @staticmethod
            def forward(ctx, x):
                return 2 * x

            @staticmethod
            def backward(ctx, dy):
                return 2 * dy

        def forward(self, x):
            return self.Double.apply(x)

    Layer()(inputs(3)).sum().backward()

def test_conftest():
    import conftest
    conftest.double(inputs(3))

def test_that_nobody_sees_the_recorder():
    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    x = torch.ones(7)
    with Mode():
        Wrong.apply(x)
    assert seen == [torch.ops.aten.sin.default]
    traced = torch.jit.trace(Wrong.apply, torch.ones(5), check_trace=False)
    assert [node.kind() for node in traced.graph.nodes()] == ["prim::PythonOp"]
    from torch.fx.experimental.proxy_tensor import make_fx
    graph = make_fx(lambda x: Wrong.apply(x))(torch.ones(9)).graph
    assert sum(node.op == "call_function" for node in graph.nodes) == 1
"""

JAX = """
import jax
import jax.numpy as jnp

@jax.custom_vjp
def right(x, y):
    return jnp.sin(x) * y

right.defvjp(
    lambda x, y: (right(x, y), (x, y)),
    lambda r, dy: (jnp.cos(r[0]) * r[1] * dy, jnp.sin(r[0]) * dy),
)

@jax.custom_jvp
def wrong(x):
    return jnp.log(x)

@wrong.defjvp
def _(xs, dxs):
    return wrong(*xs), -dxs[0] / xs[0]

@jax.custom_gradient
def wrong_too(x):
    return x**2, lambda dy: (-2 * x * dy,)

def test_right():
    x = jnp.ones(3)
    jax.grad(lambda x: right(x, x).sum())(x)
    jax.grad(right)(1.0, 2.0)
    assert jax.vmap(right)(jnp.ones((5, 2)), jnp.ones((5, 2))).shape == (5, 2)

def test_jit():
    jax.jit(wrong)(jnp.ones(4))

def test_wrong_too():
    jax.grad(lambda x: wrong_too(x).sum())(jnp.ones(3))

def test_of_jax():
    jax.nn.relu(jnp.ones(3))

def test_bound_to_a_trace():
    @jax.jit
    def outer(w, x):
        @jax.custom_vjp
        def inner(x):
            return w * x

        inner.defvjp(lambda x: (w * x, None), lambda r, dy: (w * dy,))
        return inner(x)

    outer(jnp.ones(3), jnp.ones(3))
"""

TENSORFLOW = """
import tensorflow as tf

@tf.custom_gradient
def wrong(x):
    return tf.sin(x), lambda dy: -dy * tf.cos(x)

class Layer(tf.Module):
    @tf.custom_gradient
    def right(self, x):
        return x**3, lambda dy: 3 * x**2 * dy

@tf.custom_gradient
def graph(x, k):
    return x * k, lambda dy: (-dy * k, tf.reduce_sum(dy * x))

def test_wrong():
    wrong(tf.ones(3))

def test_right():
    Layer().right(tf.ones((2, 3)))

def test_graph():
    @tf.function(input_signature=[tf.TensorSpec([None, 2])])
    def double(x):
        return graph(x, 2.0)

    double(tf.ones((4, 2)))
"""
