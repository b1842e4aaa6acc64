"""Results for other programs: each format makes a text of a finished run."""

from __future__ import annotations

import json
from collections.abc import Callable

from ..entries import Finished
from .badge import badge
from .github import github
from .junit import junit
from .markdown import markdown
from .sarif import sarif


def as_json(run: Finished) -> str:
    data = {**run.data, "summary": run.summary}
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


FORMATS: dict[str, Callable[[Finished], str]] = {
    "json": as_json,
    "github": github,
    "junit": junit,
    "sarif": sarif,
    "markdown": markdown,
    "badge": badge,
}
