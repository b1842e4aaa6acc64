"""The engine: values, rules, the tape and the walk back, forward mode, transforms."""

__version__ = "0.1.0"
