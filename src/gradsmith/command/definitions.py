"""Whether a file could define an operation, from its text alone."""

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
