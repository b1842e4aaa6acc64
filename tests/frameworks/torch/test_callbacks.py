"""NumPy functions on tensors: eager, under torch.func, compiled and exported."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vmap

import gradsmith as gs
from gradsmith.core.arrays import FRAMEWORKS
from gradsmith.core.cotangent import Spec
from gradsmith.operations.callbacks import call_back

from .operations import point

pytestmark = [
    # PyTorch about itself
    pytest.mark.filterwarnings("ignore:.torch.jit.script.* is deprecated"),
    pytest.mark.filterwarnings("ignore:.*Function.*should not be instantiated"),
]
X = point()


def host(fn, *xs):
    specs = [
        Spec(tuple(xs[0].shape), np.dtype(str(xs[0].dtype).removeprefix("torch.")))
    ]
    (y,) = call_back(lambda *a: [fn(*a)], xs, lambda: specs, "cube")
    return y


@gs.operation
def cube(x):
    return host(lambda a: a**3, x)


@cube.vjp
def _(dy, y, x):
    return host(lambda d, a: 10 * d * a**2, dy, x)


@cube.jvp
def _(dx, y, x):
    return host(lambda d, a: 10 * d * a**2, dx, x)


cube.hosted = True
f = lambda x: cube(x).sum()


def gradient(f, x=X):
    x = x.clone().requires_grad_()
    f(x).sum().backward()
    return x.grad


def compiled(f, **options):
    torch._dynamo.reset()
    return torch.compile(f, fullgraph=True, backend="aot_eager", **options)


CALLS = {
    "backward": lambda: gradient(cube),
    "grad": lambda: grad(f)(X),
    "vmap grad": lambda: vmap(grad(cube))(X),
    "jvp": lambda: jvp(cube, (X,), (torch.ones_like(X),))[1],
    "jacrev": lambda: jacrev(f)(X),
    "jacfwd": lambda: jacfwd(f)(X),
    "compiled": lambda: gradient(compiled(cube)),
    "dynamic": lambda: gradient(compiled(cube, dynamic=True)),
    "compiled grad": lambda: compiled(grad(f))(X),
    "compiled vmap grad": lambda: compiled(vmap(grad(cube)))(X),
    "compiled jvp": lambda: compiled(
        lambda x: jvp(cube, (x,), (torch.ones_like(x),))[1]
    )(X),
    "exported": lambda: gradient(torch.export.export(Cube(), (X,)).module()),
}


class Cube(torch.nn.Module):
    def forward(self, x):
        return cube(x)


@pytest.mark.parametrize("call", CALLS)
def test_numpy_bodies_and_rules(call):
    torch.testing.assert_close(CALLS[call](), 10 * X**2)


def test_batches_with_and_without_axis():
    weighted = lambda x, w: host(lambda a, b: a * b, x, w)
    x, w = torch.ones(2, 3), torch.tensor([1.0, 2.0, 3.0])
    out = vmap(weighted, in_dims=(0, None))(x, w)
    assert out.tolist() == [[1, 2, 3]] * 2
    out = vmap(weighted, in_dims=(1, 0))(x, w)
    assert out.tolist() == [[1, 1], [2, 2], [3, 3]]


def test_what_numpy_computed_has_no_second_derivative():
    with pytest.raises(gs.UnsupportedOperationError, match="computed in NumPy"):
        hessian(f)(X)
    x = point(requires_grad=True)
    (dx,) = torch.autograd.grad(f(x), x, create_graph=True)
    with pytest.raises(gs.UnsupportedOperationError, match=r"gradsmith\.numpy"):
        dx.sum().backward()


def test_arrays_are_read_only_and_results_are_new():
    def change(a):
        a += 1
        return a

    with pytest.raises(ValueError, match="read-only"):
        host(change, X)
    y = host(lambda a: a, X)
    y += 1
    assert X.tolist() == [1, 2, 3]
    assert host(lambda a: a[::-1], X).tolist() == [3, 2, 1]


def test_a_result_that_others_hold_is_copied():
    held = np.ones(3)
    for result in (held, held[:], held[::-1], held.reshape(1, 3)[0]):
        y = host(lambda a, result=result: result, X)
        y += 1
        assert held.tolist() == [1, 1, 1]
        held[0], before = 5, y[0].item()
        assert y[0] == before
        held[0] = 1


def test_an_empty_batch():
    assert vmap(cube)(torch.ones(0, 3)).shape == (0, 3)
    assert vmap(grad(f))(torch.ones(0, 3)).shape == (0, 3)


def test_bfloat16_has_no_numpy():
    x = torch.ones(2, dtype=torch.bfloat16)
    (adapter, spec) = FRAMEWORKS["torch"].call, Spec((2,), np.dtype("float32"))
    with pytest.raises(gs.UnsupportedOperationError, match=r"bfloat16\n.*x\.float"):
        adapter.host(lambda a: [a], [x], [spec], "cube")


def test_conjugated_views():
    z = torch.tensor([1 + 2j]).conj()
    assert host(lambda a: a, z).tolist() == [1 - 2j]


# --- sizes that change ---------------------------------------------------------------


def _sine(x, w):
    return np.sin(x) * w.sum(), lambda dy: (
        dy * np.cos(x) * w.sum(),
        np.full_like(w, (dy * np.sin(x)).sum()),
    )


def _joined(x, w):
    return np.concatenate([x, w, w, [1.0]]), lambda dy: (
        dy[: len(x)],
        dy[len(x) : -1].reshape(2, -1).sum(0),
    )


def _outer(x, w):
    return np.outer(x, w).ravel(), lambda dy: (
        dy.reshape(len(x), -1) @ w,
        x @ dy.reshape(len(x), -1),
    )


def _swapped(x, w):
    return (w * 2, x * 3, np.int32(7)), lambda dy: (dy[1] * 3, dy[0] * 2)


def _truncated(x, w):
    """A sum of symbols for large sizes alone."""
    return x[:5] * w[0], lambda dy: (
        np.concatenate([dy * w[0], np.zeros(len(x) - len(dy))]),
        np.concatenate([[dy @ x[:5]], np.zeros(len(w) - 1)]),
    )


def _every_second(x, w):
    def grad(dy):
        dx = np.zeros_like(x)
        dx[::2] = dy
        return dx, np.zeros_like(w)

    return x[::2], grad


BODIES = [_sine, _joined, _outer, _swapped, _truncated, _every_second]
SPECS = {
    _sine: lambda x, w: gs.spec(x.shape, x.dtype),
    _outer: lambda x, w: gs.spec((x.shape[0] * w.shape[0],), "float64"),
}
LIMIT = 2  # one for the first sizes, one for all


def sizes_tried(op, sizes):
    """The number of graphs that were compiled; values and gradients are eager's."""
    counter = CompileCounterWithBackend("aot_eager")

    def loss(x, w):
        ys = op(x * 1.0, w)
        ys = ys if isinstance(ys, tuple) else (ys,)
        return sum(((y + 1) ** 2).sum() for y in ys)

    torch._dynamo.reset()
    run = torch.compile(loss, fullgraph=True, backend=counter)
    for n, m in sizes:
        xs = [
            torch.linspace(0.1, 2, k, dtype=torch.float64, requires_grad=True)
            for k in (n, m)
        ]
        expected, y = loss(*xs), run(*xs)
        torch.testing.assert_close(y, expected)
        found = torch.autograd.grad(y, xs)
        torch.testing.assert_close(found, torch.autograd.grad(expected, xs))
    return counter.frame_count


@pytest.mark.parametrize("body", BODIES[:4])
@pytest.mark.parametrize("dtype", [None, "float64"])
def test_one_graph_for_all_sizes(body, dtype):
    sizes = [(n, 19 - n) for n in range(3, 15)]
    assert sizes_tried(gs.python_op(body, dtype=dtype), sizes) <= LIMIT


@pytest.mark.parametrize("body", SPECS)
def test_one_graph_for_all_sizes_that_a_spec_tells(body):
    sizes = [(n, 19 - n) for n in range(3, 15)]
    assert sizes_tried(gs.python_op(body, spec=SPECS[body]), sizes) <= LIMIT


@pytest.mark.parametrize("body", BODIES[4:])
def test_sizes_that_are_no_sum_and_no_product(body):
    """Compiled for each, since nobody says what they are at others."""
    assert sizes_tried(gs.python_op(body), [(n, 20) for n in (3, 9, 4, 6)]) == 4


def test_sizes_that_trials_do_not_show():
    op = gs.python_op(lambda x: x[:100], lambda dy, y, x: dy)
    run = torch.compile(op, dynamic=True, fullgraph=True, backend="aot_eager")
    assert run(torch.ones(20)).shape == (20,)
    with pytest.raises(gs.GradientContractError, match=r"spec=.*\n.*got: \(100,\)"):
        run(torch.ones(200))


def traced_sine():
    """The graph of a NumPy function."""
    from torch.fx.experimental.proxy_tensor import make_fx

    return make_fx(lambda x: host(np.sin, x), tracing_mode="fake")(X)


def test_what_graphs_name_is_bounded(monkeypatch):
    """Thousands of operations are traced, one after the other."""
    from gradsmith.core import caches
    from gradsmith.frameworks.torch.call import callbacks, compiled, nodes

    monkeypatch.setattr(caches, "MOST", 50)
    monkeypatch.setattr(callbacks, "_hosted", caches.Latest())
    monkeypatch.setattr(nodes, "_objects", caches.Latest())
    before = len(compiled._structures)
    first = traced_sine()
    for n in range(2000):
        op = gs.operation(lambda x, n=n: x * n)
        args = nodes.encoded((X, object()), nodes.named)
        assert isinstance(nodes.decoded(args)[1], object)
        compiled.opaque(op.key, [X], {})
        assert compiled.structure(op.key) == (
            "dict",
            ("gradsmith: tensor",),
            (("", 0),),
        )
        if n % 10 == 0:
            traced_sine()
            torch.testing.assert_close(first(X), X.sin())  # used: it stays
        assert max(map(len, (callbacks._hosted, nodes._objects))) <= 100
    assert len(compiled._structures) <= before + 3


def test_a_graph_that_was_not_run_for_long(monkeypatch):
    from gradsmith.core import caches

    monkeypatch.setattr(caches, "MOST", 5)
    first = traced_sine()
    for _ in range(12):
        traced_sine()
    with pytest.raises(gs.UnsupportedOperationError, match="trace or export it again"):
        first(X)
