"""What MkDocs is asked to do beside its plugins."""

import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

# A fence of Python that starts with a prompt is a session: Pygments then tells prompts
# and output from code, so that only code is copied.
SESSION = re.compile(r"^([ \t]*)```python[ \t]*\n(?=\1>>>)", re.MULTILINE)

# An entry of the reference, whose heading is what users write: gs.grad
ENTRY = re.compile(r"^::: gradsmith\.([\w.]+)\n(?: +options:\n)?", re.MULTILINE)

# What notebooks would load from other sites, for formulas and diagrams
FOREIGN = re.compile(r"<!-- Load mathjax -->.*?mermaid.*?</script>", re.DOTALL)

# What a picture in a notebook is called in words
NAMELESS = "No description has been provided for this image"

# A link of a notebook to another page, by the name of its source
SOURCE = re.compile(r'href="([^":]+)\.(?:md|ipynb)(#[^"]*)?"')


# A report in a session: doctest takes any version, readers see that of the build.
VERSION = re.compile(r"(?<= in NumPy )\.\.\.")


def on_page_markdown(markdown: str, **_: object) -> str:
    markdown = VERSION.sub(version("numpy"), markdown)
    return ENTRY.sub(_entry, SESSION.sub(r"\1```pycon\n", markdown))


# A picture of a result, which is a page inside of an SVG file
PICTURE = re.compile(r'<p><img alt="([^"]*)" src="(pictures/[^"]+\.svg)" ?/?></p>')
RESULT = re.compile(r'<div class="gradsmith.*</div>(?=<style>.*</foreignObject>)', re.S)


def on_page_content(html: str, page: Any, **_: object) -> str:
    """Links of notebooks lead to pages, as in Markdown; one is to the notebook."""
    name = page.file.src_uri.rpartition("/")[2]
    if not name.endswith(".ipynb"):
        return PICTURE.sub(lambda found: _shown(found, page.file.abs_src_path), html)
    html = SOURCE.sub(r'href="\1.html\2"', FOREIGN.sub("", html))
    html = html.replace(NAMELESS, "The plot that the code above draws")
    download = f'<p><a href="{name}" download>Download this notebook</a> to run it.</p>'
    return html.replace("</h1>", f"</h1>{download}", 1)


def _shown(picture: re.Match[str], page: str) -> str:
    """A result as part of the page: it has the page's colours, and fits a phone."""
    file = Path(page).parent / picture[2]
    found = RESULT.search(file.read_text(encoding="utf-8"))
    if found is None:
        return picture[0]
    return f'<div role="group" aria-label="{picture[1]}">{found[0]}</div>'


def _entry(match: re.Match[str]) -> str:
    name = match[1]
    group, _, short = name.rpartition(".")
    return (
        f"::: gradsmith.{name}\n    options:\n      heading: gs.{name}\n"
        f"      toc_label: {short if group else f'gs.{name}'}\n"
        f"      heading_level: {3 if group == 'ops' else 2}\n"
    )
