"""Bundle adjustment: errors of points seen by cameras, and their sparse Jacobian.

Each observation has its own two errors, which depend on one camera, one point and one
weight. Two walks back give the blocks of all observations.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.gradbench.libraries import Library

SIZES = (
    {"cameras": 5, "points": 20, "observations": 100},
    {"cameras": 49, "points": 7_776, "observations": 31_843},
)
VARIABLES = 3
# A camera: rotation, center, focal length, principal point, radial distortion
ROTATION, CENTER, FOCAL, PRINCIPAL, RADIAL = (
    slice(0, 3),
    slice(3, 6),
    slice(6, 7),
    slice(7, 9),
    slice(9, 11),
)


def inputs(rng: Any, cameras: int, points: int, observations: int) -> tuple[Any, ...]:
    """Cameras and points of each observation, weights, and what was seen."""
    cams = rng.normal(scale=0.1, size=(cameras, 11))
    places = rng.normal([0, 0, 5], size=(points, 3))
    seen = rng.integers(cameras, size=observations)
    of = rng.integers(points, size=observations)
    weights = rng.uniform(0.5, 1.5, size=(observations, 1))
    return cams[seen], places[of], weights, rng.normal(size=(observations, 2))


def project(np: Any, cross: Any, camera: Any, x: Any) -> Any:
    """Where a camera sees a point."""
    total = partial(np.sum, axis=1, keepdims=True)
    rotation = camera[:, ROTATION]
    x = x - camera[:, CENTER]
    angle = np.sqrt(total(rotation**2))
    w, c, s = rotation / angle, np.cos(angle), np.sin(angle)
    x = x * c + cross(w, x) * s + w * (total(w * x) * (1 - c))
    flat = x[:, :2] / x[:, 2:]
    r2, radial = total(flat**2), camera[:, RADIAL]
    flat = flat * (1 + radial[:, :1] * r2 + radial[:, 1:] * r2**2)
    return flat * camera[:, FOCAL] + camera[:, PRINCIPAL]


def in_numpy(library: Library, cameras: int, points: int, observations: int) -> Any:
    np = library.np

    def jacobian(camera: Any, x: Any, weight: Any, seen: Any) -> Any:
        def errors(camera: Any, x: Any, weight: Any) -> Any:
            return weight * (project(np, np.cross, camera, x) - seen)

        value, pull = library.vjp(errors, camera, x, weight)
        rows = [
            np.concatenate(pull(np.broadcast_to(np.eye(2)[i], value.shape)), axis=1)
            for i in range(2)
        ]
        of_weights, pull = library.vjp(lambda w: 1 - w**2, weight)
        (diagonal,) = pull(np.ones_like(of_weights))
        return value, of_weights, np.stack(rows, axis=1), diagonal

    return jacobian


def in_torch(torch: Any, cameras: int, points: int, observations: int) -> Any:
    grad = torch.autograd.grad

    def jacobian(camera: Any, x: Any, weight: Any, seen: Any) -> Any:
        value = weight * (project(torch, torch.linalg.cross, camera, x) - seen)
        variables, unit = (camera, x, weight), torch.eye(2, dtype=value.dtype)
        rows = [
            torch.cat(
                grad(
                    value,
                    variables,
                    unit[i].expand(value.shape),
                    retain_graph=i == 0,
                ),
                dim=1,
            )
            for i in range(2)
        ]
        of_weights = 1 - weight**2
        (diagonal,) = grad(of_weights, weight, torch.ones_like(of_weights))
        value, of_weights = value.detach(), of_weights.detach()
        return value, of_weights, torch.stack(rows, dim=1), diagonal

    return jacobian
