"""The operation of the landing page, and the formula that it replaces."""

import numpy as np

import gradsmith as gs
import gradsmith.numpy as gnp


@gs.custom_gradient
def softplus(x):
    e = gnp.exp(-gnp.abs(x))
    y = gnp.maximum(x, 0) + gnp.log1p(e)

    def grad(dy):
        return dy * gnp.where(x > 0, 1, e) / (1 + e)

    return y, grad


def textbook(x):
    return np.log(1 + np.exp(x))
