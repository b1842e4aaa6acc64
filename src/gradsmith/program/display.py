"""A program in a notebook: its code, what goes in and out, and its graph."""

from __future__ import annotations

from ..core.cotangent import spec_text
from ..core.rule import name_of
from ..report.drawing import INPUT, MOST, RESULT, Box, Drawing
from ..report.figures import plural
from ..report.result import Block, Code, Document, Fact, More
from .graph import Program, Value


def document(program: Program) -> Document:
    """What a program says of itself."""
    given = program.names or ("",) * len(program.inputs)
    inputs = zip(given, program.inputs, strict=True)
    blocks: list[Block] = [
        Code("", str(program)),
        Fact(
            "inputs",
            ", ".join(f"{name} {spec_text(x)}".strip() for name, x in inputs),
        ),
        Fact("outputs", ", ".join(map(spec_text, program.results)) or "no arrays"),
    ]
    if program.constants:
        size = sum(x.nbytes for x in program.constants.values())
        words = f"{plural(len(program.constants), 'array')}, {size:,} bytes"
        blocks.append(Fact("captured", words))
    if program.steps:
        blocks.append(More("Graph", (drawing(program).figure,)))
    return Document(
        f"{_name(program)}: {plural(len(program), 'step')}",
        tuple(blocks),
        title="Program",
    )


def _name(program: Program) -> str:
    return " ".join(dict.fromkeys(("program", program.name)))


def drawing(program: Program, *, most: int = MOST) -> Drawing:
    """The graph of a program: its steps, from the inputs down to the outputs."""
    given = program.names or ("input",) * len(program.inputs)
    boxes = [
        Box(name, spec_text(x), INPUT)
        for name, x in zip(given, program.inputs, strict=True)
    ]
    place: dict[Value, int] = {x: i for i, x in enumerate(program.inputs)}
    for x in program.constants:
        place[x] = len(boxes)
        boxes.append(Box("captured", spec_text(x), INPUT))
    results = set(program.results)
    for step in program.steps:
        parents = tuple(dict.fromkeys(place[x] for x in step.inputs))
        detail = ", ".join(map(spec_text, step.outputs))
        kind = RESULT if results.intersection(step.outputs) else ""
        note = "" if step.place is None else f"{step.place}: {step.place.source}"
        place.update(dict.fromkeys(step.outputs, len(boxes)))
        boxes.append(Box(name_of(step.fn), detail, kind, parents, note=note))
    return Drawing(f"The graph of {_name(program)}", boxes, most=most)
