"""The engine: values, rules, the tape and the walk back, forward mode, transforms."""

__version__ = "0.1.0"


def is_compiled() -> bool:
    """Whether the modules that take the time of small arrays are compiled code."""
    from . import tape

    return not tape.__file__.endswith(".py")
