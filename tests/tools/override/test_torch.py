import threading

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

import gradsmith as gs
import gradsmith.numpy as gnp

from .rules import guided, tenfold

X = torch.tensor([-1.0, 2.0])


def gradient(fn, x=X):
    x = x.clone().requires_grad_()
    fn(x).sum().backward()
    return x.grad.tolist()


def changed_input(x):
    """What in-place calls are made for: the name x means the result from then on."""
    z = x * 1
    F.relu(z, inplace=True)
    return z


CALLS = {
    "F.relu": F.relu,
    "torch.relu": torch.relu,
    "x.relu": lambda x: x.relu(),
    "x.relu_": lambda x: (x * 1).relu_(),
    "torch.relu_": lambda x: torch.relu_(x * 1),
    "F.relu_": lambda x: F.relu_(x * 1),
    "F.relu(inplace)": lambda x: F.relu(x * 1, inplace=True),
    "by position": lambda x: F.relu(x * 1, True),
    "by name": lambda x: F.relu(input=x),
    "changed input": changed_input,
    "nn.ReLU": nn.ReLU(),
    "nn.ReLU(inplace)": lambda x: nn.ReLU(inplace=True)(x * 1),
    "nested": nn.Sequential(nn.Sequential(nn.ReLU())),
    "aten": torch.ops.aten.relu,
    "vmap": torch.func.vmap(F.relu),
    "checkpoint": lambda x: torch.utils.checkpoint.checkpoint(
        F.relu, x, use_reentrant=False
    ),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("target", [F.relu, torch.relu, torch.Tensor.relu_])
def test_an_operation_is_changed_however_it_is_called(target, call):
    with gs.override({target: tenfold}) as record:
        assert gradient(call) == [10, 10]
    assert record.count() >= 1
    assert gradient(call) == [0, 1]


def test_in_place_calls_give_the_same_values():
    with gs.override({F.relu: tenfold}):
        x = X.clone()
        y = F.relu_(x)
    assert y is x
    assert x.tolist() == [0, 2]


def test_a_leaf_is_not_changed_in_place():
    x = X.clone().requires_grad_()
    with pytest.raises(RuntimeError, match="leaf"), gs.override({F.relu: tenfold}):
        F.relu_(x)


@pytest.mark.parametrize("inplace", [False, True])
def test_modules_by_class_and_by_instance(inplace):
    one, other = nn.ReLU(inplace), nn.ReLU(inplace)
    with gs.override({nn.ReLU: tenfold}) as record:
        assert gradient(lambda x: one(x * 1) + other(x * 1)) == [20, 20]
    assert record.count("ReLU") == 2
    with gs.override({other: tenfold}) as record:
        assert gradient(lambda x: one(x * 1) + other(x * 1)) == [10, 11]
    assert record.count() == 1


def test_parameters_of_a_changed_module_keep_their_gradients():
    layer = nn.Linear(2, 2)
    with gs.override({nn.Linear: tenfold}):
        assert gradient(layer) == [10, 10]
    assert layer.weight.grad.tolist() == [[-1, 2], [-1, 2]]
    assert layer.bias.grad.tolist() == [1, 1]


class Functional(nn.Module):
    """A network that calls F.relu, of which hooks on modules know nothing."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 3, 3)
        self.head = nn.Linear(3 * 36, 2)

    def forward(self, x):
        return self.head(F.relu(self.conv(x)).flatten(1))


def by_hooks(model, x):
    """Guided backpropagation as it is done by hooks on the ReLU modules."""
    hook = lambda module, dxs, dys: (F.relu(dxs[0]),)
    relus = [m for m in model.modules() if isinstance(m, nn.ReLU)]
    handles = [m.register_full_backward_hook(hook) for m in relus]
    try:
        return by_autograd(model, x)
    finally:
        for handle in handles:
            handle.remove()


def by_autograd(model, x):
    x = x.clone().requires_grad_()
    return torch.autograd.grad(model(x)[:, 0].sum(), x)[0]


def by_hand(model, x):
    z = model.conv(x).detach().requires_grad_()
    dy = torch.autograd.grad(model.head(F.relu(z).flatten(1))[:, 0].sum(), z)[0]
    return torch.nn.grad.conv2d_input(x.shape, model.conv.weight, dy.clamp(min=0))


def test_hooks_return_the_plain_gradient_where_this_is_right():
    torch.manual_seed(0)
    model, x = Functional(), torch.randn(2, 1, 8, 8)
    plain = by_autograd(model, x)
    assert torch.equal(by_hooks(model, x), plain)  # silently
    with gs.override(model, {F.relu: guided}) as record:
        found = by_autograd(model, x)
    assert not torch.allclose(found, plain)
    torch.testing.assert_close(found, by_hand(model, x))
    assert record.count() == 1
    assert record.changes[0].place.source.startswith("return self.head(F.relu(")


def test_a_model_first_means_its_calls_alone():
    model = nn.Sequential(nn.ReLU())
    with gs.override(model, {F.relu: tenfold}) as record:
        assert gradient(lambda x: model(x) + F.relu(x)) == [10, 11]
    assert record.count() == 1
    changed = gs.override(model, {F.relu: tenfold})
    assert gradient(lambda x: changed(x) + model(x)) == [10, 11]


def test_an_operation_replaces_the_value_too():
    @gs.custom_gradient
    def shifted(x):
        return gnp.maximum(x, 0) + 1, lambda dy: 3 * dy

    with gs.override({F.relu: shifted}):
        assert F.relu(X).tolist() == [1, 3]
        assert gradient(nn.ReLU()) == [3, 3]

    class Native(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x + 5

        @staticmethod
        def backward(ctx, dy):
            return 7 * dy

    with gs.override({F.relu: Native.apply}):
        assert F.relu(X).tolist() == [4, 7]
        assert gradient(nn.ReLU()) == [7, 7]


def test_functions_that_call_functions_are_seen_into():
    logits = torch.tensor([0.3, 0.1])
    rule = lambda dy, y, x, dim: 10 * dy
    with gs.override({torch.softmax: rule}) as record:
        gradient(lambda x: F.gumbel_softmax(x, dim=0), logits)
    assert record.count() == 1
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)
    with gs.override({F.relu: tenfold}) as record:
        layer(torch.randn(3, 1, 4))
    assert record.count() == 1


def test_transformations():
    total = lambda x: F.relu(x).sum()
    with gs.override({F.relu: tenfold}):
        assert torch.func.grad(total)(X).tolist() == [10, 10]
        rows = torch.func.vmap(torch.func.grad(total))(torch.ones(3, 2))
        assert rows.tolist() == [[10, 10]] * 3
    with gs.override({F.relu: tenfold}, linear=True):
        assert torch.func.jvp(F.relu, (X,), (X,))[1].tolist() == [-10, 20]


def test_compiled_functions_run_as_they_are_written():
    compiled = torch.compile(lambda x: F.relu(x), backend="eager")
    compiled(X)
    with gs.override({F.relu: tenfold}):
        assert gradient(compiled) == [10, 10]
    assert gradient(compiled) == [0, 1]


def test_inside_of_a_compiled_function():
    def step(x):
        with gs.override({F.relu: tenfold}):
            return F.relu(x) + 1

    assert gradient(torch.compile(step, backend="eager")) == [10, 10]
    whole = torch.compile(step, backend="eager", fullgraph=True)
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"gs\.override"):
        whole(X)


def test_what_runs_below_python_is_no_call():
    with gs.override({torch.mm: lambda dy, y, a, b: (dy @ b.T, 0 * b)}) as record:
        torch.mm(torch.eye(2), torch.eye(2, requires_grad=True)).sum().backward()
    assert record.count() == 1


def test_what_runs_below_python_is_told():
    scripted = nn.RNN(2, 2, nonlinearity="relu")
    refused = pytest.raises(gs.GradsmithError, match="below Python")
    with refused as caught, gs.override({F.relu: tenfold}):
        F.relu(X)
        scripted(torch.ones(1, 1, 2))
    assert f"{__file__}:" in str(caught.value)


def test_the_backward_pass_of_others_is_not_what_is_changed():
    with gs.override({torch.mul: lambda dy, y, a, b: (10 * dy, dy)}) as record:
        assert gradient(lambda x: torch.exp(x) * 2, torch.zeros(2)) == [10, 10]
    assert record.count() == 1


def test_results_are_not_written_elsewhere():
    refused = pytest.raises(gs.GradsmithError, match="out=")
    with refused, gs.override({torch.tanh: tenfold}):
        torch.tanh(X, out=torch.empty(2))


def test_an_autograd_function_is_refused():
    class Own(torch.autograd.Function):
        pass

    with pytest.raises(gs.GradsmithError, match=r"can't be overridden.*apply"):
        gs.override({Own: tenfold})


def test_a_target_that_never_occurred():
    refused = pytest.raises(
        gs.GradsmithError, match=r"never called.*F\.gelu\n.*F\.relu"
    )
    with refused, gs.override({F.gelu: tenfold}):
        nn.ReLU()(X)


def test_other_threads_go_on_as_ever():
    found = []
    with gs.override({F.relu: tenfold, nn.ReLU: tenfold}):
        thread = threading.Thread(target=lambda: found.append(gradient(nn.ReLU())))
        thread.start()
        thread.join()
        gradient(lambda x: F.relu(x) + nn.ReLU()(x))
    assert found == [[0, 1]]


def test_everything_is_restored():
    call = nn.Module.__call__
    refused = pytest.raises(ValueError, match="mine")
    with refused, gs.override(nn.ReLU(), {F.relu: tenfold, nn.Linear: tenfold}):
        raise ValueError("mine")
    assert nn.Module.__call__ is call
    assert torch._C._len_torch_function_stack() == 0
    assert torch._C._len_torch_dispatch_stack() == 0
    assert gradient(F.relu) == [0, 1]


def test_random_numbers_are_those_of_the_plain_model():
    draw = lambda: torch.manual_seed(0) and F.dropout(F.relu(torch.ones(8)), 0.5)
    plain = draw()
    with gs.override({F.relu: tenfold}):
        np.testing.assert_array_equal(draw(), plain)


class Own(nn.Module):
    def forward(self, x):
        return F.relu(x)


@pytest.mark.parametrize("given", ["original", "compiled", "class"])
def test_a_compiled_model_is_its_original(given):
    model = Own()
    compiled = torch.compile(model, backend="eager")
    compiled(X)
    wanted = {"original": model, "compiled": compiled, "class": Own}[given]
    if given != "class":
        with gs.override(wanted, {F.relu: tenfold}) as record:
            assert gradient(compiled) == [10, 10]
        assert record.count() == 1
    with gs.override({wanted: tenfold}) as record:
        assert gradient(compiled) == [10, 10]
    assert record.count() == 1
    assert gradient(compiled) == [0, 1]


def test_an_exported_model():
    exported = torch.export.export(nn.Sequential(nn.ReLU()), (X,)).module()
    for target in (F.relu, torch.ops.aten.relu.default):
        with gs.override({target: tenfold}):
            assert gradient(exported) == [10, 10]


DEFAULTS = [
    (F.gelu, nn.GELU()),
    (F.softplus, nn.Softplus()),
    (F.elu, nn.ELU()),
    (F.hardtanh, nn.Hardtanh()),
    (F.leaky_relu, nn.LeakyReLU()),
]


@pytest.mark.parametrize(("target", "layer"), DEFAULTS, ids=lambda x: str(x)[:20])
def test_a_default_is_none_also_of_functions_in_c(target, layer):
    with gs.override(layer, {target: tenfold}):
        assert gradient(layer) == [10, 10]


def test_what_is_not_the_default_is_named_also_of_functions_in_c():
    refused = pytest.raises(gs.GradsmithError, match=r"approximate='tanh'")
    with refused, gs.override({F.gelu: tenfold}):
        nn.GELU("tanh")(X)
    refused = pytest.raises(gs.GradsmithError, match=r"threshold=3,.*\n.*name \(thr")
    with refused, gs.override({F.softplus: tenfold}):
        nn.Softplus(1, 3)(X)
    rule = lambda dy, y, x, kernel_size, stride: kernel_size * torch.ones_like(x)
    with gs.override({F.max_pool1d: rule}):
        assert gradient(nn.MaxPool1d(2), X[None]) == [[2, 2]]
    with gs.override({F.max_pool1d: lambda dy, y, x, **k: k["stride"] * x}):
        assert gradient(nn.MaxPool1d(2), X[None]) == [[-2, 4]]
