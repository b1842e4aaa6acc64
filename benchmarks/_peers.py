"""The peers, all of them optional: how each is found, installed and imported."""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any, NamedTuple


class Peer(NamedTuple):
    title: str  # as tables show it
    install: str
    packages: tuple[str, ...]  # the distributions that it may come from


PEERS = {
    "torch": Peer("PyTorch", "pip install torch", ("torch",)),
    "autograd": Peer("autograd", "pip install autograd", ("autograd",)),
    "tensorflow": Peer(
        "TensorFlow", "pip install tensorflow-cpu", ("tensorflow", "tensorflow-cpu")
    ),
    "jax": Peer("JAX", "pip install jax", ("jax",)),
    "mlx": Peer("MLX", 'pip install "mlx[cpu]"', ("mlx",)),
}

# Read by the peers when they are imported. Small arrays are fastest on the CPU.
_ENVIRONMENT = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "CUDA_VISIBLE_DEVICES": "-1",
    "JAX_PLATFORMS": "cpu",
}


def is_installed(name: str) -> bool:
    return find_spec(name) is not None


def load(name: str) -> Any:
    """Import a module of an installed peer: `autograd`, `autograd.numpy`."""
    for key, value in _ENVIRONMENT.items():
        os.environ.setdefault(key, value)
    return import_module(name)


def versions() -> dict[str, str]:
    """The versions of what is installed, without importing the peers."""
    import numpy

    import gradsmith

    found = {"gradsmith": gradsmith.__version__, "numpy": numpy.__version__}
    for name, peer in PEERS.items():
        for package in peer.packages:
            with suppress(PackageNotFoundError):
                found[name] = version(package)
    return found
