"""Gradsmith's own functions inside: nested transforms, custom operations, tools."""

from __future__ import annotations

from ..writer import Writer
from ._table import NumpyOnly, kind

OPS = "sigmoid softplus silu gelu log_sigmoid softmax log_softmax"


@kind(0.9)
def nested(w: Writer) -> str:
    name = w.real()
    loss = w.one_of(("np.sum(np.sin(t) * t)", "np.sum(t**3)", "np.sum(np.tanh(t))**2"))
    fun = f"lambda t: {loss}"
    forms = (f"gs.grad({fun})({name})", f"gs.value_and_grad({fun})({name})[1]")
    forms += (f"gs.jvp({fun}, ({name},), ({name} * 2.0,))[1]",)
    forms += (f"gs.vjp(np.sin, {name})[1]({name})[0]",)
    forms += (f"gs.grad(lambda t: np.sum(t * {name})**2)({name})",)
    return w.one_of(forms)


@kind(0.3)
def higher(w: Writer) -> str:
    name = w.real(1, 1, filled=True)
    forms = (f"gs.hessian(lambda t: np.sum(np.sin(t) * t))({name})",)
    forms += (f"gs.jacobian(lambda t: t * np.sum(t))({name})",)
    forms += (f"gs.jacfwd(lambda t: np.cumsum(t**2))({name})",)
    forms += (f"gs.hvp(lambda t: np.sum(t**3), ({name},), ({name},))",)
    forms += (f"gs.jacrev(np.sin)({name})",)
    return NumpyOnly(w.one_of(forms))


@kind(0.5)
def tape(w: Writer) -> str:
    name = w.real()
    options = w.one_of(("", "persistent=True"))
    body = f"with gs.GradientTape({options}) as tape:\n    t = gs.constant({name})\n"
    body = body.replace("t = gs.constant", "t = 1.0 * ") if w.chance(0.5) else body
    watch = "    tape.watch(t)\n    y = np.sum(np.sin(t) * t)\n"
    return NumpyOnly(f"{body}{watch}OUT = np.multiply(tape.gradient(y, t), 1.0)")


@kind(1.5)
def custom(w: Writer) -> str:
    """Operations with their own gradient, defined beside the programs."""
    name = w.real()
    other = w.partner(name, "f")
    forms = (f"cube({name})", f"soft({name}, beta=2.0)", f"soft({name})")
    forms += (f"scaled({name}, {other})", f"scaled(y={name}, x={other})")
    forms += (f"pair({name})[0]", f"pair({name})[1]", f"np.add(*pair({name}))")
    forms += (f"tree({{'a': {name}, 'b': [{name}]}})", f"pushed({name})")
    forms += (f"cube(np.sum(cube({name})) * 0.1)",)
    return w.one_of(forms)


@kind(0.4)
def python(w: Writer) -> str:
    name = w.real()
    return NumpyOnly(f"solver({name})")


@kind(0.6)
def ready(w: Writer) -> str:
    name = w.real(1, filled=True)
    forms = (f"gs.ops.{w.one_of(OPS.split())}({name})", f"gs.ops.logsumexp({name})")
    forms += (f"gs.ops.logsumexp({name}, axis={w.axis(name)})",)
    forms += (f"gs.ops.norm({name}, axis={w.axis(name)})", f"gs.ops.huber({name}, 0.1)")
    forms += (
        f"gs.ops.divide({name}, 2.0 + {name}**2)",
        f"gs.ops.xlogy(1.5, 2 + np.sin({name}))",
    )
    return NumpyOnly(w.one_of(forms))


@kind(0.4)
def again(w: Writer) -> str:
    name = w.real()
    forms = (f"gs.checkpoint(lambda t: np.sin(t) * np.exp(-t))({name})",)
    forms += (f"gs.checkpoint(lambda t: t * np.tanh({name}))({name} * 2.0)",)
    return NumpyOnly(w.one_of(forms))
