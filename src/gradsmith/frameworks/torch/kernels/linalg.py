"""PyTorch's kernels of linear algebra."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

matmul = torch.matmul
solve, inv, det = torch.linalg.solve, torch.linalg.inv, torch.linalg.det
slogdet, cholesky = torch.linalg.slogdet, torch.linalg.cholesky
eigh, eigvalsh, svdvals = torch.linalg.eigh, torch.linalg.eigvalsh, torch.linalg.svdvals


def einsum(subscripts: str, *xs: Tensor) -> Tensor:
    y = torch.einsum(subscripts, *xs)
    return y.to(xs[0].dtype)  # PyTorch adds up small whole numbers in 64 bits


def tensordot(x1: Tensor, x2: Tensor, axes: Any) -> Tensor:
    return torch.tensordot(x1, x2, dims=axes)


def svd(x: Tensor, full_matrices: bool) -> Any:
    return torch.linalg.svd(x, full_matrices=full_matrices)


def qr(x: Tensor, complete: bool) -> Any:
    return torch.linalg.qr(x, mode="complete" if complete else "reduced")


def pinv(x: Tensor, rcond: float) -> Tensor:
    return torch.linalg.pinv(x, rtol=rcond)
