"""`torch.jit.load`."""

from __future__ import annotations

import os
import sys
from pickle import UnpicklingError
from typing import Any

from flambeau.jit.archive import upgraders
from flambeau.jit.archive.importer import Importer
from flambeau.jit.archive.origins import Origins
from flambeau.jit.archive.pickle_reader import read_pickle
from flambeau.jit.errors import warn_of_age
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import CompilationUnit
from flambeau.jit.modules.script_module import ScriptModule
from flambeau.jit.run import LimitExceeded, Limits, set_limits
from flambeau.serialization.archive import ArchiveReader
from flambeau.serialization.checksums import Workers
from flambeau.serialization.file_bytes import bytes_of_file
from flambeau.serialization.locations import Restore, restore_function
from flambeau.serialization.storages import ArchiveStorages

OLDEST = 1


def load(f: Any, map_location: Any = None, _extra_files: dict[str, Any] | None = None,
         _restore_shapes: bool = False, *, limits: Any = None) -> Any:  # fmt: skip
    """Load a module that `torch.jit.save` of flambeau or of PyTorch has written.

    The archive is not trusted. Its code is compiled for our own executor, over a table of operators
    without access to files, network or Python; its pickles are read by an interpreter that imports
    nothing.

    f: a path, or a file object with `read`. map_location: a device or its name, for all tensors.
    _extra_files: names of further records; the values are replaced by their contents (bytes).
    limits: `torch.jit.Limits`: steps, memory and recursion of whatever its methods do, and the
        length of its code. Without it methods may do what they like, but loading is bounded, by
        `Limits.for_loading`.

    Raises:
        ValueError: there is no such file.
        RuntimeError, pickle.UnpicklingError: the archive is damaged or does what is not allowed.
    """
    warn_of_age("torch.jit.load", "`torch.export`")
    reader = ArchiveReader(_bytes(f))
    restore = restore_function(map_location)
    module = _Loading(reader, restore, limits).module()
    for name in _extra_files or ():
        record = f"extra/{name}"
        _extra_files[name] = reader.read(record) if reader.has(record) else b""  # type: ignore[index]
    return module


def _bytes(f: Any) -> Any:
    if not isinstance(f, (str, os.PathLike)):
        return f.read()
    path = os.fspath(f)
    if not os.path.exists(path):  # noqa: PTH110 - the message has the path as it was given
        raise ValueError(f"The provided filename {f} does not exist")
    if os.path.isdir(path):  # noqa: PTH112
        raise ValueError(f"The provided filename {f} is a directory")
    return bytes_of_file(path)


class _Loading:
    """One archive on its way to a module."""

    def __init__(self, reader: ArchiveReader, restore: Restore, limits: Any) -> None:
        self.reader = reader
        self.restore = restore
        self.limits = limits

    def module(self) -> ScriptModule:
        """The module of the archive."""
        try:
            return self._module()
        except RecursionError:
            raise RuntimeError("the archive is nested too deeply") from None

    def _module(self) -> ScriptModule:
        if self.reader.has("model.json"):  # of PyTorch before 1.3
            raise RuntimeError("Legacy model format is not supported; PyTorch 1.3 can renew it.")
        self.reader.view("constants.pkl")  # its absence tells checkpoints apart
        unit = CompilationUnit()
        unit.is_foreign = True
        limits = self.limits or Limits.for_loading(len(self.reader.data))
        meter = set_limits(unit, limits)
        importer = self._importer(unit, limits)
        with meter.together():
            result = self._pickle("data.pkl", "data", importer)
        if not isinstance(result, ScriptModule) or "_type" not in result.__dict__:
            raise UnpicklingError("the archive holds no module")
        self.reader.verify_rest()
        for function in list(_functions(unit)):
            function.ensure_defined()
        if self.limits is None:
            set_limits(unit, None)
        return result

    def _importer(self, unit: CompilationUnit, limits: Limits) -> Importer:
        """What compiles the code, with the constants that it names."""
        version = _version(self.reader)
        importer = Importer(unit, _Texts(self.reader, limits.code), (),
                            lambda graph: upgraders.upgrade(graph, version),
                            lambda name: upgraders.older(name, version))  # fmt: skip
        importer.origins = self._origins
        importer.constants = self._pickle("constants.pkl", "constants", importer)
        if type(importer.constants) is not tuple:
            raise UnpicklingError("the constants of the archive are no tuple")
        return importer

    def _origins(self, path: str, text: str) -> Origins | None:
        """What the lines of a file of code were written for, if the archive tells."""
        name = f"{path}.debug_pkl"
        return Origins(self.reader.read(name), text) if self.reader.has(name) else None

    def _pickle(self, name: str, folder: str, importer: Importer) -> Any:
        foreign = self.reader.has("byteorder") and self.reader.read("byteorder") != b"little"
        with Workers(len(self.reader.data)) as workers:
            storages = ArchiveStorages(self.reader, self.restore, workers=workers, folder=folder,
                                       foreign=foreign != (sys.byteorder == "big"))  # fmt: skip
            content = self.reader.view(name)
            return read_pickle(content, importer.type, storages, importer.type_of_text)


class _Texts:
    """The files of code of an archive, which may be so many characters together."""

    def __init__(self, reader: ArchiveReader, most: int | None) -> None:
        self.reader = reader
        self.most = most
        self.length = 0

    def __call__(self, name: str) -> str | None:
        if not self.reader.has(name):
            return None
        self.length += self.reader.size(name)
        if self.most is not None and self.length > self.most:
            raise LimitExceeded(f"more than {self.most} characters of code")
        try:
            return self.reader.read(name).decode("utf-8")
        except UnicodeDecodeError:
            raise RuntimeError(f"{name} is no text") from None


def _functions(unit: CompilationUnit) -> Any:
    """Everything that is named so far: methods of classes, functions."""
    for made in list(unit.types.values()):
        if isinstance(made, T.ClassType):
            yield from made.methods.values()
    yield from unit.functions.values()


def _version(reader: ArchiveReader) -> int:
    name = ".data/version" if reader.has(".data/version") else "version"
    text = reader.read(name).strip()
    if not text.isdigit() or len(text) > 9:
        raise RuntimeError(f"the version of the archive is no number: {text[:20]!r}")
    version = int(text)
    if not OLDEST <= version <= upgraders.NEWEST:
        word = "maximum" if version > OLDEST else "minimum"
        bound = upgraders.NEWEST if version > OLDEST else OLDEST
        age = "too old" if version > OLDEST else "too new"
        raise RuntimeError(
            f"Attempted to read a PyTorch file with version {version}, but the {word} supported "
            f"version for reading is {bound}. Your PyTorch installation may be {age}."
        )
    return version
