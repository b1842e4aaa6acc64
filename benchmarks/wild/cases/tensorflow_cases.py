"""Custom gradients for TensorFlow. Imports are inside: a case costs what it needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.wild.case import EDGE, RIGHT, SURROGATE, WRONG, Table

table = Table("tensorflow")
CASES = table.cases
TFP = "tfp-nightly"
SPECIAL = "tensorflow_probability/python/math/special.py"
BESSEL = "tensorflow_probability/python/math/bessel.py"
LINALG = "tensorflow_probability/python/math/linalg.py"
DISTRIBUTIONS = "tensorflow_probability/python/distributions"

Random = np.random.Generator


def normal(random: Random, *shape: int, dtype: str = "float32") -> Any:
    import tensorflow as tf

    return tf.constant(random.normal(size=shape).astype(dtype))


def uniform(
    random: Random, low: float, high: float, *shape: int, dtype: str = "float32"
) -> Any:
    import tensorflow as tf

    return tf.constant(random.uniform(low, high, size=shape).astype(dtype))


def definite(random: Random, n: int, dtype: str = "float64") -> Any:
    import tensorflow as tf

    a = random.normal(size=(n, n))
    return tf.constant((a @ a.T / n + np.eye(n)).astype(dtype))


# TensorFlow Probability: special functions


@table(TFP, f"{SPECIAL}:522", RIGHT, "in x a density, in a and b the derived series")
def betainc(random):
    import tensorflow_probability as tfp

    a, b = uniform(random, 0.5, 3.0, 4), uniform(random, 0.5, 3.0, 4)
    return tfp.math.betainc, a, b, uniform(random, 0.1, 0.9, 4)


@table(TFP, f"{SPECIAL}:843", RIGHT, "the inverse, by the implicit function theorem")
def betaincinv(random):
    from tensorflow_probability.python.math import special

    a = uniform(random, 0.5, 3.0, 3, dtype="float64")
    b = uniform(random, 0.5, 3.0, 3, dtype="float64")
    y = uniform(random, 0.1, 0.9, 3, dtype="float64")
    return special.betaincinv, a, b, y


@table(TFP, f"{SPECIAL}:1001", RIGHT, "1 - 2 x F(x)")
def dawsn(random):
    from tensorflow_probability.python.math import special

    return special.dawsn, 2.0 * normal(random, 6)


@table(TFP, f"{SPECIAL}:1142", RIGHT, "2 x erfcx(x) - 2 / sqrt(pi)")
def erfcx(random):
    import tensorflow_probability as tfp

    return tfp.math.erfcx, normal(random, 6)


@table(TFP, f"{SPECIAL}:1545", RIGHT, "the inverse, by the implicit function theorem")
def igammainv(random):
    import tensorflow_probability as tfp

    a = uniform(random, 0.5, 3.0, 4, dtype="float64")
    return tfp.math.igammainv, a, uniform(random, 0.1, 0.9, 4, dtype="float64")


@table(TFP, f"{SPECIAL}:1817", RIGHT, "w / (z (1 + w)), and 1 at 0")
def lambertw(random):
    import tensorflow_probability as tfp

    return tfp.math.lambertw, uniform(random, 0.1, 3.0, 5)


@table(TFP, f"{SPECIAL}:1983", RIGHT, "differences of digamma")
def log_gamma_difference(random):
    import tensorflow_probability as tfp

    x, y = uniform(random, 0.5, 5.0, 5), uniform(random, 8.0, 20.0, 5)
    return tfp.math.log_gamma_difference, x, y


@table(TFP, f"{SPECIAL}:2087", RIGHT, "differences of digamma")
def lbeta(random):
    import tensorflow_probability as tfp

    return tfp.math.lbeta, uniform(random, 0.5, 5.0, 5), uniform(random, 0.5, 5.0, 5)


@table(TFP, f"{SPECIAL}:2584", RIGHT, "closed forms; the value is a series of 8 digits")
def owens_t(random):
    import tensorflow_probability as tfp

    return tfp.math.owens_t, normal(random, 5), normal(random, 5)


@table(TFP, f"{BESSEL}:988", RIGHT, "in z; v is a number")
def bessel_ive(random):
    import tensorflow as tf
    import tensorflow_probability as tfp

    def ive(z):
        return tfp.math.bessel_ive(tf.constant(1.5, z.dtype), z)

    return ive, uniform(random, 0.5, 5.0, 4, dtype="float64")


@table(TFP, f"{BESSEL}:1291", RIGHT, "in z; v is a number")
def log_bessel_kve(random):
    import tensorflow as tf
    import tensorflow_probability as tfp

    def log_kve(z):
        return tfp.math.log_bessel_kve(tf.constant(0.7, z.dtype), z)

    return log_kve, uniform(random, 0.5, 5.0, 4)


@table(TFP, f"{BESSEL}:345", RIGHT, "in z; v is a number")
def bessel_iv_ratio(random):
    import tensorflow as tf
    import tensorflow_probability as tfp

    def ratio(z):
        return tfp.math.bessel_iv_ratio(tf.constant(2.0, z.dtype), z)

    return ratio, uniform(random, 0.5, 5.0, 4, dtype="float64")


@table(TFP, "tensorflow_probability/python/math/generic.py:774", RIGHT, "tanh")
def log_cosh(random):
    import tensorflow_probability as tfp

    return tfp.math.log_cosh, 2.0 * normal(random, 6)


@table(
    TFP,
    "tensorflow_probability/python/math/psd_kernels/internal/util.py:107",
    RIGHT,
    "sqrt where x > 0",
)
def sqrt_with_finite_grads(random):
    from tensorflow_probability.python.math.psd_kernels.internal import util

    return util.sqrt_with_finite_grads, uniform(random, 0.1, 2.0, 5)


@table(
    TFP,
    "tensorflow_probability/python/math/psd_kernels/internal/util.py:107",
    EDGE,
    "sqrt at 0, with a large finite slope there",
)
def sqrt_with_finite_grads_at_zero(random):
    import tensorflow as tf
    from tensorflow_probability.python.math.psd_kernels.internal import util

    return util.sqrt_with_finite_grads, tf.constant([0.0, 0.5, 2.0])


@table(TFP, "tensorflow_probability/python/bijectors/softplus.py:41", RIGHT, "sigmoid")
def softplus_bijector(random):
    import tensorflow_probability as tfp

    return tfp.bijectors.Softplus().forward, 2.0 * normal(random, 6)


@table(TFP, f"{LINALG}:1266", RIGHT, "the inverse, for symmetric matrices")
def hpsd_logdet(random):
    import tensorflow_probability as tfp

    return (lambda a: tfp.math.hpsd_logdet(a)), definite(random, 3)


@table(TFP, f"{LINALG}:1343", RIGHT, "the adjoint solve, for symmetric matrices")
def hpsd_solve(random):
    import tensorflow_probability as tfp

    def solve(a, b):
        return tfp.math.hpsd_solve(a, b)

    return solve, definite(random, 3), normal(random, 3, 2, dtype="float64")


@table(
    TFP, f"{LINALG}:1449", WRONG, "twice dy where it is dy and its transpose by the rhs"
)
def hpsd_quadratic_form_solve(random):
    import tensorflow_probability as tfp

    def form(a, b):
        return tfp.math.hpsd_quadratic_form_solve(a, b)

    return form, definite(random, 3), normal(random, 3, 2, dtype="float64")


@table(
    TFP,
    "tensorflow_probability/python/experimental/linalg/linear_operator_psd_kernel.py:131",
    WRONG,
    "doubled where the product is made in parts",
)
def psd_kernel_in_parts(random):
    import tensorflow as tf
    import tensorflow_probability as tfp

    kernel = tfp.math.psd_kernels.ExponentiatedQuadratic(tf.constant(1.0, tf.float64))
    operator = tfp.experimental.linalg.LinearOperatorPSDKernel

    def product(x, y):
        return operator(kernel, x, num_matmul_parts=2).matmul(y)

    x, y = (normal(random, 4, 2, dtype="float64") for _ in range(2))
    return product, x, y


@table(TFP, f"{DISTRIBUTIONS}/student_t.py:440", RIGHT, "a density, and betainc's")
def student_t_cdf(random):
    import tensorflow_probability as tfp

    def cdf(df, x):
        return tfp.distributions.StudentT(df, 0.0, 1.0).cdf(x)

    return cdf, uniform(random, 1.5, 6.0, 4), normal(random, 4)


@table(
    TFP,
    f"{DISTRIBUTIONS}/von_mises.py:346",
    RIGHT,
    "a density, and a series of 8 digits",
)
def von_mises_cdf(random):
    from tensorflow_probability.python.distributions.von_mises import von_mises_cdf

    return von_mises_cdf, normal(random, 4), uniform(random, 0.5, 4.0, 4)


@table(
    TFP,
    f"{DISTRIBUTIONS}/gamma.py:700",
    SURROGATE,
    "a sample by rejection, with the implicit gradient",
)
def gamma_sample(random):
    import tensorflow_probability as tfp

    def sample(a):
        return tfp.distributions.Gamma(a, 1.0).sample(seed=(1, 2))

    return sample, uniform(random, 0.5, 3.0, 4)


@table(
    TFP,
    "tensorflow_probability/python/math/ode/base.py",
    RIGHT,
    "the adjoint equation, to the solver's tolerance",
)
def dormand_prince(random):
    import tensorflow as tf
    import tensorflow_probability as tfp

    solver = tfp.math.ode.DormandPrince(rtol=1e-8, atol=1e-8)

    def solve(y0):
        field = lambda t, y: -tf.sin(y)
        return solver.solve(field, 0.0, y0, solution_times=[1.0]).states[-1]

    return solve, normal(random, 3, dtype="float64")


# Quantization, scaling, reversal


@table("larq", "larq/quantizers.py:85", SURROGATE, "the sign, passed where |x| < 1")
def ste_sign(random):
    from larq.quantizers import ste_sign

    return ste_sign, normal(random, 8)


@table("larq", "larq/quantizers.py:99", SURROGATE, "the sign, with a tent as its slope")
def approx_sign(random):
    from larq.quantizers import approx_sign

    return approx_sign, normal(random, 8)


@table("larq", "larq/quantizers.py:111", SURROGATE, "the sign, with a smooth slope")
def swish_sign(random):
    from larq.quantizers import swish_sign

    return swish_sign, normal(random, 8)


@table("larq", "larq/quantizers.py:128", SURROGATE, "-1, 0, 1, passed where |x| < 1")
def ste_tern(random):
    from larq.quantizers import ste_tern

    return ste_tern, normal(random, 8)


@table(
    "dm-sonnet",
    "sonnet/src/leaky_clip_by_value.py:23",
    SURROGATE,
    "a clip that passes what moves towards its range",
)
def leaky_clip_by_value(random):
    import sonnet as snt

    return (lambda t: snt.leaky_clip_by_value(t, -0.5, 0.5)), normal(random, 8)


@table(
    "dm-sonnet", "sonnet/src/scale_gradient.py:24", SURROGATE, "the identity, scaled"
)
def scale_gradient(random):
    import sonnet as snt

    return (lambda t: snt.scale_gradient(t, 0.3)), normal(random, 5)


@table(
    "tf-models-official",
    "official/projects/yolo/ops/loss_utils.py:25",
    RIGHT,
    "x - y, which its docstring takes for another derivative",
)
def sigmoid_bce(random):
    import tensorflow as tf
    from official.projects.yolo.ops.loss_utils import sigmoid_bce

    y = tf.constant([0.0, 1.0, 1.0, 0.0])
    return (lambda x: sigmoid_bce(y, x, 0.1)), normal(random, 4)


@table(
    "tf-models-official",
    "official/projects/yolo/losses/yolo_loss.py:260",
    SURROGATE,
    "the identity, with the slope of a sigmoid",
)
def grad_sigmoid(random):
    from official.projects.yolo.losses.yolo_loss import grad_sigmoid

    return grad_sigmoid, normal(random, 5)


@table(
    "tensorflow-lattice",
    "tensorflow_lattice/python/kronecker_factored_lattice_lib.py:39",
    RIGHT,
    "a product; the rule knows float32 alone",
)
def custom_reduce_prod(random):
    from tensorflow_lattice.python.kronecker_factored_lattice_lib import (
        custom_reduce_prod,
    )

    return (lambda t: custom_reduce_prod(t, axis=-1)), normal(random, 3, 4)


@table(
    "tensorflow-model-optimization",
    "tensorflow_model_optimization/python/core/clustering/keras/"
    "clustering_algorithm.py:82",
    SURROGATE,
    "a sign of 1, passed to both",
)
def add_gradient_to_original_weight(random):
    import tensorflow as tf
    from tensorflow_model_optimization.python.core.clustering.keras import (
        clustering_algorithm,
    )

    centroids = tf.Variable([0.0, 1.0])
    algorithm = clustering_algorithm.ClusteringAlgorithm(
        centroids, clustering_algorithm.GradientAggregation.SUM
    )
    op = algorithm.add_gradient_to_original_weight
    return (lambda a, b: op(a, b)), normal(random, 5), normal(random, 5)


@table(
    "quantizers",
    "quantizers/binary/_binary_ops.py",
    SURROGATE,
    "the sign, passed through where |x| < 1",
)
def binary_quantize(random):
    from quantizers import binary_quantize

    return binary_quantize, normal(random, 8)


@table(
    "quantizers",
    "quantizers/minifloat/_float_point_ops.py",
    SURROGATE,
    "rounds to few bits, passed through",
)
def float_quantize(random):
    from quantizers import float_quantize

    return (lambda x: float_quantize(x, 2.0, 4.0, 0.0)), normal(random, 8)


@table(
    "keras-spiking",
    "keras_spiking/layers.py:311",
    SURROGATE,
    "spikes, with the slope of the rate",
)
def spiking_activation(random):
    import keras_spiking
    import tensorflow as tf

    layer = keras_spiking.SpikingActivation(
        "relu", dt=0.1, seed=0, spiking_aware_training=True
    )
    return (lambda x: tf.convert_to_tensor(layer(x))), 3.0 * normal(random, 1, 4, 3)


@table("deel-lip", "deel/lip/layers/pooling.py", EDGE, "a norm, with the slope 0 at 0")
def l2_norm_pooling(random):
    from deel.lip.layers import ScaledL2NormPooling2D

    layer = ScaledL2NormPooling2D((2, 2))
    return layer, normal(random, 1, 4, 4, 2)


@table(
    "tf-seq2seq-losses",
    "tf_seq2seq_losses/base_loss.py",
    RIGHT,
    "the gradient of CTC by its forward and backward sums",
)
def classic_ctc_loss(random):
    import tensorflow as tf
    from tf_seq2seq_losses import classic_ctc_loss

    labels = tf.constant([[1, 2, 2], [3, 1, 0]])

    def loss(logits):
        return classic_ctc_loss(
            labels=labels,
            logits=logits,
            label_length=tf.constant([3, 2]),
            logit_length=tf.constant([6, 5]),
            blank_index=0,
        )

    return loss, normal(random, 2, 6, 4)


# TensorFlow's own


@table("tensorflow-cpu", "tensorflow/python/ops/nn_impl.py:461", RIGHT, "beta too")
def swish(random):
    import tensorflow as tf

    return tf.nn.silu, normal(random, 6), tf.constant(1.5)


@table(
    "tensorflow-cpu",
    "tensorflow/python/ops/ctc_ops.py:1144",
    RIGHT,
    "CTC with dense labels",
)
def ctc_loss(random):
    import tensorflow as tf

    labels = tf.constant([[1, 2, 2], [3, 1, 0]])

    def loss(logits):
        return tf.nn.ctc_loss(
            labels,
            logits,
            tf.constant([3, 2]),
            tf.constant([6, 5]),
            logits_time_major=False,
            blank_index=0,
        )

    return loss, normal(random, 2, 6, 4)


@table(
    "tensorflow-cpu",
    "tensorflow/python/ops/math_grad.py: _CumprodGrad",
    WRONG,
    "divides by x, so that it gives none at a zero",
)
def cumprod(random):
    import tensorflow as tf

    x = uniform(random, 0.5, 2.0, 5).numpy()
    x[2] = 0.0
    return tf.math.cumprod, tf.constant(x)


@table(
    "tensorflow-cpu",
    "tensorflow/python/ops/math_grad.py: Xlogy",
    EDGE,
    "0 * log(0) is 0, and its slopes are taken as 0",
)
def xlogy(random):
    import tensorflow as tf

    return tf.math.xlogy, tf.constant([0.0, 1.0, 2.0]), tf.constant([0.0, 0.5, 3.0])


@table(
    "tensorflow-cpu", "tensorflow/python/ops/math_grad.py: Digamma", RIGHT, "trigamma"
)
def digamma(random):
    import tensorflow as tf

    return tf.math.digamma, uniform(random, 0.5, 5.0, 6)


@table(
    "tensorflow-cpu",
    "tensorflow/python/ops/math_grad.py: Igamma",
    RIGHT,
    "in a the kernel igamma_grad_a",
)
def igamma(random):
    import tensorflow as tf

    return tf.math.igamma, uniform(random, 0.5, 3.0, 4), uniform(random, 0.5, 3.0, 4)


@table(
    "tensorflow-cpu",
    "tensorflow/python/ops/linalg_grad.py: MatrixSolve",
    RIGHT,
    "the adjoint solve",
)
def linalg_solve(random):
    import tensorflow as tf

    a = normal(random, 3, 3) + 3.0 * tf.eye(3)
    return tf.linalg.solve, a, normal(random, 3, 2)


@table(
    "tensorflow-cpu",
    "tensorflow/python/ops/linalg_grad.py: Cholesky",
    RIGHT,
    "for symmetric matrices",
)
def cholesky(random):
    import tensorflow as tf

    return tf.linalg.cholesky, definite(random, 3, "float32")


@table(
    "tensorflow-cpu",
    "tensorflow/python/ops/random_grad.py: RandomGamma",
    SURROGATE,
    "a sample by rejection, with the implicit gradient",
)
def stateless_gamma(random):
    import tensorflow as tf

    def sample(a):
        return tf.random.stateless_gamma([4], (1, 2), a, dtype=a.dtype)

    return sample, uniform(random, 0.5, 3.0, 4)


@table(
    "tensorflow-cpu",
    "tensorflow/python/ops/array_ops.py: fake_quant",
    SURROGATE,
    "rounds to 8 bits, passed through within its range",
)
def fake_quant(random):
    import tensorflow as tf

    op = tf.quantization.fake_quant_with_min_max_args
    return (lambda x: op(x, -2.0, 2.0, num_bits=4)), normal(random, 8)


@table(
    "tensorflow-cpu",
    "tensorflow/python/ops/nn_grad.py: SoftmaxCrossEntropyWithLogits",
    RIGHT,
    "labels get a gradient as well",
)
def softmax_cross_entropy(random):
    import tensorflow as tf

    def loss(labels, logits):
        return tf.nn.softmax_cross_entropy_with_logits(labels, logits)

    labels = tf.one_hot([0, 2, 1], 4)
    return loss, labels, normal(random, 3, 4)


# Keras: layers as they are


def keras_layer(make: Any, *inputs: Any) -> tuple[Any, ...]:
    import keras

    keras.utils.set_random_seed(0)
    layer = make()
    layer(*inputs)
    return layer, *inputs


@table("keras", "keras/src/layers/core/dense.py", RIGHT, "a stock layer")
def dense(random):
    import keras

    make = lambda: keras.layers.Dense(3, activation="gelu")
    return keras_layer(make, normal(random, 4, 5))


@table("keras", "keras/src/layers/rnn/lstm.py", RIGHT, "a stock layer")
def lstm(random):
    import keras

    return keras_layer(lambda: keras.layers.LSTM(3), normal(random, 2, 4, 3))


@table(
    "keras",
    "keras/src/layers/normalization/batch_normalization.py",
    RIGHT,
    "a stock layer",
)
def batch_normalization(random):
    import keras

    return keras_layer(lambda: keras.layers.BatchNormalization(), normal(random, 6, 3))


@table(
    "keras",
    "keras/src/layers/attention/multi_head_attention.py",
    RIGHT,
    "a stock layer",
)
def multi_head_attention(random):
    import keras

    x = normal(random, 2, 3, 4)
    return keras_layer(lambda: keras.layers.MultiHeadAttention(2, 2), x, x)


@table("keras", "keras/src/layers/core/embedding.py", RIGHT, "a stock layer of indices")
def embedding(random):
    import keras
    import tensorflow as tf

    make = lambda: keras.layers.Embedding(10, 3)
    return keras_layer(make, tf.constant([[1, 2], [4, 3]]))


@table("keras", "keras/src/models/sequential.py", RIGHT, "a stock model")
def sequential(random):
    import keras

    def make():
        layers = [
            keras.layers.Conv1D(4, 3, activation="tanh"),
            keras.layers.LayerNormalization(),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(2),
        ]
        return keras.Sequential(layers)

    return keras_layer(make, normal(random, 2, 6, 3))
