"""Type comments: `# type: (Tensor, int) -> Tensor` below the `def`, or one for each parameter."""

from __future__ import annotations

import ast
import re

from flambeau.jit.frontend.source import Places
from flambeau.jit.ir.source import ScriptError, Source

PREFIX = "# type:"
IGNORED = re.compile(r"# type: ignore(\[[a-zA-Z-]+\])?$")
MISSPELLED = re.compile(r"#[\t ]*type[\t ]*(?!: ignore(\[.*\])?$):")
PEP = (
    "https://www.python.org/dev/peps/pep-0484/#suggested-syntax-for-python-2-7-and-straddling-code"
)


def apply_type_comment(node: ast.FunctionDef, source: Source, is_method: bool = False) -> None:
    """Write the types of a type comment into the definition, as if they were annotations.

    Raises:
        RuntimeError: the comment cannot be read.
    """
    if "#" not in source.text:
        return  # cutting the text out of a long file takes long
    text = ast.get_source_segment(source.text, node) or ""
    if "#" not in text:
        return
    line = type_line(text)
    if line is None:
        return
    written, arrow, result = line.partition("->")
    inside = written[written.index(PREFIX) + len(PREFIX) :].strip()
    parameters = ast.parse(inside, mode="eval").body
    types = parameters.elts if isinstance(parameters, ast.Tuple) else [parameters]
    arguments = node.args.args
    if is_method and len(types) == len(arguments) - 1:
        arguments = arguments[1:]
    if len(types) != len(arguments):
        places = Places(source)
        declaration = places.over(node.args.args, places.token(node, len("def")))
        raise ScriptError(
            f"Number of type annotations ({len(types)}) did not match the number of function "
            f"parameters ({len(arguments)})", declaration
        )  # fmt: skip
    for argument, type in zip(arguments, types, strict=True):
        argument.annotation = _placed(type, argument)
    if arrow:
        node.returns = _placed(ast.parse(result.strip(), mode="eval").body, node)


def _placed(annotation: ast.expr, like: ast.AST) -> ast.expr:
    for part in ast.walk(annotation):
        if hasattr(part, "lineno"):
            ast.copy_location(part, like)
    return annotation


def type_line(text: str) -> str | None:
    """The type comment of a function's text, those of single parameters put together."""
    lines = text.split("\n")
    found = [line for line in lines if PREFIX in line and not IGNORED.search(line)]
    if not found:
        for number, line in enumerate(lines):
            if MISSPELLED.search(line) and not IGNORED.search(line):
                raise RuntimeError(
                    f"The annotation prefix in line {number} is probably invalid.\nIt must be "
                    f"'# type:'\nSee PEP 484 ({PEP})\nfor examples"
                )
        return None
    if len(found) == 1:
        return found[0].strip()
    parameters: list[str] = []
    for line in found:
        if "# type: (...) -> " in line:
            return line.strip().replace("...", ", ".join(parameters))
        parameters.append(line[line.index(PREFIX) + len(PREFIX) :].strip())
    listed = "\n".join(found)
    raise RuntimeError(
        "Return type line '# type: (...) -> ...' not found on multiline type annotation\n"
        f"for type lines:\n{listed}\n(See PEP 484 {PEP})"
    )
