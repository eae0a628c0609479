"""Plans: which pieces a process writes or reads; and what a planner has to do."""

from __future__ import annotations

import abc
import io
from dataclasses import dataclass
from enum import Enum
from typing import Any

from flambeau._core.layout import Size
from flambeau._tensor.tensor import Tensor
from flambeau.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
)


class WriteItemType(Enum):
    """What is written: a whole tensor, a piece of one, or an object."""

    TENSOR = 1
    SHARD = 2
    BYTE_IO = 3


class LoadItemType(Enum):
    """What is read: a piece of a tensor, or an object."""

    TENSOR = 1
    BYTE_IO = 2


@dataclass(frozen=True)
class BytesIOWriteData:
    """How many bytes an object takes."""

    nbytes: int


@dataclass(frozen=True)
class TensorWriteData:
    """The piece that is written, and the tensor that it is a piece of."""

    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: Size


@dataclass(frozen=True)
class WriteItem:
    """One thing that is written."""

    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: BytesIOWriteData | None = None
    tensor_data: TensorWriteData | None = None

    def tensor_storage_size(self) -> int | None:
        """The bytes of a piece of a tensor; None for objects."""
        if self.tensor_data is None:
            return None
        count = 1
        for length in self.tensor_data.chunk.sizes:
            count *= length
        return count * self.tensor_data.properties.dtype.itemsize


@dataclass(frozen=True)
class ReadItem:
    """One thing that is read.

    Attributes:
        dest_index, dest_offsets: the piece of this process, and the place in it.
        storage_index, storage_offsets: the piece in the files, and the place in it.
        lengths: how much is read along each dim.
    """

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: Size
    storage_index: MetadataIndex
    storage_offsets: Size
    lengths: Size


@dataclass(frozen=True)
class SavePlan:
    """What one process writes."""

    items: list[WriteItem]
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True


@dataclass
class LoadPlan:
    """What one process reads."""

    items: list[ReadItem]
    storage_data: Any = None
    planner_data: Any = None


class SavePlanner(abc.ABC):
    """Decides what each process writes, and gives the data. Calls come in this order:

    `set_up_planner` and `create_local_plan` in every process, `create_global_plan` on rank 0,
    `finish_plan` in every process, and then `resolve_data` for each item.
    """

    @abc.abstractmethod
    def set_up_planner(self, state_dict: dict[str, Any], storage_meta: StorageMeta | None = None,
                       is_coordinator: bool = False) -> None:  # fmt: skip
        """Take the state dict that will be saved."""

    @abc.abstractmethod
    def create_local_plan(self) -> SavePlan:
        """What this process would write."""

    @abc.abstractmethod
    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """What each process shall write, and what the checkpoint says of itself."""

    @abc.abstractmethod
    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """What this process writes after all."""

    @abc.abstractmethod
    def resolve_data(self, write_item: WriteItem) -> Tensor | io.BytesIO:
        """The data of an item."""


class LoadPlanner(abc.ABC):
    """Decides what each process reads, and takes the data. Calls come in this order:

    `set_up_planner` and `create_local_plan` in every process, `create_global_plan` on rank 0,
    `finish_plan` in every process; then `load_bytes` for each object, `resolve_tensor` and
    `commit_tensor` for each piece of a tensor.
    """

    @abc.abstractmethod
    def set_up_planner(self, state_dict: dict[str, Any], metadata: Metadata | None = None,
                       is_coordinator: bool = False) -> None:  # fmt: skip
        """Take the state dict that will be filled."""

    @abc.abstractmethod
    def create_local_plan(self) -> LoadPlan:
        """What this process needs."""

    @abc.abstractmethod
    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """What each process shall read."""

    @abc.abstractmethod
    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """What this process reads after all."""

    @abc.abstractmethod
    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Take an object's pickle."""

    def resolve_bytes(self, read_item: ReadItem) -> io.BytesIO:
        """Where an object's pickle is to be written.

        Raises:
            NotImplementedError: this planner takes pickles in `load_bytes` only.
        """
        raise NotImplementedError("LoadPlanner.resolve_bytes is not implemented")

    @abc.abstractmethod
    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        """The tensor that an item is copied into; it has the item's lengths."""

    @abc.abstractmethod
    def commit_tensor(self, read_item: ReadItem, tensor: Tensor) -> None:
        """Called when the tensor of `resolve_tensor` is filled."""
