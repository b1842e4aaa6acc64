"""PyTorch's kernels of linear algebra."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

matmul, einsum = torch.matmul, torch.einsum
solve, inv, det = torch.linalg.solve, torch.linalg.inv, torch.linalg.det
slogdet, cholesky = torch.linalg.slogdet, torch.linalg.cholesky
eigh, eigvalsh, svdvals = torch.linalg.eigh, torch.linalg.eigvalsh, torch.linalg.svdvals


def tensordot(x1: Tensor, x2: Tensor, axes: Any) -> Tensor:
    return torch.tensordot(x1, x2, dims=axes)


def svd(x: Tensor, full_matrices: bool) -> Any:
    return torch.linalg.svd(x, full_matrices=full_matrices)


def qr(x: Tensor, complete: bool) -> Any:
    return torch.linalg.qr(x, mode="complete" if complete else "reduced")


def pinv(x: Tensor, rcond: float) -> Tensor:
    return torch.linalg.pinv(x, rtol=rcond)
