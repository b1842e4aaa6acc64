"""PyTorch's tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from .call.specs import TensorSpec

version = torch.__version__.partition("+")[0]
spec = TensorSpec


def array(x: Any, dtype: str | None = None) -> Any:
    if isinstance(x, torch.Tensor):
        x = x.detach().clone()
        return x if dtype is None else x.to(getattr(torch, dtype))
    return torch.tensor(x, dtype=None if dtype is None else getattr(torch, dtype))


def as_array(x: Any) -> Any:
    return x if isinstance(x, torch.Tensor) else torch.as_tensor(np.array(x))


def numpy(x: Any) -> np.ndarray:
    if _is_freed(x):
        return np.full(x.shape, np.nan)
    x = x.detach().resolve_conj().resolve_neg().to("cpu", copy=True)
    if x.layout is not torch.strided:
        x = x.to_dense()
    return (x.float() if x.dtype is torch.bfloat16 else x).numpy()


def _is_freed(x: Any) -> bool:
    """Whether its memory was given back, as reversible blocks do: none may be read."""
    plain = type(x) is torch.Tensor and x.layout is torch.strided and x.numel()
    return bool(plain) and x.untyped_storage().nbytes() == 0


def floats(x: Any) -> np.ndarray | None:
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


def dtype_name(x: Any) -> str:
    return str(x.dtype).removeprefix("torch.")


@contextmanager
def single_threaded() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def stack(arrays: Sequence[Any]) -> Any:
    return torch.stack(list(arrays))


# --- how tensors lie in memory -------------------------------------------------------


def _transposed(x: Any) -> Any:
    axes = tuple(reversed(range(x.ndim)))
    return x.permute(axes).contiguous().permute(axes)


def _sliced(x: Any) -> Any:
    if x.ndim == 0:
        return x
    return torch.stack([x, torch.zeros_like(x)], -1).flatten(-2)[..., ::2]


def repeated(x: Any) -> Any:
    return x.flatten()[:1].clone().reshape(()).expand(x.shape) if x.numel() else x


LAYOUTS = {"transposed": _transposed, "sliced": _sliced}
