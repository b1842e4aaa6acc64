"""How accurate are a value and its gradient? Certified truth, distances, a first run.

`balls` run a definition on arrays of Arb balls with its true derivative, `certify`
raises their precision until each number is known, `ulp` measures how far results are
from it, and `run` puts a unary operation to that test.
"""
