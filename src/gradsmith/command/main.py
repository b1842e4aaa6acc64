"""The entry point of the command line: `gradsmith`, and `python -m gradsmith`."""

from __future__ import annotations

import sys


def main() -> None:
    try:
        from .command import gradsmith
    except ModuleNotFoundError as error:
        if error.name not in ("click", "rich"):
            raise
        sys.stderr.write(
            f"{error.name} is not installed, which the command line needs: "
            'pip install "gradsmith[cli]"\n'
        )
        raise SystemExit(2) from None
    gradsmith(prog_name="gradsmith")
