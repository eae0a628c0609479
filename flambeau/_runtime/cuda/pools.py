"""Private pools: memory that is reused only among those who share it, such as graphs.

A graph writes to the same addresses in every replay, so nobody else may have them as long as it
lives; within one capture, and among graphs that share a pool, they are reused as always.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

from flambeau._runtime.cuda import memory
from flambeau._runtime.cuda.allocator import PoolId

_graphs = itertools.count(1)
_users = itertools.count(1)


def new() -> PoolId:
    """A pool that graphs may share: `torch.cuda.graph_pool_handle()`."""
    return (0, next(_graphs))


def new_user() -> PoolId:
    """A pool for `torch.cuda.MemPool`."""
    return (next(_users), 0)


def retain(device: int, pool: PoolId) -> None:
    """One more uses a pool."""
    uses = memory.allocator(device).uses
    uses[pool] = uses.get(pool, 0) + 1


def release(device: int, pool: PoolId) -> None:
    """One less uses a pool: after the last one, unused segments go back to the driver, when they
    are asked for."""
    owner = memory.allocator(device)
    owner.uses[pool] -= 1
    if not owner.uses[pool]:
        del owner.uses[pool]


@contextmanager
def routed(device: int, pool: PoolId) -> Iterator[None]:
    """Let this thread take memory of a device from a pool."""
    before = memory.Current.pools.get(device)
    retain(device, pool)
    memory.Current.set_pool(device, pool)
    try:
        yield
    finally:
        memory.Current.set_pool(device, before)
        release(device, pool)
