"""torch.export keeps the rule, also into another process, or says that it can't."""

from __future__ import annotations

import gc
import io
import pickle
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
import torch

import gradsmith as gs

from .operations import canary, point, softmax

pytestmark = [
    # PyTorch about itself
    pytest.mark.filterwarnings("ignore:.*Function.*should not be instantiated"),
    pytest.mark.filterwarnings("ignore:.torch.jit.script.* is deprecated"),
    pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec"),
]


@dataclass
class Record:
    a: object
    b: object


@gs.operation
def product(r, *, k=1.0, dtype=None):
    return {"y": (r.a * r.b * k).to(dtype)}


@product.vjp
def _(dy, y, r, *, k, dtype):
    return Record(10 * dy["y"] * r.b * k, dy["y"] * r.a * k)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3, dtype=torch.float64)

    def forward(self, x):
        h = softmax(self.linear(x), axis=-1) + canary(x)
        return product(Record(h, x), k=2.5, dtype=torch.float64)["y"]


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    return Net()


@pytest.fixture(scope="module")
def program(net):
    return torch.export.export(net, (point(),))


def gradients(f):
    x = point(requires_grad=True)
    y = f(x)
    y.backward(torch.ones_like(y))
    return x.grad


def test_the_rule_is_kept(net, program):
    torch.testing.assert_close(gradients(program.module()), gradients(net))
    decomposed = program.run_decompositions()
    torch.testing.assert_close(gradients(decomposed.module()), gradients(net))


def test_parameters_of_the_exported_module_learn(net, program):
    module = program.module()
    module.zero_grad()
    module(point()).sum().backward()
    found = {k: p.grad.clone() for k, p in module.named_parameters()}
    net.zero_grad()  # the same parameters
    net(point()).sum().backward()
    for key, p in net.named_parameters():
        torch.testing.assert_close(found[key], p.grad)


def test_an_exported_module_can_be_compiled(net, program):
    torch._dynamo.reset()
    f = torch.compile(program.module(), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(gradients(f), gradients(net))


def test_forward_mode_of_an_exported_module(net, program):
    from torch.autograd import forward_ad

    with forward_ad.dual_level():
        dual = forward_ad.make_dual(point(), point())
        found = forward_ad.unpack_dual(program.module()(dual)).tangent
        expected = forward_ad.unpack_dual(net(dual)).tangent
    torch.testing.assert_close(found, expected)
    with pytest.raises(gs.UnsupportedOperationError, match=r"not by torch\.func"):
        torch.func.jvp(program.module(), (point(),), (point(),))


def test_another_process(program, net, tmp_path):
    path = tmp_path / "net.pt2"
    torch.export.save(program, path)
    script = f"""
import torch
import tests.frameworks.torch.test_export
x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
module = torch.export.load({str(path)!r}).module()
y = module(x)
y.backward(torch.ones_like(y))
print(x.grad.tolist())
"""
    run = [sys.executable, "-c", script]
    done = subprocess.run(run, check=True, capture_output=True, text=True, timeout=600)
    assert eval(done.stdout) == pytest.approx(gradients(net).tolist())


@gs.python_op
def in_numpy(x):
    return np.sin(x)


@in_numpy.vjp
def _(dy, y, x):
    return 10 * dy * np.cos(x)


def test_python_operations_are_found_by_their_name():
    class Net(torch.nn.Module):
        def forward(self, x):
            return in_numpy(x)

    program = torch.export.export(Net(), (point(requires_grad=True),))
    assert "test_export:in_numpy" in str(program.graph)
    expected = 10 * torch.cos(point())
    torch.testing.assert_close(gradients(program.module()), expected)


# --- older tracers -------------------------------------------------------------------


class Traced(torch.nn.Module):
    op = staticmethod(canary)

    def forward(self, x):
        return self.op(x) + in_numpy(x)


def test_torch_fx_has_the_operation_as_a_node():
    traced = torch.fx.symbolic_trace(Traced())
    assert {canary, in_numpy} <= {node.target for node in traced.graph.nodes}
    expected = gradients(Traced())
    torch.testing.assert_close(gradients(traced), expected)
    again = pickle.loads(pickle.dumps(traced))
    torch.testing.assert_close(gradients(again), expected)


@pytest.mark.filterwarnings("ignore:.torch.jit.trace.* is deprecated")
def test_torch_jit_has_no_rules():
    """It would keep the body alone, and differentiate that."""
    with pytest.raises(gs.UnsupportedOperationError, match=r"under torch\.no_grad"):
        torch.jit.trace(Traced(), point())
    net = torch.nn.Sequential(torch.nn.Linear(3, 3).double(), Traced())
    with pytest.raises(gs.UnsupportedOperationError, match=r"under torch\.no_grad"):
        torch.jit.trace(net, point())
    with torch.no_grad():
        traced = torch.jit.trace(lambda x: canary(x), point())
    y = traced(point(requires_grad=True))
    torch.testing.assert_close(y, canary(point()))
    assert not y.requires_grad


def test_local_operations_are_found_in_this_process_only():
    class Local(torch.nn.Module):
        op = staticmethod(gs.custom_gradient(lambda x: (x * 1, lambda dy: 10 * dy)))

        def forward(self, x):
            return self.op(x)

    program = torch.export.export(Local(), (point(),))
    assert gradients(program.module()).tolist() == [10, 10, 10]
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    buffer.seek(0)
    module = torch.export.load(buffer).module()
    del Local.op
    gc.collect()
    with pytest.raises(gs.UnsupportedOperationError, match="top level of a module"):
        module(point())


def test_dynamic_shapes(net):
    n = torch.export.Dim("n")
    x = torch.randn(4, 3, dtype=torch.float64)
    program = torch.export.export(net, (x,), dynamic_shapes={"x": {0: n}})
    x = torch.randn(7, 3, dtype=torch.float64)
    torch.testing.assert_close(program.module()(x), net(x))


def test_for_inference_the_body_is_cut_off(net):
    with torch.no_grad():
        program = torch.export.export(net, (point(),))
    assert not any("gradsmith" in str(n.target) for n in program.graph.nodes)
    y = program.module()(point(requires_grad=True))
    torch.testing.assert_close(y, net(point()))
    assert not y.requires_grad


class Captures(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor(2.0, dtype=torch.float64))

    @gs.custom_gradient
    def scaled(self, x):
        return x * self.weight, lambda dy: 10 * dy * self.weight

    def forward(self, x):
        return self.scaled(x)


def test_what_cannot_be_kept_is_refused(net):
    with pytest.raises(gs.UnsupportedOperationError, match="captures a tensor"):
        torch.export.export(Captures(), (point(),))
    with pytest.raises(Exception, match="omit strict=True"):
        torch.export.export(net, (point(),), strict=True)
