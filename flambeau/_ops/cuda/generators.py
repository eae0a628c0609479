"""Random streams of emulated GPUs: each has one of its own, whose numbers are an H100's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flambeau._core.device import Cuda, check_available, device
from flambeau._core.generator import default_generator
from flambeau._ops.random.cuda_generator import CudaGenerator
from flambeau._ops.random.draws import Generator
from flambeau._tensor.tensor import Tensor, provides

default_generators: list[CudaGenerator] = []


@provides("cuda_stream")
def stream_of(place: device) -> Generator:
    """The default stream of a device."""
    return default_generators[place.index or 0]


@provides("cuda_streams")
def streams() -> list[CudaGenerator]:
    """The default streams of all devices."""
    return default_generators


def start() -> None:
    """Give every emulated device its stream, with the seed of the CPU's."""
    Generator.of_device["cuda"] = CudaGenerator
    for index in range(Cuda.devices()):
        stream = CudaGenerator(device("cuda", index))
        stream.manual_seed(default_generator.initial_seed())
        default_generators.append(stream)


@provides("check_stream")
def check_device(stream: Any, place: str | None) -> None:
    """Raise torch's error for a stream that is given to an operator of another kind of device."""
    wanted = device(place or "cpu").type
    if stream.device.type != wanted:
        raise RuntimeError(
            f"Expected a '{wanted}' device type for generator but found '{stream.device.type}'"
        )


def _of(which: Any) -> CudaGenerator:
    wanted = device("cuda", which) if isinstance(which, int) else device(which)
    return default_generators[check_available(wanted).index or 0]


def get_rng_state(device: Any = "cuda") -> Tensor:
    """The state of a device's stream, a uint8 tensor on the CPU."""
    return _of(device).get_state()  # type: ignore[no-any-return]


def get_rng_state_all() -> list[Tensor]:
    """The states of all devices' streams."""
    return [stream.get_state() for stream in default_generators]


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Continue a device's stream from a state."""
    _of(device).set_state(new_state)


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Continue every device's stream from its state."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def manual_seed(seed: int) -> None:
    """Start the current device's stream anew."""
    default_generators[Cuda.current].manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Start all devices' streams anew."""
    for stream in default_generators:
        stream.manual_seed(int(seed))


def seed() -> None:
    """Start the current device's stream from the system's randomness."""
    default_generators[Cuda.current].seed()


def seed_all() -> None:
    """Start all devices' streams from one seed of the system's randomness."""
    manual_seed_all(default_generators[0].seed())


def initial_seed() -> int:
    """The seed that the current device's stream was started with."""
    return default_generators[Cuda.current].initial_seed()
