"""Datasets: what has samples by index, or one after the other."""

from __future__ import annotations

import itertools
import math
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Samples by index: subclasses define `__getitem__`, and `__len__` if they know it.

    A subclass with `__getitems__(indices)`, which returns a list of samples, is asked for all
    samples of a batch at once.

    >>> import flambeau as torch
    >>> class Squares(torch.utils.data.Dataset):
    ...     def __len__(self):
    ...         return 4
    ...     def __getitem__(self, index):
    ...         return index ** 2
    >>> list(torch.utils.data.DataLoader(Squares(), batch_size=2))
    [tensor([0, 1]), tensor([4, 9])]
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """Samples one after the other: subclasses define `__iter__`.

    Every worker iterates over a copy of its own, so `__iter__` has to choose the samples that are
    this worker's (`get_worker_info`); samples that several workers give are reported.

    >>> import flambeau as torch
    >>> class Count(torch.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(3))
    >>> list(torch.utils.data.DataLoader(Count(), batch_size=2))
    [tensor([0, 1]), tensor([2])]
    """

    def __add__(self, other: Dataset[Any]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Tensors of one length; sample i is the tuple of their elements i along the first dim.

    >>> import flambeau as torch
    >>> torch.utils.data.TensorDataset(torch.arange(3), torch.ones(3, 2))[1]
    (tensor(1), tensor([1., 1.]))
    """

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensor.size(0) != tensors[0].size(0) for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple([tensor[index] for tensor in self.tensors])

    def __len__(self) -> int:
        return self.tensors[0].size(0)


class StackDataset(Dataset[Any]):
    """Datasets of one length side by side; a sample is the tuple, or dict, of their samples.

    Raises:
        ValueError: no dataset, both positional and named ones, or different lengths.

    >>> import flambeau as torch
    >>> torch.utils.data.StackDataset([1, 2], ["a", "b"])[1]
    (2, 'b')
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or"
                "``dict``- (via ``kwargs``) like input/output, but both types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        parts = args or tuple(kwargs.values())
        self._length = len(parts[0])
        if any(len(part) != self._length for part in parts):
            raise ValueError("Size mismatch between datasets")
        self.datasets: Any = args or kwargs

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: part[index] for name, part in self.datasets.items()}
        return tuple([part[index] for part in self.datasets])

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        """The samples of a batch, through the parts' own `__getitems__` where they have it."""
        if isinstance(self.datasets, dict):
            columns = [_several(part, indices) for part in self.datasets.values()]
            names = tuple(self.datasets)
            return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        return list(zip(*[_several(part, indices) for part in self.datasets], strict=True))

    def __len__(self) -> int:
        return self._length


def _several(part: Any, indices: list[Any]) -> list[Any]:
    if not callable(getattr(part, "__getitems__", None)):
        return [part[index] for index in indices]
    found: list[Any] = part.__getitems__(indices)
    if len(found) != len(indices):
        raise ValueError(
            f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(found)}"
        )
    return found


class ConcatDataset(Dataset[T_co]):
    """Datasets one after the other; negative indices count from the end.

    >>> import flambeau as torch
    >>> list(torch.utils.data.ConcatDataset([[1, 2], [3]]))
    [1, 2, 3]
    """

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(part, IterableDataset) for part in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """The lengths of the first one, two, … datasets together."""
        return list(itertools.accumulate(len(part) for part in sequence))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> T_co:
        count = len(self)
        if index < -count:
            raise ValueError("absolute value of index should not exceed dataset length")
        position = index + count if index < 0 else index
        place = bisect_right(self.cumulative_sizes, position)
        before = self.cumulative_sizes[place - 1] if place > 0 else 0
        found: T_co = self.datasets[place][position - before]
        return found

    @property
    def cummulative_sizes(self) -> list[int]:
        """The old spelling of `cumulative_sizes`."""
        warnings.warn(
            "`cummulative_sizes` attribute is renamed to `cumulative_sizes`",
            FutureWarning,
            stacklevel=2,
        )
        return self.cumulative_sizes


class ChainDataset(IterableDataset[Any]):
    """Iterable datasets one after the other.

    >>> import flambeau as torch
    >>> from flambeau.utils.data import ChainDataset, IterableDataset
    >>> class Count(IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(2))
    >>> list(ChainDataset([Count(), Count()]))
    [0, 1, 0, 1]
    """

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = datasets

    def _parts(self) -> Iterator[Any]:
        for part in self.datasets:
            if not isinstance(part, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield part

    def __iter__(self) -> Iterator[Any]:
        for part in self._parts():
            yield from part

    def __len__(self) -> int:
        return sum(len(part) for part in self._parts())


class Subset(Dataset[T_co]):
    """The samples of a dataset at some indices.

    Raises:
        NotImplementedError: a subclass overrides `__getitem__` but not `__getitems__`, through
            which loaders fetch.

    >>> import flambeau as torch
    >>> list(torch.utils.data.Subset([10, 20, 30], [2, 0]))
    [30, 10]
    """

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices
        own = type(self)
        if own.__getitem__ is not Subset.__getitem__ and own.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{own.__name__} overrides __getitem__ but not __getitems__. "
                "When subclassing Subset and overriding __getitem__, you must also override "
                "__getitems__ to ensure DataLoader works correctly with your custom logic. "
                "A simple implementation:\n\n"
                "def __getitems__(self, indices):\n"
                "    return [self.__getitem__(idx) for idx in indices]"
            )

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[T_co]:
        """The samples of a batch."""
        inside = [self.indices[i] for i in indices]
        if callable(getattr(self.dataset, "__getitems__", None)):
            found: list[T_co] = self.dataset.__getitems__(inside)  # type: ignore[attr-defined]
            return found
        return [self.dataset[i] for i in inside]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Dataset[Any], lengths: Sequence[float],
                 generator: Any = None) -> list[Subset[Any]]:  # fmt: skip
    """A dataset in random parts that share no sample: of these lengths, or, where they add up to
    1, of these shares; what rounding leaves over goes to the first parts, one each.

    Raises:
        ValueError: the lengths do not add up to the dataset's; a share is not between 0 and 1.

    >>> import flambeau as torch
    >>> [len(part) for part in torch.utils.data.random_split(range(10), [0.8, 0.2])]
    [8, 2]
    """
    total = len(dataset)  # type: ignore[arg-type]
    counts = lengths
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        counts = _counts_of_shares(total, lengths)
    if sum(counts) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = ops.randperm(total, generator=generator).tolist()
    ends = itertools.accumulate(counts)
    return [Subset(dataset, order[int(end - count) : int(end)])
            for end, count in zip(ends, counts, strict=True)]  # fmt: skip


def _counts_of_shares(total: int, shares: Sequence[float]) -> list[int]:
    for place, share in enumerate(shares):
        if not 0 <= share <= 1:
            raise ValueError(f"Fraction at index {place} is not between 0 and 1")
    counts = [math.floor(total * share) for share in shares]
    for extra in range(total - sum(counts)):
        counts[extra % len(counts)] += 1
    for place, count in enumerate(counts):
        if count == 0:
            warnings.warn(
                f"Length of split at index {place} is 0. This might result in an empty dataset.",
                stacklevel=3,
            )
    return counts
