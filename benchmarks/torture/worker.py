"""Tries things in a process of its own, and tells of each: `python -m ... PART`.

A trial that kills Python is then a crash of that trial, and the others go on.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from dataclasses import asdict

from .outcome import Outcome
from .parts import Selection, trial


def main() -> None:
    """Read the part, the selection and the names of trials from stdin."""
    told = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what trials print is not what is told
    asked = json.loads(sys.stdin.readline())
    selection = Selection(**{**asked["selection"], "parts": (asked["part"],)})
    run = trial(asked["part"], selection)
    for name in asked["names"]:
        print(json.dumps({"begins": name}), file=told)
        try:
            outcome = run(name)
        except Exception as error:
            cause = f"the trial raised {type(error).__name__}: {error}"
            outcome = Outcome(
                asked["part"], name, "crash", cause[:200], traceback.format_exc()
            )
        print(json.dumps(asdict(outcome)), file=told)


if __name__ == "__main__":
    main()
