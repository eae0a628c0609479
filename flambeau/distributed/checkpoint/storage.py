"""Where checkpoints are written to and read from: what a storage has to do."""

from __future__ import annotations

import abc
import os
from dataclasses import dataclass
from typing import Any

from flambeau.distributed.checkpoint.metadata import Metadata, MetadataIndex, StorageMeta
from flambeau.distributed.checkpoint.planner import (
    LoadPlan,
    LoadPlanner,
    SavePlan,
    SavePlanner,
)
from flambeau.futures import Future

CheckpointId = str | os.PathLike[str]


@dataclass(frozen=True)
class WriteResult:
    """Where an item was written, and how large it is there."""

    index: MetadataIndex
    size_in_bytes: int
    storage_data: Any


class StorageWriter(abc.ABC):
    """Writes what planners decide. Calls come in the order of the methods.

    `prepare_global_plan` and `finish` are called on rank 0 only.
    """

    @abc.abstractmethod
    def reset(self, checkpoint_id: CheckpointId | None = None) -> None:
        """Begin a checkpoint."""

    @abc.abstractmethod
    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Get ready."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Look at the plan of this process."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Look at all plans."""

    @abc.abstractmethod
    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Write what the plan says."""

    @abc.abstractmethod
    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Make the checkpoint whole: from here on it counts."""

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: CheckpointId) -> bool:
        """Whether this storage can have a checkpoint of that name."""

    def storage_meta(self) -> StorageMeta | None:
        """What the planner is told about the storage."""
        return None


class StorageReader(abc.ABC):
    """Reads what planners decide. Calls come in the order of the methods."""

    @abc.abstractmethod
    def reset(self, checkpoint_id: CheckpointId | None = None) -> None:
        """Begin with a checkpoint."""

    @abc.abstractmethod
    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """What the checkpoint says of itself."""

    @abc.abstractmethod
    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any,
                              **kwargs: Any) -> None:  # fmt: skip
        """Get ready."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """Look at the plan of this process."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """Look at all plans."""

    @abc.abstractmethod
    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Read what the plan says."""

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: CheckpointId) -> bool:
        """Whether this storage can have a checkpoint of that name."""
