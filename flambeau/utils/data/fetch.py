"""Fetching: what a sampler gives becomes data, in the loader's process or in a worker."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau.utils.data.collate import default_collate
from flambeau.utils.data.dataset import Subset, TensorDataset
from flambeau.utils.data.duplicates import digest


class Fetcher:
    """Data for one index (or, with `batched`, for a list of them), collated."""

    by_index = True
    watched = False
    """Whether samples of an iterator are to be digested (see duplicates.py)."""

    def __init__(self, dataset: Any, batched: bool, collate: Callable[[Any], Any]) -> None:
        self.dataset = dataset
        self.batched = batched
        self.collate = collate
        self.digests: list[int | None] = []

    def fetch(self, index: Any) -> Any:
        """The data; StopIteration when there is none left."""
        raise NotImplementedError

    def place(self) -> str:
        """Which sample was fetched last, for errors."""
        raise NotImplementedError

    def reached(self) -> Any:
        """How far the iterator of a resumable dataset is; None of others."""
        return None

    def taken_digests(self) -> list[int | None]:
        """The digests since the last call."""
        taken, self.digests = self.digests, []
        return taken


class MapFetcher(Fetcher):
    """From a dataset with samples by index."""

    at: Any = None

    def place(self) -> str:
        """The sample's index."""
        return f"for sample {self.at}" if self.at is not None else ""

    def fetch(self, index: Any) -> Any:
        """One sample, or those of a batch."""
        dataset = self.dataset
        self.at = index
        if not self.batched:
            return self.collate(dataset[index])
        if self.collate is default_collate:
            whole = _whole_batch(dataset, index)
            if whole is not None:
                return whole
        several = getattr(dataset, "__getitems__", None)
        if several:
            return self.collate(several(index))
        samples = []
        for self.at in index:  # the attribute itself, so that an error can name the sample
            samples.append(dataset[self.at])
        self.at = index
        return self.collate(samples)


def _whole_batch(dataset: Any, indices: list[int]) -> Any:
    """The batch of a TensorDataset, or of a part of one, taken from each tensor at once; None
    where that is not possible, or an index is wrong."""
    kind = type(dataset)
    while kind is Subset:
        try:
            indices = [dataset.indices[i] for i in indices]
        except (IndexError, TypeError):
            return None
        dataset = dataset.dataset
        kind = type(dataset)
    if kind is not TensorDataset or not dataset.tensors:
        return None
    try:
        places = ops.as_tensor(indices)
        length = len(dataset)
        if places._data.dtype.kind != "i" or not places._data.size:
            return None
        if places._data.min() < 0 or places._data.max() >= length:
            return None
        return [tensor.index_select(0, places) for tensor in dataset.tensors]
    except (TypeError, ValueError):
        return None


class IterableFetcher(Fetcher):
    """From an iterator over samples, as many for a batch as there are indices."""

    by_index = False
    count = 0

    def __init__(self, dataset: Any, batched: bool, collate: Callable[[Any], Any],
                 drop_last: bool) -> None:  # fmt: skip
        super().__init__(dataset, batched, collate)
        self.drop_last = drop_last
        self.samples = iter(dataset)
        self.ended = False

    def fetch(self, index: Any) -> Any:
        """The next sample or batch; the last batch may be short."""
        if self.ended:
            raise StopIteration
        if not self.batched:
            sample = next(self.samples)
            self._note(sample)
            return self.collate(sample)
        batch = []
        for sample in islice(self.samples, len(index)):
            batch.append(sample)
            self._note(sample)
        self.ended = len(batch) < len(index)
        if not batch or (self.ended and self.drop_last):
            raise StopIteration
        return self.collate(batch)

    def reached(self) -> Any:
        """What the iterator says of itself."""
        ask = getattr(self.samples, "reached", None)
        return None if ask is None else ask()

    def _note(self, sample: Any) -> None:
        self.count += 1
        if self.watched:
            self.digests.append(digest(sample))

    def place(self) -> str:
        """How many samples came before."""
        return f"after {self.count} samples of this iterator"


class DatasetKind:
    """Whether samples come by index or from an iterator. PyTorch's name is `_DatasetKind`."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(
        kind: int, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any],
        drop_last: bool,
    ) -> Fetcher:  # fmt: skip
        """The fetcher for a dataset of either kind."""
        if kind == DatasetKind.Map:
            return MapFetcher(dataset, auto_collation, collate_fn)
        return IterableFetcher(dataset, auto_collation, collate_fn, drop_last)
