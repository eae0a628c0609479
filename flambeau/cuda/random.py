"""`torch.cuda.random`: the random streams of GPUs, under PyTorch's name of the file."""

from __future__ import annotations

from typing import Any

from flambeau.cuda import (
    get_rng_state_all,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state_all,
)

__all__ = ["get_rng_state_all", "manual_seed", "manual_seed_all", "seed", "seed_all",
           "set_rng_state_all"]  # fmt: skip


def __getattr__(name: str) -> Any:
    import flambeau.cuda

    return getattr(flambeau.cuda, name)
