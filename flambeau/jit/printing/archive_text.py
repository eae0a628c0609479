"""The code of an archive: a file for each module path, with all that some classes refer to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import Function
from flambeau.jit.printing.classes import write_class
from flambeau.jit.printing.code_text import CodeWriter, Dependencies
from flambeau.jit.printing.constants import ConstantTable
from flambeau.jit.printing.marks import Marks, Piece


class ArchiveCode:
    """What an archive says of classes and functions. Torch begins with `classes_of(module)`.

    files: the code by path, `code/__torch__/models.py`, in the order in which torch writes them.
    pieces: what the code of a path is made of, each with its place in the original program.
    constants: what the code calls `CONSTANTS.c0`, …
    """

    def __init__(self, roots: Iterable[T.Type | Function]) -> None:
        self._constants = ConstantTable()
        self._dependencies = Dependencies()
        self._marks = Marks()
        self._writers: dict[str, CodeWriter] = {}
        self.files: dict[str, str] = {}
        self.pieces: dict[str, list[Piece]] = {}
        for root in roots:
            self._dependencies.add(root)
        for entry in self._dependencies.found:  # grows while classes are written
            self._write(entry)
        for place, writer in self._writers.items():
            path = _path(place)
            self.files[path], self.pieces[path] = self._marks.taken_apart(writer.text())

    @property
    def entries(self) -> list[T.Type | Function]:
        """All classes and functions of the archive."""
        return self._dependencies.found

    @property
    def constants(self) -> list[Any]:
        """The table of constants."""
        return self._constants.values

    def _write(self, entry: Any) -> None:
        place = entry.qualified_name.rpartition(".")[0]
        writer = self._writers.get(place)
        if writer is None:
            writer = CodeWriter(self._constants, self._dependencies, self._marks)
            self._writers[place] = writer
        if isinstance(entry, Function):
            writer.function(entry, typed_self=True)
        else:
            write_class(writer, entry)


def code_files(roots: Iterable[T.Type | Function]) -> dict[str, str]:
    """The files of `ArchiveCode`."""
    return ArchiveCode(roots).files


def _path(place: str) -> str:
    return f"code/{place.replace('.', '/')}.py"


def classes_of(value: Any) -> list[T.ClassType]:
    """The classes of an object and of all objects in its attributes, outer ones first."""
    found: dict[T.ClassType, None] = {}
    _collect(value, found)
    return list(found)


def _collect(value: Any, found: dict[T.ClassType, None]) -> None:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for element in value:
            _collect(element, found)
        return
    type = getattr(value, "_type", None)
    if isinstance(type, T.ClassType):
        found.setdefault(type)
        for name in type.attributes:
            _collect(getattr(value, name), found)
