"""Options that commands share: what is run, with which limits, and what is written."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from ..core import arrays
from ..core.errors import GradsmithError
from ..tools.workers import Journal, default_jobs, default_memory
from .changed import LATEST, changed_files
from .config import Config, config_for, is_named, nearest, size_of
from .outputs import require_writable
from .run import Options, Run
from .status import say

_CONFIG = "gradsmith.config"


class Configured(click.Command):
    """A command whose options `[tool.gradsmith]` may set; the command line wins."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not {"-h", "--help"} & {*args}:
            try:
                config = config_for()
            except GradsmithError as error:
                raise click.UsageError(str(error), ctx) from None
            ctx.meta[_CONFIG] = config
            given = {**config.values, "exclude": config.exclude}
            given["framework"] = given.pop("frameworks", ())
            names = {param.name for param in self.params}
            ctx.default_map = {
                key: x for key, x in given.items() if key in names and x != ()
            }
        return super().parse_args(ctx, args)


def config_of(ctx: click.Context) -> Config:
    return ctx.meta.get(_CONFIG) or Config()


class Size(click.ParamType):
    """An amount of memory."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        size = value if isinstance(value, int) else size_of(value)
        if size is None:
            self.fail(f"{value!r} is not a size such as 4GB or 500MB", param, ctx)
        return size


# --- what is run

_TARGETS = (
    click.argument("targets", nargs=-1, metavar="[TARGET...]"),
    click.option(
        "--changed",
        is_flag=False,
        flag_value=LATEST,
        metavar="[BASE]",
        help="Only those files that changed since this commit or branch."
        f"  [default: {LATEST}]",
    ),
    click.option(
        "--exclude",
        multiple=True,
        metavar="PATTERN",
        help="Leave out files or folders, such as 'src/generated/*'.",
    ),
    click.option(
        "--allow-empty",
        is_flag=True,
        help="Exit with 0 if there is no operation; don't import files without one.",
    ),
)


def _installed(ctx: Any, param: Any, names: tuple[str, ...]) -> tuple[str, ...]:
    for each in filter(None, map(arrays.FRAMEWORKS.get, names)):
        if not each.is_installed:
            raise click.UsageError(
                f"{each.title} is not installed: pip install {each.install}", ctx
            )
    return names


def framework_option(*more: str) -> Any:
    return click.option(
        "--framework",
        multiple=True,
        type=click.Choice([*arrays.FRAMEWORKS, *more]),
        callback=_installed,
        help="Where to run Gradsmith's operations; other frameworks' own are skipped.",
    )


select_option = click.option(
    "-k", "--select", multiple=True, help="Only names that contain this."
)
seed_option = click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    show_default=True,
    help="Seed of the random choices.",
)
inconclusive_option = click.option(
    "--allow-inconclusive/--no-allow-inconclusive",
    default=False,
    help="Inconclusive results don't change the exit status.",
)
_ARGUMENT = "[OPERATION:]ARGUMENT"
_RUN = (
    framework_option("all"),
    select_option,
    click.option(
        "--surrogate",
        multiple=True,
        metavar="NAME",
        help="An operation whose rule deliberately isn't the derivative.",
    ),
    click.option(
        "--wrt",
        multiple=True,
        metavar=_ARGUMENT,
        help="Differentiate only these arguments.",
    ),
    click.option(
        "--data",
        multiple=True,
        metavar=_ARGUMENT,
        help="Arguments without a gradient, such as labels.",
    ),
    click.option(
        "--quick/--no-quick", default=False, help="Skip compilers, vmap and survival."
    ),
    seed_option,
    click.option(
        "--jobs",
        type=click.IntRange(1),
        metavar="N",
        help="Worker processes.  [default: one for each processor, at most 4]",
    ),
    click.option(
        "--time-limit",
        type=click.FloatRange(0, min_open=True),
        default=60.0,
        show_default=True,
        metavar="SECONDS",
        help="Time for each operation.",
    ),
    click.option(
        "--memory-limit",
        type=Size(),
        help="Memory of each worker, such as 4GB.  [default: its share of 3/4 of all]",
    ),
    click.option(
        "--resume",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Append results to this file, and skip those that it has already.",
    ),
    inconclusive_option,
    click.option(
        "--strict/--no-strict",
        default=False,
        help="Limits, and surrogates that are not declared, count as wrong.",
    ),
)


def _with(options: Sequence[Any]) -> Callable[[Any], Any]:
    return lambda command: reduce(lambda c, option: option(c), options[::-1], command)


target_options = _with(_TARGETS)
run_options = _with((*_TARGETS, *_RUN))


@dataclass(frozen=True)
class Targets:
    """What is to be run, after `--changed` and the configuration."""

    names: tuple[str, ...]
    exclude: tuple[str, ...]
    allow_empty: bool
    is_project: bool = False  # all paths of the configuration are among them

    @property
    def none(self) -> str:
        """What to say if there is no operation."""
        if not self.allow_empty:
            return (
                "no operation was found\n  what is looked for: custom gradients at the "
                "top level of a file, and in classes"
            )
        n = len(self.names)
        files = f"{n} file{'s' * (n != 1)}"
        return f"no custom gradient in {files}" if n else "no file has changed"


def targets_of(
    targets: tuple[str, ...],
    changed: str | None,
    exclude: tuple[str, ...],
    allow_empty: bool,
) -> Targets:
    """The targets that were given, else those of the configuration."""
    config = config_of(click.get_current_context())
    targets = targets or _project(config)
    if changed is not None:
        try:
            files = changed_files(changed, targets)
        except GradsmithError as error:
            raise click.UsageError(str(error)) from None
        return Targets(tuple(files), exclude, allow_empty=True)
    if not targets:
        raise click.UsageError(
            "Missing argument 'TARGET...', such as src/; without it, set paths in "
            "[tool.gradsmith] of pyproject.toml (gradsmith init does)"
        )
    given = {os.path.abspath(each) for each in targets}
    is_project = bool(config.paths) and given >= {*map(os.path.abspath, config.paths)}
    return Targets(targets, exclude, allow_empty, is_project)


def _project(config: Config) -> tuple[str, ...]:
    """The paths of the configuration, which are there."""
    for each in config.paths:
        if not os.path.exists(each):
            place = config.place("paths")
            raise click.UsageError(
                f"{place} paths: there is no file or folder {each!r}"
            )
    return config.paths


def run_of(resume: Path | None, *, closely: bool = False, **given: Any) -> Run:
    """The run that was asked for; what can't be run is wrong usage."""
    require_writable("--resume", resume)
    config = config_of(click.get_current_context())
    chosen: Targets = given.pop("chosen")
    given |= {
        "targets": chosen.names,
        "exclude": chosen.exclude,
        "allow_empty": chosen.allow_empty,
        "operations": config.operations,
    }
    try:
        return Run(_options(closely=closely, **given), Journal(resume))
    except GradsmithError as error:
        raise click.UsageError(str(error)) from None


def _options(
    quick: bool, jobs: int | None, memory_limit: int | None, **given: Any
) -> Options:
    jobs = jobs or default_jobs()
    memory = memory_limit or default_memory(jobs)
    return Options(thorough=not quick, jobs=jobs, memory_limit=memory, **given)


def require_known(
    found: Sequence[tuple[str, str]], chosen: Targets, is_all_read: bool
) -> None:
    """Refuse a configuration that names operations which there are not.

    It is told, and no more, where not all operations of the project are known.
    """
    wrong = config_of(click.get_current_context()).unknown(found)
    if wrong and chosen.is_project and is_all_read:
        raise click.UsageError("\n".join(wrong))
    for words in wrong:
        say(words)


def say_unmatched(run: Run) -> None:
    """Name what was said on the command line of operations that there are not."""
    ctx = click.get_current_context()
    for option in ("surrogate", "wrt", "data"):
        if ctx.get_parameter_source(option) is not ParameterSource.COMMANDLINE:
            continue
        for each in getattr(run.options, option):
            name = each if option == "surrogate" else each.rpartition(":")[0]
            if name and not any(is_named(name, *found) for found in run.found):
                hint = nearest(name, [known for known, _ in run.found])
                say(f"--{option} {each}: no operation of this name was found; {hint}")
