"""A program in a notebook: its code, and what goes in and out."""

from __future__ import annotations

from ..core.cotangent import Spec
from ..report.figures import plural
from ..report.result import Block, Code, Document, Fact
from .graph import Program


def document(program: Program) -> Document:
    """What a program says of itself."""
    given = program.names or ("",) * len(program.inputs)
    inputs = zip(given, program.inputs, strict=True)
    blocks: list[Block] = [
        Code("", str(program)),
        Fact(
            "inputs", ", ".join(f"{name} {described(x)}".strip() for name, x in inputs)
        ),
        Fact("outputs", ", ".join(map(described, program.results)) or "no arrays"),
    ]
    if program.constants:
        size = sum(x.nbytes for x in program.constants.values())
        words = f"{plural(len(program.constants), 'array')}, {size:,} bytes"
        blocks.append(Fact("captured", words))
    steps = plural(len(program), "step")
    return Document(f"program {program.name}: {steps}", tuple(blocks), title="Program")


def described(x: Spec) -> str:
    """The dtype and the shape of a value.

    >>> described(Spec((2, 3), "float32"))
    'float32 (2, 3)'
    """
    return f"{x.dtype} {tuple(x.shape or ())}"
