"""Which modules a source imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator

MAX_LEVEL_ARGUMENT = 4


def find_files_source_depends_on(src: str, package: str) -> list[tuple[str, str | None]]:
    """The modules that a source imports, and the names that it takes from them.

    Args:
        src: the source.
        package: the package that it is in, for its relative imports.

    Raises:
        SyntaxError: it is no source.
        ValueError: a relative import leaves the outermost package.

    >>> import flambeau as torch
    >>> find = torch.package.find_file_dependencies.find_files_source_depends_on
    >>> find("import math\\nfrom . import layers", "models")
    [('math', None), ('models', 'layers')]
    """
    found: dict[tuple[str, str | None], None] = {}
    for node in _in_order(ast.parse(src)):
        for pair in _imports(node, package):
            found[pair] = None
    return list(found)


def _in_order(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _in_order(child)


def _imports(node: ast.AST, package: str) -> Iterator[tuple[str, str | None]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.name, None
    elif isinstance(node, ast.ImportFrom):
        module = absolute_name(node.module or "", package, node.level)
        for alias in node.names:
            yield module, None if alias.name == "*" else alias.name
    elif isinstance(node, ast.Call):
        yield from _called_import(node, package)


def _called_import(node: ast.Call, package: str) -> Iterator[tuple[str, str | None]]:
    """What `__import__` is called with, where it is written out."""
    if not (isinstance(node.func, ast.Name) and node.func.id == "__import__"):
        return
    try:
        given = [ast.literal_eval(argument) for argument in node.args]
        words = {word.arg: ast.literal_eval(word.value) for word in node.keywords}
    except (ValueError, SyntaxError):
        return
    name = given[0] if given else words.get("name")
    if not isinstance(name, str):
        return
    names = words.get("fromlist", given[3] if len(given) > MAX_LEVEL_ARGUMENT - 1 else ())
    level = given[4] if len(given) > MAX_LEVEL_ARGUMENT else 0
    module = absolute_name(name, package, level)
    if not names:
        yield module, None
        if "." in name:
            yield name.partition(".")[0], None
    for part in names or ():
        yield module, part


def absolute_name(name: str, package: str, level: int) -> str:
    """The full name of a module that is named from within a package.

    >>> from flambeau.package.find_file_dependencies import absolute_name
    >>> absolute_name("layers", "models.net", 2)
    'models.layers'
    """
    if level == 0:
        return name
    parts = package.rsplit(".", level - 1)
    if len(parts) < level:
        raise ValueError("attempted relative import beyond top-level package")
    return f"{parts[0]}.{name}" if name else parts[0]
