"""Rules that no derivative could be taken for."""

import gradsmith.numpy as gnp


def tenfold(dy, y, x):
    return 10 * dy


def guided(dy, y, x):
    """Guided backpropagation: a gradient passes where it and the input are positive."""
    return gnp.where(x > 0, gnp.maximum(dy, 0), 0)
