"""`torch.random`: the default random stream, and putting streams back after a block."""

from __future__ import annotations

from typing import Any

from flambeau._core.generator import default_generator, of_thread
from flambeau._ops.random.draws import get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from flambeau._ops.random.forked_streams import fork_rng

__all__ = [
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
    "thread_safe_generator",
]


def thread_safe_generator() -> Any:
    """The random stream of the calling thread if it is a worker of a DataLoader, else None: the
    default stream."""
    return of_thread.generator
