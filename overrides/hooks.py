"""What MkDocs is asked to do beside its plugins."""

import re

# A fence of Python that starts with a prompt is a session: Pygments then tells prompts
# and output from code, so that only code is copied.
SESSION = re.compile(r"^([ \t]*)```python[ \t]*\n(?=\1>>>)", re.MULTILINE)


def on_page_markdown(markdown: str, **_: object) -> str:
    return SESSION.sub(r"\1```pycon\n", markdown)
