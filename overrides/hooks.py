"""What MkDocs is asked to do beside its plugins."""

import re

# A fence of Python that starts with a prompt is a session: Pygments then tells prompts
# and output from code, so that only code is copied.
SESSION = re.compile(r"^([ \t]*)```python[ \t]*\n(?=\1>>>)", re.MULTILINE)

# An entry of the reference, whose heading is what users write: gs.grad
ENTRY = re.compile(r"^::: gradsmith\.([\w.]+)\n(?: +options:\n)?", re.MULTILINE)


def on_page_markdown(markdown: str, **_: object) -> str:
    return ENTRY.sub(_entry, SESSION.sub(r"\1```pycon\n", markdown))


def _entry(match: re.Match[str]) -> str:
    name = match[1]
    group, _, short = name.rpartition(".")
    return (
        f"::: gradsmith.{name}\n    options:\n      heading: gs.{name}\n"
        f"      toc_label: {short if group else f'gs.{name}'}\n"
        f"      heading_level: {3 if group == 'ops' else 2}\n"
    )
