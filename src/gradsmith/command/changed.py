"""The files that changed since a commit, as Git knows it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import GradsmithError
from .sources import is_skipped

LATEST = "HEAD"
_NO_REPOSITORY = "not a git repository"


def changed_files(base: str, within: Sequence[str]) -> list[str]:
    """Python files that differ from where this branch left another, or are new.

    Those in the working tree count, so that what is not committed yet is checked.
    `within` are files and folders; without any, all of the repository is meant.
    """
    root = _git("rev-parse", "--show-toplevel").strip()
    start = _start(base)
    names = _git(
        "diff", "--name-only", "--diff-filter=d", "-z", start, "--", cwd=root
    ) + _git("ls-files", "--others", "--exclude-standard", "-z", cwd=root)
    for each in within:
        if not os.path.exists(each):
            raise GradsmithError(
                f"--changed {base}: {each!r} is no file or folder, of which those that "
                "changed could be taken"
            )
    allowed = [Path(os.path.realpath(each)) for each in within]
    found = [
        Path(root) / name
        for name in dict.fromkeys(filter(None, names.split("\0")))
        if name.endswith(".py") and not is_skipped(Path(name))
    ]
    return [
        os.path.relpath(path)
        for path in sorted(found)
        if path.is_file()
        and (not allowed or any(path.is_relative_to(each) for each in allowed))
    ]


def _start(base: str) -> str:
    """The commit to compare with: where the branches parted, if that is known."""
    if not _tried("rev-parse", "--verify", "--quiet", f"{base}^{{commit}}"):
        if base == LATEST:
            raise GradsmithError(
                "--changed: there is no commit here yet\n  what to do: commit, or "
                "leave --changed out"
            )
        raise GradsmithError(
            f"--changed {base}: there is no such commit here\n  what to do: fetch it "
            "(with actions/checkout: fetch-depth: 0); targets stand before --changed"
        )
    # A shallow clone does not know where they parted
    return _tried("merge-base", base, LATEST) or base


def _git(*words: str, cwd: str | None = None) -> str:
    try:
        found = subprocess.run(
            ["git", *words], cwd=cwd, capture_output=True, check=True,
            env={**os.environ, "LC_ALL": "C"},  # its messages are read below
        )  # fmt: skip
    except FileNotFoundError:
        raise GradsmithError("--changed needs git, which is not installed") from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip()
        if _NO_REPOSITORY in said:
            said = f"{_NO_REPOSITORY}: {os.getcwd()}\n  what to do: leave --changed out"
        raise GradsmithError(f"--changed: {said}") from None
    return os.fsdecode(found.stdout)


def _tried(*words: str) -> str:
    """What Git answers; nothing if it knows no answer."""
    try:
        return _git(*words).strip()
    except GradsmithError as error:
        if "not installed" in str(error) or _NO_REPOSITORY in str(error):
            raise
        return ""
