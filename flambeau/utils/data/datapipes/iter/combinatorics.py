"""`Sampler` and `Shuffler`: another order."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Self

from flambeau.utils.data.datapipes._decorator import functional_datapipe
from flambeau.utils.data.datapipes.datapipe import IterDataPipe
from flambeau.utils.data.sampler import SequentialSampler

__all__ = ["SamplerIterDataPipe", "ShufflerIterDataPipe"]


class SamplerIterDataPipe(IterDataPipe):
    """What a sampler over a pipe gives; SequentialSampler by default, which gives positions."""

    def __init__(self, datapipe: IterDataPipe, sampler: Any = SequentialSampler,
                 sampler_args: tuple[Any, ...] | None = None,
                 sampler_kwargs: dict[str, Any] | None = None) -> None:  # fmt: skip
        args, kwargs = sampler_args or (), sampler_kwargs or {}
        self.datapipe, self.sampler_args, self.sampler_kwargs = datapipe, args, kwargs
        self.sampler = sampler(*args, **kwargs, data_source=datapipe)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.sampler)

    def __len__(self) -> int:
        return len(self.sampler)


class Shuffling(IterDataPipe):
    """A pipe in random order: the seed of a pass is drawn from the default stream, unless
    `set_seed` gave one for it."""

    def __init__(self) -> None:
        super().__init__()
        self._rng, self._enabled = random.Random(), True
        self._seed: int | None = None

    def set_shuffle(self, shuffle: bool = True) -> Self:
        """Shuffle, or leave the order as it is."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> Self:
        """The seed of the next pass."""
        self._seed = seed
        return self

    def _begin(self) -> None:
        self._rng.seed(_new_seed() if self._seed is None else self._seed)
        self._seed = None


def _new_seed() -> int:
    from flambeau._core.dtype import int64
    from flambeau._ops.table.namespace import ops

    return int(ops.empty((), dtype=int64).random_().item())


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(Shuffling):
    """Items in random order, as far as `buffer_size` of them allow."""

    def __init__(self, datapipe: IterDataPipe, *, buffer_size: int = 10000,
                 unbatch_level: int = 0) -> None:  # fmt: skip
        super().__init__()
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        if unbatch_level:
            datapipe = datapipe.unbatch(unbatch_level)
        self.datapipe, self.buffer_size = datapipe, buffer_size
        self._buffer: list[Any] = []

    def reset(self) -> None:
        """Begin with an empty buffer and a seed."""
        self._buffer = []
        if self._enabled:
            self._begin()

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            yield from self.datapipe
            return
        buffer, draw = self._buffer, self._rng.randint
        for item in self.datapipe:
            if len(buffer) < self.buffer_size:
                buffer.append(item)
                continue
            place = draw(0, len(buffer) - 1)
            chosen, buffer[place] = buffer[place], item
            yield chosen
        while buffer:
            yield buffer.pop(draw(0, len(buffer) - 1))

    def __len__(self) -> int:
        return len(self.datapipe)  # type: ignore[arg-type]

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_buffer": []}
