"""Saving: every process gives what it has, and writes what nobody else writes."""

from __future__ import annotations

import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from typing import Any

from flambeau._core.missing import NotImplementedInFlambeau
from flambeau.distributed import world
from flambeau.distributed.checkpoint.agreement import Ranks
from flambeau.distributed.checkpoint.default_planner import DefaultSavePlanner
from flambeau.distributed.checkpoint.filesystem import FileSystemWriter
from flambeau.distributed.checkpoint.metadata import Metadata
from flambeau.distributed.checkpoint.planner import SavePlan, SavePlanner
from flambeau.distributed.checkpoint.staging import AsyncStager, BlockingAsyncStager
from flambeau.distributed.checkpoint.stateful import Stateful
from flambeau.distributed.checkpoint.storage import CheckpointId, StorageWriter

NO_ID = "`checkpoint_id` must be specified if storage_reader/storage_writer is None."
ALONE = (
    "torch.distributed is disabled, unavailable or uninitialized, assuming the intent is to "
    "{} in a single process."
)


class AsyncCheckpointerType(Enum):
    """Where `async_save` writes: in a thread, or in a process."""

    THREAD = "thread"
    PROCESS = "process"


@dataclass
class AsyncSaveResponse:
    """Two Futures: the copy is made, and the checkpoint is whole."""

    staging_completion: Future[Any]
    upload_completion: Future[Any]


def save(state_dict: dict[str, Any], *, checkpoint_id: CheckpointId | None = None,
         storage_writer: StorageWriter | None = None, planner: SavePlanner | None = None,
         process_group: Any = None, no_dist: bool = False,
         use_collectives: bool = True) -> Metadata:  # fmt: skip
    """Save a nested state dict; all processes of the group have to call this.

    Tensors and objects that several processes have under one name are written once. Values with
    `state_dict` and `load_state_dict` are asked for their state.

    Args:
        checkpoint_id: the folder.
        storage_writer: what writes; `FileSystemWriter(checkpoint_id)` by default.
        planner: what decides who writes what; `DefaultSavePlanner()` by default.
        process_group: the processes; None for all.
        no_dist: whether this process saves by itself.
        use_collectives: True; nothing else is implemented.

    Raises:
        CheckpointException: something failed in some process; in all of them.
        RuntimeError: neither `checkpoint_id` nor `storage_writer` is given.

    >>> import flambeau as torch, tempfile
    >>> import flambeau.distributed.checkpoint as dcp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = dcp.save({"w": torch.ones(2), "step": 3}, checkpoint_id=folder, no_dist=True)
    ...     state = {"w": torch.zeros(2), "step": 0}
    ...     dcp.load(state, checkpoint_id=folder, no_dist=True)
    >>> state
    {'w': tensor([1., 1.]), 'step': 3}
    """
    if not use_collectives:
        raise NotImplementedInFlambeau("dcp.save(use_collectives=False) is not implemented")
    ranks = _ranks(process_group, no_dist, "save")
    writer = storage_writer or _writer_of(checkpoint_id)
    return _save(_states(state_dict), ranks, writer, checkpoint_id, planner)


def _ranks(group: Any, no_dist: bool, verb: str) -> Ranks:
    if not no_dist and not world.is_initialized():
        warnings.warn(ALONE.format(verb), stacklevel=3)
    return Ranks(group, no_dist)


def _writer_of(checkpoint_id: CheckpointId | None) -> StorageWriter:
    if not checkpoint_id:
        raise RuntimeError(NO_ID)
    return FileSystemWriter(checkpoint_id)


def _states(state_dict: dict[str, Any]) -> dict[str, Any]:
    """The values, and the states of those that know their own."""
    return {
        key: value.state_dict() if isinstance(value, Stateful) else value
        for key, value in state_dict.items()
    }


def _save(state_dict: dict[str, Any], ranks: Ranks, writer: StorageWriter,
          checkpoint_id: CheckpointId | None, planner: SavePlanner | None) -> Metadata:  # fmt: skip
    chosen = planner or DefaultSavePlanner()
    writer.reset(checkpoint_id)
    known: list[Metadata] = []

    def plan_own() -> SavePlan:
        storage_meta = writer.storage_meta()
        chosen.set_up_planner(state_dict, storage_meta, ranks.is_coordinator)
        writer.set_up_storage_writer(ranks.is_coordinator)
        return writer.prepare_local_plan(chosen.create_local_plan())

    def plan_all(plans: list[SavePlan]) -> list[SavePlan]:
        agreed, metadata = chosen.create_global_plan(plans)
        known.append(metadata)
        return writer.prepare_global_plan(agreed)

    def finish(results: list[Any]) -> Metadata:
        writer.finish(known[0], results)
        return known[0]

    plan = ranks.give_each("plan", plan_own, plan_all)
    return ranks.give_all(  # type: ignore[no-any-return]
        "write", lambda: writer.write_data(chosen.finish_plan(plan), chosen).wait(), finish
    )


def async_save(state_dict: dict[str, Any], *, checkpoint_id: CheckpointId | None = None,
               storage_writer: StorageWriter | None = None, planner: SavePlanner | None = None,
               process_group: Any = None,
               async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD,
               async_stager: AsyncStager | None = None, no_dist: bool = False,
               use_collectives: bool = True) -> Future[Metadata] | AsyncSaveResponse:  # fmt: skip
    """Copy a state dict, and save the copy in a thread while the program goes on.

    The thread talks to the others over a group of its own, which is made at the first call: all
    processes of `process_group` have to call this. One save has to be done before the next.

    Args:
        async_stager: what makes the copy; the storage writer by default.
        async_checkpointer_type: `THREAD`; processes are not implemented.

    Returns:
        A Future of the metadata; with a stager whose copies are Futures, an AsyncSaveResponse.

    Raises:
        What `save` raises, from `result()` of the Future.
    """
    if async_checkpointer_type is not AsyncCheckpointerType.THREAD or not use_collectives:
        raise NotImplementedInFlambeau("dcp.async_save in a process is not implemented")
    _ranks(process_group, no_dist, "save")
    writer = storage_writer or _writer_of(checkpoint_id)
    stager = async_stager or (writer if isinstance(writer, AsyncStager) else BlockingAsyncStager())
    group = None if no_dist else _group_of_savers(process_group)
    staged = stager.stage(_states(state_dict))
    pool = ThreadPoolExecutor(1, thread_name_prefix="async_save")

    def upload() -> Metadata:
        ready = staged.result() if isinstance(staged, Future) else staged
        ranks = Ranks(group, no_dist or group is None)
        return _save(ready, ranks, writer, checkpoint_id, planner)

    saved = pool.submit(upload)
    pool.shutdown(wait=False)
    return AsyncSaveResponse(staged, saved) if isinstance(staged, Future) else saved


_SAVERS: dict[int, tuple[Any, Any]] = {}
"""For each group, by its identity: the group, and the one over which its savers talk."""


def _group_of_savers(group: Any) -> Any:
    """A group of the same processes, which only asynchronous saves use."""
    if not world.is_initialized():
        return None
    given = world.the_group(group)
    known = _SAVERS.get(id(given))
    if known is None or known[0] is not given:
        made = world.new_group(given._ranks, use_local_synchronization=True, group_desc="savers")
        known = _SAVERS[id(given)] = given, made
    return known[1]


def save_state_dict(state_dict: dict[str, Any], storage_writer: StorageWriter,
                    process_group: Any = None, coordinator_rank: int = 0, no_dist: bool = False,
                    planner: SavePlanner | None = None) -> Metadata:  # fmt: skip
    """The older name of `save`."""
    warnings.warn(
        "'save_state_dict' is deprecated and will be removed in future versions."
        "Please use 'save' instead.",
        FutureWarning, stacklevel=2,
    )  # fmt: skip
    if coordinator_rank != 0:
        raise NotImplementedInFlambeau("save_state_dict(coordinator_rank=...)")
    ranks = Ranks(process_group, no_dist)
    return _save(_states(state_dict), ranks, storage_writer, None, planner)
