"""Docstrings as reStructuredText: they are prose with `code`, examples, and Google's sections."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

SECTIONS = ("Args:", "Returns:", "Raises:", "Yields:", "Attributes:", "Note:", "Warns:")
ITEM = re.compile(r"(\*{0,2}[A-Za-z_][\w.]*(?:, \*{0,2}[A-Za-z_]\w*)*): +(.*)")
BULLET = re.compile(r"[*-] ")


def escaped(text: str) -> str:
    """Prose whose stars, bars and underscores are themselves."""
    return re.sub(r"([\\*|_])", r"\\\1", text)


def inline(text: str) -> str:
    """`code` becomes ``code``; the rest is prose."""
    parts = re.split(r"`+([^`]+)`+", text)
    written = []
    for place, part in enumerate(parts):
        if place % 2 == 0:
            written.append(escaped(part).replace("`", "'"))
            continue
        after = parts[place + 1][:1]
        before = parts[place - 1][-1:]
        start = r"\ " if before.isalnum() else ""
        end = r"\ " if after and (after.isalnum() or after in "_") else ""
        written.append(f"{start}``{part.strip()}``{end}")
    return "".join(written)


def to_rst(text: str | None) -> list[str]:
    """The lines of a docstring's body, ready to stand below a directive."""
    lines: list[str] = []
    for block in _blocks(inspect.cleandoc(text or "")):
        lines += [*_block(block), ""]
    return lines


def _blocks(text: str) -> Iterator[list[str]]:
    """What blank lines part; an example and its output stay together."""
    block: list[str] = []
    for line in [*text.expandtabs().splitlines(), ""]:
        if line.strip():
            starts_example = line.lstrip().startswith(">>>")
            if block and starts_example and not _is_example(block):
                yield block
                block = []
            block.append(line)
        elif block:
            yield block
            block = []


def _is_example(block: list[str]) -> bool:
    return block[0].lstrip().startswith(">>>")


def _block(block: list[str]) -> list[str]:
    if _is_example(block):
        return _literal(block, "pycon")
    if block[0].strip() in SECTIONS:
        return [f"**{block[0].strip().rstrip(':')}**", "", *_items(_dedented(block[1:]))]
    if block[0].startswith("    "):
        return _literal(block, "text")
    if BULLET.match(block[0]):
        return _bullets(block)
    if ITEM.fullmatch(block[0]) and block[0][:1].islower():
        return _items(block)
    return [inline(" ".join(line.strip() for line in block))]


def _dedented(block: list[str]) -> list[str]:
    return inspect.cleandoc("\n" + "\n".join(block)).splitlines()


def _literal(block: list[str], language: str) -> list[str]:
    return [f".. code-block:: {language}", "", *[f"   {line}" for line in _dedented(block)]]


def _joined(block: list[str], starts: re.Pattern[str]) -> list[str]:
    """Items with the lines that go on with them."""
    items: list[str] = []
    for line in block:
        if starts.match(line) or not items:
            items.append(line.strip())
        else:
            items[-1] += " " + line.strip()
    return items


def _bullets(block: list[str]) -> list[str]:
    return [f"* {inline(re.sub(r'^[*-] ', '', item))}" for item in _joined(block, BULLET)]


def _items(block: list[str]) -> list[str]:
    written = []
    for item in _joined(block, ITEM):
        match = ITEM.fullmatch(item)
        written.append(f"* ``{match[1]}``: {inline(match[2])}" if match else f"* {inline(item)}")
    return written
