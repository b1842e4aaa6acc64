"""The rules of `scipy.special`, read when one of its functions is first met.

Functions that are not here raise when their argument is differentiated, and so does an
argument that has no formula, the order of a Bessel function for example (`refused`).
"""

from . import bessel, entropy, gamma, normal, softmax  # noqa: F401
