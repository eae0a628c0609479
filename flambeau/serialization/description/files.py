"""`describe`: what a file holds, whichever of the four formats it has; no code of it runs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pickle import UnpicklingError
from typing import Any

from flambeau.serialization.archive import ArchiveReader
from flambeau.serialization.checks import expect
from flambeau.serialization.description.entries import (
    Description,
    StorageEntry,
    TensorEntry,
)
from flambeau.serialization.description.pickled import (
    DescribedGlobals,
    DescribingUnpickler,
    storage_entry,
)
from flambeau.serialization.description.scripts import methods_of
from flambeau.serialization.inspection import globals_in_pickle
from flambeau.serialization.legacy import LENGTH, MAGIC_NUMBER, PROTOCOL_VERSION
from flambeau.serialization.legacy_tar import is_tar
from flambeau.serialization.safetensors.dtypes import DTYPES
from flambeau.serialization.safetensors.header import BITS, Header, TensorInfo, parse_header
from flambeau.serialization.zip_format import LOCAL_SIGNATURE, unpack

LARGEST_PICKLE = 1 << 24  # of a file of another kind, so much is searched for names

ZIP, SCRIPT, LEGACY, SAFETENSORS = (
    "PyTorch checkpoint (zip)",
    "TorchScript archive (zip)",
    "PyTorch checkpoint (format from before 1.6)",
    "safetensors",
)


def kind_of(data: Any, name: str) -> str:
    """The format of a file, from its first bytes; its name tells safetensors from old pickles."""
    if data[:4] == LOCAL_SIGNATURE:
        return ZIP
    if name.endswith(".safetensors"):
        return SAFETENSORS
    # A pickle begins with its protocol; a header's length in eight bytes has zeros at the end.
    if len(data) > 8 and data[0] != 0x80 and bytes(data[5:8]) == bytes(3):
        return SAFETENSORS
    return LEGACY


def describe(data: Any, name: str = "") -> Description:
    """The description of a whole file.

    Raises:
        ArchiveError, SafetensorError, UnpicklingError, RuntimeError: the file is damaged.
    """
    kind = kind_of(data, name)
    if kind == SAFETENSORS:
        return describe_header(parse_header(data))
    if kind == ZIP:
        return describe_archive(ArchiveReader(data))
    return describe_legacy(data)


class _Storages:
    """Makes one entry per key of a file."""

    def __init__(self, size_of: Callable[[str], int] | None) -> None:
        self.size_of = size_of
        self.by_key: dict[str, StorageEntry] = {}

    def __call__(self, identity: tuple[Any, ...]) -> Any:
        entry = storage_entry(identity, self.size_of)
        if not isinstance(entry, StorageEntry):
            return entry
        known = self.by_key.setdefault(entry.key, entry)
        # One storage may be seen as two element types.
        return known if known.dtype == entry.dtype else entry


# ---- zip archives


def describe_archive(reader: ArchiveReader) -> Description:
    """A checkpoint or a TorchScript archive."""
    if not reader.has("data.pkl"):
        raise RuntimeError("the archive has no record data.pkl: it is no PyTorch checkpoint")
    is_script = reader.has("constants.pkl")
    table = DescribedGlobals()
    storages: list[StorageEntry] = []
    content = _read_pickle(reader, "data", table, storages)
    result = Description(SCRIPT if is_script else ZIP, content, storages)
    result.facts = _facts(reader)
    if is_script:
        constants = _read_pickle(reader, "constants", DescribedGlobals(), storages)
        if constants:
            result.content = {"": content, "constants": constants}
        result.methods = methods_of(reader)
    else:
        result.refused = list(table.refused)
    return result


def _read_pickle(
    reader: ArchiveReader, name: str, table: DescribedGlobals, storages: list[StorageEntry]
) -> Any:
    def size_of(key: str) -> int:
        record = f"{name}/{key}"
        expect(reader.has(record), f"the archive has no record {record}")
        return reader.size(record)

    found = _Storages(size_of)
    content = reader.view(f"{name}.pkl")
    machine = DescribingUnpickler(content, table, found, encoding="latin1")
    try:
        result = machine.load()
    except UnpicklingError as error:
        raise UnpicklingError(f"{name}.pkl: {error}{_mentioned(content)}") from None
    expect(machine.position == len(content), f"{name}.pkl goes on behind the end of its pickle")
    storages.extend(found.by_key.values())
    return result


def _mentioned(content: memoryview) -> str:
    """For a pickle that cannot be followed: the globals that it names."""
    found = []
    with suppress(ValueError):  # what pickletools raises where the opcodes end to make sense
        for name in globals_in_pickle(bytes(content)):
            found.append(name)
    return f" (it names {', '.join(dict.fromkeys(found))})" if found else ""


def _facts(reader: ArchiveReader) -> dict[str, str]:
    records = {
        "format version": ".format_version" if reader.has(".format_version") else "version",
        "byte order": "byteorder",
    }
    facts = {"records": str(len(reader.names()))}
    for fact, record in records.items():
        if reader.has(record) and reader.size(record) <= 32:
            facts[fact] = reader.read(record).decode("ascii", "replace").strip()
    return facts


# ---- files from before 1.6


def describe_legacy(data: Any) -> Description:
    """Five pickles, then the storages. RuntimeError or UnpicklingError if it is something else."""
    if is_tar(data):
        raise RuntimeError("a .tar file of PyTorch 0.1: torch.load reads it, and nothing else does")
    table = DescribedGlobals()
    position = 0

    def read(storages: Any) -> Any:
        nonlocal position
        machine = DescribingUnpickler(data, table, storages, position=position, encoding="latin1")
        result = machine.load()
        position = machine.position
        return result

    try:
        magic = read(_no_storages)
    except UnpicklingError:
        magic = None
    if magic != MAGIC_NUMBER:
        names = _mentioned(data[:LARGEST_PICKLE])
        raise RuntimeError(f"neither a PyTorch checkpoint nor a safetensors file{names}")
    version, system = read(_no_storages), read(_no_storages)
    expect(version == PROTOCOL_VERSION, "the file has an unknown protocol version")
    expect(type(system) is dict, "the file does not say on which system it was written")
    storages = _Storages(None)
    content = read(storages)
    keys = read(_no_storages)
    is_list = type(keys) is list and all(type(key) is str for key in keys)
    expect(is_list and set(keys) == set(storages.by_key), "the storage keys differ")
    for key in keys:
        position = _skip_storage(data, position, storages.by_key[key])
    order = "little" if system.get("little_endian", True) else "big"
    facts = {"format version": str(version), "byte order": order}
    return Description(LEGACY, content, list(storages.by_key.values()), list(table.refused), facts)


def _skip_storage(data: Any, position: int, entry: StorageEntry) -> int:
    """Where the file goes on behind a storage, whose length it repeats."""
    expect(position + LENGTH.size <= len(data), f"the file ends before storage {entry.key}")
    (numel,) = unpack(LENGTH, data, position)
    expect(numel == entry.numel, f"storage {entry.key} has another length")
    end = position + LENGTH.size + numel * (entry.itemsize or 1)
    expect(end <= len(data), f"the file ends inside storage {entry.key}")
    return end


def _no_storages(identity: tuple[Any, ...]) -> Any:
    raise UnpicklingError("a storage is named where none can be")


# ---- safetensors


def describe_header(header: Header) -> Description:
    """Every tensor of a .safetensors file, each with a storage of its own."""
    storages, content = [], {}
    for info in header.tensors.values():
        storage = _own_storage(info)
        storages.append(storage)
        content[info.name] = TensorEntry(
            storage.dtype, storage.itemsize or 0, info.shape, None, 0, storage
        )
    result = Description(SAFETENSORS, content, storages)
    result.facts = {"header": f"{header.data_start} bytes", "byte order": "little"}
    result.metadata = header.metadata or {}
    return result


def _own_storage(info: TensorInfo) -> StorageEntry:
    known = DTYPES.get(info.dtype)
    name, itemsize = (known.name, known.itemsize) if known else (info.dtype, None)
    size = info.end - info.start
    return StorageEntry(info.name, name, itemsize, size * 8 // BITS[info.dtype], "cpu", size)
