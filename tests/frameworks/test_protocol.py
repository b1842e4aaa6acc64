"""Each framework has what the protocol says, so that what is missing has a name."""

import inspect

import pytest

from gradsmith.core.arrays import FRAMEWORKS
from gradsmith.core.errors import UnsupportedOperationError
from gradsmith.frameworks import _protocol
from gradsmith.frameworks._kernels import NAMES as KERNELS
from gradsmith.numpy import _elementwise, special

NAMES = [name for name in FRAMEWORKS if name != "numpy"]


@pytest.mark.parametrize("name", NAMES)
def test_kernels_are_those_of_the_protocol(name):
    pytest.importorskip(FRAMEWORKS[name].module)
    found = FRAMEWORKS[name].kernels
    assert [kernel for kernel in sorted(KERNELS) if not hasattr(found, kernel)] == []


@pytest.mark.parametrize("name", NAMES)
def test_each_ufunc_has_a_kernel(name):
    pytest.importorskip(FRAMEWORKS[name].module)
    found = FRAMEWORKS[name].kernels.ELEMENTWISE
    ufuncs = {
        each.__name__
        for each in vars(_elementwise).values()
        if hasattr(each, "autograph_info__")
    }
    assert len(ufuncs) > 70
    assert ufuncs - {*found} - {*_elementwise.FORMULAS} == set()


@pytest.mark.parametrize("name", NAMES)
def test_each_special_function_has_a_kernel(name):
    pytest.importorskip(FRAMEWORKS[name].module)
    x = pytest.importorskip("numpy").float32(0.25)
    K = FRAMEWORKS[name].kernels
    for each in ("erf", "erfc", "erfinv", "gammaln", "digamma", "ndtr", "ndtri"):
        y = getattr(special, each)(K.constant(x, "float32", None))
        assert K.kind(y) == "float32"


PARTS = {
    part: protocol
    for part, protocol in _protocol.Framework.__annotations__.items()
    if part != "kernels"
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_parts_are_those_of_the_protocol(name, part):
    pytest.importorskip(FRAMEWORKS[name].module)
    if part in FRAMEWORKS[name].cannot:
        with pytest.raises(UnsupportedOperationError, match=FRAMEWORKS[name].title):
            FRAMEWORKS[name].part(part)
        return
    protocol, found = getattr(_protocol, PARTS[part]), FRAMEWORKS[name].part(part)
    for attribute in protocol.__annotations__:
        assert hasattr(found, attribute)
    for function, meant in vars(protocol).items():
        if function[0] != "_" and inspect.isfunction(meant):
            given = getattr(found, function)
            if inspect.isfunction(given):
                wanted = [*inspect.signature(meant).parameters][1:]
                known = inspect.signature(given).parameters.values()
                assert [p.name for p in known][: len(wanted)] == wanted, function
                more = [*known][len(wanted) :]
                assert all(p.default is not p.empty for p in more), function
