"""The same inputs in other sizes, and what is checked at if there are many elements."""

import numpy as np
import pytest

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith.core.arrays import FRAMEWORKS
from gradsmith.tools._inputs import info_of
from gradsmith.tools.check.inputs import CheckInputs
from gradsmith.tools.check.problem import problem_for, problem_of
from gradsmith.tools.check.scenarios import scenarios
from gradsmith.tools.check.session import GIVEN, PART
from gradsmith.tools.check.sizes import resized, truncated

from .wrong_gradients import add, matmul, matmul_rule, normal, operation

COUNT = 10**5


def problem(op, *xs):
    return problem_of(info_of(op, "numpy"), FRAMEWORKS["numpy"], xs, {})


def largest(op, *xs):
    """The sizes of the arguments in each of the problems with many elements."""
    found = resized(problem(op, *xs), np.random.default_rng(0))
    return {n: [x.size for x in p.xs] for n, p in found if n.startswith("many")}


@pytest.mark.parametrize(
    "shapes", [((3, 4), (4, 5)), ((2, 3), (3, 7)), ((5, 2), (2, 2))]
)
def test_each_argument_is_large_once(shapes):
    found = largest(operation(matmul, matmul_rule), *(normal(*s) for s in shapes))
    assert all(max(sizes) > 1024 for sizes in zip(*found.values(), strict=True))


def test_one_problem_is_enough_if_all_are_large():
    right = operation(add, lambda dy, y, x, b: (dy, dy))
    assert len(largest(right, normal(3, 4), normal(3, 4))) == 1


def test_what_iterates_gets_fewer_elements():
    """Newton's method solves as many equations: 4200 of them take minutes."""
    jax = pytest.importorskip("jax")

    @jax.custom_vjp
    def root(x):
        return jax.lax.while_loop(lambda y: jax.numpy.any(y > 1), lambda y: y / 2, x)

    root.defvjp(lambda x: (root(x), None), lambda _, dy: (dy,))
    given = problem_for(root, CheckInputs((normal(3),), {}, ()), "jax").with_traits()
    found = dict(resized(given, np.random.default_rng(0)))
    (x,) = found["many elements"].xs
    assert 24 < x.size <= 64


def wrong_from_1024(dy, y, a, b):
    da, db = matmul_rule(dy, y, a, b)
    rows = np.arange(int(np.prod(a.shape))).reshape(a.shape) < 1024
    return da * gnp.asarray(rows, like=da, dtype=da.dtype), db


def test_an_argument_that_is_not_the_largest_is_wrong_beyond_1024():
    report = gs.check(operation(matmul, wrong_from_1024), normal(3, 4), normal(4, 5))
    (finding,) = report.findings
    assert (finding.argument, finding.diagnosis) == ("a", "region")
    assert finding.elements == "from element 1024 on (flat)"


def early(dx):
    """Zero from element 1024 on."""
    rows = np.arange(int(np.prod(dx.shape))).reshape(dx.shape) < 1024
    return dx * gnp.asarray(rows, like=dx, dtype=dx.dtype)


def max_rule(dy, y, x):
    hit = gnp.astype(x == y[:, None], dy.dtype)
    return dy[:, None] * hit / gnp.sum(hit, axis=1, keepdims=True)


def prod_rule(dy, y, x):
    return dy[:, None] * (y[:, None] / x)


@pytest.mark.parametrize(
    ("f", "rule"),
    [
        (lambda x: gnp.max(x, axis=1), max_rule),  # kinks, wherever two are close
        (lambda x: gnp.prod(x, axis=1), prod_rule),  # of 1,100 numbers it is zero
    ],
)
def test_many_elements_of_one_row_say_little(f, rule):
    x = np.random.default_rng(3).uniform(0.1, 0.9, (3, 4))
    assert gs.check(operation(f, rule), x).ok
    report = gs.check(operation(f, lambda *args: early(rule(*args))), x)
    (finding,) = report.findings
    assert finding.scenario == "many elements"


# --- many elements


def squares(x):
    return x * x


def test_all_of_many_elements_in_first_order_and_the_rest_for_some():
    report = gs.check(operation(squares, lambda dy, y, x: 2 * x * dy), normal(COUNT))
    assert report.ok
    where = {check.what: check.scenario for check in reversed(report.checks)}
    assert where["first order"] == GIVEN
    assert where["linearity"] == where["second order"] == PART


def test_all_of_them_if_the_operation_takes_no_fewer():
    def body(x):
        assert x.shape == (COUNT,)
        return x * x

    report = gs.check(operation(body, lambda dy, y, x: 2 * x * dy), normal(COUNT))
    assert report.ok
    assert PART not in {check.scenario for check in report.checks}


def test_the_beginning_keeps_indices_valid():
    def body(x, i):
        return x[i]

    right = operation(body, lambda dy, y, x, i: (gnp.zeros_like(x), None))
    some = truncated(problem(right, normal(5000), np.arange(4000)))
    assert some is not None
    (x,), (_, i) = some.xs, some.inputs[0]
    assert x.size < 5000
    assert max(i) < x.size


def axes_of_length_1(name, op, *xs):
    own = problem_for(op, CheckInputs(xs, {}, ()), name)
    found = resized(own, np.random.default_rng(0))
    return [int(n.split()[-1]) for n, _ in found if n.startswith("axes")]


@pytest.mark.parametrize("name", ["numpy", "torch", "jax", "tensorflow"])
@pytest.mark.parametrize("is_captured", [False, True])
def test_an_axis_is_never_too_short_for_integers(name, is_captured):
    pytest.importorskip(name)
    arrays = FRAMEWORKS[name].arrays
    labels, lengths = np.array([[1, 2, 2], [3, 1, 0]]), np.array([6, 5])
    x, labels, lengths = (
        arrays.array(a, str(a.dtype)) for a in (normal(2, 6, 4), labels, lengths)
    )
    if is_captured:
        found = axes_of_length_1(name, lambda x: (labels, lengths, x)[2], x)
    else:
        found = axes_of_length_1(name, lambda x, i, n: x, x, labels, lengths)
    # Labels up to 3 need their 4 classes, lengths up to 6 their 6 steps.
    assert found == [2]


def test_labels_stay_labels_where_another_axis_gets_shorter():
    found = resized(
        problem(lambda x, i: x, normal(2, 5), np.array([4, 3])),
        np.random.default_rng(0),
    )
    ((x, labels),) = [p.inputs[0] for n, p in found if n.startswith("axes")]
    assert x.shape == (1, 5)
    assert list(labels) == [4]


@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
def test_the_parameters_of_a_module_keep_their_shapes(kind):
    """Weights of other shapes crash PyTorch's recurrent layers, and Python too."""
    torch = pytest.importorskip("torch")
    layer = getattr(torch.nn, kind)(3, 4)
    shapes = {x.shape for x in layer.parameters()}
    seen = set()
    layer.register_forward_hook(
        lambda layer, args, y: seen.update(x.shape for x in layer.parameters())
    )
    report = gs.check(layer, torch.linspace(0, 1, 30).reshape(2, 5, 3))
    assert report.verdict == "right"
    assert seen == shapes


# --- other indices


def test_an_element_that_no_index_names():
    """Of three rows, the second is not read where its gradient is wrong."""
    places = np.array([[0, 1], [2, 3], [3, 3]])
    wrong = np.array([[1.0, 1, 1, 1], [1, -1, 1, 1], [1, 1, 1, 1]])

    def rule(dy, y, x, places):
        hot = np.arange(x.shape[1]) == places[:, :, None]
        dx = np.sum(np.asarray(dy)[:, :, None] * hot, axis=1)
        return (dx * wrong if x.shape == wrong.shape else dx), None

    take = lambda x, places: np.take_along_axis(x, places, axis=1)
    (finding,) = gs.check(operation(take, rule), normal(3, 4), places).findings
    assert finding.scenario == "the indices of other rows"
    assert finding.elements == "element [1, 1]"


@pytest.mark.parametrize("count", [4, COUNT])
def test_a_permutation_stays_beside_its_inverse(count):
    order = np.random.default_rng(0).permutation(count)
    permute = operation(
        lambda x, order, inverse: x[order],
        lambda dy, y, x, order, inverse: (dy[inverse], None, None),
    )
    report = gs.check(permute, normal(count), order, np.argsort(order))
    assert report.verdict == "right", report


@pytest.mark.parametrize(
    ("places", "moved"),
    [
        ([0, 0, 1, 2], None),  # sorted, as segments and offsets are
        ([3, 3, 2, 0], None),
        ([3], None),
        (3, None),
        ([2, 0, 2, 1], [1, 2, 0, 2]),
        ([[0, 1], [1, 2]], [[1, 2], [0, 1]]),
    ],
)
def test_integers_in_an_order_stay(places, moved):
    given = problem(lambda x, places: x * x, normal(4), np.array(places))
    made = scenarios(given, [], np.random.default_rng(0))
    found = [s.problem for s in made if s.name == "the indices of other rows"]
    assert [p.inputs[0][1].tolist() for p in found] == [moved][: moved is not None]
