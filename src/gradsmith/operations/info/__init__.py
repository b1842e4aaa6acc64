"""Operations looked at from outside: ours, a framework's own, any function."""

from .info import (
    Around,
    Subject,
    is_floating,
    name_of,
    names_of,
    of_operation,
    positional,
    signature_of,
)
from .inputs import (
    framework_for,
    framework_of_native,
    framework_with_rule,
    module_for,
    prepared,
    require_operation,
    subject_of,
)

__all__ = [
    "Around",
    "Subject",
    "framework_for",
    "framework_of_native",
    "framework_with_rule",
    "is_floating",
    "module_for",
    "name_of",
    "names_of",
    "of_operation",
    "positional",
    "prepared",
    "require_operation",
    "signature_of",
    "subject_of",
]
