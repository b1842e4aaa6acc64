"""Hand tracking: distances of points to a posed hand, and their Jacobian.

A pose has 26 numbers: rotation and translation of the hand, and four angles for each of
five fingers. A point belongs to a triangle of the hand's surface, in which two numbers
of its own say where. A shift of these numbers by the same amount for all points has two
columns that are all there is of that part of the Jacobian.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.gradbench.libraries import Library

SIZES = ({"points": 100, "vertices": 200}, {"points": 800, "vertices": 544})
VARIABLES = 1
FINGERS, BONES = 5, 22  # a wrist, a palm, and four bones for each finger
PARENTS = [-1, 0] + [
    1 if joint == 0 else 1 + 4 * finger + joint
    for finger in range(FINGERS)
    for joint in range(4)
]


def _angles() -> Any:
    """Where the angles of the fingers go, in a table of three for each bone."""
    places = np.zeros((BONES * 3, 4 * FINGERS))
    for finger in range(FINGERS):
        bones = [2 + 4 * finger + joint for joint in (1, 2, 3)]
        at = [3 * bones[0], 3 * bones[0] + 1, 3 * bones[1], 3 * bones[2]]
        places[at, 4 * finger + np.arange(4)] = 1
    return places


ANGLES = _angles()


def inputs(rng: Any, points: int, vertices: int) -> tuple[Any, ...]:
    """Shift and pose; then the hand at rest, and the points with their triangles."""
    parameters = np.append(np.zeros(2), rng.normal(scale=0.3, size=26))
    relative = np.tile(np.eye(4), (BONES, 1, 1))
    relative[:, :3] += rng.normal(scale=0.3, size=(BONES, 3, 4))
    inverse = np.linalg.inv(relative)
    base = np.append(rng.normal(size=(vertices, 3)), np.ones((vertices, 1)), axis=1)
    weights = rng.dirichlet(np.ones(BONES), size=vertices)
    corners = rng.integers(vertices, size=(3, points))
    inside = rng.dirichlet(np.ones(3), size=points)[:, :2]
    seen = rng.normal(size=(points, 3))
    return parameters, relative, inverse, base, weights, corners, inside, seen


def rotations(np: Any, angles: Any) -> Any:
    """A rotation about each axis for every bone, one after the other."""
    sin, cos = np.sin(angles), np.cos(angles)
    (sx, sz, sy), (cx, cz, cy) = sin.T, cos.T
    rows = [
        [cy * cz, sx * sy * cz - cx * sz, cx * sy * cz + sx * sz],
        [cy * sz, sx * sy * sz + cx * cz, cx * sy * sz - sx * cz],
        [-sy, sx * cy, cx * cy],
    ]
    return np.stack([np.stack(row, -1) for row in rows], -2)


def rotation(np: Any, axis: Any) -> Any:
    """The rotation about an axis by its length."""
    angle = np.sqrt(np.sum(axis**2))
    x, y, z = axis / angle
    s, c = np.sin(angle), np.cos(angle)
    rows = [
        [x * x + (1 - x * x) * c, x * y * (1 - c) - z * s, x * z * (1 - c) + y * s],
        [x * y * (1 - c) + z * s, y * y + (1 - y * y) * c, y * z * (1 - c) - x * s],
        [x * z * (1 - c) - y * s, z * y * (1 - c) + x * s, z * z + (1 - z * z) * c],
    ]
    return np.stack([np.stack(row) for row in rows])


def hand(
    np: Any,
    places: Any,
    pose: Any,
    relative: Any,
    inverse: Any,
    base: Any,
    weights: Any,
) -> Any:
    """The vertices of the posed hand."""
    turned = rotations(np, np.reshape(places @ pose[6:], (BONES, 3)))
    local = np.concatenate((relative[:, :, :3] @ turned, relative[:, :, 3:]), -1)
    absolute: list[Any] = []
    for bone, parent in enumerate(PARENTS):
        absolute.append(local[bone] if parent < 0 else absolute[parent] @ local[bone])
    transforms = (np.stack(absolute) @ inverse)[:, :3]
    moved = np.sum((transforms @ base.T) * weights.T[:, None, :], 0)
    return (rotation(np, pose[:3]) @ moved).T + pose[3:6]


def distances(np: Any, places: Any, parameters: Any, *model: Any) -> Any:
    *rest, corners, inside, seen = model
    vertices = hand(np, places, parameters[2:], *rest)
    u = inside + parameters[:2]
    a, b, c = (vertices[corner] for corner in corners)
    u1, u2 = u[:, :1], u[:, 1:]
    return seen - (u1 * a + u2 * b + (1 - u1 - u2) * c)


def in_numpy(library: Library, points: int, vertices: int) -> Any:
    np = library.np

    def jacobian(parameters: Any, *model: Any) -> Any:
        return library.jacobian(lambda p: distances(np, ANGLES, p, *model))(parameters)

    return jacobian


def in_torch(torch: Any, points: int, vertices: int) -> Any:
    places = torch.tensor(ANGLES)

    def jacobian(parameters: Any, *model: Any) -> Any:
        run = lambda p: distances(torch, places, p, *model)
        return torch.func.jacfwd(run)(parameters.detach())

    return jacobian
