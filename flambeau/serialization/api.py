"""`torch.save` and `torch.load`."""

from __future__ import annotations

import io
import os
import pickle
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from flambeau._core import file_options
from flambeau.serialization.archive import ArchiveReader, map_file
from flambeau.serialization.archive_writer import ArchiveWriter
from flambeau.serialization.atomic import atomic_write
from flambeau.serialization.checksums import Workers
from flambeau.serialization.file_bytes import bytes_of_file, bytes_of_open_file
from flambeau.serialization.inspection import unsafe_globals
from flambeau.serialization.legacy import save_legacy
from flambeau.serialization.loader import load_archive, load_stream
from flambeau.serialization.locations import restore_function
from flambeau.serialization.options import mapping_access
from flambeau.serialization.pickler import SavedStorages, pickle_tensors, pickler_class
from flambeau.serialization.zip_format import LOCAL_SIGNATURE

DEFAULT_PROTOCOL = 2
TRUE_WORDS = frozenset(("1", "y", "yes", "true"))
NOT_SEEKABLE = (
    ". You can only torch.load from a file that is seekable. Please pre-load the data into a "
    "buffer like io.BytesIO and try to load from it instead."
)


def save(
    obj: object,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Save an object to a file that `torch.load` of flambeau and of PyTorch can read.

    Args:
        obj: anything picklable. Tensors keep their sharing: a storage is written once, whole,
            and views stay views.
        f: a path, or a file object with `write`. A path is replaced at once when all is written;
            when something fails, the old file stays whole.
        pickle_module: what pickles `obj`: `pickle`, or a module whose `Pickler` is made of Python's
            own one in Python, as dill's is.
        pickle_protocol: 2 is what PyTorch reads in its safe mode.
        _use_new_zipfile_serialization: False writes the format from before PyTorch 1.6.

    Raises:
        RuntimeError: the folder does not exist, or tensors view one storage as different dtypes.
        AttributeError: `f` is neither a path nor writable.
        PicklingError, TypeError: `obj` holds something that cannot be pickled.

    >>> import flambeau as torch
    >>> import io
    >>> file = io.BytesIO()
    >>> torch.save([torch.ones(2), "a text"], file)
    >>> _ = file.seek(0)
    >>> torch.load(file)
    [tensor([1., 1.]), 'a text']
    """
    pickler = pickler_class(pickle_module)
    if not _use_new_zipfile_serialization:
        with open_sink(f) as sink:
            save_legacy(obj, sink, pickle_protocol, pickler)
        return
    # The pickle comes first: nothing is opened for an object that cannot be saved.
    content, storages = pickle_tensors(obj, pickle_protocol, pickler)
    with open_sink(f) as sink:
        _write_archive(sink, folder_name(f), content, storages, not _disable_byteorder_record)


def _write_archive(
    sink: Any, folder: str, content: bytes, storages: SavedStorages, byteorder: bool
) -> None:
    options = file_options.save
    writer = ArchiveWriter(
        sink, folder, compute_crc32=options.compute_crc32, alignment=options.storage_alignment
    )
    writer.write("data.pkl", content)
    writer.write(".format_version", b"1")
    writer.write(".storage_alignment", str(options.storage_alignment).encode())
    if byteorder:
        writer.write("byteorder", sys.byteorder.encode())
    contents = {f"data/{key}": storages.content(key) for key in storages.by_key}
    if file_options.thread.skip_data:
        for name, array in contents.items():
            writer.reserve(name, array.size)
    else:
        _write_storages(writer, contents)
    writer.finish()


def _write_storages(writer: ArchiveWriter, contents: dict[str, np.ndarray]) -> None:
    """Write records while other threads compute their CRCs."""
    total = sum(array.size for array in contents.values()) if writer.compute_crc32 else 0
    with Workers(total) as workers:
        sums = [workers.sum(array) for array in contents.values()]
        for (name, array), crc32 in zip(contents.items(), sums, strict=True):
            writer.write(name, array, crc32)


def _is_path(f: Any) -> bool:
    return isinstance(f, str | os.PathLike)


def folder_name(f: Any) -> str:
    """The folder inside the archive: the file's name without its suffix, where it is a path."""
    stem = Path(f).stem if _is_path(f) else "archive"
    is_plain = stem.isascii() and stem.isprintable() and not set(stem) & set(":\\")
    return stem if is_plain and stem not in ("", "..") else "archive"


@contextmanager
def open_sink(f: Any) -> Iterator[Any]:
    """Where a file is written: `f` itself, or what replaces the file at the path `f` at the end."""
    if not _is_path(f):
        if not hasattr(f, "write"):
            raise AttributeError(
                "expected 'f' to be string, path, or a file-like object with a 'write' attribute"
            )
        yield f
        if hasattr(f, "flush"):  # so that whoever opens the file by its name finds it whole
            f.flush()
        return
    path = os.fspath(f)
    parent = Path(path).parent
    if not parent.is_dir():
        raise RuntimeError(f"Parent directory {parent} does not exist.")
    with atomic_write(path) as sink:
        yield sink


def _check_load_args(given: dict[str, Any]) -> None:
    """The safe interpreter takes `encoding` alone."""
    for name in given:
        if name != "encoding":
            raise TypeError(f"Unpickler.__init__() got an unexpected keyword argument '{name}'")


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Load what `torch.save` of flambeau or of PyTorch has written.

    Args:
        f: a path, or a seekable file object that is read from its position to its end. A path
            that ends with .safetensors is read as such a file.
        map_location: where storages go: a device or its name, a dict from saved names to wanted
            ones, or a callable (storage, saved name) -> storage or None.
        weights_only: True, the default, runs a safe interpreter that knows tensors, plain
            containers and what `add_safe_globals` allows. False is ordinary unpickling, which
            runs whatever code the file asks for.
        mmap: view the file instead of reading it; pages are read when they are touched, writes
            stay private to the process, and the CRCs of storages are not checked.
        **pickle_load_args: for `pickle.Unpickler`, with `weights_only=False`.

    Raises:
        UnpicklingError: the safe interpreter refuses something in the file.
        RuntimeError: the archive is damaged, or a storage's device does not exist.

    >>> import flambeau as torch
    >>> import io
    >>> file = io.BytesIO()
    >>> torch.save({"weight": torch.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> torch.load(file)
    {'weight': tensor([1., 1.])}
    """
    weights_only = _choose_weights_only(weights_only, pickle_module)
    if pickle_load_args and weights_only:
        warnings.warn("pickle_load_args only works if `weights_only=False`.", stacklevel=2)
        _check_load_args(pickle_load_args)
    mmap = file_options.load.mmap if mmap is None else mmap
    if _is_path(f) and os.fspath(f).endswith(".safetensors"):
        from flambeau.serialization.safetensors.torch import load_at

        return load_at(os.fspath(f), map_location)
    restore = restore_function(map_location)
    modules = None if weights_only else (pickle_module or pickle)
    arguments = {"encoding": "utf-8", **pickle_load_args}
    start = 0 if _is_path(f) else _position(f)
    if mmap and _is_path(f):
        data: Any = map_file(os.fspath(f), mapping_access(True))
    else:
        data = bytes_of(f)
    if bytes(data[:4]) == LOCAL_SIGNATURE:
        if mmap and not _is_path(f):
            raise ValueError("f must be a file path in order to use the mmap argument")
        mapped = data if mmap else None
        return load_archive(ArchiveReader(data), restore, mapped, modules, arguments)
    if mmap:
        name = f"{f}, " if isinstance(f, str) else ""
        raise RuntimeError(
            "mmap can only be used with files saved with "
            f"`torch.save({name}_use_new_zipfile_serialization=True), please torch.save your "
            "checkpoint with this option in order to use mmap."
        )
    result, length = load_stream(memoryview(data[:]), restore, modules, arguments)
    if not _is_path(f):
        f.seek(start + length)  # legacy files may hold one object behind the other
    return result


def _choose_weights_only(weights_only: bool | None, pickle_module: Any) -> bool:
    """The argument, its default, and what the environment variables say about both."""
    force = _is_set("TORCH_FORCE_WEIGHTS_ONLY_LOAD")
    forbid = _is_set("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    if force and forbid:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` "
            "should be set, but both were set."
        )
    chosen = (pickle_module is None) if weights_only is None else weights_only
    if force:
        chosen = True
    elif forbid and weights_only is None:
        warnings.warn(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the"
            "`weights_only` argument was not explicitly passed to `torch.load`, forcing "
            "weights_only=False.",
            UserWarning,
            stacklevel=3,
        )
        chosen = False
    if chosen and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    return chosen


def _is_set(variable: str) -> bool:
    return os.getenv(variable, "0").lower() in TRUE_WORDS


def _position(f: Any) -> int:
    """Where a file object stands. Raises AttributeError or OSError if it cannot seek."""
    try:
        f.seek(f.tell())
    except (AttributeError, OSError) as error:
        raise type(error)(str(error) + NOT_SEEKABLE) from None
    return f.tell()  # type: ignore[no-any-return]


def _read_rest(f: Any) -> Any:
    """The bytes of a file object from its position to its end."""
    start = _position(f)
    raw = f.raw if type(f) is io.BufferedReader else f
    # what decompresses has the descriptor and the name of the compressed file
    if type(raw) is io.FileIO and Path(str(raw.name)).is_file():
        return bytes_of_open_file(f, start)
    return f.read()


def bytes_of(f: Any) -> Any:
    """The bytes of a file that is given by its path, or is open: what is left of it."""
    return bytes_of_file(os.fspath(f)) if _is_path(f) else _read_rest(f)


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The globals of a checkpoint that a safe load would refuse, found without running it."""
    data = bytes_of(f)
    if bytes(data[:4]) != LOCAL_SIGNATURE:
        raise ValueError("Expected input to be a checkpoint returned by torch.save")
    return unsafe_globals(ArchiveReader(data))
