"""torch.compile(fullgraph=True): with .backward(), and of torch.func."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass

import pytest
import torch
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vmap

import gradsmith as gs

from .operations import (
    CANARIES,
    canary,
    name,
    point,
    ruled_canary,
    softmax,
    writes_into_its_own,
    writing,
)

pytestmark = [
    # PyTorch about itself, in what compiles
    pytest.mark.filterwarnings("ignore:.torch.jit.script.* is deprecated"),
    pytest.mark.filterwarnings("ignore:.torch._prims_common.check. is deprecated"),
    pytest.mark.filterwarnings("ignore:.*Function.*should not be instantiated"),
]
X = point()
ONES = torch.ones_like(X)


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(f, **options):
    options = {"backend": "aot_eager", "fullgraph": True, **options}
    return torch.compile(f, **options)


def gradient(f, x=X):
    x = x.clone().requires_grad_()
    y = f(x)
    y.backward(torch.ones_like(y))
    return x.grad


# --- with .backward() ----------------------------------------------------------------


@pytest.mark.parametrize("op", CANARIES, ids=name)
def test_backward(op):
    torch.testing.assert_close(gradient(compiled(op)), 10 * X**3)


def test_where_pytorch_takes_compiling_for_exporting(monkeypatch):
    """As 2.11 does."""
    is_compiling = torch.compiler.is_dynamo_compiling
    monkeypatch.setattr(torch.compiler, "is_exporting", lambda: is_compiling())
    torch.testing.assert_close(gradient(compiled(canary)), 10 * X**3)


def test_backward_by_inductor():
    f = compiled(lambda x: canary(softmax(x)), backend="inductor")
    torch.testing.assert_close(gradient(f), gradient(lambda x: canary(softmax(x))))


def test_nothing_to_differentiate():
    assert torch.equal(compiled(canary)(X), X**4)
    with torch.no_grad():
        assert torch.equal(compiled(canary)(point(requires_grad=True)), X**4)


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensors
        return 10 * dy * y


@gs.custom_gradient
def exp_closure(x):
    y = torch.exp(x)
    return y, lambda dy: 10 * dy * y


@gs.operation
def exp_rule(x):
    return torch.exp(x)


@exp_rule.vjp
def _(dy, y, x):
    return 10 * dy * y


def graphs(f):
    """The operators of the forward and of the backward graph."""
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.aot_autograd import make_boxed_func

    found = []

    def look(graph, _):
        calls = [str(n.target) for n in graph.graph.nodes if n.op == "call_function"]
        # What gives memory another name computes nothing
        found.append([c for c in calls if not re.search("view|alias|detach", c)])
        return make_boxed_func(graph.forward)

    backend = aot_autograd(fw_compiler=look, bw_compiler=look)
    gradient(compiled(f, backend=backend))
    return found


def test_the_graph_is_that_of_a_hand_written_function():
    by_hand = graphs(Exp.apply)
    assert len(by_hand) == 2
    assert graphs(exp_closure) == by_hand
    assert graphs(exp_rule) == by_hand


def test_a_body_that_breaks_the_graph():
    def body(x):
        torch._dynamo.graph_break()
        return x * 1, lambda dy: 10 * dy

    f = compiled(gs.custom_gradient(body), fullgraph=False)
    assert gradient(f).tolist() == [10, 10, 10]


def guards(f):
    """The names that compiled code looks at whenever it is called."""
    found = []

    def look(entries):
        found.extend(entry.name for entry in entries)
        return [True] * len(entries)

    gradient(compiled(f, options={"guard_filter_fn": look}, backend="inductor"))
    return {name for name in found if name}


@pytest.mark.parametrize("op", [exp_closure, exp_rule], ids=name)
def test_what_is_ours_is_not_guarded(op):
    """Each guard takes 0.1 us in each call, and what is ours does not change."""
    found = guards(lambda x: op(x))
    ours = [n for n in found if re.search(r"gradsmith|builtins|G\['_\d+_c\d+'", n)]
    assert not [n for n in ours if not n.endswith("torch.exp")]  # which the body calls
    assert len(found) < len(guards(lambda x: Exp.apply(x))) + 15


SOFTMAX = gs.ops.softmax


def test_of_an_operation_with_kernels_the_key_is_guarded(monkeypatch):
    run = lambda x: SOFTMAX(x)
    of_it = [n for n in guards(run) if "SOFTMAX" in n]
    assert any(n.endswith("SOFTMAX'].key") for n in of_it)
    assert not any(".signature" in n for n in of_it)
    torch._dynamo.reset()
    f = compiled(run)
    x = torch.tensor([1.0, 2.0, 4.0])
    torch.testing.assert_close(f(x), gs.ops.softmax(x))
    monkeypatch.setitem(globals(), "SOFTMAX", gs.ops.log_softmax)
    torch.testing.assert_close(f(x), gs.ops.log_softmax(x))


FACTOR = 3.0
TIMES = lambda: 3


def scaled_by_globals(x):
    return x * FACTOR * max(2, TIMES())


def test_what_is_the_users_is_guarded(monkeypatch):
    op = gs.custom_gradient(lambda x: (x * 1, lambda dy: scaled_by_globals(dy)))
    assert any("'max'" in n for n in guards(op))
    torch._dynamo.reset()
    f = compiled(op)
    assert gradient(f).tolist() == [9, 9, 9]
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    assert gradient(f).tolist() == [15, 15, 15]
    monkeypatch.setitem(globals(), "TIMES", lambda: 4)
    assert gradient(f).tolist() == [20, 20, 20]


OPERATION = gs.with_gradient(torch.neg, lambda dy, y, x: 10 * dy)


def test_operations_are_guarded(monkeypatch):
    f = compiled(lambda x: OPERATION(x))
    assert gradient(f).tolist() == [10, 10, 10]
    other = gs.with_gradient(torch.neg, lambda dy, y, x: 20 * dy)
    monkeypatch.setitem(globals(), "OPERATION", other)
    assert gradient(f).tolist() == [20, 20, 20]
    other.vjp(lambda dy, y, x: 30 * dy)
    assert gradient(f).tolist() == [30, 30, 30]


def test_dynamic_shapes_without_recompiling():
    count = []

    def backend(graph, _):
        count.append(graph)
        return graph.forward

    f = compiled(lambda x: softmax(x, axis=-1), backend=backend, dynamic=True)
    for n in (2, 3, 5):
        x = torch.randn(n, 4, dtype=torch.float64)
        torch.testing.assert_close(gradient(f, x), gradient(softmax, x))
    assert len(count) == 1


@dataclass
class Record:
    a: object
    b: object
    label: str = "r"


@gs.custom_gradient
def record(r):
    def grad(dy):
        return Record(10 * dy.a * r.b, 100 * dy.a * r.a, None)

    return Record(r.a * r.b, r.a.argmax(), "out"), grad


@gs.operation
def weighted(p, x, *, k=2):
    return p["w"] * x * k


@weighted.vjp
def _(dy, y, p, x, *, k, needs):
    return ({"w": 10 * dy * x * k} if needs["p"] else None), dy * p["w"] * k


@gs.custom_gradient
def several(x, w):
    def grad(dz, dv, _):
        return 10 * dz * w + dv, dz * x + dv

    return x * w, x + w, {"i": torch.arange(3)}, grad


STRUCTURED = {
    "dataclass": (lambda x: record(Record(x, x * 2)).a, 10 * X * 2 + 200 * X),
    "dict": (lambda x: weighted({"w": x * 2}, x, k=3), 66 * X),
    "several outputs, one tensor twice": (
        lambda x: sum(several(x, x)[:2]),
        10 * X + 1 + X + 1,
    ),
    "keywords": (lambda x: softmax(axis=0, x=x) + canary(x), 10 * X**3),
}


@pytest.mark.parametrize("case", STRUCTURED)
def test_structures(case):
    f, expected = STRUCTURED[case]
    torch.testing.assert_close(gradient(compiled(f)), expected)
    torch.testing.assert_close(compiled(grad(lambda x: f(x).sum()))(X), expected)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor(2.0, dtype=torch.float64))
        self.factor = 3.0

    @gs.custom_gradient
    def scaled(self, x):
        return x * self.weight * self.factor, lambda dy: 10 * dy * self.factor

    @gs.operation
    def ruled(self, x):
        return x * self.weight

    @ruled.vjp
    def _(dy, y, self, x):  # noqa: N805
        return 10 * dy * self.weight

    def forward(self, x):
        return self.scaled(x) + self.ruled(x)


def test_methods_captured_parameters_and_guards():
    layer = Layer()
    f = compiled(layer)
    assert gradient(f).tolist() == [50, 50, 50]
    assert layer.weight.grad == 24
    layer.factor, layer.weight.grad = 5.0, None
    assert gradient(f).tolist() == [70, 70, 70]
    assert layer.weight.grad == 36


def test_autocast():
    @gs.custom_gradient
    def matmul(x, w):
        return x @ w, lambda dy: (10 * (dy @ w.T), x.T @ dy)

    def f(x):
        with torch.autocast("cpu", torch.bfloat16):
            return matmul(x, torch.ones(3, 4)).float()

    dx = gradient(compiled(f), torch.ones(2, 3))
    assert dx.dtype == torch.float32
    assert dx[0, 0] == 40


def test_a_first_call_may_be_traced():
    import subprocess
    import sys

    script = """
import gradsmith as gs
op = gs.custom_gradient(lambda x: (x * 1, lambda dy: 10 * dy))
import torch
x = torch.ones(3, requires_grad=True)
torch.compile(op, fullgraph=True, backend="aot_eager")(x).sum().backward()
assert x.grad.tolist() == [10, 10, 10]
op(x).sum().backward()
assert x.grad.tolist() == [20, 20, 20]
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=600)


# --- under torch.func ----------------------------------------------------------------

TRANSFORMS = {
    "grad": (lambda f: grad(lambda x: f(x).sum()), 10 * X**3),
    "vmap grad": (lambda f: vmap(grad(f)), 10 * X**3),
    "jvp": (lambda f: lambda x: jvp(f, (x,), (ONES,))[1], 10 * X**3),
    "jacrev": (lambda f: jacrev(f), torch.diag(10 * X**3)),
    "jacfwd": (lambda f: jacfwd(f), torch.diag(10 * X**3)),
    "hessian": (lambda f: hessian(lambda x: f(x).sum()), None),
    "grad grad": (lambda f: vmap(grad(grad(f))), None),
    "jvp grad": (lambda f: lambda x: jvp(vmap(grad(f)), (x,), (ONES,))[1], None),
    "vmap jvp": (lambda f: vmap(lambda x: jvp(f, (x,), (x,))[1]), 10 * X**4),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("op", CANARIES, ids=name)
def test_of_torch_func(transform, op):
    apply, expected = TRANSFORMS[transform]
    found = compiled(apply(op))(X)
    torch.testing.assert_close(found, apply(op)(X) if expected is None else expected)


def test_of_torch_func_by_inductor():
    f = lambda x: canary(x).sum()
    found = compiled(vmap(grad(f)), backend="inductor")(X.expand(2, 3))
    torch.testing.assert_close(found, 10 * X.expand(2, 3) ** 3)


@gs.custom_gradient
def by_global(x):
    return x * FACTOR, lambda dy: 10 * dy * FACTOR


def test_what_a_body_reads_is_guarded_under_torch_func(monkeypatch):
    f = compiled(grad(lambda x: by_global(x).sum()))
    assert f(X).tolist() == [30, 30, 30]
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    assert f(X).tolist() == [50, 50, 50]


def refused(f, *args):
    with pytest.raises(Exception, match=r"Dynamo|dynamo") as caught:
        f(*args)
    return str(caught.value)


def test_captured_tensors_are_refused_under_torch_func():
    w = torch.nn.Parameter(torch.tensor(2.0, dtype=torch.float64))
    op = gs.custom_gradient(lambda x: (x * w, lambda dy: 10 * dy * w))
    assert gradient(compiled(op)).tolist() == [20, 20, 20]
    message = refused(compiled(grad(lambda x: op(x).sum())), X)
    assert "captures a tensor" in message
    assert "make that tensor an argument" in message


def test_objects_are_refused_under_torch_func():
    layer = Layer()
    p = dict(layer.named_parameters())
    f = compiled(grad(lambda p, x: functional_call(layer, p, (x,)).sum()))
    assert "self.weight instead of self" in refused(f, p, X)


# --- mistakes ------------------------------------------------------------------------


def test_the_contract_at_trace_time():
    op = gs.custom_gradient(lambda x: (x * 2, lambda dy: dy.sum()))
    x = point(requires_grad=True)
    expected = "the gradient of operation '<lambda>' for 'x' has the wrong shape"
    assert expected in refused(compiled(op), x)
    torch._dynamo.reset()
    assert expected in refused(compiled(grad(lambda x: op(x).sum())), X)


def test_a_body_that_looks_at_values():
    op = gs.with_gradient(lambda x: x if x.sum() > 0 else -x, lambda dy, y, x: dy)
    with pytest.raises(Exception, match=r"[Dd]ata-dependent"):
        compiled(op)(point(requires_grad=True))


@pytest.mark.parametrize("op", [canary, ruled_canary], ids=name)
def test_compiled_autograd(op):
    """It traces the walk back of an eager graph, and runs it again on other values."""
    torch._dynamo.reset()
    for x in (point(requires_grad=True), (point() + 1).requires_grad_()):
        (expected,) = torch.autograd.grad(op(x).sum(), x)
        with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")):
            op(x).sum().backward()
        torch.testing.assert_close(x.grad, expected)


@pytest.mark.parametrize("form", ["closure", "rule"])
def test_an_argument_changed_in_place_after_compiled_code(form):
    @gs.operation
    def sine(x):
        return x.sin()

    sine.vjp(lambda dy, y, x: dy * x.cos())
    if form == "closure":
        sine = gs.custom_gradient(lambda x: (x.sin(), lambda dy: dy * x.cos()))
    run = compiled(sine)
    for changed in (False, True):
        x = torch.ones(3, requires_grad=True)
        y = run(x)
        if not changed:
            y.sum().backward()
            continue
        with torch.no_grad():
            x.mul_(3)
        with pytest.raises(RuntimeError, match="modified"):
            y.sum().backward()


SCALE = torch.tensor([1.0, 2.0, 3.0])


def _reading(form, w):
    """An operation whose rule reads a tensor that is no argument, and that tensor."""
    if form == "closure":
        return gs.custom_gradient(lambda x: (x * w, lambda dy: dy * w)), w
    op = gs.operation(lambda x: x * SCALE)
    op.vjp(lambda dy, y, x: dy * SCALE)
    return op, SCALE


@pytest.mark.parametrize("form", ["closure", "rule that reads a global"])
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_captured_tensor_changed_in_place_after_compiled_code(form, backend):
    op, w = _reading(form, torch.tensor([1.0, 2.0, 3.0]))
    run = compiled(lambda x: op(x) * 2, backend=backend)
    for changed in (False, True, False):
        x = torch.ones(3, requires_grad=True)
        y = run(x)
        if not changed:
            y.sum().backward()
            torch.testing.assert_close(x.grad, 2 * w)
            continue
        w.add_(1)
        with pytest.raises(RuntimeError, match="modified"):
            y.sum().backward()


def test_the_backend_that_only_captures_notices_as_much_as_pytorch_does():
    """backend="eager" keeps no versions, neither for autograd.Function nor for ours."""
    w = torch.tensor([1.0, 2.0, 3.0])

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(w)
            return x * w

        @staticmethod
        def backward(ctx, dy):
            return dy * ctx.saved_tensors[0]

    for fn in (lambda x: Scaled.apply(x), _reading("closure", w)[0]):
        x = torch.ones(3, requires_grad=True)
        y = compiled(fn, backend="eager")(x)
        w.add_(1)
        y.sum().backward()
        torch.testing.assert_close(x.grad, w)


def test_a_tensor_that_the_rule_does_not_read_may_change_after_compiled_code():
    w = torch.tensor([1.0, 2.0, 3.0])
    run = compiled(gs.custom_gradient(lambda x: (x + w, lambda dy: 10 * dy)))
    x = torch.ones(3, requires_grad=True)
    y = run(x)
    w.add_(1)
    x.detach().add_(1)
    y.sum().backward()
    assert x.grad.tolist() == [10, 10, 10]


@pytest.mark.parametrize("form", ["closure", "rule"])
def test_a_rule_that_changes_what_it_is_given(form):
    op = writing(form)
    f = compiled(lambda x: op(x) + op(x * 1), fullgraph=False)
    with pytest.raises(Exception, match=r"in place.*\n.*dy\.clone"):
        gradient(f)


def test_a_rule_may_change_what_it_made():
    assert gradient(compiled(writes_into_its_own)).tolist() == [0, 20, 20]


def _looks(x):
    """Breaks the graph, in the body of an operation."""
    return x * (3 if x.sum() > 0 else 2), lambda dy: 10 * dy


def test_what_is_ours_is_not_compiled_where_a_graph_breaks(recwarn):
    """It is traced as a part of the caller, or not at all."""
    op, seen = gs.custom_gradient(_looks), []

    def backend(graph, _):
        calls = [n for n in graph.graph.nodes if n.op.startswith("call")]
        seen.extend(n.meta["stack_trace"] for n in calls if "stack_trace" in n.meta)
        return graph.forward

    assert gradient(compiled(op, fullgraph=False, backend=backend)).tolist() == [10] * 3
    f = compiled(grad(lambda x: op(x).sum()), fullgraph=False)
    assert f(X).tolist() == [10, 10, 10]
    assert not [text for text in seen if "call/eager.py" in text.splitlines()[0]]
    assert not [w for w in recwarn if "does not know how to trace" in str(w.message)]


@pytest.mark.parametrize("name", ["reverse", "nan_to_zero"])
def test_rule_in_portable_names_is_the_first_thing_of_a_process(name):
    """In a rule, Dynamo lets gradsmith.numpy remember nothing of what it sees first."""
    code = f"""
import torch, gradsmith as gs
x = torch.ones(3, requires_grad=True)
run = torch.compile(gs.ops.{name}, fullgraph=True, backend="aot_eager")
(dx,) = torch.autograd.grad(run(x).sum(), x)
assert dx.abs().tolist() == [1, 1, 1]
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_random_numbers_are_the_first_thing_of_a_process():
    code = """
import torch, gradsmith as gs
x = torch.ones(3, requires_grad=True)
noisy = lambda x: gs.ops.noise(x, 3)
run = torch.compile(noisy, fullgraph=True, backend="aot_eager")
found, expected = (torch.autograd.grad(fn(x).sum(), x)[0] for fn in (run, noisy))
assert (found - expected).abs().max() < 1e-6
"""
    subprocess.run([sys.executable, "-c", code], check=True)
