"""PyTorch: a dispatch mode sees each operation, hooks see each node on the way back."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ...core import trees
from ...core.places import Place, place_here, place_in
from .inside import looking_inside
from .steps import Call, Seen, seen
from .torch_nodes import call_of, nodes_behind, sources_of
from .watch import Watch

version = torch.__version__.partition("+")[0]
WHERE = "torch.where"


def array(x: Any) -> Any:
    return x if isinstance(x, torch.Tensor) else torch.as_tensor(np.array(x))


def numpy(x: Any) -> np.ndarray | None:
    """Tensors of floating numbers; nothing of what can't be NaN."""
    if isinstance(x, (float, complex, np.ndarray, np.generic)):  # also in callbacks
        x = np.asarray(x)
        return x if x.dtype.kind in "fc" else None
    if not isinstance(x, torch.Tensor):
        return None
    if not (x.is_floating_point() or x.is_complex()) or x.is_meta:
        return None
    if x.layout is not torch.strided:
        x = x.to_dense()
    known = x.dtype in (torch.float16, torch.float32, torch.float64) or x.is_complex()
    return (x if known else x.float()).numpy(force=True)


def key(x: Any) -> Any:
    """By which a tensor is known again, also as what a node has saved of it."""
    strided = isinstance(x, torch.Tensor) and x.layout is torch.strided
    return (x.data_ptr(), tuple(x.shape)) if strided else id(x)


def _copy(x: Any) -> Any:
    return x.clone() if isinstance(x, torch.Tensor) else x


def look(fn: Any, args: Any, kwargs: Any, named: Sequence[tuple[str, Any]]) -> Any:
    """Run a function and its backward pass under a watch."""
    watch = Watch(numpy)
    mode = _Mode(watch)
    leaves = {id(x): x.detach().clone().requires_grad_() for _, x in named}
    for name, x in named:
        watch.given(name, leaves[id(x)], key(leaves[id(x)]))
    args, kwargs = trees.map(lambda x: leaves.get(id(x), x), (args, kwargs))
    with _scope(), looking_inside(watch, lambda: mode.phase):
        with mode:
            returned = fn(*args, **kwargs)
        ys = [*trees.leaves_with_names(returned, "the value")]
        found = [watch.result(name, y, key(y)) for name, y in ys]
        results = [each for each in found if each is not None]
        if results:
            return watch, results, []
        inputs = [(name, leaves[id(x)]) for name, x in named]
        module: Any = getattr(fn, "module", None)  # as a function of its arguments
        if isinstance(module, torch.nn.Module):
            inputs += module.named_parameters()
        return watch, *_backward(mode, [y for _, y in ys], inputs)


@contextmanager
def _scope() -> Iterator[None]:
    """Nodes know the line that made them; compiled functions run eagerly."""
    anomaly, check = torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
    try:
        torch.autograd.set_detect_anomaly(True, check_nan=False)
        with (
            torch.enable_grad(),
            torch.compiler.set_stance("force_eager"),
            warnings.catch_warnings(),
        ):
            # Of an exception, which says all of it, if it is one
            warnings.filterwarnings("ignore", r"\s*(Error detected|Previous calc)")
            yield
    finally:
        torch.autograd.set_detect_anomaly(anomaly, check)


class _Mode(TorchDispatchMode):
    """Tells a watch of each operation, below autograd."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self.watch = watch
        self.phase = "forward"
        self.busy = False  # with looking: that is no operation of the user's

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if self.busy:
            return func(*args, **kwargs)
        xs = [x for x in trees.leaves((args, kwargs)) if numpy(x) is not None]
        ins = seen(xs, key, "x")
        if func._schema.is_mutable:  # its arguments will be others afterwards
            ins = [Seen(each.name, _copy(each.x), each.key) for each in ins]
        ys = func(*args, **kwargs)
        place = self._place()
        if place is None and self.phase == "backward":
            return ys  # the node tells of it as a whole
        self.watch.saw(
            Call(
                func.__name__.partition(".")[0].lstrip("_"),
                self.phase,
                place,
                ins,
                seen(trees.leaves(ys), key, "y"),
                elementwise=torch.Tag.pointwise in func.tags,
            )
        )
        return ys

    def _place(self) -> Place | None:
        """In the backward pass only a rule's own lines count: who called us did not."""
        if self.phase == "forward":
            return place_here()
        return place_here(within=[_backward.__code__])

    @contextmanager
    def looking(self) -> Iterator[None]:
        self.busy = True
        try:
            yield
        finally:
            self.busy = False


def _backward(mode: _Mode, ys: Sequence[Any], inputs: Any) -> Any:
    targets = [y for y in ys if isinstance(y, torch.Tensor) and y.requires_grad]
    if not targets:
        return [], ["the value does not depend on the inputs: no gradient to look at"]
    nodes = nodes_behind(targets)
    sources = sources_of(nodes, inputs)
    hooks = [hook for node in nodes for hook in _hooks(node, mode)]
    mode.phase = "backward"
    try:
        with mode:
            dys = [torch.ones_like(y) for y in targets]
            tensors = [x for _, x, _ in sources]
            gradients = torch.autograd.grad(targets, tensors, dys, allow_unused=True)
    finally:
        for hook in hooks:
            hook.remove()
    found = [
        mode.watch.gradient(name, dx, k)
        for (name, _, k), dx in zip(sources, gradients, strict=True)
    ]
    return [each for each in found if each is not None], []


def _hooks(node: Any, mode: _Mode) -> list[Any]:
    if hasattr(node, "variable"):  # where a gradient arrives
        return []

    def after(dxs: Any, dys: Any) -> None:
        place = place_in(node.metadata.get("traceback_", ()))
        with mode.looking():
            mode.watch.saw(call_of(node, dxs, dys, place, key))

    before = node.register_prehook(lambda dys: mode.watch.enter())
    return [before, node.register_hook(after)]
