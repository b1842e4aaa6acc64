"""The entry point of the pytest plugin, which every pytest of this environment loads.

It is a module of its own, since importing any part of `gradsmith` imports NumPy, which
takes 0.2 s: who does not ask for `--gradsmith` should not wait for it.
"""

from __future__ import annotations

from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("gradsmith", "custom gradients (gradsmith)")
    group.addoption(
        "--gradsmith",
        action="store_true",
        help="check every custom gradient that the tests exercise; a wrong one fails "
        "the session",
    )
    group.addoption(
        "--gradsmith-report-only",
        action="store_true",
        help="like --gradsmith, but wrong gradients don't fail the session",
    )
    group.addoption(
        "--gradsmith-strict",
        action="store_true",
        help="like --gradsmith, but limits and undeclared surrogates fail the session "
        "too",
    )
    group.addoption(
        "--gradsmith-json",
        metavar="FILE",
        help="like --gradsmith, and write what was found to a file",
    )
    group.addoption(
        "--gradsmith-max-seconds",
        type=float,
        metavar="N",
        help="time for all checks together (default: 0.3 of the time that the tests "
        "took, and at least 3 s)",
    )
    group.addoption(
        "--gradsmith-seed",
        type=int,
        metavar="N",
        help="seed of the checks' random choices (default: 0)",
    )
    group.addoption(
        "--gradsmith-wrt",
        action="append",
        metavar="OPERATION:ARGUMENT",
        help="differentiate only this argument of an operation; may be repeated",
    )
    group.addoption(
        "--gradsmith-data",
        action="append",
        metavar="OPERATION:ARGUMENT",
        help="an argument without a gradient, such as labels; may be repeated",
    )
    parser.addini(
        "gradsmith_ignore",
        "operations that are not checked, since their gradient deliberately isn't the "
        "derivative: patterns of names, such as RoundThrough or mypackage.quantize.*",
        type="linelist",
    )


_ENABLING = (
    "gradsmith", "gradsmith_report_only", "gradsmith_strict", "gradsmith_json",
)  # fmt: skip
_NAME = "gradsmith-recording"


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    # Before a conftest.py imports what is to be watched
    _record_if_enabled(early_config, early_config.known_args_namespace)


def pytest_configure(config: pytest.Config) -> None:
    _record_if_enabled(config, config.option)  # if this was not loaded that early


def _record_if_enabled(config: pytest.Config, options: Any) -> None:
    enabled = any(getattr(options, name, None) for name in _ENABLING)
    if enabled and not config.pluginmanager.has_plugin(_NAME):
        from gradsmith.tools.recording.plugin import Plugin

        config.pluginmanager.register(Plugin(config, _settings(config)), _NAME)


def _settings(config: pytest.Config) -> Any:
    """[tool.gradsmith] of the project."""
    from gradsmith.command.config import ConfigError, config_for

    try:
        return config_for(config.rootpath)
    except ConfigError as error:
        raise pytest.UsageError(str(error)) from None


@pytest.fixture
def gradient_check(request: pytest.FixtureRequest) -> Any:
    """Fail unless an operation's gradient is right: `gradient_check(op, x)`.

    It takes what `gs.check` takes, options by `gradient_check.options(seed=1)(op, x)`,
    and returns its report, which is kept with the test: in a JUnit file, and on the
    terminal if the test fails later. Seed and strictness are those of the project,
    by [tool.gradsmith] in pyproject.toml.
    """
    import gradsmith as gs

    values = _settings(request.config).values
    chosen = {key: values[key] for key in ("seed", "strict") if key in values}

    def recorded(check: Any) -> Any:
        def gradient_check(op: Any, *inputs: Any, **keywords: Any) -> Any:
            __tracebackhide__ = True
            report = check(op, *inputs, **keywords)
            request.node.user_properties.append(("gradsmith", str(report)))
            if not report.ok:
                raise gs.GradientError(report)
            request.node.add_report_section("call", "gradient check", str(report))
            return report

        options = lambda **given: recorded(check.options(**given))
        gradient_check.options = options  # type: ignore[attr-defined]
        return gradient_check

    return recorded(gs.check.options(**chosen))
