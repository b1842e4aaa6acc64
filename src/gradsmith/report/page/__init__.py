"""The page: results of checks, survival and audits in one file, readable offline.

write("report.html", page_of(results))            results of a run, as dicts
write("report.html", page_of_audits(audits))      of audits alone
"""

from .render import page_of, page_of_audits, render, write

__all__ = ["page_of", "page_of_audits", "render", "write"]
