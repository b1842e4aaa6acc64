"""The order in which the tests are run."""

from __future__ import annotations


def pytest_collection_modifyitems(items):
    # These count references. A compiler that hooks into Python's frames holds some more
    # while it is there, so they come before the tests that use one.
    items.sort(key=lambda item: "test_pool" not in item.nodeid)
