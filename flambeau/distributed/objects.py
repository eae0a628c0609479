"""Collectives of Python objects, which are pickled.

Unpickling runs what the sender wished: these functions are for processes that trust one another.
Their connections have proved that they hold the program's secret.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from flambeau._tensor.tensor import Tensor, wrap
from flambeau.distributed import collectives, messages
from flambeau.distributed.world import (
    get_global_rank,
    get_group_rank,
    is_outside,
    the_group,
    warn_outside,
)


def _pickled(value: Any) -> np.ndarray:
    return np.frombuffer(bytearray(pickle.dumps(value)), np.uint8)


def _unpickled(data: np.ndarray) -> Any:
    return pickle.loads(data.tobytes())  # noqa: S301  from a process that holds the secret


def _sizes_of_all(own: int, group: Any) -> list[int]:
    size = the_group(group).size()
    sizes = wrap(np.zeros(size, np.int64))
    collectives.all_gather_into_tensor(sizes, wrap(np.array([own], np.int64)), group)
    return [int(each) for each in sizes._data]


def _padded(data: np.ndarray, length: int) -> Tensor:
    padded = np.zeros(length, np.uint8)
    padded[: data.size] = data
    return wrap(padded)


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """The objects of all into the lists of all. It pickles and unpickles."""
    if is_outside(group):
        return warn_outside("all_gather_object")
    data = _pickled(obj)
    sizes = _sizes_of_all(data.size, group)
    longest = max(sizes)
    outputs = [wrap(np.zeros(longest, np.uint8)) for _ in sizes]
    collectives.all_gather(outputs, _padded(data, longest), group)
    for rank, (output, size) in enumerate(zip(outputs, sizes, strict=True)):
        object_list[rank] = _unpickled(output._data[:size])
    return None


def gather_object(obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None,
                  group: Any = None, group_dst: int | None = None) -> None:  # fmt: skip
    """The objects of all into the list of rank `dst`. It pickles and unpickles."""
    if is_outside(group):
        return warn_outside("gather_object")
    team = the_group(group)
    root = collectives._root("gather", team, dst, group_dst, default=0)
    is_root = team.rank() == root
    if is_root and object_gather_list is None:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    data = _pickled(obj)
    sizes = _sizes_of_all(data.size, group)
    longest = max(sizes)
    outputs = [wrap(np.zeros(longest, np.uint8)) for _ in sizes] if is_root else None
    collectives.gather(_padded(data, longest), outputs, group=group, group_dst=root)
    if outputs is not None and object_gather_list is not None:
        for rank, (output, size) in enumerate(zip(outputs, sizes, strict=True)):
            object_gather_list[rank] = _unpickled(output._data[:size])
    return None


def broadcast_object_list(object_list: list[Any], src: int | None = None, group: Any = None,
                          device: Any = None, group_src: int | None = None) -> None:  # fmt: skip
    """The objects in the list of rank `src` into the lists of all. It pickles and unpickles."""
    if is_outside(group):
        return warn_outside("broadcast_object_list")
    team = the_group(group)
    root = collectives._root("broadcast", team, src, group_src, default=0)
    is_root = team.rank() == root
    data = [_pickled(each) for each in object_list] if is_root else []
    sizes = wrap(np.array([each.size for each in data] or [0] * len(object_list), np.int64))
    collectives.broadcast(sizes, group=group, group_src=root)
    total = int(sizes._data.sum())
    joined = wrap(np.concatenate(data) if data else np.zeros(total, np.uint8))
    collectives.broadcast(joined, group=group, group_src=root)
    if not is_root:
        _unpack(object_list, joined._data, sizes._data)
    return None


def _unpack(into: list[Any], data: np.ndarray, sizes: np.ndarray) -> None:
    at = 0
    for index, size in enumerate(sizes):
        into[index] = _unpickled(data[at : at + int(size)])
        at += int(size)


def scatter_object_list(scatter_object_output_list: list[Any],
                        scatter_object_input_list: list[Any] | None = None,
                        src: int | None = None, group: Any = None,
                        group_src: int | None = None) -> None:  # fmt: skip
    """One object of the list of rank `src` to each, first in its list. It pickles and unpickles."""
    if is_outside(group):
        return warn_outside("scatter_object_list")
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError(
            "Expected argument scatter_object_output_list to be a list of size at least 1."
        )
    team = the_group(group)
    root = collectives._root("scatter", team, src, group_src, default=0)
    data = None
    if team.rank() == root:
        if scatter_object_input_list is None:
            raise ValueError("source rank must provide non-None scatter_object_input_list")
        data = [_pickled(each) for each in scatter_object_input_list]
    longest = wrap(np.array([max((each.size for each in data or []), default=0)], np.int64))
    collectives.broadcast(longest, group=group, group_src=root)
    length = int(longest._data[0])
    own = wrap(np.zeros(length, np.uint8))
    size = wrap(np.zeros(1, np.int64))
    inputs = None if data is None else [_padded(each, length) for each in data]
    sizes = None if data is None else [wrap(np.array([each.size], np.int64)) for each in data]
    collectives.scatter(own, inputs, group=group, group_src=root)
    collectives.scatter(size, sizes, group=group, group_src=root)
    scatter_object_output_list[0] = _unpickled(own._data[: int(size._data[0])])
    return None


def send_object_list(object_list: list[Any], dst: int | None = None, group: Any = None,
                     device: Any = None, group_dst: int | None = None,
                     use_batch: bool = False) -> None:  # fmt: skip
    """Send objects to a rank. It pickles."""
    if is_outside(group):
        return warn_outside("send_object_list")
    data = [_pickled(each) for each in object_list]
    sizes = wrap(np.array([each.size for each in data], np.int64))
    messages.send(sizes, dst, group, group_dst=group_dst)
    messages.send(wrap(np.concatenate(data)), dst, group, group_dst=group_dst)
    return None


def recv_object_list(object_list: list[Any], src: int | None = None, group: Any = None,
                     device: Any = None, group_src: int | None = None,
                     use_batch: bool = False) -> int:  # fmt: skip
    """Receive objects from a rank, or from any: the rank of the sender. It unpickles."""
    if is_outside(group):
        warn_outside("recv_object_list")
        return -1
    sizes = wrap(np.zeros(len(object_list), np.int64))
    sender = messages.recv(sizes, src, group, group_src=group_src)
    team = the_group(group)
    joined = wrap(np.zeros(int(sizes._data.sum()), np.uint8))
    messages.recv(joined, None, group, group_src=get_group_rank(team, sender))
    _unpack(object_list, joined._data, sizes._data)
    return get_global_rank(team, get_group_rank(team, sender))
