"""The DataLoader: a dataset, an order, batches, workers."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from flambeau.utils.data.archives.order import Resumable
from flambeau.utils.data.collate import default_collate, default_convert
from flambeau.utils.data.dataset import Dataset, IterableDataset
from flambeau.utils.data.fetch import DatasetKind as _DatasetKind
from flambeau.utils.data.iterators import InProcess, LoaderIterator
from flambeau.utils.data.progress import load_state, state_of
from flambeau.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler

T_co = TypeVar("T_co", covariant=True)
_T = TypeVar("_T")
_collate_fn_t = Callable[[list[_T]], Any]
_worker_init_fn_t = Callable[[int], None]
_BaseDataLoaderIter, _SingleProcessDataLoaderIter = LoaderIterator, InProcess

FIXED = frozenset((
    "batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers",
))  # fmt: skip
"""Attributes that can't be set once a loader is made."""
WORKER_TYPES = ("process", "thread")


class EndlessNone:
    """The sampler of iterable datasets, which have no indices: None for ever."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader(Generic[T_co]):
    """Batches of a dataset's samples, in order or shuffled, fetched here or by workers.

    dataset: with samples by index (map-style), or an IterableDataset.
    batch_size: samples in a batch; None gives the samples themselves.
    shuffle: whether map-style samples come in a new random order in every pass.
    sampler, batch_sampler: what gives indices, or lists of them, instead.
    num_workers: how many workers fetch; 0: the caller does.
    collate_fn: what makes a batch of a list of samples; `default_collate` if not given
        (`default_convert`, of one sample, without batches).
    pin_memory: without an accelerator, where nothing can be pinned, a warning.
    drop_last: whether an incomplete last batch is left out.
    timeout: seconds to wait for a worker's data; 0: no limit.
    worker_init_fn: called with the worker's id in each worker before it fetches.
    generator: where the order and the workers' seeds come from; the global stream if not given.
    prefetch_factor: batches that each worker is ahead; 2 if not given.
    persistent_workers: whether workers outlive a pass.
    in_order: whether batches come in the sampler's order, or as workers finish them.
    worker_type: "process", or "thread": no copies, no start, and fast where the work releases
        Python's lock (NumPy, decoding of images); threads share the random streams.

    Raises:
        ValueError, TypeError: options that contradict each other or are out of range.

    >>> import flambeau as torch
    >>> loader = torch.utils.data.DataLoader(range(5), batch_size=2)
    >>> list(loader)
    [tensor([0, 1]), tensor([2, 3]), tensor([4])]
    """

    _complete = False

    def __init__(
        self,
        dataset: Dataset[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        worker_type: str = "process",
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        if worker_type not in WORKER_TYPES:
            raise ValueError(
                f"worker_type should be one of {WORKER_TYPES}, but got {worker_type!r}"
            )
        self.worker_type = worker_type
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        iterable = isinstance(dataset, IterableDataset)
        self.dataset, unshuffled = _set_up(dataset, shuffle)
        self._dataset_kind = _DatasetKind.Iterable if iterable else _DatasetKind.Map
        if self._is_iterable:
            _check_iterable(unshuffled, sampler, batch_sampler)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        batched = batch_size is not None
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive "
                    "with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size = None
        elif not batched and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching "
                "and is mutually exclusive with drop_last"
            )
        if sampler is None:
            sampler = self._default_sampler(bool(shuffle), generator)
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self._IterableDataset_len_called: int | None = None
        self._iterator: Any = None
        self._progress: Any = None  # of the last pass
        self._told: Any = None  # by load_state_dict, of the next pass
        self._complete = True
        self.check_worker_number_rationality()

    def _default_sampler(self, shuffle: bool, generator: Any) -> Iterable[Any]:
        if self._is_iterable:
            return EndlessNone()
        data: Any = self.dataset
        return RandomSampler(data, generator=generator) if shuffle else SequentialSampler(data)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._complete and name in FIXED:
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(name, value)

    # ---- iterating

    @property
    def _is_iterable(self) -> bool:
        return self._dataset_kind == _DatasetKind.Iterable

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __iter__(self) -> LoaderIterator:
        if not self.num_workers:
            return InProcess(self)
        from flambeau.utils.data.workers import WithWorkers

        if not self.persistent_workers:
            return WithWorkers(self)
        if self._iterator is None:
            self._iterator = WithWorkers(self)
        else:
            self._iterator._reset(self)
        found: LoaderIterator = self._iterator
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_iterator": None}

    def state_dict(self) -> dict[str, Any]:
        """How far the running pass is, for `load_state_dict`: batches that were given count, those
        that workers have fetched ahead do not. Between passes, what the next one needs.

        Of samples by index, the order and the batches that are left; what transforms draw from
        random streams of workers is new. Of an archive, also with other numbers of workers.

        Raises:
            RuntimeError: the dataset is an iterable one that can't go on in the middle.
        """
        return state_of(self)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Make the next pass the rest of the one whose state this is.

        Raises:
            ValueError: it is not the state of a loader over such a dataset.
            RuntimeError: the dataset is an iterable one that can't go on in the middle.
        """
        load_state(self, state)

    def __len__(self) -> int:
        if not self._is_iterable:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return length
        if isinstance(self.dataset, Resumable):
            told = self.dataset.batches(self.batch_size, self.drop_last, self.num_workers)
            self._IterableDataset_len_called = told
            return told
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    # ---- workers

    @property
    def multiprocessing_context(self) -> Any:
        """How worker processes are started: a name such as "spawn", or a context."""
        return self._multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            context = _checked_context(context, self.num_workers)
        self._multiprocessing_context = context

    def check_worker_number_rationality(self) -> None:
        """Warn about more workers than processors that this process may use."""
        cpuset = hasattr(os, "sched_getaffinity")
        most = len(os.sched_getaffinity(0)) if cpuset else os.cpu_count()
        if not self.num_workers or (most is not None and self.num_workers <= most):
            return
        if most is None:
            known = (
                "DataLoader is not able to compute a suggested max number of worker in current "
                "system."
            )
        else:
            known = (
                f"Our suggested max number of worker in current system is {most}"
                f"{'' if cpuset else ' (`cpuset` is not taken into account)'}, which is smaller "
                "than what this DataLoader is going to create."
            )
        warnings.warn(
            f"This DataLoader will create {self.num_workers} worker processes in total. {known} "
            "Please be aware that excessive worker creation might get DataLoader running slow or "
            "even freeze, lower the worker number to avoid potential slowness/freeze if necessary.",
            stacklevel=3,
        )


def _check_workers(num_workers: int, timeout: float, prefetch_factor: int | None,
                   persistent: bool) -> None:  # fmt: skip
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; "
            "use num_workers=0 to disable multiprocessing."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing."
            "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _set_up(dataset: Any, shuffle: bool | None) -> tuple[Any, bool | None]:
    """A data pipe that shuffles as the loader is told, which is done with that; other datasets as
    they are, and `shuffle`."""
    if not getattr(type(dataset), "is_pipe", False):
        return dataset, shuffle
    from flambeau.utils.data.graph_settings import apply_shuffle_settings

    return apply_shuffle_settings(dataset, shuffle), None


def _check_iterable(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    """Iterable datasets have an order of their own."""
    given = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, "
                f"but got {name}={value}"
            )


def _checked_context(context: Any, num_workers: int) -> Any:
    import multiprocessing
    from multiprocessing.context import BaseContext

    if not num_workers:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading "
            f"(num_workers > 0), but got num_workers={num_workers}"
        )
    if isinstance(context, str):
        methods = multiprocessing.get_all_start_methods()
        if context not in methods:
            raise ValueError(
                f"multiprocessing_context option should specify a valid start method in "
                f"{methods!r}, but got multiprocessing_context={context!r}"
            )
        return multiprocessing.get_context(context)
    if not isinstance(context, BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string "
            f"specifying the start method, but got multiprocessing_context={context}"
        )
    return context


def __getattr__(name: str) -> Any:
    if name == "_MultiProcessingDataLoaderIter":  # it brings multiprocessing along
        from flambeau.utils.data.workers import WithWorkers

        return WithWorkers
    from flambeau._core.missing import missing

    return missing(__name__, name)
