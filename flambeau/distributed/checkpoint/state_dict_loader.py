"""Loading: every process reads what it needs, however many processes saved it."""

from __future__ import annotations

import warnings
from typing import Any

from flambeau._core.missing import NotImplementedInFlambeau
from flambeau.distributed.checkpoint.agreement import Ranks
from flambeau.distributed.checkpoint.default_planner import (
    DefaultLoadPlanner,
    _EmptyStateDictLoadPlanner,
)
from flambeau.distributed.checkpoint.filesystem import FileSystemReader
from flambeau.distributed.checkpoint.planner import LoadPlan, LoadPlanner
from flambeau.distributed.checkpoint.state_dict_saver import NO_ID, _ranks
from flambeau.distributed.checkpoint.stateful import Stateful
from flambeau.distributed.checkpoint.storage import CheckpointId, StorageReader


def load(state_dict: dict[str, Any], *, checkpoint_id: CheckpointId | None = None,
         storage_reader: StorageReader | None = None, planner: LoadPlanner | None = None,
         process_group: Any = None, no_dist: bool = False) -> None:  # fmt: skip
    """Fill a nested state dict from a checkpoint; all processes of the group have to call this.

    Tensors are filled in place, other values are replaced in their dicts and lists. Values with
    `state_dict` and `load_state_dict` get their state at the end. What is asked for has to be in
    the checkpoint, with the same sizes; types are converted.

    Args:
        checkpoint_id: the folder.
        storage_reader: what reads; `FileSystemReader(checkpoint_id)` by default.
        planner: what decides what is read; `DefaultLoadPlanner()` by default.
        process_group: the processes; None for all.
        no_dist: whether this process loads by itself.

    Raises:
        CheckpointException: something failed in some process; in all of them.
        RuntimeError: neither `checkpoint_id` nor `storage_reader` is given.
    """
    ranks = _ranks(process_group, no_dist, "load")
    if storage_reader is None:
        if not checkpoint_id:
            raise RuntimeError(NO_ID)
        storage_reader = FileSystemReader(checkpoint_id)
    own = {key: state_dict[key] for key in sorted(state_dict, key=str)}
    states = {
        key: value.state_dict() if isinstance(value, Stateful) else value
        for key, value in own.items()
    }
    _load(states, ranks, storage_reader, checkpoint_id, planner)
    for key, value in own.items():
        if isinstance(value, Stateful):
            value.load_state_dict(states[key])
        else:
            state_dict[key] = states[key]


def _load(state_dict: dict[str, Any], ranks: Ranks, reader: StorageReader,
          checkpoint_id: CheckpointId | None, planner: LoadPlanner | None) -> None:  # fmt: skip
    chosen = planner or DefaultLoadPlanner()
    reader.reset(checkpoint_id)

    def plan_own() -> LoadPlan:
        metadata = reader.read_metadata()
        chosen.set_up_planner(state_dict, metadata, ranks.is_coordinator)
        reader.set_up_storage_reader(metadata, ranks.is_coordinator)
        return reader.prepare_local_plan(chosen.create_local_plan())

    def plan_all(plans: list[LoadPlan]) -> list[LoadPlan]:
        return reader.prepare_global_plan(chosen.create_global_plan(plans))

    plan = ranks.give_each("plan", plan_own, plan_all)
    ranks.give_all(
        "read", lambda: reader.read_data(chosen.finish_plan(plan), chosen).wait(), lambda done: None
    )


def load_state_dict(state_dict: dict[str, Any], storage_reader: StorageReader,
                    process_group: Any = None, coordinator_rank: int = 0, no_dist: bool = False,
                    planner: LoadPlanner | None = None) -> None:  # fmt: skip
    """The older name of `load`."""
    warnings.warn(
        "'load_state_dict' is deprecated and will be removed in future versions. "
        "Please use 'load' instead.",
        FutureWarning, stacklevel=2,
    )  # fmt: skip
    _load_state_dict(state_dict, storage_reader, process_group, coordinator_rank, no_dist, planner)


def _load_state_dict(state_dict: dict[str, Any], storage_reader: StorageReader,
                     process_group: Any = None, coordinator_rank: int = 0, no_dist: bool = False,
                     planner: LoadPlanner | None = None) -> None:  # fmt: skip
    if coordinator_rank != 0:
        raise NotImplementedInFlambeau("load_state_dict(coordinator_rank=...)")
    _load(state_dict, Ranks(process_group, no_dist), storage_reader, None, planner)


def _load_state_dict_from_keys(keys: set[str] | str | None = None, *,
                               checkpoint_id: CheckpointId | None = None,
                               storage_reader: StorageReader | None = None,
                               process_group: Any = None) -> dict[str, Any]:  # fmt: skip
    """What was saved under `keys`, in a new dict; all of it by default."""
    if storage_reader is None:
        if not checkpoint_id:
            raise RuntimeError(NO_ID)
        storage_reader = FileSystemReader(checkpoint_id)
    state_dict: dict[str, Any] = {}
    ranks = _ranks(process_group, False, "load")
    _load(
        state_dict, ranks, storage_reader, checkpoint_id, _EmptyStateDictLoadPlanner(keys or None)
    )
    return state_dict
