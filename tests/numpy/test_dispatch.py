"""Which framework a call runs in, and what is refused."""

from __future__ import annotations

import inspect
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith.numpy import linalg, special

from .harness import FRAMEWORKS, NATIVE

each_framework = pytest.mark.parametrize("framework", FRAMEWORKS)
X = np.array([1.0, 2.0])


def test_no_array_is_numpy():
    assert isinstance(gnp.exp(2.0), np.float64)
    assert isinstance(gnp.sum([1, 2]), np.int64)
    assert isinstance(gnp.stack([1.0, 2.0]), np.ndarray)
    assert isinstance(gnp.zeros(2), np.ndarray)


@pytest.mark.parametrize("make", [gs.Tensor, gs.Variable])
def test_tensors_of_the_engine_stay_tensors(make):
    x = make(X)
    results = [
        gnp.exp(x), gnp.sum(x), gnp.where(x > 1, x, 0), gnp.stack([x, x]),
        gnp.special.expit(x), gnp.special.logsumexp(x), gnp.linalg.norm(x),
        gnp.astype(x, "float32"), gnp.clip(x, 0, 1), gnp.argsort(x),
        gnp.special.erf(gnp.astype(x, "float16")),
    ]  # fmt: skip
    assert all(isinstance(y, gs.Tensor) for y in results)


@each_framework
def test_frameworks_do_not_mix(framework):
    x = NATIVE[framework](X)
    other = torch.ones(2) if framework != "torch" else jnp.ones(2)
    message = "arrays of two frameworks"
    for call in (
        lambda: gnp.add(x, other),
        lambda: gnp.add(X, x),
        lambda: gnp.where(x > 0, x, X),
        lambda: gnp.stack([x, other]),
        lambda: gnp.concatenate([x, X]),
        lambda: gnp.clip(x, min=X),
        lambda: gnp.clip(0.0, min=x, max=X),
        lambda: gnp.matmul(x, gs.Tensor(X)),
        lambda: gnp.asarray(other, like=x),
        lambda: gnp.asarray(x, like=X),
    ):
        with pytest.raises(gs.GradsmithError, match=message):
            call()
    with pytest.raises(gs.GradsmithError, match=r"^gnp\.add was given"):
        gnp.add(x, X)


@each_framework
def test_numbers_and_numpy_scalars_do_not_count(framework):
    x = NATIVE[framework](X.astype(np.float32))
    for y in (gnp.add(x, 1), gnp.add(np.float32(1), x), gnp.where(x > 1, x, 0.0)):
        assert type(y) is type(x)


@each_framework
def test_numpy_array_becomes_the_frameworks_on_request(framework):
    x = NATIVE[framework](X)
    y = gnp.asarray(X, like=x)
    assert type(y) is type(x)
    assert gnp.asarray(x, like=x) is x
    assert gnp.add(x, [1.0, 2.0]).shape == (2,)


@pytest.mark.parametrize("framework", ["numpy", *FRAMEWORKS])
def test_unknown_options_are_refused_everywhere(framework):
    x = NATIVE[framework](X)
    with pytest.raises(TypeError, match=r"gnp.sum has no option out=;.*: axis, dtype"):
        gnp.sum(x, out=None)
    with pytest.raises(TypeError, match=r"gnp\.sort has no option kind="):
        gnp.sort(x, kind="stable")
    with pytest.raises(TypeError, match=r"gnp.sum takes at most 3 .* position"):
        gnp.sum(x, 0, None, None)


@each_framework
def test_bad_options_raise_as_in_numpy(framework):
    x = NATIVE[framework](np.ones((2, 3)))
    for error, call in (
        (np.exceptions.AxisError, lambda: gnp.sum(x, axis=2)),
        (np.exceptions.AxisError, lambda: gnp.transpose(x, (0, 2))),
        (ValueError, lambda: gnp.sum(x, axis=(0, 0))),
        (ValueError, lambda: gnp.squeeze(x, 0)),
        (ValueError, lambda: gnp.split(x, 2, axis=1)),
        (ValueError, lambda: gnp.transpose(x, (0,))),
        (ValueError, lambda: gnp.moveaxis(x, (0, 1), 0)),
        (ValueError, lambda: gnp.matmul(x, 2.0)),
        (ValueError, lambda: gnp.pad(x, 1, mode="mean")),
        (ValueError, lambda: gnp.searchsorted(x[0], x, side="middle")),
        (ValueError, lambda: gnp.linalg.norm(x, "nonsense")),
        (ValueError, lambda: gnp.linalg.norm(x, 5)),
        (ValueError, lambda: gnp.linalg.norm(x[0], "fro")),
        (ValueError, lambda: gnp.linalg.qr(x, mode="raw")),
        (ValueError, lambda: gnp.var(x, ddof=1, correction=1)),
        (ValueError, lambda: gnp.cross(x[:, :2], x[:, :2])),
        (TypeError, lambda: gnp.einsum(x, [0, 1])),
        (TypeError, lambda: gnp.astype(x, "no dtype")),
        (TypeError, lambda: gnp.sum(x, axis=0.5)),
    ):
        with pytest.raises(error):
            call()


def test_missing_names_say_what_to_use():
    with pytest.raises(AttributeError, match=r"use gnp\.concatenate"):
        gnp.hstack  # noqa: B018
    with pytest.raises(AttributeError, match=r"which NumPy has.*gs.python_op"):
        gnp.histogram  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        gnp.nonsense  # noqa: B018


def test_public_names():
    assert len(gnp.__all__) == len(set(gnp.__all__))
    assert set(dir(gnp)) == set(gnp.__all__)
    functions = [getattr(gnp, name) for name in gnp.__all__]
    functions += [getattr(part, n) for part in (linalg, special) for n in part.__all__]
    for fn in filter(callable, functions):
        assert fn.__doc__, fn
        assert "K" not in inspect.signature(fn).parameters


def test_options_are_called_as_in_numpy():
    """Each function takes by name what NumPy's takes by that name."""
    for name in gnp.__all__:
        numpy = getattr(np, name, None)
        if not inspect.isroutine(numpy) or isinstance(numpy, np.ufunc):
            continue
        theirs = {*inspect.signature(numpy).parameters, "like"}
        theirs |= {"constant_values"} if name == "pad" else set()  # among its **kwargs
        for parameter in inspect.signature(getattr(gnp, name)).parameters.values():
            if parameter.kind in (
                parameter.POSITIONAL_OR_KEYWORD,
                parameter.KEYWORD_ONLY,
            ):
                assert parameter.name in theirs, name


def test_names_of_the_array_api_are_the_same_functions():
    pairs = {
        "concat": "concatenate", "pow": "power", "permute_dims": "transpose",
        "acos": "arccos", "atan2": "arctan2", "bitwise_invert": "invert",
        "amax": "max", "abs": "absolute", "conj": "conjugate", "true_divide": "divide",
    }  # fmt: skip
    assert all(getattr(gnp, a) is getattr(gnp, b) for a, b in pairs.items())


def run(code: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return result.stdout.strip()


def test_import_of_gradsmith_does_not_load_it():
    code = "import sys, gradsmith; print('gradsmith.numpy' in sys.modules)"
    assert run(code) == "False"


def test_import_loads_no_framework_and_no_scipy():
    code = (
        "import sys, numpy, gradsmith.numpy as gnp; gnp.exp(numpy.ones(2));"
        "print(*{'torch', 'jax', 'tensorflow', 'scipy'} & set(sys.modules))"
    )
    assert run(code) == ""


def test_without_scipy():
    code = (
        "import sys; sys.modules['scipy'] = None\n"
        "import numpy as np, gradsmith as gs, gradsmith.numpy as gnp\n"
        "x = np.array([1.0, 2.0])\n"
        "s = gnp.special\n"
        "for f in (s.expit, s.logit, s.log_expit, s.logsumexp, s.softmax):\n"
        "    gs.grad(lambda x: gnp.sum(f(x / 4)))(x)\n"
        "print(s.softmax(x).round(3), s.expit(x).round(3), s.logsumexp(x).round(3))\n"
        "try: s.erf(x)\n"
        "except ImportError as error: print(error)\n"
    )
    lines = run(code).splitlines()
    assert lines[0] == "[0.269 0.731] [0.731 0.881] 2.313"
    assert lines[1].endswith('pip install "gradsmith[special]"')


def test_variables_of_keras_are_arrays():
    keras = pytest.importorskip("keras")
    variable = keras.Variable(X)
    with tf.GradientTape() as tape:
        y = gnp.sum(gnp.multiply(gnp.exp(variable), variable))
        y += 0 * gnp.mean(gnp.reshape(gnp.stack([variable, variable]), (4,)))
        y += 0 * gnp.clip(variable, min=variable)[0]
    dx = tape.gradient(y, variable.value)
    np.testing.assert_allclose(dx, np.exp(X) * (1 + X), rtol=1e-6)


def test_variables_of_tensorflow_are_arrays():
    variable = tf.Variable(X)
    with tf.GradientTape() as tape:
        y = gnp.sum(gnp.reshape(gnp.add(variable, 1), (2, 1)) * variable[:, None])
    np.testing.assert_allclose(tape.gradient(y, variable), 1 + 2 * X)
