"""Where a process was when it hung or crashed, from what `faulthandler` wrote."""

from __future__ import annotations

import linecache
import re

from .loading import is_own

_PLACE = re.compile(r'File "(?P<file>.+)", line (?P<line>\d+) in (?P<name>.+)')


def places_in(trace: str, root: str) -> str:
    """The user's own frames, the innermost last as in a traceback."""
    found = [match for match in map(_PLACE.search, trace.splitlines()) if match]
    own = [match for match in found if is_own(match["file"], root)]
    shown = [_shown(match) for match in reversed(own)]
    return "\n".join(["It was here:", *shown]) if shown else ""


def _shown(match: re.Match[str]) -> str:
    file, line = match["file"], int(match["line"])
    code = linecache.getline(file, line).strip()
    return f'  File "{file}", line {line}, in {match["name"]}\n    {code}'.rstrip()
