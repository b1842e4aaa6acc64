"""A Newton step of k-means: the gradient over the diagonal of the Hessian.

The Hessian of the cost is diagonal, so that its product with ones is its diagonal.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.gradbench.libraries import Library

SIZES = ({"k": 10, "n": 1_000, "d": 8}, {"k": 100, "n": 10_000, "d": 8})
VARIABLES = 1


def inputs(rng: Any, k: int, n: int, d: int) -> tuple[Any, ...]:
    points = rng.uniform(size=(n, d))
    return points[-k:].copy(), points  # so that no cluster is empty


def distances(np: Any, centroids: Any, points: Any) -> Any:
    squares = np.sum(points**2, 1)[:, None] + np.sum(centroids**2, 1)
    return squares - 2 * points @ centroids.T


def in_numpy(library: Library, k: int, n: int, d: int) -> Any:
    np = library.np

    def step(centroids: Any, points: Any) -> Any:
        cost = lambda c: np.sum(np.min(distances(np, c, points), axis=1))
        gradient, curvature = library.gradient_and_hvp(
            cost, centroids, np.ones_like(centroids)
        )
        return gradient / curvature

    return step


def in_torch(torch: Any, k: int, n: int, d: int) -> Any:
    nearest = partial(distances, torch)

    def step(centroids: Any, points: Any) -> Any:
        cost = torch.sum(torch.min(nearest(centroids, points), dim=1).values)
        (gradient,) = torch.autograd.grad(cost, centroids, create_graph=True)
        (curvature,) = torch.autograd.grad(torch.sum(gradient), centroids)
        return gradient.detach() / curvature

    return step
