"""SavedModels: rules are kept, into a process that does not know Gradsmith."""

import subprocess
import sys

import tensorflow as tf

import gradsmith as gs

from .cases import canary_rule, cube

SCRIPT = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import sys
import tensorflow as tf

model = tf.saved_model.load({path!r})

def orders(fn, x, n):
    if n == 0:
        return [fn(x)]
    with tf.GradientTape() as tape:
        tape.watch(x)
        found = orders(fn, x, n - 1)
    return [*found, tape.gradient(found[-1], x)]

def show(*values):
    print("RESULT", *(float(tf.reduce_sum(v)) for v in values))

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
    return [[float(part) for part in line] for line in lines]


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


def test_orders_shapes_loops_and_variables(tmp_path):
    module = tf.Module()
    module.variables_kept = [table, scale]
    specs = [tf.TensorSpec([], tf.float32)]

    def twice(x):
        """Used twice, with different shapes."""
        return tf.reduce_sum(cube.closure(tf.stack([x, 2 * x]))) + cube.closure(x)

    def looped(x):
        return tf.while_loop(
            lambda i, y: i < 2, lambda i, y: (i + 1, canary_rule(y)), (0, x)
        )[1]

    functions = {
        "closure": cube.closure,
        "rule": cube.rule,
        "jvp": cube.jvp,
        "both": two_rules,
        "twice": twice,
        "looped": looped,
        "captured": lambda x: looked_up(x, tf.constant([1, 1])),
        "taken": product,
        "open": cube.rule,
    }
    for name, fn in functions.items():
        open_ = [tf.TensorSpec(None, tf.float32)] if name == "open" else specs
        setattr(module, name, tf.function(fn, input_signature=open_))
    tf.saved_model.save(module, tmp_path)
    body = """
two = tf.constant(2.0)
for name in ("closure", "rule", "jvp", "both"):
    show(*orders(getattr(model, name), two, 3))
show(*orders(model.twice, two, 2))
try:
    orders(model.looped, two, 1)
except TypeError as error:
    assert "out of scope" in str(error)  # as it is with tf.custom_gradient
    show(model.looped(two))
table, scale = model.variables_kept
with tf.GradientTape() as tape:
    tape.watch(two)
    y = model.captured(two)
dx, dtable = tape.gradient(y, [two, table])
show(dx, tf.convert_to_tensor(dtable)[1])
with tf.GradientTape() as tape:
    tape.watch(two)
    y = model.taken(two)
show(*tape.gradient(y, [two, scale]))
show(*orders(model.open, tf.constant([1.0, 2.0]), 2))
with tf.autodiff.ForwardAccumulator(two, tf.constant(1.0)) as accumulator:
    y = model.both(two)
show(accumulator.jvp(y))
"""
    found = in_a_fresh_process(tmp_path, body)
    assert found[:4] == [[8, 12, 12, 6]] * 4
    assert found[4] == [8 + 64 + 8, 3 * 4 * (1 + 8 + 1), 12 * 10]
    assert found[5] == [16]
    assert found[6] == [40, 8]
    assert found[7] == [20, 7]
    assert found[8] == [9, 15, 18]
    assert found[9] == [12]


def test_without_gradients_nothing_wrong_is_found(tmp_path):
    module = tf.Module()
    module.fn = tf.function(cube.rule, input_signature=[tf.TensorSpec([], tf.float32)])
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
    tf.saved_model.save(module, tmp_path, options=options)
    body = """
import subprocess
try:
    orders(model.fn, tf.constant(2.0), 1)
except LookupError:
    show(1)
"""
    assert in_a_fresh_process(tmp_path, body) == [[1]]


def test_saved_again_after_loading(tmp_path):
    module = tf.Module()
    module.fn = tf.function(cube.rule, input_signature=[tf.TensorSpec([], tf.float32)])
    tf.saved_model.save(module, tmp_path / "first")
    loaded = tf.saved_model.load(tmp_path / "first")
    del module
    tf.saved_model.save(loaded, tmp_path / "second")
    body = "show(*orders(model.fn, tf.constant(2.0), 2))"
    assert in_a_fresh_process(tmp_path / "second", body) == [[8, 12, 12]]
