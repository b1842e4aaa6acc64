"""The cases a newcomer meets first; `python -m examples` runs them."""
