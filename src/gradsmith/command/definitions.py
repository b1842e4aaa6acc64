"""What a file could define, from its text alone: whether operations, which, where."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

# What makes an operation, of ours or of a framework's own
MAKERS = {
    *("custom_gradient", "operation", "with_gradient", "python_op"),
    *("custom_vjp", "custom_jvp", "custom_op", "Function"),
}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def may_define(code: bytes) -> bool:
    r"""Whether code that runs when a file is imported names what makes an operation.

    What stands in functions counts if the file calls them then, as far as names tell.

    >>> may_define(b"@gs.custom_gradient\ndef f(x): ...")
    True
    >>> may_define(b"def test():\n    @gs.custom_gradient\n    def f(x): ...")
    False
    """
    if not any(name.encode() in code for name in MAKERS):
        return False
    try:
        tree = ast.parse(code)
    except (SyntaxError, RecursionError, MemoryError):
        return True  # the import says what is wrong with it
    functions = {
        node.name: node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)
    }
    used, todo = set[str](), list(_names(_at_import(tree.body)))
    while todo:
        name = todo.pop()
        if name not in used:
            used.add(name)
            if name in functions:
                todo += _names(ast.walk(functions[name]))
    return not used.isdisjoint(MAKERS)


def _names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.ImportFrom):  # also under another name
            for each in node.names:
                yield from MAKERS if each.name == "*" else (each.name,)


def _at_import(statements: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """What runs when a file is imported: nothing in functions, but their decorators."""
    for node in statements:
        yield node
        if isinstance(node, _FUNCTIONS):
            defaults = filter(None, (*node.args.defaults, *node.args.kw_defaults))
            yield from _at_import((*node.decorator_list, *defaults))
        elif not _is_main(node):
            yield from _at_import(ast.iter_child_nodes(node))


def _is_main(node: ast.AST) -> bool:
    """`if __name__ == "__main__":`"""
    return isinstance(node, ast.If) and any(
        isinstance(each, ast.Name) and each.id == "__name__"
        for each in ast.walk(node.test)
    )


# --- names and lines


def defined(code: bytes) -> dict[str, int]:
    r"""The operations that code seems to define, each with its line; nothing is run.

    >>> defined(b"@gs.custom_gradient\ndef f(x): ...\ng = jax.custom_vjp(h)")
    {'f': 1, 'g': 3}
    """
    return {
        name: line
        for name, line, makers in _definitions(_parsed(code).body)
        if not MAKERS.isdisjoint(_names(makers))
    }


def line_of(code: bytes, name: str) -> int | None:
    """The first line of what is defined under a name, `Class.method` included."""
    found = _definitions(_parsed(code).body)
    return next((line for each, line, _ in found if each == name), None)


def _parsed(code: bytes) -> ast.Module:
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def _definitions(
    statements: Iterable[ast.AST], within: str = ""
) -> Iterator[tuple[str, int, list[ast.AST]]]:
    """Name, line, and what could make an operation: decorators, bases or a value."""
    for node in statements:
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            makers: list[ast.AST] = [*node.decorator_list]
            if isinstance(node, ast.ClassDef):
                makers += node.bases
            yield f"{within}{node.name}", first, [*_walked(makers)]
            if isinstance(node, ast.ClassDef):
                yield from _definitions(node.body, f"{within}{node.name}.")
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name) and isinstance(node.value, ast.Call):
                    makers = [*ast.walk(node.value.func)]
                    yield f"{within}{target.id}", node.lineno, makers
        elif isinstance(node, ast.If | ast.Try | ast.With):
            yield from _definitions(ast.iter_child_nodes(node), within)


def _walked(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    for node in nodes:
        yield from ast.walk(node)
