"""The planners that are used where nobody gives others."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Collection
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.distributed.checkpoint import flat_names
from flambeau.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorStorageMetadata,
)
from flambeau.distributed.checkpoint.pieces import (
    cover_exactly,
    is_in_parts,
    narrowed,
    part_of,
    read_items,
    write_items,
)
from flambeau.distributed.checkpoint.planner import (
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
    WriteItemType,
)
from flambeau.serialization.api import load, save


class DefaultSavePlanner(SavePlanner):
    """Writes nested state dicts under flat names, what several processes have once only.

    Args:
        flatten_state_dict: whether nested dicts become flat names.
        flatten_sharded_tensors: without meaning here.
        dedup_replicated_tensors: without meaning, as in PyTorch.
        dedup_save_to_lowest_rank: whether what several have is written by the first of them, and
            not by the one that has the least to write.
        enable_plan_caching: without meaning here; plans are made each time.
    """

    def __init__(self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True,
                 dedup_replicated_tensors: bool | None = None,
                 dedup_save_to_lowest_rank: bool = False,
                 enable_plan_caching: bool = False) -> None:  # fmt: skip
        self.flatten_state_dict = flatten_state_dict
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank
        self.state_dict: dict[str, Any] = {}
        self.mappings: dict[str, flat_names.Path] = {}
        self.is_coordinator = False

    def set_up_planner(self, state_dict: dict[str, Any], storage_meta: StorageMeta | None = None,
                       is_coordinator: bool = False) -> None:  # fmt: skip
        """Take the state dict that will be saved.

        Raises:
            ValueError: two values have the same flat name.
        """
        self.state_dict = state_dict
        if self.flatten_state_dict:
            self.state_dict, self.mappings = flat_names.flatten(state_dict)
        self.is_coordinator = is_coordinator

    def create_local_plan(self) -> SavePlan:
        """Everything that this process has."""
        plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        if self.flatten_state_dict:
            plan = dataclasses.replace(plan, planner_data=self.mappings)
        return plan

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """Each thing once.

        Raises:
            ValueError: the pieces of a tensor overlap, or leave something out.
        """
        paths = {
            name: path for plan in all_plans for name, path in (plan.planner_data or {}).items()
        }
        plans = without_repetitions(all_plans, self.dedup_save_to_lowest_rank)
        plans, metadata = create_default_global_save_plan(plans)
        if self.flatten_state_dict:
            metadata = dataclasses.replace(metadata, planner_data=paths)
        for name, saved in metadata.state_dict_metadata.items():
            if not isinstance(saved, TensorStorageMetadata):
                continue
            if not cover_exactly(saved.size, saved.chunks):
                raise ValueError(f"Failed to validate global plan: the pieces of {name}")
        return plans, metadata

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """The plan as it is."""
        return new_plan

    def resolve_data(self, write_item: WriteItem) -> Tensor | io.BytesIO:
        """A tensor, or an object's pickle in a stream."""
        return self.transform_object(write_item, self.lookup_object(write_item.index))

    def lookup_object(self, index: MetadataIndex) -> Any:
        """The value, or the piece of a tensor, that a name stands for."""
        return part_of(self.state_dict[index.fqn], index)

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        """What is written for a value; for classes that write something else."""
        if write_item.type is not WriteItemType.BYTE_IO:
            return object
        stream = io.BytesIO()
        save(object, stream)
        stream.seek(0)
        return stream


class DefaultLoadPlanner(LoadPlanner):
    """Fills a state dict in place: tensors keep their memory, other values are replaced.

    Objects are unpickled as `torch.load(weights_only=True)` does it: classes of the program have to
    be named to `torch.serialization.add_safe_globals`.

    Args:
        flatten_state_dict: whether nested dicts become flat names.
        flatten_sharded_tensors: without meaning here.
        allow_partial_load: whether names that were not saved stay as they are.
    """

    def __init__(self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True,
                 allow_partial_load: bool = False) -> None:  # fmt: skip
        self.flatten_state_dict = flatten_state_dict
        self.allow_partial_load = allow_partial_load
        self.original_state_dict: dict[str, Any] = {}
        self.state_dict: dict[str, Any] = {}
        self.mappings: dict[str, flat_names.Path] = {}
        self.metadata: Metadata | None = None
        self.is_coordinator = False

    def set_up_planner(self, state_dict: dict[str, Any], metadata: Metadata | None = None,
                       is_coordinator: bool = False) -> None:  # fmt: skip
        """Take the state dict that will be filled.

        Raises:
            ValueError: two values have the same flat name.
        """
        self.original_state_dict = self.state_dict = state_dict
        if self.flatten_state_dict:
            self.state_dict, self.mappings = flat_names.flatten(state_dict)
        self.metadata, self.is_coordinator = metadata, is_coordinator

    def create_local_plan(self) -> LoadPlan:
        """Everything that the state dict names.

        Raises:
            RuntimeError: something was not saved. ValueError: it has another size, or is no tensor.
        """
        if self.metadata is None:
            raise AssertionError("metadata is None")
        strict = not self.allow_partial_load
        return create_default_local_load_plan(self.state_dict, self.metadata, strict)

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """The plans as they are."""
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, new_plan: LoadPlan) -> LoadPlan:
        """The plan as it is."""
        return new_plan

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Put an object into the state dict."""
        name = read_item.dest_index.fqn
        loaded = load(value, weights_only=True)
        self.state_dict[name] = loaded
        if self.flatten_state_dict:
            flat_names.put(self.original_state_dict, self.mappings[name], loaded)

    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        """The part of a tensor that is filled."""
        tensor = self.lookup_tensor(read_item.dest_index)
        return self.transform_tensor(read_item, tensor)

    def commit_tensor(self, read_item: ReadItem, tensor: Tensor) -> None:
        """The tensor is filled; nothing is left to do."""

    def lookup_tensor(self, index: MetadataIndex) -> Tensor:
        """The tensor, or the piece of it, that a name stands for."""
        return part_of(self.state_dict[index.fqn], index)

    def transform_tensor(self, read_item: ReadItem, tensor: Tensor) -> Tensor:
        """The part of a tensor that an item fills; for classes that fill something else."""
        return narrowed(tensor.detach(), read_item.dest_offsets, read_item.lengths)


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Makes the state dict of what was saved, all of it or what the `keys` name."""

    def __init__(self, keys: Collection[str] | str | None = None, *args: Any,
                 **kwargs: Any) -> None:  # fmt: skip
        super().__init__(*args, **kwargs)
        self.keys = [keys] if isinstance(keys, str) else keys

    def set_up_planner(self, state_dict: dict[str, Any], metadata: Metadata | None = None,
                       is_coordinator: bool = False) -> None:  # fmt: skip
        """Take the dict that will be filled.

        Raises:
            AssertionError: it is not empty.
        """
        if state_dict:
            raise AssertionError("the state dict has to be empty")
        if metadata is None:
            raise AssertionError("metadata is None")
        for name, saved in metadata.state_dict_metadata.items():
            if not self._is_asked_for(name):
                continue
            value: Any = None
            if isinstance(saved, TensorStorageMetadata):
                value = ops.empty(saved.size, dtype=saved.properties.dtype)
            flat_names.put(state_dict, _path_of(name, metadata), value)
        super().set_up_planner(state_dict, metadata, is_coordinator)

    def _is_asked_for(self, name: str) -> bool:
        if self.keys is None:
            return True
        return any(name == key or name.startswith(f"{key}.") for key in self.keys)


def _path_of(name: str, metadata: Metadata) -> flat_names.Path:
    return (metadata.planner_data or {}).get(name, (name,))  # type: ignore[no-any-return]


def create_default_local_save_plan(state_dict: dict[str, Any], is_coordinator: bool) -> SavePlan:
    """Everything in a flat state dict."""
    return SavePlan(
        [item for name, value in state_dict.items() for item in write_items(name, value)]
    )


def without_repetitions(plans: list[SavePlan], first_writes: bool) -> list[SavePlan]:
    """Plans in which each thing is written once, by who has the least to write (or is first)."""
    owners: dict[MetadataIndex, list[int]] = {}
    items: dict[MetadataIndex, WriteItem] = {}
    for rank, plan in enumerate(plans):
        for item in plan.items:
            owners.setdefault(item.index, []).append(rank)
            items.setdefault(item.index, item)
    loads = [0] * len(plans)
    for index, ranks in owners.items():
        if len(ranks) == 1:
            loads[ranks[0]] += items[index].tensor_storage_size() or 0
    chosen = {}
    for index, ranks in owners.items():
        rank = ranks[0] if first_writes else min(ranks, key=loads.__getitem__)
        chosen[index] = rank
        if len(ranks) > 1:
            loads[rank] += items[index].tensor_storage_size() or 0
    return [
        dataclasses.replace(plan, items=[item for item in plan.items if chosen[item.index] == rank])
        for rank, plan in enumerate(plans)
    ]


def create_default_global_save_plan(
    all_plans: list[SavePlan], rewrite_index_hints: bool = True
) -> tuple[list[SavePlan], Metadata]:
    """The plans, and what they will have saved.

    `rewrite_index_hints`: whether names of pieces say where they are in the list of the pieces.

    Raises:
        ValueError: two processes have tensors of other types or sizes under one name.
    """
    saved: dict[str, Any] = {}
    plans = []
    for plan in all_plans:
        items = [_noted(item, saved, rewrite_index_hints) for item in plan.items]
        plans.append(dataclasses.replace(plan, items=items))
    return plans, Metadata(saved)


def _noted(item: WriteItem, saved: dict[str, Any], rewrite: bool) -> WriteItem:
    """Note an item among what is saved."""
    name, data = item.index.fqn, item.tensor_data
    if data is None:
        saved[name] = BytesStorageMetadata()
        return item
    entry = saved.setdefault(name, TensorStorageMetadata(data.properties, data.size, []))
    if not isinstance(entry, TensorStorageMetadata) or entry.size != data.size:
        raise ValueError(f"processes have different things under the name {name}")
    entry.chunks.append(data.chunk)
    if not rewrite:
        return item
    return dataclasses.replace(
        item, index=dataclasses.replace(item.index, index=len(entry.chunks) - 1)
    )


def create_default_local_load_plan(state_dict: dict[str, Any], metadata: Metadata,
                                   strict: bool = True) -> LoadPlan:  # fmt: skip
    """What fills a flat state dict.

    Raises:
        RuntimeError: something was not saved, and `strict`. ValueError: it has another size, or is
            no tensor.
    """
    items: list[ReadItem] = []
    for name, value in state_dict.items():
        saved = metadata.state_dict_metadata.get(name)
        if saved is None:
            if strict:
                raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
            continue
        _check_size(name, saved, value)
        items += read_items(name, saved, value)
    return LoadPlan(items)


def _check_size(name: str, saved: Any, value: Any) -> None:
    is_tensor = is_in_parts(value) or isinstance(value, Tensor)
    if not isinstance(saved, TensorStorageMetadata) or not is_tensor:
        return
    if saved.size != value.size():
        raise ValueError(
            f"Size mismatch between saved {saved.size} and current: {value.size()} for {name}"
        )


def create_default_global_load_plan(all_plans: list[LoadPlan]) -> list[LoadPlan]:
    """The plans as they are."""
    return all_plans
