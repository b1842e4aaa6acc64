"""Long short-term memory with diagonal weights, which predicts the bits of a text."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

from benchmarks._peers import load
from benchmarks.gradbench.libraries import Library, torch_value_and_grad

SIZES = ({"layers": 2, "length": 16}, {"layers": 2, "length": 128})
VARIABLES = 2
BITS = 14


def inputs(rng: Any, layers: int, length: int) -> tuple[Any, ...]:
    main = rng.uniform(size=(2 * layers, 4 * BITS))
    extra = rng.uniform(size=(3, BITS))
    state = rng.uniform(size=(2 * layers, BITS))
    text = rng.integers(0, 2, size=(length, BITS)).astype(float)
    return main, extra, state, text


def cell(
    np: Any, sigmoid: Any, weight: Any, bias: Any, hidden: Any, memory: Any, x: Any
) -> tuple[Any, Any]:
    gates = np.concatenate((x, hidden, x, hidden)) * weight + bias
    forget = sigmoid(gates[:BITS])
    write = sigmoid(gates[BITS : 2 * BITS])
    read = sigmoid(gates[2 * BITS : 3 * BITS])
    change = np.tanh(gates[3 * BITS :])
    memory = memory * forget + write * change
    return read * np.tanh(memory), memory


def step(
    np: Any, sigmoid: Any, main: Any, extra: Any, state: list[Any], x: Any, y: Any
) -> tuple[list[Any], Any]:
    """The next state, and how well the next character was predicted."""
    x, new = x * extra[0], []
    for i in range(0, len(main), 2):
        x, memory = cell(np, sigmoid, main[i], main[i + 1], state[i], state[i + 1], x)
        new += [x, memory]
    guess = x * extra[1] + extra[2]
    return new, np.sum(y * (guess - np.log(np.sum(np.exp(guess)) + 2)))


def loss(np: Any, sigmoid: Any, main: Any, extra: Any, state: Any, text: Any) -> Any:
    total, state = 0.0, list(state)
    for x, y in pairwise(text):
        state, likelihood = step(np, sigmoid, main, extra, state, x, y)
        total = total + likelihood
    return -total / (BITS * (len(text) - 1))


def in_numpy(library: Library, layers: int, length: int) -> Any:
    np = library.np
    sigmoid = lambda x: 1 / (1 + np.exp(-x))
    return library.value_and_grad(partial(loss, np, sigmoid), (0, 1))


def in_torch(torch: Any, layers: int, length: int) -> Any:
    objective = partial(loss, torch, torch.sigmoid)
    return torch_value_and_grad(torch, objective, VARIABLES)


def in_jax(library: Library, layers: int, length: int) -> Any:
    lax, nn = load("jax.lax"), load("jax.nn")

    def objective(main: Any, extra: Any, state: Any, text: Any) -> Any:
        follow = lambda state, xy: step(library.np, nn.sigmoid, main, extra, state, *xy)
        _, likelihoods = lax.scan(follow, list(state), (text[:-1], text[1:]))
        return -library.np.sum(likelihoods) / (BITS * (length - 1))

    return library.value_and_grad(objective, (0, 1))
