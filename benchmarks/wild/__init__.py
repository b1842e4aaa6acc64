"""Custom gradients of public packages, and what `gs.check` says of them.

Nobody here wrote them. `cases/` has one file for each framework, a few lines for each
gradient; `oracle.py` settles which are right, and uses nothing of Gradsmith.
"""
