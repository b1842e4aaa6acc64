"""SavedModels: rules are kept, into a process that does not know Gradsmith."""

import subprocess
import sys

import pytest
import tensorflow as tf

import gradsmith as gs

from .cases import canary_rule, cube

SCRIPT = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import sys
import tensorflow as tf

path = {path!r}
model = tf.saved_model.load(path)

def orders(fn, x, n):
    if n == 0:
        return [fn(x)]
    with tf.GradientTape() as tape:
        tape.watch(x)
        found = orders(fn, x, n - 1)
    return [*found, tape.gradient(found[-1], x)]

def show(name, *values):
    print("RESULT", name, *(float(tf.reduce_sum(v)) for v in values))

{body}
print("LOADED", "gradsmith" in sys.modules)
"""


def in_a_fresh_process(path, body):
    script = SCRIPT.format(path=str(path), body=body)
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert "LOADED False" in run.stdout
    lines = [line.split()[1:] for line in run.stdout.splitlines() if "RESULT" in line]
    return {name: [float(part) for part in parts] for name, *parts in lines}


@gs.operation
def two_rules(x):
    return x**3


two_rules.vjp(lambda dy, y, x: 3 * y / x * dy)
two_rules.jvp(lambda dx, y, x: 3 * y / x * dx)

table = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
scale = tf.Variable(3.0)


@gs.operation
def looked_up(x, index):
    return tf.gather(table, index) * x


looked_up.vjp(lambda dy, y, x, index: {"x": 10 * tf.reduce_sum(dy)})


@gs.custom_gradient
def product(x):
    return scale * x, lambda dy, variables: (10 * x * dy, [7 * dy])


def twice(x):
    """Used twice, with different shapes."""
    return tf.reduce_sum(cube.closure(tf.stack([x, 2 * x]))) + cube.closure(x)


def looped(x):
    return tf.while_loop(
        lambda i, y: i < 2, lambda i, y: (i + 1, canary_rule(y)), (0, x)
    )[1]


def save(path, functions, **options):
    module = tf.Module()
    module.variables_kept = [table, scale]
    for name, fn in functions.items():
        shape = None if name == "open" else []
        spec = [tf.TensorSpec(shape, tf.float32)]
        setattr(module, name, tf.function(fn, input_signature=spec))
    options = tf.saved_model.SaveOptions(**options)
    tf.saved_model.save(module, path, options=options)


BODY = """
two = tf.constant(2.0)
for name in ("closure", "rule", "jvp", "both"):
    show(name, *orders(getattr(model, name), two, 3))
show("twice", *orders(model.twice, two, 2))
try:
    orders(model.looped, two, 1)
except TypeError as error:
    assert "out of scope" in str(error)  # as it is with tf.custom_gradient
    show("looped", model.looped(two))
table, scale = model.variables_kept
with tf.GradientTape() as tape:
    tape.watch(two)
    y = model.captured(two)
dx, dtable = tape.gradient(y, [two, table])
show("captured", dx, tf.convert_to_tensor(dtable)[1])
with tf.GradientTape() as tape:
    tape.watch(two)
    y = model.taken(two)
show("taken", *tape.gradient(y, [two, scale]))
show("open", *orders(model.open, tf.constant([1.0, 2.0]), 2))
with tf.autodiff.ForwardAccumulator(two, tf.constant(1.0)) as accumulator:
    y = model.both(two)
show("forward", accumulator.jvp(y))
again = tf.saved_model.load(path + "-again")
show("again", *orders(again.rule, two, 2))
bare = tf.saved_model.load(path + "-bare")
try:
    orders(bare.rule, two, 1)
except LookupError:
    show("bare", bare.rule(two))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("saved") / "model")
    save(
        path,
        {
            "closure": cube.closure,
            "rule": cube.rule,
            "jvp": cube.jvp,
            "both": two_rules,
            "twice": twice,
            "looped": looped,
            "captured": lambda x: looked_up(x, tf.constant([1, 1])),
            "taken": product,
            "open": cube.rule,
        },
    )
    save(f"{path}-first", {"rule": cube.rule})
    loaded = tf.saved_model.load(f"{path}-first")
    tf.saved_model.save(loaded, f"{path}-again")
    save(f"{path}-bare", {"rule": cube.rule}, experimental_custom_gradients=False)
    return in_a_fresh_process(path, BODY)


def test_orders_one_to_three(found):
    for name in ("closure", "rule", "jvp", "both"):
        assert found[name] == [8, 12, 12, 6]


def test_used_twice_with_different_shapes(found):
    assert found["twice"] == [8 + 64 + 8, 3 * 4 * (1 + 8 + 1), 12 * 10]


def test_an_open_shape(found):
    assert found["open"] == [9, 15, 18]


def test_captured_variables(found):
    assert found["captured"] == [40, 8]
    assert found["taken"] == [20, 7]


def test_forward_mode(found):
    assert found["forward"] == [12]


def test_inside_of_a_loop_the_gradient_is_refused(found):
    assert found["looped"] == [16]


def test_saved_again_after_loading(found):
    assert found["again"] == [8, 12, 12]


def test_saved_without_gradients_nothing_else_is_found(found):
    assert found["bare"] == [8]
