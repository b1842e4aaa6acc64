"""The program of each rule, of its pullback and of its tangent, beside the engine.

What the engine computes by looking at elements is refused; those functions are listed.
"""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.core import trees
from tests.rules import cases, harness

# Functions whose results have a shape or dtype that depends on the elements, and those
# that return lists within tuples
REFUSED = re.compile(
    r"unique|union1d|intersect1d|setdiff1d|setxor1d|trim_zeros|roots|(np\.)?polymul"
    r"|np\.polydiv|np\.poly-.*complex|np\.linalg\.(eig-f|eigvals-f|lstsq)"
    r"|real_if_close-c|histogramdd"
)
# Those of which only the derivative is refused: their definition looks at elements
REFUSED_DERIVATIVES = re.compile(
    r"polyfit|poly-matrix|histogram2d|histogram_bin_edges-.*\),3$"
)


def back(fn):
    return lambda xs, us: gs.vjp(fn, *xs)[1](us)


def forth(fn):
    return lambda xs, vs: gs.jvp(fn, tuple(xs), tuple(vs))[1]


@pytest.mark.parametrize("case", cases.ALL, ids=str)
def test_rule(case):
    rng = np.random.default_rng(0)
    fn, xs = harness.as_function(case)
    refused = REFUSED.match(str(case))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ys = fn(*xs)
        us, vs = harness.random_like(rng, ys), harness.random_like(rng, xs)
        if refused:
            _require_refusal(fn, xs)
        else:
            _compare(fn, tuple(xs), exact=True)
        for derivative, ds in ((back(fn), us), (forth(fn), vs)):
            if refused or REFUSED_DERIVATIVES.match(str(case)):
                _require_refusal(derivative, (xs, ds))
            else:
                _compare(derivative, (xs, ds), exact=False)


def _require_refusal(fn, args):
    with pytest.raises(gs.UnsupportedOperationError, match="what to do"):
        gs.trace(fn, *args)


def _compare(fn, args, *, exact):
    program = gs.trace(fn, *args)
    got, expected = trees.leaves(program(*args)), trees.leaves(fn(*args))
    for y, e in zip(got, expected, strict=True):
        y, e = np.asarray(y), np.asarray(e)
        assert (y.shape, y.dtype) == (e.shape, e.dtype)
        if exact:
            np.testing.assert_array_equal(y, e)
        else:  # the engine takes shortcuts where elements allow it
            np.testing.assert_allclose(y, e, rtol=1e-10, atol=1e-12)
