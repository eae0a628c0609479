"""Iteration over a DataLoader: what all kinds share, and the kind without workers."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from flambeau._core import modes
from flambeau._core.device import Cuda
from flambeau.utils.data.dataset import IterableDataset
from flambeau.utils.data.fetch import fetcher_for
from flambeau.utils.data.pinning import pinned
from flambeau.utils.data.progress import base_seed_of, progress_of

if TYPE_CHECKING:
    from flambeau.utils.data.dataloader import DataLoader


class LoaderIterator:
    """One pass over a loader. `base_seed` is drawn from its generator (or the global stream)
    before the first index is; worker k is seeded with `base_seed + k`.
    """

    torch_name = "_SingleProcessDataLoaderIter"  # what profiles call it

    def __init__(self, loader: DataLoader) -> None:
        self.loader = loader
        self.dataset = loader.dataset
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
        self.indices = iter(loader._index_sampler)
        self.base_seed = base_seed_of(loader)
        self.yielded = 0

    def __iter__(self) -> LoaderIterator:
        return self

    def __len__(self) -> int:
        return len(self.loader._index_sampler)

    def __next__(self) -> Any:
        if modes.watch.active:
            with modes.labelled(f"enumerate(DataLoader)#{self.torch_name}.__next__"):
                data = self.next_data()
        else:
            data = self.next_data()
        self.yielded += 1
        self._check_length()
        if self.loader.pin_memory and Cuda.devices():
            return pinned(data)
        return data

    def next_data(self) -> Any:
        """The next sample or batch; StopIteration at the end."""
        raise NotImplementedError

    def _check_length(self) -> None:
        """Warn when an iterable dataset gives more than its `len` told."""
        told = self.loader._told_length
        if told is None or self.yielded <= told or not isinstance(self.dataset, IterableDataset):
            return
        text = (
            f"Length of IterableDataset {self.dataset} was reported to be {told}"
            f"(when accessing len(dataloader)), but {self.yielded} samples have been fetched. "
        )
        if self.loader.num_workers:
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
        self.progress = progress_of(loader, self.base_seed)
        if self.progress.begun is not None:
            self.dataset.begin(self.progress.begun)  # type: ignore[attr-defined]
        self.fetcher = fetcher_for(
            self.dataset, loader._auto_collation, loader.collate_fn, loader.drop_last
        )
        self.indices = self.progress.indices(self.indices)
        self.progress.take_over()

    def next_data(self) -> Any:
        """Fetch what the sampler's next index stands for."""
        progress = self.progress
        try:
            data = self.fetcher.fetch(next(self.indices))
        except StopIteration:
            progress.end()
            raise
        except Exception:
            progress.gave(0, self.fetcher.reached())
            raise
        progress.gave(0, self.fetcher.reached())
        return data
