"""The entry point of the command line: `gradsmith`, and `python -m gradsmith`."""

from __future__ import annotations

import os
import sys
import traceback

TRACEBACK = "GRADSMITH_TRACEBACK"  # shows where a mistake of ours is


def main() -> None:
    try:
        from .command import gradsmith
        from .status import Exit, say
    except ModuleNotFoundError as error:
        if error.name not in ("click", "rich"):
            raise
        if sys.argv[1:] in (["doctor"], ["doctor", "--deep"]):
            sys.exit(_examine(deep="--deep" in sys.argv))
        sys.stderr.write(
            f"{error.name} is not installed, which the command line needs: "
            'pip install "gradsmith[cli]"\n'
        )
        raise SystemExit(2) from None
    import click

    try:
        gradsmith(prog_name="gradsmith", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(Exit.USAGE)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(Exit.INTERRUPTED)
    except Exception as error:
        if os.environ.get(TRACEBACK):
            traceback.print_exc()
        say(
            f"internal error: {type(error).__name__}: {error}\n  this is a mistake in "
            f"Gradsmith; set {TRACEBACK}=1 to see where, and please report it"
        )
        sys.exit(Exit.INTERNAL)


def _examine(*, deep: bool) -> int:
    """`gradsmith doctor` where the packages of the command line are missing."""
    from .installation import examined, text, works

    rows = examined(deep=deep)
    sys.stdout.write(f"{text(rows)}\n")
    return 0 if works(rows) else 1
