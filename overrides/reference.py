"""What griffe, which reads the code without running it, is told for the reference."""

import re
from typing import Any

from griffe import Extension, Function, Module, Object, Parameters

# A doctest that stands in the text of a docstring, up to the blank line after it
DOCTEST = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)
DETAILS = re.compile(r"^<BLANKLINE>$", re.MULTILINE)


class Reference(Extension):
    """Doctests become code; objects that are called like functions, functions."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        # The docstring of a __call__ is that of its function too, and comes twice
        if obj.docstring is not None and "```pycon" not in obj.docstring.value:
            obj.docstring.value = DOCTEST.sub(_fenced, obj.docstring.value)

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        if pkg.name != "gradsmith":
            return
        tools = pkg["tools.check"]
        for name, kind in (("check", "Check"), ("assert_gradients", "AssertGradients")):
            tools.set_member(name, _function(name, tools[kind]["__call__"]))


def _fenced(match: re.Match[str]) -> str:
    return f"```pycon\n{DETAILS.sub('', match.group())}\n```"


def _function(name: str, call: Any) -> Function:
    """The `__call__` of an object as the function that users see."""
    parameters = Parameters(*[each for each in call.parameters if each.name != "self"])
    function = Function(
        name,
        parameters=parameters,
        returns=call.returns,
        docstring=call.docstring,
        lineno=call.lineno,
        endlineno=call.endlineno,
    )
    function.parent = call.parent.parent
    return function
