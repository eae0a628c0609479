"""`torch.distributed.checkpoint`: checkpoints that many processes write, and others read.

How it works, and what a process that dies leaves: docs/distributed.md.
"""

from __future__ import annotations

import sys
from typing import Any

from flambeau._core.missing import missing
from flambeau.distributed.checkpoint.api import CheckpointException
from flambeau.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from flambeau.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from flambeau.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    TensorStorageMetadata,
)
from flambeau.distributed.checkpoint.planner import (
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
)
from flambeau.distributed.checkpoint.state_dict_loader import load, load_state_dict
from flambeau.distributed.checkpoint.state_dict_saver import async_save, save, save_state_dict
from flambeau.distributed.checkpoint.storage import StorageReader, StorageWriter

__all__ = [
    "BytesStorageMetadata", "CheckpointException", "ChunkStorageMetadata", "DefaultLoadPlanner",
    "DefaultSavePlanner", "FileSystemReader", "FileSystemWriter", "LoadPlan", "LoadPlanner",
    "Metadata", "ReadItem", "SavePlan", "SavePlanner", "StorageReader", "StorageWriter",
    "TensorStorageMetadata", "WriteItem", "async_save", "load", "load_state_dict", "save",
    "save_state_dict",
]  # fmt: skip

ABSENT = {
    "HuggingFaceStorageReader": "hf_storage",
    "HuggingFaceStorageWriter": "hf_storage",
    "load_sharded_optimizer_state_dict": "optimizer",
}
"""Names that are missing, and the modules that say so."""


def __getattr__(name: str) -> Any:
    if name in ABSENT:
        return getattr(sys.modules[f"{__name__}.{ABSENT[name]}"], name)
    return missing(__name__, name)
