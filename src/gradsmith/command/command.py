"""The commands."""

from __future__ import annotations

import click

from .. import __version__
from .audit import audit
from .badge import badge
from .check import check
from .doctor import doctor
from .init import init
from .report import report


class InOrder(click.Group):
    """Lists its commands in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.commands]


@click.group(cls=InOrder, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gradsmith")
def gradsmith() -> None:
    """Gradsmith: custom gradients in Python."""


for _command in (check, audit, report, init, doctor, badge):
    gradsmith.add_command(_command)
