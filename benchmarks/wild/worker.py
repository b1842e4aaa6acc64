"""A process that checks cases, one after the other, as it is told on stdin.

Whatever a case does (loop in compiled code, end the process) ends this process alone.
A line in is `check NAME` or `oracle NAME`; a line out is JSON: `ready` when the inputs
are made and the clock starts, then the outcome.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks._peers import load

from .case import Case
from .cases import corpus

SHOWN = 4000  # characters of a report

# What today's words are in the graded verdicts
WORDS = {"inconclusive": "could not tell"}


def main(framework: str) -> None:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what packages print is no answer
    warnings.simplefilter("ignore")
    load(framework)
    cases = {case.name: case for case in corpus(framework)}
    for line in sys.stdin:
        verb, _, name = line.strip().partition(" ")
        for answer in (_check if verb == "check" else _oracle)(cases[name]):
            print(json.dumps(answer), file=out, flush=True)


def _check(case: Case) -> Iterator[dict[str, Any]]:
    import gradsmith as gs

    with _x64(case):
        try:
            op, *inputs = case.build()
        except Exception as error:
            text = f"{type(error).__name__}: {error}"[:SHOWN]
            yield {"verdict": "not made", "text": text}
            return
        yield {"ready": True}
        start, cpu = time.perf_counter(), time.process_time()
        try:
            result: Any = gs.check(op, *inputs)
        except Exception as error:
            said, text = "raised", f"{type(error).__name__}: {error}"
        else:
            said, text = word(result), str(result)
        yield {
            "verdict": said,
            "seconds": time.perf_counter() - start,
            "processor_seconds": time.process_time() - cpu,
            "text": text[:SHOWN],
        }


def word(result: Any) -> str:
    """The verdict in one word."""
    verdict = getattr(result, "verdict", None)
    if verdict is None:
        return "right" if result.ok else "wrong"
    said = str(getattr(verdict, "value", verdict))
    return WORDS.get(said, said)


def _oracle(case: Case) -> Iterator[dict[str, Any]]:
    from .oracle import judge

    yield {"ready": True}
    start = time.perf_counter()
    try:
        found = judge(case)
    except Exception as error:
        yield {
            "first": f"raised {type(error).__name__}: {error}"[:SHOWN],
            "fits": False,
        }
        return
    seconds = time.perf_counter() - start
    yield {**found.as_dict(), "fits": found.fits(case.truth), "seconds": seconds}


@contextmanager
def _x64(case: Case) -> Iterator[None]:
    if case.framework != "jax":
        yield
        return
    with load("jax").enable_x64(case.x64):
        yield


if __name__ == "__main__":
    main(sys.argv[1])
