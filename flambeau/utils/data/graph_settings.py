"""Settings of all pipes of a graph: shares of readers, shuffling, seeds."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

from flambeau.utils.data.datapipes.iter.combinatorics import ShufflerIterDataPipe
from flambeau.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES
from flambeau.utils.data.graph import Graph, traverse_dps

__all__ = [
    "apply_random_seed", "apply_sharding", "apply_shuffle_seed", "apply_shuffle_settings",
    "get_all_graph_pipes",
]  # fmt: skip

ADDED = (
    "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at the "
    "end. Be aware that the default buffer size might not be sufficient for your task."
)
TWICE = (
    "Sharding twice on a single pipeline is likely unintended and will cause data loss. Sharding "
    "already applied to {} while trying to apply to {}"
)


def get_all_graph_pipes(graph: Graph) -> list[Any]:
    """Every pipe of a graph once, readers before what they read."""
    found: dict[int, Any] = {}
    for number, (pipe, below) in graph.items():
        found.setdefault(number, pipe)
        for one in get_all_graph_pipes(below):
            found.setdefault(id(one), one)
    return list(found.values())


def apply_sharding(datapipe: Any, num_of_instances: int, instance_id: int,
                   sharding_group: Any = SHARDING_PRIORITIES.DEFAULT) -> Any:  # fmt: skip
    """Tell the pipes that can share which of so many readers this one is.

    RuntimeError if one of them reads another.
    """
    _shard(traverse_dps(datapipe), (num_of_instances, instance_id, sharding_group), None)
    return datapipe


def _shard(graph: Graph, told: tuple[Any, ...], above: Any) -> None:
    for pipe, below in graph.values():
        applied = above
        if callable(getattr(pipe, "apply_sharding", None)):
            if above is not None:
                raise RuntimeError(TWICE.format(above, pipe))
            takes = len(inspect.signature(pipe.apply_sharding).parameters)
            pipe.apply_sharding(*told[: max(takes, 2)])
            applied = pipe
        _shard(below, told, applied)


def _is_shuffle_datapipe(pipe: Any) -> bool:
    return all(callable(getattr(pipe, name, None)) for name in ("set_shuffle", "set_seed"))


def apply_shuffle_settings(datapipe: Any, shuffle: bool | None = None) -> Any:
    """Let the pipes that shuffle do so, or not; where none does, one is put at the end."""
    if shuffle is None:
        return datapipe
    shufflers = [p for p in get_all_graph_pipes(traverse_dps(datapipe)) if _is_shuffle_datapipe(p)]
    if not shufflers and shuffle:
        warnings.warn(ADDED, stacklevel=2)
        datapipe = ShufflerIterDataPipe(datapipe)
        shufflers = [datapipe]
    for one in shufflers:
        one.set_shuffle(shuffle)
    return datapipe


def apply_random_seed(datapipe: Any, rng: Any) -> Any:
    """Give each pipe that draws a seed from a generator."""
    from flambeau._core.dtype import int64
    from flambeau._ops.table.namespace import ops

    for pipe in get_all_graph_pipes(traverse_dps(datapipe)):
        if callable(getattr(pipe, "set_seed", None)):
            pipe.set_seed(int(ops.empty((), dtype=int64).random_(generator=rng).item()))
    return datapipe


def apply_shuffle_seed(datapipe: Any, rng: Any) -> Any:
    """The older name of `apply_random_seed`, which warns."""
    warnings.warn("`apply_shuffle_seed` is deprecated since 1.12 and will be removed in the future "
                  "releases.\nPlease use `apply_random_seed` instead.", FutureWarning,
                  stacklevel=2)  # fmt: skip
    return apply_random_seed(datapipe, rng)
