"""Iteration over a DataLoader: what all kinds share, and the kind without workers."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from flambeau._core import modes
from flambeau._core.device import Cuda
from flambeau.utils.data.fetch import DatasetKind
from flambeau.utils.data.pinning import pinned
from flambeau.utils.data.progress import base_seed_of, progress_of
from flambeau.utils.data.sampler import random_seed
from flambeau.utils.data.seeds import seed_pipes

if TYPE_CHECKING:
    from flambeau.utils.data.dataloader import DataLoader


class LoaderIterator:
    """One pass over a loader. `base_seed` is drawn from its generator (or the global stream)
    before the first index is; worker k is seeded with `base_seed + k`.
    """

    torch_name = "_SingleProcessDataLoaderIter"  # what profiles call it

    def __init__(self, loader: DataLoader) -> None:
        self.loader = loader
        self._take(loader)
        if getattr(type(self._dataset), "is_pipe", False):
            seed_pipes(self._dataset, random_seed(loader.generator))
        if loader.pin_memory and loader.pin_memory_device:
            warnings.warn(
                "pin_memory_device is deprecated, the current accelerator will be used as the "
                f"device,ignore pin_memory_device='{loader.pin_memory_device}'.",
                stacklevel=3,
            )
        if loader.pin_memory and not Cuda.devices():
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, "
                "then device pinned memory won't be used.",
                stacklevel=3,
            )
        self._sampler_iter = iter(self._index_sampler)
        self._base_seed = base_seed_of(loader)
        self._num_yielded = 0

    def _take(self, loader: Any) -> None:
        """The loader's settings, under the names by which subclasses know them."""
        self._dataset = loader.dataset
        self._dataset_kind: int = loader._dataset_kind
        self._IterableDataset_len_called: int | None = loader._IterableDataset_len_called
        self._auto_collation: bool = loader._auto_collation
        self._drop_last: bool = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers: int = loader.num_workers
        self._pin_memory = bool(loader.pin_memory and Cuda.devices())
        self._timeout: float = loader.timeout
        self._collate_fn = loader.collate_fn
        self._persistent_workers: bool = loader.persistent_workers

    def __iter__(self) -> LoaderIterator:
        return self

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __next__(self) -> Any:
        if modes.watch.active:
            with modes.labelled(f"enumerate(DataLoader)#{self.torch_name}.__next__"):
                data = self._next_data()
        else:
            data = self._next_data()
        self._num_yielded += 1
        self._check_length()
        if self._pin_memory:
            return pinned(data)
        return data

    def _next_index(self) -> Any:
        """What the sampler gives next; StopIteration at the end."""
        return next(self._sampler_iter)

    def _next_data(self) -> Any:
        """The next sample or batch; StopIteration at the end."""
        raise NotImplementedError

    def _check_length(self) -> None:
        """Warn when an iterable dataset gives more than its `len` told."""
        told = self._IterableDataset_len_called
        if told is None or self._num_yielded <= told or self._dataset_kind == DatasetKind.Map:
            return
        text = (
            f"Length of IterableDataset {self._dataset} was reported to be {told}"
            f"(when accessing len(dataloader)), but {self._num_yielded} samples have been fetched. "
        )
        if self._num_workers:
            text += (
                "For multiprocessing data-loading, this could be caused by not properly "
                "configuring the IterableDataset replica at each worker. Please see "
                "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset "
                "for examples."
            )
        warnings.warn(text, stacklevel=3)

    def __getstate__(self) -> Any:
        raise NotImplementedError("{} cannot be pickled", type(self).__name__)


class InProcess(LoaderIterator):
    """Samples are fetched when they are asked for, by the caller's thread."""

    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        if loader.timeout:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        self.progress = progress_of(loader, self._base_seed)
        if self.progress.begun is not None:
            self._dataset.begin(self.progress.begun)  # type: ignore[attr-defined]
        self._dataset_fetcher = DatasetKind.create_fetcher(
            self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn,
            self._drop_last,
        )  # fmt: skip
        self._sampler_iter = self.progress.indices(self._sampler_iter)
        self.progress.take_over()

    def _next_data(self) -> Any:
        """Fetch what the sampler's next index stands for."""
        progress = self.progress
        try:
            data = self._dataset_fetcher.fetch(self._next_index())
        except StopIteration:
            progress.end()
            raise
        except Exception:
            progress.gave(0, self._dataset_fetcher.reached())
            raise
        progress.gave(0, self._dataset_fetcher.reached())
        return data
