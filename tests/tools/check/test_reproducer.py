"""The script of a report, run as somebody else would: in a process of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

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


def said(framework: str, mistake: str, folder: Path) -> dict:
    """What `gradsmith check` says of a file with one operation, as JSON."""
    value, rule = WRONG[mistake]
    code = FORMS[framework].format(name="square", value=value, rule=rule)
    (folder / "ops.py").write_text(HEAD[framework] + code, encoding="utf-8")
    command = [sys.executable, "-m", "gradsmith", "check", "ops.py", "--quick"]
    found = subprocess.run(
        [*command, "--jobs", "1", "--json"], cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    assert found.returncode == 1, found.stdout + found.stderr
    (result,) = json.loads(found.stdout)["results"]
    return result


@pytest.mark.parametrize("mistake", WRONG)
@pytest.mark.parametrize("framework", HEAD)
def test_the_two_numbers_differ(framework, mistake, tmp_path):
    result = said(framework, mistake, tmp_path)
    assert result["status"] == "wrong"
    finding = result["report"]["findings"][0]
    script = finding["reproducer"]
    assert script in result["text"].replace("\n      ", "\n"), result["text"]
    rule = result["report"]["rule"]
    assert f"the rule: {rule['file']}:{rule['line']}" in result["text"]
    assert Path(rule["file"]) == tmp_path / "ops.py"
    line = (tmp_path / "ops.py").read_text().splitlines()[rule["line"] - 1]
    assert line.strip() == rule["text"].splitlines()[0]

    if framework != "numpy":  # whose rule is one of ours
        assert "gradsmith" not in script
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    by_rule, difference = map(float, re.findall(r": +(\S+)", done.stdout))
    assert abs(difference) < 1e3  # it is a number
    assert not abs(by_rule - difference) <= 0.01 * abs(difference)

    checks = re.sub(r"\s+", " ", result["text"].partition("checks run:")[2])
    assert re.search(r"on the given inputs \(\S+ to \S+\) in float(32|64)", checks)
    if mistake == "region" and finding["scenario"] != "the given inputs":
        assert finding["inputs"].startswith("x = [")
        assert "inputs: x = [" in result["text"]


# --- of an operation that can't be imported

JAX_RULE = """
def forward(x):
    return {value}, x

def backward(x, dy):
    return ({rule},)

square.defvjp(forward, backward)
"""
RULES = {
    "torch": TORCH,
    "jax": "@jax.custom_vjp\ndef square(x):\n    return {value}\n" + JAX_RULE,
    "tensorflow": FORMS["tensorflow"],
    "numpy": "def body(x):\n    return {value}\n\nsquare = gs.operation(body)\n\n"
    "@square.vjp\ndef _(dy, y, x):\n    return {rule}\n",
}
LOCAL = """
def scaled(x):
    return FACTOR * x

def main():
    power = 2
{code}
    report = gs.check({op}, {array})
    print(report.findings[0].reproducer)

FACTOR = 1.5
unused = open("/nowhere") if FACTOR == 0 else None

if __name__ == "__main__":
    main()
"""
AT_TOP = LOCAL.replace("\n    power = 2", "\n    pass").replace("{code}\n", "")
ARRAYS = {
    "numpy": "np.linspace(0.5, 2, 4)",
    "torch": "torch.linspace(0.5, 2, 4)",
    "jax": "jnp.linspace(0.5, 2, 4)",
    "tensorflow": "tf.linspace(0.5, 2, 4)",
}


@pytest.mark.parametrize(
    ("framework", "is_local"),
    [
        ("torch", True),
        ("torch", False),
        ("jax", True),
        ("tensorflow", True),
        ("numpy", False),
    ],
)
def test_the_source_stands_in_the_script(framework, is_local, tmp_path):
    power = "power" if is_local else "2"
    code = RULES[framework].format(
        name="square", value=f"scaled(x) ** {power}", rule="3 * FACTOR * scaled(x) * dy"
    )
    op = "square.apply" if framework == "torch" else "square"
    inner = "\n".join("    " + line for line in code.splitlines())
    rest = (LOCAL if is_local else AT_TOP).format(
        code=inner, op=op, array=ARRAYS[framework]
    )
    head = "import gradsmith as gs\nimport numpy as np\n" + HEAD[framework]
    script = tmp_path / "main.py"
    script.write_text(head + ("" if is_local else code) + rest, encoding="utf-8")
    found = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    assert "unused" not in found.stdout
    if framework != "numpy":
        assert "gradsmith" not in found.stdout
    command = [sys.executable, "-c", found.stdout]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True)
    assert done.returncode == 0, found.stdout + done.stderr
    by_rule, difference = map(float, re.findall(r": +(\S+)", done.stdout))
    assert by_rule == pytest.approx(1.5 * difference, rel=1e-3)
