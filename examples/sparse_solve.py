"""SciPy's sparse solver in all five.

A rod with fixed ends carries heat: K(c) u = f, where the sparse matrix K holds the
conductivity c of each piece. No framework can see into `scipy.sparse.linalg.spsolve`,
but the gradient of a solve is a solve with the transposed matrix:

    K u = b,  dL/du given:   λ = K⁻ᵀ dL/du,   dL/db = λ,   dL/dK = -λ uᵀ
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec

import numpy as np

import gradsmith as gs
import gradsmith.numpy as gnp

PIECES = 50


class SparseSolver:
    """Solves systems whose matrices have their entries at the same places."""

    def __init__(self, rows, columns):
        self.rows = rows
        self.columns = columns

    @property
    def transposed(self):
        return SparseSolver(self.columns, self.rows)

    @gs.python_op
    def solve(self, values, b):
        from scipy.sparse import csc_matrix
        from scipy.sparse.linalg import spsolve

        n = len(b)
        matrix = csc_matrix((values, (self.rows, self.columns)), shape=(n, n))
        return spsolve(matrix, b)


@SparseSolver.solve.vjp
def _(dy, y, solver, values, b):
    adjoint = solver.transposed.solve(values, dy)
    return -adjoint[solver.rows] * y[solver.columns], adjoint


@SparseSolver.solve.jvp
def _(dx, y, solver, values, b):
    dvalues, db = dx
    moved = np.bincount(solver.rows, dvalues * y[solver.columns], minlength=len(y))
    return solver.solve(values, db - moved)


def heat_equation(pieces):
    """The solver for a rod, and the matrix that makes its entries of conductivities."""
    inner = np.arange(pieces - 1)
    rows = np.concatenate([inner, inner[1:], inner[:-1]])
    columns = np.concatenate([inner, inner[:-1], inner[1:]])
    entries = np.zeros((len(rows), pieces))
    for k, (i, j) in enumerate(zip(rows, columns, strict=True)):
        entries[k, max(i, j)] -= 1 if i != j else -1
        entries[k, i + 1] += i == j
    return SparseSolver(rows, columns), entries


@SparseSolver.solve.example
def _():
    solver, entries = heat_equation(6)
    return solver, entries @ np.linspace(1, 2, 6), gs.spec(5)


def misfit(conductivity, entries, heat, measured, solver):
    """How far the temperature is from the measured one, in any framework."""
    temperature = solver.solve(gnp.matmul(entries, conductivity), heat)
    return gnp.sum((temperature - measured) ** 2)


# --- one loss, differentiated and compiled by each framework -------------------------


def by_numpy(loss, c, *data):
    return gs.grad(loss)(c, *data)


def by_tensorflow(loss, c, *data):
    import tensorflow as tf

    @tf.function
    def gradient(c, *data):
        with tf.GradientTape() as tape:
            tape.watch(c)
            value = loss(c, *data)
        return tape.gradient(value, c)

    return gradient(*map(tf.constant, (c, *data))).numpy()


def by_jax(loss, c, *data):
    import jax
    import jax.numpy as jnp

    with jax.enable_x64(True):
        gradient = jax.jit(jax.grad(loss))
        return np.asarray(gradient(*map(jnp.asarray, (c, *data))))


def by_torch(loss, c, *data):
    import torch

    c, *data = map(torch.tensor, (c, *data))
    value = torch.compile(loss, fullgraph=True, backend="aot_eager")
    value(c.requires_grad_(), *data).backward()
    return c.grad.numpy()


def by_mlx(loss, c, *data):
    import mlx.core as mx

    # Not compiled: MLX's compiled code can't run Python code.
    arrays = [mx.array(x, mx.float64) for x in (c, *data)]
    return np.array(mx.grad(loss)(*arrays))


FRAMEWORKS = {
    "numpy": ("NumPy", by_numpy),
    "tensorflow": ("TensorFlow", by_tensorflow),
    "jax": ("JAX", by_jax),
    "torch": ("PyTorch", by_torch),
    "mlx": ("MLX", by_mlx),
}


def problem():
    """A loss, a first guess of the conductivity, and the other arguments."""
    solver, entries = heat_equation(PIECES)
    heat, place = np.ones(PIECES - 1), np.linspace(0, 1, PIECES)
    truth = 1 + 0.5 * np.sin(2 * np.pi * place)
    measured = solver.solve(entries @ truth, heat)
    return partial(misfit, solver=solver), np.ones(PIECES), entries, heat, measured


def differences(loss, c, *data, step=1e-5):
    moves = step * np.eye(len(c))
    return np.array(
        [(loss(c + d, *data) - loss(c - d, *data)) / (2 * step) for d in moves]
    )


def report() -> Iterator[str]:
    if find_spec("scipy") is None:
        yield 'needs SciPy: pip install "gradsmith[special]"'
        return
    args = problem()
    truth = differences(*args)
    yield f"{'':12}gradient by conductivity        off from differences by"
    for package, (name, run) in FRAMEWORKS.items():
        if find_spec(package):
            gradient = run(*args)
            error = np.max(np.abs(gradient - truth)) / np.max(np.abs(truth))
            first = " ".join(f"{d:8.2f}" for d in gradient[:3])
            yield f"{name:11} {first} ...  {error:.0e}"


if __name__ == "__main__":
    print(*report(), sep="\n")
