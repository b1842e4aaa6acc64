"""One test walks the registry and checks every rule by its cases."""

from __future__ import annotations

import pytest

from tests.rules import cases, harness


@pytest.mark.parametrize("case", cases.ALL, ids=str)
def test_rule(case):
    harness.check(case)
