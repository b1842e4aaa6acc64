"""Small problems with parameters, written once for all frameworks."""

from __future__ import annotations

import numpy as np

import gradsmith.numpy as gnp
from gradsmith import ops

_rng = np.random.default_rng(0)
P = _rng.normal(size=5)
W = 0.4 / np.sqrt(5) * _rng.normal(size=(5, 5))


def linear(p, w):
    return ops.linear_solve(lambda x, w: x + gnp.matmul(w, x), p, w)


def symmetric(p, w):
    def normal(x, w):
        return x + gnp.matmul(gnp.swapaxes(w, 0, 1), gnp.matmul(w, x))

    return ops.linear_solve(normal, p, w, symmetric=True)


def root(p, w):
    return ops.root(lambda x, p, w: x + gnp.tanh(gnp.matmul(w, x)) - p, 0 * p, p, w)


def fixed_point(p, w):
    def once(x, p, w):
        return 0.5 * gnp.tanh(gnp.matmul(w, x)) + p

    return ops.fixed_point(once, 0 * p, p, w)


def argmin(p, w):
    def height(x, p, w):
        return gnp.sum((x - p) ** 2 / 2 + gnp.log(1 + gnp.exp(gnp.matmul(w, x))))

    return ops.argmin(height, 0 * p, p, w)


T = np.array([0.0, 0.4, 1.0])


def slope(t, y, w):
    return gnp.tanh(gnp.matmul(w, y)) + gnp.sin(t) * y


def odeint(p, w):
    t = gnp.asarray(T, like=p, dtype=p.dtype)
    return ops.odeint(slope, p, t, w, rtol=1e-9, atol=1e-9)


def discrete(times=T, still=False, **options):
    """The same, by the steps that are made; `still` leaves out what w does."""

    def problem(p, w):
        t = gnp.asarray(times, like=p, dtype=p.dtype)
        f = (lambda t, y: gnp.sin(t) * y) if still else slope
        params = () if still else (w,)
        return ops.odeint(f, p, t, *params, **{"gradient": "discrete", **options})

    return problem


PROBLEMS = (linear, symmetric, root, fixed_point, argmin, odeint)


def captured(problem):
    """The problem in which the equations capture w instead of being given it."""
    return {"linear": _linear, "root": _root, "argmin": _argmin}[problem]


def _linear(p, w):
    return ops.linear_solve(lambda x: x + gnp.matmul(w, x), p)


def _root(p, w):
    return ops.root(lambda x, p: x + gnp.tanh(gnp.matmul(w, x)) - p, 0 * p, p)


def _argmin(p, w):
    def height(x, p):
        return gnp.sum((x - p) ** 2 / 2 + gnp.log(1 + gnp.exp(gnp.matmul(w, x))))

    return ops.argmin(height, 0 * p, p)


def loss(problem):
    """A number that a problem's solution makes."""
    return lambda p, w: gnp.sum(gnp.sin(problem(p, w)))
