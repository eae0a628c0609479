"""The code that a TorchScript archive carries: which methods, in which file. It is not run."""

from __future__ import annotations

import re

from flambeau.serialization.archive import ArchiveReader

LARGEST_SOURCE = 64 << 20
CLASS = re.compile(r"class (\w+)")
METHOD = re.compile(r"  def (\w+)\(")


def methods_of(reader: ArchiveReader) -> dict[str, list[str]]:
    """The methods of each class, by record: "code/__torch__.py" -> ["Net.forward", ...]."""
    return {name: _methods(text) for name, text in sources_of(reader).items()}


def sources_of(reader: ArchiveReader) -> dict[str, str]:
    """The code, by record."""
    return {
        name: reader.read(name).decode("utf-8", "replace") for name in reader.names()
        if name.startswith("code/") and name.endswith(".py") and reader.size(name) < LARGEST_SOURCE
    }  # fmt: skip


def _methods(source: str) -> list[str]:
    found = []
    owner = ""
    for line in source.split("\n"):
        opened = CLASS.match(line)
        if opened is not None:
            owner = opened[1] + "."
        method = METHOD.match(line)
        if method is not None:
            found.append(owner + method[1])
    return found
