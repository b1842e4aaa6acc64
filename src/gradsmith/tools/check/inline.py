"""The source of an operation that can't be imported, with all that it needs.

One that is defined in the script that runs, in a notebook or inside of a function: its
statements are printed in front of those that show the mistake, with the statements that
define what they name, and those that give it its rule.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import resolve_name
from types import FunctionType
from typing import Any

import numpy as np

from ...core.arrays import FRAMEWORKS, NUMPY, framework_of, is_array
from ...core.reach import captured

Statements = list[tuple[ast.stmt, str]]  # with their source
MOST = 80  # lines
FEW = 24  # elements of an array that is captured
_BLOCKS = (ast.If, ast.Try, ast.With)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
_VALUES = (int, float, complex, str, bytes, bool, type(None))


def inlined(holder: Any, array: str = "") -> tuple[list[str], str] | None:
    """The lines that define an operation, and its name there; None if that fails.

    `holder` is a function, a class, or what a decorator made of a function; `array`
    makes a framework's array of NumPy's.
    """
    origin = inspect.unwrap(holder)
    try:
        file = inspect.getsourcefile(origin)
        lines, _ = inspect.findsource(origin)
        first = inspect.getsourcelines(origin)[1]
        tree = ast.parse("".join(lines))
    except (TypeError, OSError, SyntaxError):
        return None
    known = _known(tree, lines, first)
    name = _name_in(known, holder, origin, first)
    if name is None and (source := _lambda_in(tree, lines, holder)) is not None:
        taken = set().union(*(_bound(node) for node, _ in known))
        name = next(word for word in ("op", "op_", "op__") if word not in taken)
        source = f"{name} = {source}"
        known = [*known, (ast.parse(source).body[0], source)]
    if file is None or name is None:
        return None
    chosen = _needed(known, name, _captured(origin), _package(origin), array)
    if chosen is None or len(chosen) > MOST:
        return None
    try:
        compile("\n".join(chosen), file, "exec")
    except SyntaxError:
        return None
    return chosen, name


def _captured(origin: Any) -> dict[str, Any]:
    """What a function, or the functions of a class, took from where it was defined."""
    parts = vars(origin).values() if isinstance(origin, type) else [origin]
    functions = [inspect.unwrap(getattr(part, "__func__", part)) for part in parts]
    found = [captured(each) for each in functions if isinstance(each, FunctionType)]
    return {name: x for each in found for name, x in each if name != "__class__"}


def _package(origin: Any) -> str:
    return getattr(inspect.getmodule(origin), "__package__", None) or ""


def _known(tree: ast.Module, lines: list[str], line: int) -> Statements:
    """The statements of the scopes around a line, from the outermost on."""
    found: Statements = []
    body: list[ast.stmt] = tree.body
    while body:
        inner: list[ast.stmt] = []
        for node in _flat(body):
            start = _start(node)
            source = textwrap.dedent("".join(lines[start - 1 : node.end_lineno]))
            found.append((node, source.rstrip()))
            is_around = start < line <= (node.end_lineno or 0)
            if isinstance(node, _SCOPES) and is_around and line != node.lineno:
                inner = node.body
        body = inner
    return found


def _start(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", [])
    return min(each.lineno for each in (node, *decorators))


def _flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, _BLOCKS):
            yield from _flat(node.body)
        else:
            yield node


def _name_in(known: Statements, holder: Any, origin: Any, first: int) -> str | None:
    """What the operation is called where it is defined."""
    wraps = not isinstance(holder, (type, FunctionType)) or holder is not origin
    name = getattr(origin, "__name__", "")
    for node, _ in known:
        if (
            isinstance(node, (*_SCOPES, ast.ClassDef))
            and _start(node) == first
            and (node.decorator_list or not wraps)
        ):
            return name
    made = [
        node.targets[0].id
        for node, _ in known
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and (
            _makes(node.value, name)
            or (isinstance(node.value, ast.Lambda) and node.lineno == first)
        )
    ]
    return made[0] if len(made) == 1 else None


def _lambda_in(tree: ast.Module, lines: list[str], fn: Any) -> str | None:
    """The source of a lambda that is written where it is used.

    Of several in a line it is the one that its instructions come from.
    """
    if not isinstance(fn, FunctionType) or fn.__name__ != "<lambda>":
        return None
    places = fn.__code__.co_positions()  # what is of no source has no width
    known = [(line, at) for line, _, at, end in places if line and at != end]
    if not known:  # Python was told to keep no places
        return None
    start = min(known)
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Lambda)
        and (node.lineno, node.col_offset) <= start
        and start < (node.end_lineno, node.end_col_offset)
    ]
    if not around:
        return None
    inner = max(around, key=lambda node: (node.lineno, node.col_offset))
    source = ast.get_source_segment("".join(lines), inner) or ""
    return f"({source})" if "\n" in source else source


def _makes(value: ast.expr, name: str) -> bool:
    """Whether it is a call with that name among its arguments."""
    if not isinstance(value, ast.Call):
        return False
    args = [*value.args, *(keyword.value for keyword in value.keywords)]
    return any(isinstance(each, ast.Name) and each.id == name for each in args)


def _needed(
    known: Statements, name: str, values: Mapping[str, Any], package: str, array: str
) -> list[str] | None:
    """The lines of all statements that define a name and what it needs, in order.

    Small arrays are written down: what they were made of may be gone.
    """
    wanted, chosen = {name}, set()
    written = {each for each, x in values.items() if is_array(x) and _is_simple(x)}
    imports = [node for node, _ in known if isinstance(node, _IMPORTS)]
    imported = set().union(*map(_bound, imports))
    while True:
        more = {
            i
            for i, (node, _) in enumerate(known)
            if i not in chosen
            and (_bound(node) & (wanted - written) or _root(node) in wanted - imported)
        }
        if not more:
            break
        chosen |= more
        for i in more:
            wanted |= _loaded(known[i][0])
    bound = set().union(*(_bound(known[i][0]) for i in chosen))
    given = wanted & set(values) - bound
    if not all(map(_is_simple, (values[each] for each in given))):
        return None
    missing = {n for n in wanted - bound - given if not hasattr(builtins, n)}
    if missing & {arg for node, _ in known for arg in _parameters(node)}:
        return None  # an argument of the function around it
    lines = [f"{each} = {_literal(values[each], array)}" for each in sorted(given)]
    printed: set[tuple[int, str]] = set()
    for i in sorted(chosen):
        node, source = known[i]
        if (_start(node), source) in printed:
            continue  # several statements in a line
        printed.add((_start(node), source))
        if isinstance(node, _IMPORTS):
            source = _import(node, wanted, package)
        is_definition = isinstance(node, (*_SCOPES, ast.ClassDef))
        lines += ["", *source.split("\n")] if is_definition else source.split("\n")
    return lines


def bound(lines: Iterable[str]) -> set[str]:
    """The names that lines of source define."""
    return set().union(*map(_bound, ast.parse("\n".join(lines)).body))


def _bound(node: ast.stmt) -> set[str]:
    if isinstance(node, (*_SCOPES, ast.ClassDef)):
        return {node.name}
    if isinstance(node, _IMPORTS):
        return set(map(_as_name, node.names))
    names = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
    return {n.id for n in names if isinstance(n.ctx, ast.Store)}


def _as_name(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _import(node: ast.Import | ast.ImportFrom, wanted: set[str], package: str) -> str:
    """An import of what is wanted alone, a line each, from an absolute place."""
    names = [alias for alias in node.names if _as_name(alias) in wanted]
    if isinstance(node, ast.Import):
        return "\n".join(ast.unparse(ast.Import([alias])) for alias in names)
    module = "." * node.level + (node.module or "")
    return ast.unparse(ast.ImportFrom(resolve_name(module, package), names, 0))


def _root(node: ast.stmt) -> str | None:
    """What a statement adds to: `op.defvjp(...)`, or a function below `@op.vjp`."""
    value: Any = None
    if isinstance(node, ast.Expr):
        value = node.value
    elif isinstance(node, _SCOPES) and node.decorator_list:
        value = node.decorator_list[-1]
    if not isinstance(value, (ast.Call, ast.Attribute)):
        return None
    while isinstance(value, (ast.Call, ast.Attribute)):
        value = value.func if isinstance(value, ast.Call) else value.value
    return value.id if isinstance(value, ast.Name) else None


def _loaded(node: ast.stmt) -> set[str]:
    """The names that a statement needs: not those that it gives itself."""
    inner = {arg for each in ast.walk(node) for arg in _parameters(each)}
    names = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
    stored = {n.id for n in names if isinstance(n.ctx, ast.Store)}
    return {n.id for n in names} - inner - stored


def _parameters(node: ast.AST) -> list[str]:
    if not isinstance(node, (*_SCOPES, ast.Lambda)):
        return []
    a = node.args
    every = [*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg]
    return [arg.arg for arg in every if arg is not None]


def _is_simple(x: Any) -> bool:
    if isinstance(x, tuple | list):
        return all(map(_is_simple, x))
    if is_array(x):
        known = re.search(r"\b(float|u?int)\d|\bbool", str(x.dtype))
        return known is not None and int(np.prod(x.shape)) <= FEW
    return isinstance(x, _VALUES)


def _literal(x: Any, array: str) -> str:
    if isinstance(x, np.ndarray):
        dtype = "bool" if x.dtype.kind == "b" else f"np.{x.dtype.name}"
        return f"np.array({x.tolist()!r}, {dtype})"
    if is_array(x):
        values = FRAMEWORKS[framework_of(x) or NUMPY].arrays.numpy(x)
        return f"{array}({_literal(values, array)})"
    return repr(x)
