"""`torch.cuda.random`: the random streams of GPUs.

Without a GPU seeds are taken and forgotten, as in PyTorch's build for the CPU, where they wait for
the first use of a device, which never comes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flambeau._core.device import Cuda
from flambeau._core.missing import lazily
from flambeau.cuda.started import init

__all__ = ["get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed", "manual_seed_all",
           "seed", "seed_all", "set_rng_state", "set_rng_state_all"]  # fmt: skip


def _streams() -> Any:
    from flambeau._ops.cuda import generators

    return generators


def manual_seed(seed: int) -> None:
    """Start the current device's stream anew."""
    seed = int(seed)
    if Cuda.devices():
        _streams().manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Start all devices' streams anew."""
    seed = int(seed)
    if Cuda.devices():
        _streams().manual_seed_all(seed)


def seed() -> None:
    """Start the current device's stream from the system's randomness."""
    if Cuda.devices():
        _streams().seed()


def seed_all() -> None:
    """Start all devices' streams from one seed of the system's randomness."""
    if Cuda.devices():
        _streams().seed_all()


def initial_seed() -> int:
    """The seed that the current device's stream was started with."""
    init()
    return int(_streams().initial_seed())


def get_rng_state(device: Any = "cuda") -> Any:
    """The state of a device's stream, a uint8 tensor on the CPU."""
    init()
    return _streams().get_rng_state(device)


def get_rng_state_all() -> list[Any]:
    """The states of all devices' streams."""
    return list(_streams().get_rng_state_all()) if Cuda.devices() else []


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Continue a device's stream from a state; without a GPU the state waits for one."""
    if Cuda.devices():
        _streams().set_rng_state(new_state, device)


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Continue every device's stream from its state; without a GPU a state waits for one."""
    if Cuda.devices():
        _streams().set_rng_state_all(new_states)


__getattr__ = lazily(__name__)
