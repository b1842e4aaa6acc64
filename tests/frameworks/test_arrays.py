"""The part `arrays`: the same meaning in every framework."""

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.core.arrays import FRAMEWORKS


@pytest.fixture(params=FRAMEWORKS)
def arrays(request):
    pytest.importorskip(FRAMEWORKS[request.param].module)
    return FRAMEWORKS[request.param].arrays


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32", "complex64", "bool"])
def test_there_and_back(arrays, dtype):
    x = np.array([[0.0, 1.0, 2.0]]).astype(dtype)
    there = arrays.array(x, dtype)
    assert arrays.dtype_name(there) == dtype
    back = arrays.numpy(there)
    assert back.dtype == dtype
    np.testing.assert_array_equal(back, x)


def test_double_precision_exists_in_its_context(arrays):
    with arrays.precision("float64"):
        x = arrays.array(np.array([1 / 3]), "float64")
        assert arrays.dtype_name(x) == "float64"
        assert arrays.numpy(x)[0] == 1 / 3


@pytest.mark.parametrize(
    "arrays", [n for n in FRAMEWORKS if n != "numpy"], indirect=True
)
def test_bfloat16_comes_back_as_float32(arrays):
    x = arrays.array(np.array([1.0, 3.0]), "bfloat16")
    assert arrays.dtype_name(x) == "bfloat16"
    assert arrays.numpy(x).dtype == np.float32
    assert arrays.floats(x).dtype == np.float32


def test_numpy_is_a_copy(arrays):
    x = arrays.array(np.ones(3, np.float32))
    arrays.numpy(x)[0] = 5
    np.testing.assert_array_equal(arrays.numpy(x), np.ones(3))


def test_an_array_is_a_copy_and_as_array_is_none(arrays):
    source = np.ones(3, np.float32)
    x = arrays.array(source, "float32")
    source[0] = 5
    np.testing.assert_array_equal(arrays.numpy(x), np.ones(3))
    assert arrays.as_array(x) is x
    np.testing.assert_array_equal(arrays.numpy(arrays.as_array(source)), source)


def test_floats_of_what_has_none(arrays):
    assert arrays.floats(arrays.array(np.arange(3), "int32")) is None
    assert arrays.floats("no number") is None
    assert arrays.floats(2.5) == 2.5
    found = arrays.floats(arrays.array(np.ones(2), "float32"))
    np.testing.assert_array_equal(found, np.ones(2))


def test_stack_and_layouts_keep_values(arrays):
    x = arrays.array(np.arange(6.0).reshape(2, 3), "float32")
    np.testing.assert_array_equal(
        arrays.numpy(arrays.stack([x, x]))[1], arrays.numpy(x)
    )
    for layout in arrays.LAYOUTS.values():
        np.testing.assert_array_equal(arrays.numpy(layout(x)), arrays.numpy(x))
    if arrays.LAYOUTS:
        assert not arrays.numpy(arrays.repeated(x)).any()
    with arrays.single_threaded():
        assert arrays.numpy(x * 2)[1, 2] == 10


def test_tensors_of_the_engine_are_read():
    arrays = FRAMEWORKS["numpy"].arrays
    x = gs.Tensor([1.0, 2.0])
    assert arrays.as_array(x) is x
    assert type(arrays.array(x)) is np.ndarray
    np.testing.assert_array_equal(arrays.numpy(x), [1.0, 2.0])
