"""From an archive or a legacy stream to the object: safely, or by ordinary unpickling."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pickle import UnpicklingError
from typing import Any

from flambeau._core import file_options
from flambeau._core.file_options import LoadEndianness
from flambeau.serialization.allowed import AllowedGlobals
from flambeau.serialization.archive import ArchiveReader
from flambeau.serialization.checksums import Workers
from flambeau.serialization.legacy import load_legacy
from flambeau.serialization.legacy_tar import is_tar, load_tar
from flambeau.serialization.locations import Restore
from flambeau.serialization.names import resolve
from flambeau.serialization.rebuild import SAFE_ROWS, TORCH_ROWS
from flambeau.serialization.sparse import checked_sparse_tensors
from flambeau.serialization.storages import ArchiveStorages
from flambeau.serialization.unpickler import SafeUnpickler

UNSAFE_LOAD = (
    "Loading with `weights_only=False` runs whatever code the file asks for: do that only with a "
    "file from a trusted source."
)
BYTE_ORDERS = {b"little": "little", b"big": "big"}
ASSUMED_ORDERS = {
    None: "little",
    LoadEndianness.LITTLE: "little",
    LoadEndianness.BIG: "big",
    LoadEndianness.NATIVE: sys.byteorder,
}


def load_archive(
    reader: ArchiveReader,
    restore: Restore,
    mapped: Any,
    pickle_module: Any,
    arguments: dict[str, Any],
) -> Any:
    """The object of a zip archive; `pickle_module` None stands for the safe interpreter."""
    if reader.has("constants.pkl"):
        raise RuntimeError(
            "Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``. "
            "Use ``torch.jit.load`` instead."
            if pickle_module is None
            else "torch.load received a TorchScript archive: use torch.jit.load instead."
        )
    with Workers(0 if mapped is not None else len(reader.data)) as workers:
        foreign = byte_order(reader) != sys.byteorder
        storages = ArchiveStorages(reader, restore, foreign=foreign, workers=workers, mapped=mapped)
        content = reader.view("data.pkl")
        if pickle_module is not None:
            with checked_sparse_tensors(len(reader.data)):
                result = _unpickle(pickle_module, io.BytesIO(content), storages, arguments)
        else:
            result = _interpret(content, storages, arguments)
    # Damage in what nothing referred to is damage; mapped storages are not read for their CRC.
    reader.verify_rest(leave_out=None if mapped is None else "data/")
    return result


def _interpret(content: memoryview, storages: ArchiveStorages, arguments: dict[str, Any]) -> Any:
    with _weights_only_words(), checked_sparse_tensors(len(storages.reader.data)):
        machine = _safe_machine(content, 0, storages, arguments)
        result = machine.load()
        if machine.position != len(content):
            raise UnpicklingError("data.pkl goes on behind the end of its pickle")
    return result


def load_stream(
    data: memoryview, restore: Restore, pickle_module: Any, arguments: dict[str, Any]
) -> tuple[Any, int]:
    """The object of a file from before PyTorch 1.6 and where the file goes on behind it."""
    if not data:
        if pickle_module is None:
            raise EOFError
        raise EOFError("Ran out of input")
    if is_tar(data):
        return _load_tar(data, restore, pickle_module, arguments), len(data)
    if pickle_module is not None:
        with checked_sparse_tensors(len(data)):
            return load_legacy(data, _unsafe_reader(data, pickle_module, arguments), restore)
    with _weights_only_words(), checked_sparse_tensors(len(data)):
        return load_legacy(data, _safe_reader(data, arguments), restore)


def _load_tar(
    data: memoryview, restore: Restore, pickle_module: Any, arguments: dict[str, Any]
) -> Any:
    if pickle_module is None:
        raise RuntimeError(
            "Cannot use ``weights_only=True`` with files saved in the legacy .tar format. "
            + UNSAFE_LOAD
        )

    def read(stream: io.BytesIO, find: Any) -> Any:
        return _unpickle(pickle_module, stream, find or _no_storages, arguments)

    return load_tar(data, read, restore)


def byte_order(reader: ArchiveReader) -> str:
    """The order of bytes in an archive: "little" or "big"."""
    if not reader.has("byteorder"):
        return ASSUMED_ORDERS[file_options.load.endianness]
    recorded = reader.read("byteorder")
    if recorded not in BYTE_ORDERS:
        raise ValueError(f"Unknown endianness type: {recorded.decode('ascii', 'replace')}")
    return BYTE_ORDERS[recorded]


def _safe_machine(
    data: memoryview, position: int, storages: Any, arguments: dict[str, Any]
) -> SafeUnpickler:
    allowed = AllowedGlobals(SAFE_ROWS)
    persistent_load = storages or _no_storages
    return SafeUnpickler(
        data, allowed, persistent_load, position=position, encoding=arguments["encoding"]
    )


def _safe_reader(data: memoryview, arguments: dict[str, Any]) -> Callable[..., tuple[Any, int]]:
    def read(position: int, storages: Any) -> tuple[Any, int]:
        machine = _safe_machine(data, position, storages, arguments)
        return machine.load(), machine.position

    return read


def _unsafe_reader(
    data: memoryview, pickle_module: Any, arguments: dict[str, Any]
) -> Callable[..., tuple[Any, int]]:
    stream = io.BytesIO(data)

    def read(position: int, storages: Any) -> tuple[Any, int]:
        stream.seek(position)
        result = _unpickle(pickle_module, stream, storages or _no_storages, arguments)
        return result, stream.tell()

    return read


def _no_storages(identity: tuple[Any, ...]) -> Any:
    raise UnpicklingError("a storage is named where none can be")


def _unpickle(
    pickle_module: Any, stream: io.BytesIO, storages: Callable[..., Any], arguments: dict[str, Any]
) -> Any:
    """Ordinary unpickling, with torch's names led to ours."""
    unpickler = unpickler_class(pickle_module.Unpickler)(stream, **arguments)
    unpickler.storages = storages
    return unpickler.load()


@cache
def unpickler_class(base: Any) -> Any:
    """An unpickler that finds torch's names here, and asks its `storages` for storages."""

    class Unpickler(base):  # type: ignore[misc]
        storages: Callable[..., Any]

        def find_class(self, module: str, name: str) -> Any:
            row = TORCH_ROWS.get(f"{module}.{name}")
            if row is not None:
                return row.value
            if module.partition(".")[0] == "torch":
                return resolve(module, name)
            return super().find_class(module, name)

        def persistent_load(self, identity: Any) -> Any:
            # Legacy files wrap module classes, to compare their source with today's.
            is_module = type(identity) is tuple and identity[0] == "module"
            return identity[1] if is_module else self.storages(identity)

    return Unpickler


@contextmanager
def _weights_only_words() -> Iterator[None]:
    """Put torch's sentence in front of what the safe interpreter refuses."""
    try:
        yield
    except UnpicklingError as error:
        raise UnpicklingError(_weights_only_message(str(error))) from None


def _weights_only_message(message: str) -> str:
    if "was not an allowed global by default" not in message:
        return f"Weights only load failed. WeightsUnpickler error: {message}"
    return (
        "Weights only load failed. This file can still be loaded, to do so you have two options, "
        "\033[1mdo those steps only if you trust the source of the checkpoint\033[0m. "
        f"\n\t(1) {UNSAFE_LOAD}\n\t(2) Alternatively, to load with `weights_only=True` please "
        "check the recommended steps in the following error message.\n\t"
        f"WeightsUnpickler error: {message}"
    )
