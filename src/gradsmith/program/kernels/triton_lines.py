"""Lines of a Triton kernel, as they are written."""

from __future__ import annotations


class Lines:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.indent = 1
        self.count = 0

    def write(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def let(self, text: str, prefix: str = "v") -> str:
        """A new name for what a text computes."""
        self.count += 1
        self.write(f"{prefix}{self.count} = {text}")
        return f"{prefix}{self.count}"
