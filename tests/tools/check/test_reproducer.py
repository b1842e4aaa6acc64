"""The script of a report, run as somebody else would: in a process of its own."""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

HEAD = {
    "numpy": "import gradsmith as gs, numpy as np\n",
    "torch": "import torch\nfrom torch.autograd import Function\n",
    "jax": "import jax, jax.numpy as jnp\n",
    "tensorflow": "import tensorflow as tf\n",
}
TORCH = """
class {name}(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return {value}

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return {rule}
"""
JAX = """
@jax.custom_vjp
def {name}(x):
    return {value}

{name}.defvjp(lambda x: ({value}, x), lambda x, dy: ({rule},))
"""
CLOSURE = """
@{decorator}
def {name}(x):
    return {value}, lambda dy: {rule}
"""
FORMS = {
    "numpy": CLOSURE.replace("{decorator}", "gs.custom_gradient"),
    "torch": TORCH,
    "jax": JAX,
    "tensorflow": CLOSURE.replace("{decorator}", "tf.custom_gradient"),
}
# By its mistake: value and rule
WRONG = {
    "factor": ("x * x", "3 * x * dy"),
    "region": ("x * x", "2 * abs(x) * dy"),
    "nan": ("x * x", "2 * x * dy * (x - x) / (x - x)"),
}


def said(framework: str, folder: Path) -> dict[str, dict]:
    """What `gradsmith check` says of a file with all mistakes, by their names."""
    form = FORMS[framework].format
    codes = [form(name=name, value=v, rule=r) for name, (v, r) in WRONG.items()]
    (folder / "ops.py").write_text(HEAD[framework] + "".join(codes), encoding="utf-8")
    command = [sys.executable, "-m", "gradsmith", "check", "ops.py", "--quick"]
    found = subprocess.run(
        [*command, "--jobs", "1", "--json"], cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    assert found.returncode == 1, found.stdout + found.stderr
    return {row["name"]: row for row in json.loads(found.stdout)["results"]}


def printed(scripts: dict[str, str], folder: Path) -> dict[str, str]:
    """What scripts print, each of which knows nothing of the others.

    They share a process: to import TensorFlow takes five seconds.
    """
    runner = """
import contextlib, io, json, sys
printed = {}
for name, script in json.load(sys.stdin).items():
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(script, name, "exec"), {"__name__": "__main__"})
    printed[name] = out.getvalue()
print(json.dumps(printed))
"""
    done = subprocess.run(
        [sys.executable, "-c", runner],
        cwd=folder,
        input=json.dumps(scripts),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("framework", HEAD)
def test_the_two_numbers_differ(framework, tmp_path):
    results = said(framework, tmp_path)
    assert set(results) == set(WRONG)
    scripts = {}
    for name, result in results.items():
        assert result["status"] == "wrong"
        finding = result["report"]["findings"][0]
        script = scripts[name] = finding["reproducer"]
        assert script in result["text"].replace("\n      ", "\n"), result["text"]
        rule = result["report"]["rule"]
        assert f"the rule: {rule['file']}:{rule['line']}" in result["text"]
        assert Path(rule["file"]) == tmp_path / "ops.py"
        line = (tmp_path / "ops.py").read_text().splitlines()[rule["line"] - 1]
        assert line.strip() == rule["text"].splitlines()[0]
        if framework != "numpy":  # whose rule is one of ours
            assert "gradsmith" not in script
        checks = re.sub(r"\s+", " ", result["text"].partition("checks run:")[2])
        assert re.search(r"on the given inputs \(\S+ to \S+\) in float(32|64)", checks)
        if name == "region" and finding["scenario"] != "the given inputs":
            assert finding["inputs"].startswith("x = [")
            assert "inputs: x = [" in result["text"]

    for words in printed(scripts, tmp_path).values():
        by_rule, difference = map(float, re.findall(r": +(\S+)", words))
        assert abs(difference) < 1e3  # it is a number
        assert not abs(by_rule - difference) <= 0.01 * abs(difference)


def test_arguments_with_names_that_the_script_has_itself(capsys):
    import torch, gradsmith as gs  # noqa: E401, I001  (imports of which one is needed)

    torch.manual_seed(0)

    class weights(torch.autograd.Function):  # noqa: N801
        @staticmethod
        def forward(ctx, v, step, np, y, torch):
            ctx.save_for_backward(v, step)
            return v * step + np * y - torch

        @staticmethod
        def backward(ctx, dy):
            v, step = ctx.saved_tensors
            return dy * step, 3 * dy * v, None, None, -dy

    found = gs.check(weights.apply, *torch.randn(5, 4).unbind())
    script = found.findings[0].reproducer
    assert "gradsmith" not in script
    assert "manual_seed" not in script
    assert script.count("import torch\n") == script.count("import") - 1 == 1
    assert "\n\n\n" not in script
    exec(compile(script, "script", "exec"), {"__name__": "__main__"})
    by_rule, difference = map(float, re.findall(r": +(\S+)", capsys.readouterr().out))
    assert by_rule == pytest.approx(3 * difference)


def test_a_rule_with_variables_named_as_arguments_of_others_is_inlined():
    import jax, jax.numpy as jnp  # noqa: E401, I001
    import gradsmith as gs

    @jax.custom_jvp
    def logistic(x):
        return 1 / (1 + jnp.exp(-x))

    @logistic.defjvp
    def _(primals, tangents):
        (x,), (dx,) = primals, tangents
        return logistic(x), dx * logistic(x)

    script = gs.check(logistic, jnp.linspace(-3, 3, 7)).findings[0].reproducer
    assert "(x,), (dx,) = primals, tangents" in script
    assert script.count("import jax.numpy as jnp") == 1


def numbers(script: str) -> list[float]:
    """What a script prints."""
    import jax

    before = jax.config.jax_enable_x64  # which one for JAX sets
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            exec(script, {"__name__": "__main__"})
        finally:
            jax.config.update("jax_enable_x64", before)
    return [float(each) for each in re.findall(r": +(\S+)", out.getvalue())]


def test_a_lambda_that_is_written_where_it_is_used():
    import torch

    import gradsmith as gs

    x, scale, two = torch.tensor([0.3, -0.5, 0.7]), 3.0, lambda f, g: (g, f)
    ops = (
        two(lambda x: x * x, lambda x: scale * x * x.data),
        lambda x: x * x.data,
    )
    for op in (ops[0][0], ops[1]):
        (finding,) = gs.check(op, x).findings
        rule, difference = numbers(finding.reproducer)
        assert difference == pytest.approx(2 * rule), finding.reproducer


def test_tensors_that_are_held_are_written_down():
    import torch

    import gradsmith as gs

    weights = torch.tensor([0.5, 2.0, -1.0]) * torch.tensor([1, 1, 3])

    def made(weights):
        class Squared(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return weights * x * x

            @staticmethod
            def backward(ctx, dy):
                return dy * weights * ctx.saved_tensors[0]

        return Squared

    plain = (lambda weights: lambda x: weights * x * x.data)(weights)
    for op in (made(weights), plain):
        finding = gs.check(op, torch.tensor([0.3, -0.5, 0.7])).findings[0]
        assert "weights = torch.tensor(np.array([0.5, 2.0, -3.0]" in finding.reproducer
        rule, difference = numbers(finding.reproducer)
        assert difference == pytest.approx(2 * rule, rel=1e-3), finding.reproducer


def test_arrays_of_jax_and_tensorflow_that_are_held():
    import jax
    import jax.numpy as jnp
    import tensorflow as tf

    def in_jax(weights):
        return lambda x: weights * x * jax.lax.stop_gradient(x) * x

    def in_tensorflow(weights):
        return lambda x: weights * x * tf.stop_gradient(x) * x

    given = np.array([0.3, -0.5, 0.7])
    for op, x in (
        (in_jax(jnp.array([1, 0, 1])), jnp.asarray(given)),
        (in_tensorflow(tf.constant(np.array([1.0, 0.0, 2.0]))), tf.constant(given)),
    ):
        script = reproducer_of(op, x)
        rule, difference = numbers(script)
        assert difference == pytest.approx(1.5 * rule, rel=1e-3), script


def reproducer_of(op, x):
    from gradsmith.tools.check.inputs import CheckInputs
    from gradsmith.tools.check.problem import problem_for
    from gradsmith.tools.check.reproducer import reproducer

    return reproducer(problem_for(op, CheckInputs((x,), {}, ()), None), "x")


def test_a_mistake_that_symmetric_weights_do_not_show():
    import torch

    import gradsmith as gs

    class Gram(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.T @ x

        @staticmethod
        def backward(ctx, dy):
            return 2 * ctx.saved_tensors[0] @ dy

    finding = gs.check(Gram.apply, torch.arange(6.0).sin().reshape(3, 2)).findings[0]
    rule, difference = numbers(finding.reproducer)
    assert rule != pytest.approx(difference, rel=1e-3)


def test_no_gradient_at_all_in_tensorflow():
    import tensorflow as tf

    import gradsmith as gs

    op = lambda x: tf.strings.to_number(tf.strings.as_string(x), x.dtype) ** 2
    (finding,) = gs.check(op, tf.constant([0.3, -0.5])).findings
    rule, difference = numbers(finding.reproducer)
    assert rule == 0 != difference


def test_a_rule_that_knows_float32_alone():
    import tensorflow as tf

    import gradsmith as gs

    @tf.custom_gradient
    def relu(x):
        return tf.nn.relu(x), lambda dy: 2 * dy * tf.cast(x > 0, tf.float32)

    for n in (4, 40):
        finding = gs.check(relu, tf.sin(tf.range(1.0, n + 1.0))).findings[0]
        rule, difference = numbers(finding.reproducer)
        assert rule == pytest.approx(2 * difference)
