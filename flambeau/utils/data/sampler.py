"""Samplers: the order in which a loader asks for samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import Any, Generic, TypeVar

from flambeau._ops.table.namespace import ops

T_co = TypeVar("T_co", covariant=True)


class Sampler(Generic[T_co]):
    """The base of all samplers: iterable over indices, or over lists of them.

    >>> import flambeau as torch
    >>> class Backwards(torch.utils.data.Sampler):
    ...     def __init__(self, data):
    ...         self.data = data
    ...     def __len__(self):
    ...         return len(self.data)
    ...     def __iter__(self):
    ...         return iter(reversed(range(len(self.data))))
    >>> data = [10, 20, 30]
    >>> list(torch.utils.data.DataLoader(data, sampler=Backwards(data), batch_size=3))
    [tensor([30, 20, 10])]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """0, 1, 2, … up to the length of the data.

    >>> import flambeau as torch
    >>> list(torch.utils.data.SequentialSampler(range(3)))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


def random_seed(generator: Any = None) -> int:
    """A number from the random stream, to seed another one with."""
    return int(ops.empty((), dtype=_int64()).random_(generator=generator).item())


def _int64() -> Any:
    from flambeau._core.dtype import int64

    return int64


DRAWN_AT_ONCE = 32
"""How many indices are drawn together with replacement; part of what a seed means."""


class RandomSampler(Sampler[int]):
    """Indices in random order; `num_samples` of them (default: one for each sample).

    Without `generator` the order comes from a seed drawn from the global stream when iteration
    starts. More than one round without replacement goes through all samples in each round.

    Raises:
        TypeError: `replacement` is not a bool.
        ValueError: `num_samples` is not a positive integer.

    >>> import flambeau as torch
    >>> sorted(torch.utils.data.RandomSampler(range(3)))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized, replacement: bool = False,
                 num_samples: int | None = None, generator: Any = None) -> None:  # fmt: skip
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(
                "num_samples should be a positive integer value, "
                f"but got num_samples={self.num_samples}"
            )

    @property
    def num_samples(self) -> int:
        """How many indices an iteration gives; the length of the data, if not given."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        count = len(self.data_source)
        generator = self.generator
        if generator is None:
            from flambeau._ops.random.draws import Generator

            generator = Generator()
            generator.manual_seed(random_seed())
        rounds = self._drawn if self.replacement else self._shuffled
        yield from rounds(count, generator)

    def _drawn(self, count: int, generator: Any) -> Iterator[int]:
        whole, rest = divmod(self.num_samples, DRAWN_AT_ONCE)
        for size in (*[DRAWN_AT_ONCE] * whole, rest):
            yield from ops.randint(0, count, (size,), generator=generator).tolist()

    def _shuffled(self, count: int, generator: Any) -> Iterator[int]:
        whole, rest = divmod(self.num_samples, count)
        for size in (*[count] * whole, rest):
            yield from ops.randperm(count, generator=generator).tolist()[:size]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Some indices in random order, each once.

    >>> import flambeau as torch
    >>> sorted(torch.utils.data.SubsetRandomSampler([4, 2]))
    [2, 4]
    """

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for place in ops.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[place]

    def __len__(self) -> int:
        return len(self.indices)


def _positive(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with probabilities proportional to `weights`, one for each sample.

    weights: numbers of 0 and more; they need not sum to 1.
    num_samples: how many indices a pass gives, whatever the length of the dataset.
    replacement: whether an index may come more than once in a pass.
    generator: where the random numbers come from; the global stream if not given.

    Raises:
        ValueError: wrong `num_samples` or `replacement`, or weights that are no vector.

    >>> import flambeau as torch
    >>> list(torch.utils.data.WeightedRandomSampler([0.0, 1.0], 3))
    [1, 1, 1]
    """

    def __init__(self, weights: Sequence[float], num_samples: int, replacement: bool = True,
                 generator: Any = None) -> None:  # fmt: skip
        if not _positive(num_samples):
            raise ValueError(
                f"num_samples should be a positive integer value, but got num_samples={num_samples}"
            )
        if not isinstance(replacement, bool):
            raise ValueError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        self.weights = ops.as_tensor(weights, dtype=_float64())
        if self.weights.ndim != 1:
            raise ValueError(
                "weights should be a 1d sequence but given "
                f"weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = ops.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


def _float64() -> Any:
    from flambeau._core.dtype import float64

    return float64


class BatchSampler(Sampler[list[int]]):
    """The indices of a sampler in lists of `batch_size`; the last may be shorter, or dropped.

    Raises:
        ValueError: `batch_size` is not a positive integer, or `drop_last` no bool.

    >>> import flambeau as torch
    >>> list(torch.utils.data.BatchSampler(range(5), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        if not _positive(batch_size):
            raise ValueError(
                f"batch_size should be a positive integer value, but got batch_size={batch_size}"
            )
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(islice(indices, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
