"""Is the gradient of a checkpointed function that of the function? On PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from ....core import trees
from ....core.errors import GradsmithError
from ..._randomness import Streams
from ..._recompute import FlatCall, name_of, require_same
from ..arrays import numpy
from ..private import is_transformed
from .buffers import buffers_of, given, names_of_parameters


def require_equal(
    fn: Callable[..., Any],
    checkpointed: Callable[..., Any],
    args: Any,
    kwargs: Any,
    streams: Streams,
) -> None:
    """Raise if the two differ, in a value or in the gradient of any tensor."""
    if is_transformed():
        raise GradsmithError(
            "verify=True compares values, which torch.func's transforms hide\n"
            "  what to do: verify the function in a plain backward pass, once"
        )
    flat = FlatCall(fn, args, kwargs, lambda x: isinstance(x, torch.Tensor))
    known = names_of_parameters(fn, args, kwargs)
    known |= {id(x): each for x, each in zip(flat.arrays, flat.names, strict=True)}
    buffers, found = buffers_of(fn, args, kwargs), []
    for each in (fn, checkpointed):
        with torch.enable_grad(), given(buffers), streams.unchanged():
            found.append(_values(each(*args, **kwargs), flat.arrays, known))
    plain, recomputed = found
    require_same(name_of(fn), plain, recomputed, exact=False)


def _values(result: Any, given: list[Any], known: dict[int, str]) -> dict[str, Any]:
    """The results, and the gradients of all tensors for one upstream."""
    named = [*trees.leaves_with_names(result, "the value")]
    found = {name: _numpy(y) for name, y in named}
    ys = [y for _, y in named if isinstance(y, torch.Tensor) and y.requires_grad]
    sources = [x for x in given if x.requires_grad]
    taken = {id(x) for x in sources}
    sources += [x for x in _parameters(ys) if id(x) not in taken]
    if not ys or not sources:
        return found
    random = torch.Generator().manual_seed(0)
    dys = [torch.randn(y.shape, generator=random).to(y) for y in ys]
    # What the arguments were computed from is the caller's, who needs it later.
    gradients = torch.autograd.grad(
        ys, sources, dys, allow_unused=True, retain_graph=True
    )
    for i, (x, dx) in enumerate(zip(sources, gradients, strict=True)):
        of = known.get(id(x), f"captured parameter {i} of shape {tuple(x.shape)}")
        found[f"the gradient for {of}"] = _numpy(dx)
    return found


def _parameters(ys: list[torch.Tensor]) -> Iterator[torch.Tensor]:
    """The tensors at which the graph of some results ends."""
    stack: list[Any] = [y.grad_fn for y in ys if y.grad_fn is not None]
    seen = set(stack)
    while stack:
        node = stack.pop()
        if hasattr(node, "variable"):
            yield node.variable
        for each, _ in node.next_functions:
            if each is not None and each not in seen:
                seen.add(each)
                stack.append(each)


def _numpy(x: Any) -> Any:
    return numpy(x) if isinstance(x, torch.Tensor) else x
