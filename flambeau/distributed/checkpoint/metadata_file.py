"""The file `.metadata` of a distributed checkpoint: a pickle, read without running anything."""

from __future__ import annotations

import io
import pathlib
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, NoReturn

from flambeau._core.layout import Size, layout, memory_format
from flambeau.distributed.checkpoint.metadata import (
    _MEM_FORMAT_ENCODING,
    MEMORY_FORMATS,
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from flambeau.distributed.checkpoint.storage_info import _StorageInfo
from flambeau.serialization.allowed import AllowedGlobals, Row
from flambeau.serialization.checks import expect
from flambeau.serialization.pickler import SavedStorages, TensorPickler
from flambeau.serialization.rebuild import SAFE_ROWS, get_layout
from flambeau.serialization.unpickler import SafeUnpickler

PROTOCOL = 4
LARGEST = 1 << 30
"""Bytes of a `.metadata` that are read."""


class _MetadataPickler(TensorPickler):
    """Writes classes of metadata and layouts under the names that PyTorch's files give them."""

    def save_global(self, obj: Any, name: str | None = None) -> None:
        full_name = next((name for name, row in CLASSES.items() if row.value is obj), None)
        if full_name is None:
            super().save_global(obj, name)
            return
        module, _, last = full_name.rpartition(".")
        self.write_name(obj, module, last)

    def save_type(self, obj: type) -> None:
        self.save_global(obj)

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, layout):
            return get_layout, (str(obj),)
        return super().reducer_override(obj)


def write(metadata: Metadata) -> bytes:
    """The content of the file."""
    stream = io.BytesIO()
    storages = SavedStorages()
    _MetadataPickler(stream, PROTOCOL, storages).dump(metadata)
    if storages.by_key:
        raise ValueError("the planner's data have tensors in them")
    return stream.getvalue()


def read(content: bytes) -> Metadata:
    """What a file says.

    Raises:
        UnpicklingError: it names something that does not belong there, or is damaged.
    """
    expect(len(content) <= LARGEST, "the metadata are too large")
    machine = SafeUnpickler(content, AllowedGlobals(ROWS), _no_storages)
    metadata = machine.load()
    expect(isinstance(metadata, Metadata), "the file holds something else than Metadata")
    _check(metadata)
    return metadata  # type: ignore[no-any-return]


def _no_storages(identity: Any) -> NoReturn:
    raise UnpicklingError("metadata have no storages")


def _check(metadata: Metadata) -> None:
    """Raise UnpicklingError where a part has another type than it should have."""
    expect(isinstance(metadata.state_dict_metadata, dict), "state_dict_metadata is no dict")
    for name, saved in metadata.state_dict_metadata.items():
        expect(isinstance(name, str), "a name is no text")
        if isinstance(saved, TensorStorageMetadata):
            _check_tensor(saved)
        else:
            expect(isinstance(saved, BytesStorageMetadata), f"{name} is neither tensor nor object")
    expect(isinstance(metadata.storage_data, dict | None), "storage_data is no dict")
    for index, place in (metadata.storage_data or {}).items():
        expect(isinstance(index, MetadataIndex), "a key of storage_data is no MetadataIndex")
        expect(isinstance(place, _StorageInfo), "a value of storage_data is no _StorageInfo")
    _check_paths(metadata.planner_data)


def _check_paths(paths: Any) -> None:
    expect(isinstance(paths, dict | None), "planner_data is no dict")
    for name, path in (paths or {}).items():
        keys = path if isinstance(path, tuple) else ()
        good = bool(keys) and all(isinstance(key, str | int) for key in keys)
        small = all(not isinstance(key, int) or 0 <= key < len(paths) for key in keys)
        expect(isinstance(name, str) and good and small, "planner_data are no paths")


def _check_tensor(saved: TensorStorageMetadata) -> None:
    expect(isinstance(saved.properties, TensorProperties), "a tensor has no properties")
    expect(isinstance(saved.chunks, list), "a tensor has no list of pieces")
    for chunk in saved.chunks:
        expect(isinstance(chunk, ChunkStorageMetadata), "a piece is none")
        expect(len(chunk.offsets) == len(chunk.sizes) == len(saved.size), "a piece has other dims")


def _fields_row(cls: type, *fields: str) -> Row:
    """A class whose instances are made empty and get their fields from a dict."""

    def create(*arguments: Any) -> Any:
        expect(not arguments, f"{cls.__name__} is made without arguments")
        made: Any = object.__new__(cls)
        build(made, {})
        return made

    def build(instance: Any, state: Any) -> None:
        expect(isinstance(state, dict) and set(state) <= set(fields), f"fields of {cls.__name__}")
        for name in fields:
            object.__setattr__(instance, name, state.get(name))
        if isinstance(instance, MetadataIndex) and state:  # it will be hashed
            expect(isinstance(instance.fqn, str), "the name of a piece is no text")
            expect(isinstance(instance.offset, Size | None), "an offset is no Size")

    return Row(cls, create=create, build=build)


def _new_properties(*arguments: Any) -> TensorProperties:
    expect(not arguments, "TensorProperties are made without arguments")
    return object.__new__(TensorProperties)


def _build_properties(instance: Any, state: Any) -> None:
    expect(isinstance(state, tuple) and len(state) == 5, "TensorProperties have five fields")
    dtype, kept, requires_grad, number, pinned = state
    expect(isinstance(kept, layout) and isinstance(number, _MEM_FORMAT_ENCODING), "a layout")
    instance.dtype, instance.layout = dtype, kept
    instance.requires_grad, instance.pin_memory = bool(requires_grad), bool(pinned)
    instance.memory_format = memory_format.table[MEMORY_FORMATS[number.value]]


def _path(*parts: Any) -> Path:
    expect(all(isinstance(part, str) for part in parts), "a path is made of texts")
    return Path(*parts)


PACKAGE = "torch.distributed.checkpoint"
FIELDS: dict[type, tuple[str, ...]] = {
    ChunkStorageMetadata: ("offsets", "sizes"),
    TensorStorageMetadata: ("properties", "size", "chunks"),
    BytesStorageMetadata: (),
    StorageMeta: ("checkpoint_id", "save_id", "load_id", "modules"),
    Metadata: ("state_dict_metadata", "planner_data", "storage_data", "storage_meta", "version"),
    MetadataIndex: ("fqn", "offset", "index"),
}
PATHS = {
    f"{module}.{name}": Row(getattr(pathlib, name), _path)
    for module in ("pathlib", "pathlib._local")
    for name in ("PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath")
}
CLASSES = {
    **{f"{PACKAGE}.metadata.{cls.__name__}": _fields_row(cls, *FIELDS[cls]) for cls in FIELDS},
    f"{PACKAGE}.metadata.TensorProperties": Row(
        TensorProperties, create=_new_properties, build=_build_properties
    ),
    f"{PACKAGE}.metadata._MEM_FORMAT_ENCODING": Row(_MEM_FORMAT_ENCODING, _MEM_FORMAT_ENCODING),
    f"{PACKAGE}.filesystem._StorageInfo": _fields_row(
        _StorageInfo, "relative_path", "offset", "length", "transform_descriptors"
    ),
}
ROWS = {**SAFE_ROWS, **PATHS, **CLASSES}
"""What a `.metadata` may name."""
