"""Work in other processes, for the commands and for audits.

A `Pool` hands items to worker processes of which each may crash, hang or eat memory;
isolated ones are forked from a `zygote`, and answer over a `channel` with plain data.
`map_unordered` does pure work on items anywhere: in an executor, in a pool, or right
here. A `Journal` keeps what is done in a file, so that it can be resumed.
"""

from .journal import Journal
from .limits import cores, default_jobs, default_memory
from .mapping import map_unordered
from .pool import Answer, Pool
from .worker import Partial

__all__ = [
    "Answer",
    "Journal",
    "Partial",
    "Pool",
    "cores",
    "default_jobs",
    "default_memory",
    "map_unordered",
]
