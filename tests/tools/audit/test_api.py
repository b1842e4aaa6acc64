"""What `gs.audit` takes, refuses and gives back."""

import json
import subprocess
import sys

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.tools.audit.tally import merged, tally


def test_figures_and_words():
    report = gs.audit(np.tanh, (-1, 1), points=500)
    assert report.operation == "tanh"
    assert report.framework == "NumPy"
    assert report.version == np.__version__
    assert report.arguments == ("x",)
    text = str(report)
    assert text.splitlines()[0].endswith("inputs in [-1, 1]")
    assert "max ULP" in text
    assert report.ok == text.startswith("✓")
    assert max(map(len, text.splitlines())) <= 88


def test_html_is_escaped():
    def naive(x):
        return 1 - np.cos(x)

    naive.__name__ = "<b>"
    html = gs.audit(naive, (-1, 1), points=200)._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<table>" in html
    assert "<b>" not in html.replace("<b style", "")


def test_json_has_all_of_it_and_no_infinities():
    report = gs.audit(np.sinc, points=500)
    found = json.loads(report.to_json(), parse_constant=pytest.fail)
    assert found["value"]["regions"][0]["kind"] == "nan"
    assert found["value"]["max_ulp"] == "inf"
    assert len(found["gradient"]["curve"]["x"]) <= 400


def test_the_curve_is_in_order_and_holds_the_maximum():
    found = gs.audit(np.tanh, (-5, 5), points=3000).value
    assert found.curve is not None
    assert list(found.curve.x) == sorted(found.curve.x)
    assert max(found.curve.max_ulp) == found.max_ulp
    assert len(found.curve.x) == len(found.curve.mean_ulp) > 100


def test_tallies_merge_in_any_order():
    from gradsmith.tools.audit.runner import Runner
    from gradsmith.tools.audit.task import AuditTask, Points

    task = AuditTask(Runner(np.tanh), np.tanh, "float32", (-(2**30), 2**30))
    x = np.linspace(-2, 2, 600).astype(np.float32)
    parts = [*map(task, Points([x]).chunks(100))]
    one, two = (merged([p[0] for p in parts[::step]]) for step in (1, -1))
    numbers = task.form.numbers
    assert one.accuracy(numbers) == two.accuracy(numbers)
    whole = tally(
        task.errors(Points([x]))[0], task.form.codes(x), lambda i: "", (-(2**30), 2**30)
    )
    assert one.accuracy().mean_ulp == pytest.approx(whole.accuracy().mean_ulp)
    assert one.accuracy().max_ulp == whole.accuracy().max_ulp


def test_progress_is_told():
    told = []
    gs.audit(np.tanh, (0, 1), points=9000, progress=lambda *x: told.append(x))
    done, total = zip(*told, strict=True)
    assert len(told) == 3
    assert list(done) == sorted(done)
    assert done[-1] == total[-1] > 9000


def test_true_values_beyond_the_format():
    report = gs.audit(np.exp, points=2000)
    for found in (report.value, report.gradient):  # inf where the true one is larger
        assert found.max_ulp < 4
        assert not found.outside
    assert not report.notes


def test_zeros_in_place_of_huge_values_are_far_off():
    found = gs.audit(lambda x: 0 * x, (900, 1e6), reference=np.exp, points=200).value
    assert found.beyond == 1
    assert found.regions[0].text == (
        "value is 0 everywhere, where the true value is larger than any float32"
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_every_format(dtype):
    report = gs.audit(np.sqrt, (0, 100), dtype, points=500)
    assert report.exhaustive == (dtype in ("float16", "bfloat16"))
    assert report.value.max_ulp <= 0.5
    assert report.gradient.max_ulp < 2
    assert report.undecided == 0


def test_a_constant_function():
    report = gs.audit(lambda x: 0 * x + 1, (-1, 1), points=100)
    assert report.value.max_ulp == 0
    assert report.gradient.max_ulp == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"domain": (3, 1)}, "is empty"),
        ({"domain": (1e-46, 1.1e-46)}, "no float32 number"),
        ({"domain": (1, 2, 3)}, r"give \(low, high\)"),
        ({"domain": {"z": (0, 1), "w": (0, "b")}}, "'w': "),
        ({"dtype": "int8"}, "one of float16, bfloat16"),
        ({"points": 0}, "at least 1"),
        ({"seed": -1}, "seed=-1"),
        ({"reference": 3}, "not a function"),
        ({"framework": "mxnet"}, "unknown"),
    ],
)
def test_bad_options_are_refused(options, words):
    with pytest.raises(gs.GradsmithError, match=words):
        gs.audit(np.exp, **options)


def test_an_unknown_argument():
    with pytest.raises(gs.GradsmithError, match="takes x1, x2"):
        gs.audit(np.hypot, {"z": (0, 1)})


def test_all_of_several_are_too_many():
    with pytest.raises(gs.GradsmithError, match="which are sampled"):
        gs.audit(np.hypot, exhaustive=True)


def test_what_the_operation_raises_passes_through():
    def boom(x):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no") as caught:
        gs.audit(boom)
    assert "raised by boom" in caught.value.__notes__[0]


def test_what_has_no_certified_value_says_what_to_give():
    from scipy import special

    with pytest.raises(gs.UnsupportedOperationError, match="reference="):
        gs.audit(lambda x: special.owens_t(x, 0.5), (0, 1))


def test_without_python_flint():
    code = (
        "import sys; sys.modules['flint'] = None\n"
        "from gradsmith import *\n"
        "import gradsmith as gs, numpy as np\n"
        "try: gs.audit(np.exp)\n"
        "except gs.GradsmithError as error: print(error)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert 'pip install "gradsmith[audit]"' in found.stdout


def test_an_example_of_an_elementwise_operation_is_no_vector():
    @gs.custom_gradient
    def twice(x):
        return 2 * x, lambda dy: 2 * dy

    @twice.example
    def _():
        return gs.spec((3,), low=0.5, high=4)

    found = gs.audit(twice, dtype="float16")
    assert found.exhaustive
    assert found.points == 3 * 2**10 + 1
