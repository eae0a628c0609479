"""Distributed checkpoints into files of `torch.save`, and back."""

from __future__ import annotations

import os
from typing import Any

from flambeau.distributed.checkpoint.agreement import Ranks
from flambeau.distributed.checkpoint.default_planner import (
    DefaultSavePlanner,
    _EmptyStateDictLoadPlanner,
)
from flambeau.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from flambeau.distributed.checkpoint.state_dict_loader import _load, _load_state_dict
from flambeau.distributed.checkpoint.state_dict_saver import _save
from flambeau.serialization.api import load, save

__all__ = ["_EmptyStateDictLoadPlanner", "_load_state_dict", "dcp_to_torch_save",
           "torch_save_to_dcp"]  # fmt: skip


def dcp_to_torch_save(dcp_checkpoint_dir: str | os.PathLike[str],
                      torch_save_path: str | os.PathLike[str]) -> None:  # fmt: skip
    """Write a distributed checkpoint as one file of `torch.save`. Only one process calls this."""
    state_dict: dict[str, Any] = {}
    reader = FileSystemReader(dcp_checkpoint_dir)
    _load(state_dict, Ranks(None, no_dist=True), reader, None, _EmptyStateDictLoadPlanner())
    save(state_dict, torch_save_path)


def torch_save_to_dcp(torch_save_path: str | os.PathLike[str],
                      dcp_checkpoint_dir: str | os.PathLike[str]) -> None:  # fmt: skip
    """Write a file of `torch.save` as a distributed checkpoint. Only one process calls this.

    The file is read as `torch.load(weights_only=True)` reads it.
    """
    state_dict = load(torch_save_path, weights_only=True)
    writer = FileSystemWriter(dcp_checkpoint_dir)
    _save(state_dict, Ranks(None, no_dist=True), writer, None, DefaultSavePlanner())
