"""The page: results of all kinds in one file, readable offline.

write("report.html", page_of(results))
"""

from .render import page_of, render, write

__all__ = ["page_of", "render", "write"]
