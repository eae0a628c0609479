"""Checkpoints in a folder: `__RANK_NUMBER.distcp` hold the data, `.metadata` says what is where.

A checkpoint counts from the moment in which `.metadata` takes over its name, which is one step
of the system. The files of a checkpoint that is there already are never written to: who saves into
the same folder again takes other numbers, and the old files go when the new `.metadata` is there.
So a process that is killed at any moment leaves the last whole checkpoint.
"""

from __future__ import annotations

import dataclasses
import io
import os
import re
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from pathlib import Path
from pickle import UnpicklingError
from typing import IO, Any

from flambeau._core.missing import NotImplementedInFlambeau
from flambeau._tensor.tensor import Tensor
from flambeau.distributed.checkpoint import metadata_file
from flambeau.distributed.checkpoint.metadata import Metadata, MetadataIndex, StorageMeta
from flambeau.distributed.checkpoint.pieces import narrowed
from flambeau.distributed.checkpoint.planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
    WriteItemType,
)
from flambeau.distributed.checkpoint.staging import BlockingAsyncStager
from flambeau.distributed.checkpoint.storage import (
    CheckpointId,
    StorageReader,
    StorageWriter,
    WriteResult,
)
from flambeau.distributed.checkpoint.storage_info import _StorageInfo, _StoragePrefix
from flambeau.futures import Future
from flambeau.serialization.api import load, save
from flambeau.serialization.atomic import atomic_write

METADATA = ".metadata"
SUFFIX = ".distcp"
DATA_FILE = re.compile(r"__\d+_(\d+)\.distcp")
VERSION = "1.0.0"


class SerializationFormat(Enum):
    """How the data of tensors are written."""

    TORCH_SAVE = "torch_save"
    SAFETENSORS = "safetensors"


class FileSystemWriter(BlockingAsyncStager, StorageWriter):
    """Writes checkpoints into a folder.

    Args:
        path: the folder; it is made if it is missing.
        single_file_per_rank: whether a process writes one file (or one for each thread), and not
            one for each tensor.
        sync_files: whether the data are on the disk before the checkpoint counts.
        thread_count: how many threads write.
        per_thread_copy_ahead: without meaning here.
        cache_staged_state_dict: whether `async_save` keeps its copy for the next time.
        overwrite: whether a checkpoint in the folder may be replaced.
        serialization_format: `TORCH_SAVE`; nothing else is implemented.
    """

    def __init__(self, path: CheckpointId, single_file_per_rank: bool = True,
                 sync_files: bool = True, thread_count: int = 1,
                 per_thread_copy_ahead: int = 10_000_000, cache_staged_state_dict: bool = False,
                 overwrite: bool = True, _extensions: Any = None,
                 serialization_format: SerializationFormat = SerializationFormat.TORCH_SAVE,
                 ) -> None:  # fmt: skip
        super().__init__(cache_staged_state_dict=cache_staged_state_dict)
        if _extensions is not None or serialization_format is not SerializationFormat.TORCH_SAVE:
            raise NotImplementedInFlambeau(
                "FileSystemWriter with extensions or serialization_format is not implemented"
            )
        self.path = Path(path)
        self.single_file_per_rank, self.sync_files = single_file_per_rank, sync_files
        self.thread_count, self.overwrite = max(thread_count, 1), overwrite
        self.save_id = str(uuid.uuid4())

    def reset(self, checkpoint_id: CheckpointId | None = None) -> None:
        """Begin a checkpoint, in another folder if one is given."""
        if checkpoint_id:
            self.path = Path(checkpoint_id)
        self.save_id = str(uuid.uuid4())

    @property
    def checkpoint_id(self) -> CheckpointId:
        """The folder."""
        return self.path

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Nothing is to be done."""

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Make the folder.

        Raises:
            RuntimeError: there is a checkpoint, which may not be replaced.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        if (self.path / METADATA).exists() and not self.overwrite:
            raise RuntimeError(f"Checkpoint already exists and {self.overwrite=}.")
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Give every process names for its files, which no whole checkpoint uses."""
        first = 1 + max((_number_of(name) for name in _files_in_use(self.path)), default=-1)
        return [
            dataclasses.replace(plan, storage_data=_StoragePrefix(f"__{rank}_", first))
            for rank, plan in enumerate(plans)
        ]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Write the items of a plan; the Future is done."""
        prefix = plan.storage_data
        names = [
            f"{prefix.prefix}{prefix.first + number}{SUFFIX}" for number in range(len(plan.items))
        ]
        work = [
            (name, items)
            for name, items in zip(names, self._split(plan.items), strict=False)
            if items
        ]
        if self.thread_count == 1 or len(work) < 2:
            results = [self._write_file(name, items, planner) for name, items in work]
        else:
            with ThreadPoolExecutor(self.thread_count) as pool:
                results = list(
                    pool.map(lambda job: self._write_file(job[0], job[1], planner), work)
                )
        future: Future[list[WriteResult]] = Future()
        future.set_result([result for listed in results for result in listed])
        return future

    def _split(self, items: list[WriteItem]) -> list[list[WriteItem]]:
        """The items of each file: objects first, then tensors, the large ones spread."""
        if not self.single_file_per_rank:
            return [[item] for item in items]
        bins: list[list[WriteItem]] = [[] for _ in range(self.thread_count)]
        objects = [item for item in items if item.type is WriteItemType.BYTE_IO]
        for number, item in enumerate(objects):
            bins[number % len(bins)].append(item)
        tensors = [item for item in items if item.type is not WriteItemType.BYTE_IO]
        if len(bins) > 1:
            tensors.sort(key=lambda item: -(item.tensor_storage_size() or 0))
        sizes = [0] * len(bins)
        for item in tensors:
            least = sizes.index(min(sizes))
            bins[least].append(item)
            sizes[least] += item.tensor_storage_size() or 0
        return bins

    def _write_file(self, name: str, items: list[WriteItem],
                    planner: SavePlanner) -> list[WriteResult]:  # fmt: skip
        with (self.path / name).open("wb") as file:
            results = [_write_item(file, name, item, planner) for item in items]
            if self.sync_files:
                file.flush()
                os.fsync(file.fileno())
        return results

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Write `.metadata`, and remove files that no checkpoint needs any more."""
        places = {result.index: result.storage_data for each in results for result in each}
        whole = dataclasses.replace(
            metadata, storage_data=places, storage_meta=self.storage_meta(), version=VERSION
        )
        if self.sync_files:
            _sync_folder(self.path)
        with atomic_write(str(self.path / METADATA)) as file:
            file.write(metadata_file.write(whole))
        metadata.storage_data, metadata.storage_meta = places, whole.storage_meta
        metadata.version = VERSION
        _remove_unused(self.path, {place.relative_path for place in places.values()})

    def storage_meta(self) -> StorageMeta | None:
        """The folder, and the name of this save."""
        return StorageMeta(checkpoint_id=self.path, save_id=self.save_id)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: CheckpointId) -> bool:
        """Whether it is a path, and not a URL."""
        return isinstance(checkpoint_id, Path) or "://" not in str(checkpoint_id)


def _write_item(file: IO[bytes], name: str, item: WriteItem, planner: SavePlanner) -> WriteResult:
    begin = file.tell()
    data = planner.resolve_data(item)
    if isinstance(data, Tensor):
        save(_apart(data), file)
    else:
        file.write(data.getbuffer())
    length = file.tell() - begin
    return WriteResult(item.index, length, _StorageInfo(name, begin, length))


def _apart(tensor: Tensor) -> Tensor:
    """A tensor whose storage holds nothing but it, so that nothing else is saved."""
    plain = tensor.detach().cpu()
    if plain.untyped_storage().nbytes() != plain.numel() * plain.element_size():
        return plain.clone()
    return plain


def _number_of(name: str) -> int:
    match = DATA_FILE.fullmatch(name)
    return int(match[1]) if match else -1


def _files_in_use(folder: Path) -> set[str]:
    """The files of the whole checkpoint in a folder; all, where nobody can say which are its."""
    file = folder / METADATA
    if not file.exists():
        return set()
    try:
        metadata = metadata_file.read(file.read_bytes())
    except UnpicklingError:
        return {file.name for file in folder.iterdir()}
    return {place.relative_path for place in (metadata.storage_data or {}).values()}


def _remove_unused(folder: Path, used: set[str]) -> None:
    """Remove what earlier checkpoints in the folder, and those that were not finished, left."""
    for file in folder.iterdir():
        if DATA_FILE.fullmatch(file.name) and file.name not in used:
            file.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class FileSystemReader(StorageReader):
    """Reads checkpoints from a folder, ours and PyTorch's.

    Pickles are read without running what they name; what lies outside of the folder is not read.

    Args:
        path: the folder.
    """

    def __init__(self, path: CheckpointId, _extension_registry: Any = None) -> None:
        if _extension_registry is not None:
            raise NotImplementedInFlambeau("FileSystemReader with extensions is not implemented")
        self.path = Path(path)
        self.load_id = str(uuid.uuid4())
        self.storage_data: dict[MetadataIndex, _StorageInfo] = {}

    def reset(self, checkpoint_id: CheckpointId | None = None) -> None:
        """Begin with a checkpoint, in another folder if one is given."""
        if checkpoint_id:
            self.path = Path(checkpoint_id)
        self.storage_data = {}
        self.load_id = str(uuid.uuid4())

    @property
    def checkpoint_id(self) -> CheckpointId:
        """The folder."""
        return self.path

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """What `.metadata` says.

        Raises:
            FileNotFoundError: there is no whole checkpoint. UnpicklingError: it is damaged.
        """
        metadata = metadata_file.read((self.path / METADATA).read_bytes())
        if metadata.storage_meta is None:
            metadata.storage_meta = StorageMeta()
        metadata.storage_meta.load_id = self.load_id
        return metadata

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any,
                              **kwargs: Any) -> None:  # fmt: skip
        """Take the places of the pieces."""
        self.storage_data = metadata.storage_data or {}

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """The plan as it is."""
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """The plans as they are."""
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Read the items of a plan; the Future is done."""
        for path, items in self._by_file(plan):
            with path.open("rb") as file:
                for item, place in items:
                    _read_item(file, item, place, planner)
        future: Future[None] = Future()
        future.set_result(None)
        return future

    def _by_file(
        self, plan: LoadPlan
    ) -> Iterator[tuple[Path, list[tuple[ReadItem, _StorageInfo]]]]:
        files: dict[str, list[tuple[ReadItem, _StorageInfo]]] = {}
        for item in plan.items:
            place = self.storage_data[item.storage_index]
            files.setdefault(place.relative_path, []).append((item, place))
        for name, items in files.items():
            yield self._inside(name), sorted(items, key=lambda pair: pair[1].offset)

    def _inside(self, name: str) -> Path:
        """The path of a file, which has to be in the folder."""
        folder = self.path.resolve()
        path = (folder / name).resolve()
        if not path.is_relative_to(folder):
            raise ValueError(f"the metadata name a file outside of {folder}: {name}")
        return path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: CheckpointId) -> bool:
        """Whether it is a path, and not a URL."""
        return isinstance(checkpoint_id, Path) or "://" not in str(checkpoint_id)


def _read_item(file: IO[bytes], item: ReadItem, place: _StorageInfo, planner: LoadPlanner) -> None:
    if place.transform_descriptors:
        raise NotImplementedInFlambeau(f"data transformed by {place.transform_descriptors}")
    file.seek(place.offset)
    content = file.read(place.length)
    if len(content) != place.length:
        raise EOFError(f"{place.relative_path} ends before {item.storage_index.fqn} does")
    stream = io.BytesIO(content)
    if item.type is LoadItemType.BYTE_IO:
        planner.load_bytes(item, stream)
        return
    stored = load(stream, map_location="cpu", weights_only=True)
    source = narrowed(stored, item.storage_offsets, item.lengths)
    target: Any = planner.resolve_tensor(item).detach()
    if target.size() != source.size():
        raise AssertionError(
            f"req {item.storage_index} mismatch sizes {target.size()} vs {source.size()}"
        )
    target.copy_(source)
    planner.commit_tensor(item, target)
