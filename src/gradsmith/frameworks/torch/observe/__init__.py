"""PyTorch: a dispatch mode reports each operation, hooks each node of the graph."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from ....core import trees
from ....core.places import Place, place_here, place_in
from ..._observe import Event, Observer, Operand, inside_operations, operands
from ..arrays import floats
from ..private import TorchDispatchMode, is_mutable
from .nodes import event_of, nodes_behind, sources_of

WHERE = "torch.where"


def observe(
    fn: Any,
    args: Any,
    kwargs: Any,
    named: Sequence[tuple[str, Any]],
    observer: Observer,
) -> list[Operand] | None:
    """Run a function and its backward pass, and report each operation."""
    mode = _Mode(observer)
    leaves = {id(x): x.detach().clone().requires_grad_() for _, x in named}
    inputs = [(name, leaves[id(x)]) for name, x in named]
    for name, x in inputs:
        observer.argument(Operand(name, x, _key(x)))
    args, kwargs = trees.map(lambda x: leaves.get(id(x), x), (args, kwargs))
    with _scope(), inside_operations(observer, lambda: mode.phase):
        with mode:
            returned = fn(*args, **kwargs)
        ys = [*trees.leaves_with_names(returned, "the value")]
        if not observer.outputs([Operand(name, y, _key(y)) for name, y in ys]):
            return []
        module: Any = getattr(fn, "module", None)  # as a function of its arguments
        if isinstance(module, torch.nn.Module):
            inputs += module.named_parameters()
        return _backward(mode, [y for _, y in ys], inputs)


def _backward(mode: _Mode, ys: Sequence[Any], inputs: Any) -> list[Operand] | None:
    targets = [y for y in ys if isinstance(y, torch.Tensor) and y.requires_grad]
    if not targets:
        return None
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
    pairs = zip(sources, gradients, strict=True)
    return [Operand(name, dx, key) for (name, _, key), dx in pairs]


def _key(x: Any) -> Any:
    """The key of a tensor; what a node has saved of it has the same."""
    strided = isinstance(x, torch.Tensor) and x.layout is torch.strided
    return (x.data_ptr(), tuple(x.shape)) if strided else id(x)


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
    """Reports each operation, below autograd."""

    def __init__(self, observer: Observer) -> None:
        super().__init__()
        self.observer = observer
        self.phase = "forward"
        self.is_paused = False  # the observer runs: that is no operation of the user's

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if self.is_paused:
            return func(*args, **kwargs)
        xs = [x for x in trees.leaves((args, kwargs)) if floats(x) is not None]
        inputs = operands(xs, _key, "x")
        if is_mutable(func):  # its arguments will be others afterwards
            inputs = [Operand(each.name, _copy(each.x), each.key) for each in inputs]
        ys = func(*args, **kwargs)
        place = self._place()
        if place is None and self.phase == "backward":
            return ys  # the node is reported as a whole
        self.observer.event(
            Event(
                func.__name__.partition(".")[0].lstrip("_"),
                self.phase,
                place,
                inputs,
                operands(trees.leaves(ys), _key, "y"),
                elementwise=torch.Tag.pointwise in func.tags,
            )
        )
        return ys

    def _place(self) -> Place | None:
        """In the backward pass a line of a rule: who called us is not to blame."""
        within = [_backward.__code__] if self.phase == "backward" else []
        return place_here(within=within)

    @contextmanager
    def paused(self) -> Iterator[None]:
        self.is_paused = True
        try:
            yield
        finally:
            self.is_paused = False


def _copy(x: Any) -> Any:
    return x.clone() if isinstance(x, torch.Tensor) else x


def _hooks(node: Any, mode: _Mode) -> list[Any]:
    if hasattr(node, "variable"):  # where a gradient arrives
        return []

    def after(dxs: Any, dys: Any) -> None:
        place = place_in(node.metadata.get("traceback_", ()))
        with mode.paused():
            mode.observer.event(event_of(node, dxs, dys, place, _key))

    before = node.register_prehook(lambda dys: mode.observer.enter())
    return [before, node.register_hook(after)]
