"""tf.distribute.MirroredStrategy on two virtual devices."""

import subprocess
import sys

SCRIPT = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import keras
import numpy as np
import tensorflow as tf
import gradsmith as gs
from gradsmith.core.cotangent import Spec
from gradsmith.core.arrays import FRAMEWORKS

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(
    cpu, [tf.config.LogicalDeviceConfiguration()] * 2
)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
assert strategy.num_replicas_in_sync == 2

@gs.custom_gradient
def canary(x, w):
    return x * w, lambda dy: (10 * dy * w, 10 * tf.reduce_sum(dy * x))

with strategy.scope():
    w = tf.Variable(2.0)
    captured = tf.Variable(3.0)

@gs.operation
def scaled(x):
    return captured * x

scaled.vjp(lambda dy, y, x: 10 * dy)

def step(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = scaled(canary(x, w=w))
    dx, dw, dc = tape.gradient(y, [x, w, captured])
    group = tf.distribute.get_replica_context().all_reduce
    return tf.reduce_sum(dx), group("sum", [dw, dc])

def run():
    return strategy.run(step, args=(tf.ones(2),))

for fn in (run, tf.function(run)):
    dx, (dw, dc) = fn()
    print("RESULT", *(float(strategy.experimental_local_results(g)[0])
                      for g in (dx, dw, dc)))

def host(x):
    return FRAMEWORKS["tensorflow"].call.host(
        lambda x: [x**2], [x], [Spec((2, 1), np.dtype("float32"))], "square"
    )[0]

square = gs.with_gradient(host, lambda dy, y, x: 2 * x * dy)

class Layer(keras.layers.Layer):
    def build(self, shape):
        self.v = self.add_weight(shape=(), initializer="ones", name="v")
    def call(self, x):
        return square(canary(x, self.v))

with strategy.scope():
    model = keras.Sequential([keras.Input((1,), batch_size=2), Layer()])
    model.compile(keras.optimizers.SGD(0.01), "mse", jit_compile=False)
data = tf.data.Dataset.from_tensor_slices((np.ones((4, 1)), np.zeros((4, 1))))
model.fit(data.batch(4, drop_remainder=True), verbose=0, shuffle=False)
print("WEIGHT", float(model.get_weights()[0]))
"""


def test_two_replicas():
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-3000:]
    lines = [line.split() for line in run.stdout.splitlines()]
    found = [[float(part) for part in line[1:]] for line in lines if "RESULT" in line]
    # x = (1, 1): y = 3 (2 x); dx = sum(10 · 10 w) and, over both, 2 · 10 · 10 · 2
    assert found == [[400, 400, 8]] * 2
    (weight,) = [float(line[1]) for line in lines if line[0] == "WEIGHT"]
    # y = v², loss = y²: dv = 2 y · 2 v · 10, as the rule says
    assert abs(weight - (1 - 0.01 * 40)) < 1e-6
