"""A tree of names as lines of text: one column for names, one each for dtype, shape and size."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from flambeau._commands.common import in_units, plural
from flambeau.serialization.description.tree import Node

WIDEST_NAME = 60
NUMBERED = re.compile(r"(.*?)([0-9]{1,9})$")
ALIKE = 3
"""From this many neighbours of one form on, only the first is drawn."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line: the name with its branches, then a tensor's three columns or a text."""

    label: str
    cells: tuple[str, ...] = ()
    text: str = ""


def draw(tree: Node, depth: int | None, *, fold: bool) -> list[str]:
    """The lines for a tree, `depth` levels of it (None: all)."""
    rows = [Row(tree.name or ".", _cells(tree), tree.text)]
    rows += _below(tree, "", depth, fold)
    width = min(WIDEST_NAME, max(len(row.label) for row in rows))
    columns = [max((len(row.cells[i]) for row in rows if row.cells), default=0) for i in range(3)]
    return [_line(row, width, columns) for row in rows]


def _line(row: Row, width: int, columns: list[int]) -> str:
    if not row.cells:
        return f"{row.label:<{width}}  {row.text}".rstrip()
    dtype, shape, size = row.cells
    cells = f"{dtype:<{columns[0]}}  {shape:<{columns[1]}}  {size:>{columns[2]}}"
    return f"{row.label:<{width}}  {cells}  {row.text}".rstrip()


def _below(node: Node, indent: str, depth: int | None, fold: bool) -> Iterator[Row]:
    if depth == 0:
        return
    groups = list(_groups(node.children, fold))
    deeper = None if depth is None else depth - 1
    branch, last_branch, line = _branches()
    for place, group in enumerate(groups):
        is_last = place == len(groups) - 1
        child = group[0]
        label = indent + (last_branch if is_last else branch) + _label(group)
        yield Row(label, _cells(child), _text(group, folded=deeper == 0))
        yield from _below(child, indent + ("   " if is_last else line), deeper, fold)


def _branches() -> tuple[str, str, str]:
    """The pieces that branches are drawn with, plain ones where the terminal has no others."""
    try:
        "├└│─…".encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return "|- ", "`- ", "|  "
    return "├─ ", "└─ ", "│  "


def _label(group: list[Node]) -> str:
    if len(group) == 1:
        return group[0].name or "(empty name)"
    return f"{group[0].name} to {group[-1].name}"


def _cells(node: Node) -> tuple[str, ...]:
    tensor = node.tensor
    if tensor is None:
        return ()
    sizes = ", ".join(map(str, tensor.shape))
    shape = f"({sizes},)" if len(tensor.shape) == 1 else f"({sizes})"
    return tensor.dtype, shape, in_units(tensor.nbytes)


def _text(group: list[Node], *, folded: bool) -> str:
    node = group[0]
    parts = [node.text] if node.text else []
    if node.tensor is not None and node.tensor.kind != "Tensor":
        parts.append(node.tensor.kind)
    if len(group) > 1:
        parts.append(f"{len(group)} alike")
    tensors = [tensor for _, tensor in node.tensors()] if folded and node.children else []
    if tensors:
        total = in_units(sum(tensor.nbytes for tensor in tensors))
        parts.append(f"{plural(len(tensors), 'tensor')}, {total}")
    return ", ".join(parts)


# ---- neighbours that look alike


def _groups(children: list[Node], fold: bool) -> Iterator[list[Node]]:
    """Children one by one, or runs of numbered ones that have the same form."""
    position = 0
    while position < len(children):
        length = _run(children, position) if fold else 1
        if length < ALIKE:
            length = 1
        yield children[position : position + length]
        position += length


def _run(children: list[Node], start: int) -> int:
    first = NUMBERED.fullmatch(children[start].name)
    if first is None:
        return 1
    form = _form(children[start])
    length = 1
    for child in children[start + 1 :]:
        if child.name != f"{first[1]}{int(first[2]) + length}" or _form(child) != form:
            break
        length += 1
    return length


def _form(node: Node) -> tuple[object, ...]:
    """Equal for nodes whose drawings differ in their names' numbers only."""
    tensor = node.tensor
    kind = None if tensor is None else (tensor.dtype, tensor.shape, tensor.kind)
    return kind, node.text, tuple((child.name, _form(child)) for child in node.children)
