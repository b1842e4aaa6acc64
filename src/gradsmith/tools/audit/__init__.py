"""How accurate are a value and its gradient? Certified truth, and distances from it.

`balls` run a definition on arrays of Arb balls with its true derivative, `certify`
raises their precision until each number is known, `ulp` measures how far results are
from it. A `task` does that for a chunk of inputs, `regions` say what fails where, and
`door` is what users call; nothing that it needs is imported before.
"""

from .api import audit
from .model import Accuracy, Audit, Curve, Region

__all__ = ["Accuracy", "Audit", "Curve", "Region", "audit"]
