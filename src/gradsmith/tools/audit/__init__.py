"""How accurate are a value and its gradient? Certified truth, and distances from it.

`api` is what users call, and `pipeline` what it does: find the `targets` and their
`arguments`, sample inputs (`sampling`), and run a `task` on them. That runs the
operation (`runner`), computes true numbers (`certified`) and compares both (`errors`).
`regions` say what fails where, `causes` and `wrong` explain why. A `sweep` takes all
numbers of a format. Nothing of this is imported before an audit is called.
"""

from .api import audit
from .model import Accuracy, Audit, Curve, Region

__all__ = ["Accuracy", "Audit", "Curve", "Region", "audit"]
