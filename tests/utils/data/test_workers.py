"""Workers, as processes and as threads: order, what they know, how far ahead they are."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info

KINDS: dict[str, dict[str, Any]] = {
    "fork": {"multiprocessing_context": "fork"},
    "spawn": {"multiprocessing_context": "spawn"},
    "forkserver": {"multiprocessing_context": "forkserver"},
    "thread": {"worker_type": "thread"},
}
FAST = ("fork", "thread")

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*multi-threaded, use of fork:DeprecationWarning", "ignore:This DataLoader will create"
)


def loader(kind: str, source: Any, *args: Any, **given: Any) -> DataLoader[Any]:
    """A loader with two workers of a kind."""
    return DataLoader(source, *args, **{"num_workers": 2, **KINDS[kind], **given})


class Asking(Dataset[Any]):
    """Tells which worker it is in."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Any:
        info = get_worker_info()
        assert info is not None
        return index, info.id, info.num_workers, info.seed, type(info.dataset).__name__


class Sharded(IterableDataset[Any]):
    """Every worker has its part of some numbers."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(first, self.count, step))


@pytest.mark.parametrize("kind", KINDS)
def test_content_is_that_without_workers(kind: str) -> None:
    table = torch.arange(60.0).reshape(20, 3)
    source = TensorDataset(table, torch.arange(20))
    found = []
    for given in ({"num_workers": 0}, {"num_workers": 2, **KINDS[kind]}):
        torch.manual_seed(3)
        batches = DataLoader(source, 3, shuffle=True, **given)
        found.append([[part.tolist() for part in batch] for batch in batches])
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", KINDS)
def test_what_workers_know(kind: str) -> None:
    torch.manual_seed(5)
    found = [tuple(sample) for sample in loader(kind, Asking(), None)]
    seed = found[0][3]
    assert found == [(k, k % 2, 2, seed + k % 2, "Asking") for k in range(8)]
    assert get_worker_info() is None


@pytest.mark.parametrize("kind", KINDS)
def test_sharded_iterables(kind: str) -> None:
    batches = [b.tolist() for b in loader(kind, Sharded(11), 2)]
    assert batches == [[0, 2], [1, 3], [4, 6], [5, 7], [8, 10], [9]]


class Counting(Dataset[int]):
    """Counts the samples that were fetched (for threads, which share it)."""

    def __init__(self, count: int) -> None:
        self.count, self.fetched = count, 0

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> int:
        self.fetched += 1
        return index


@pytest.mark.parametrize("factor", [1, 2, 5])
def test_workers_are_ahead_by_the_prefetch_factor(factor: int) -> None:
    source = Counting(100)
    batches = iter(loader("thread", source, None, prefetch_factor=factor))
    next(batches)
    deadline = time.monotonic() + 5
    while source.fetched < 2 * factor + 1 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    assert source.fetched == 2 * factor + 1


class Sleepy(Dataset[int]):
    """The first sample takes long."""

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> int:
        time.sleep(0.3 if index == 0 else 0)
        return index


@pytest.mark.parametrize("kind", FAST)
def test_out_of_order_nobody_waits_for_the_slow(kind: str) -> None:
    found = list(loader(kind, Sleepy(), None, in_order=False))
    assert sorted(found) == list(range(6))
    assert found[0] != 0
    assert list(loader(kind, Sleepy(), None)) == list(range(6))


@pytest.mark.parametrize("kind", FAST)
def test_persistent_workers_are_the_same_in_every_pass(kind: str) -> None:
    data = loader(kind, Asking(), None, persistent_workers=True)
    first = list(data)
    crew = data._iterator.crew
    assert list(data) == first  # the seeds, too
    assert data._iterator.crew is crew
    assert [s[3] for s in loader(kind, Asking(), None)] != [s[3] for s in first]
    data._iterator.close()


class Drawing(Dataset[Any]):
    """Samples that are drawn."""

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> Any:
        return float(np.random.rand()), torch.rand(()).item()


def test_processes_draw_the_same_after_the_same_seed_and_each_its_own() -> None:
    found = []
    for _ in range(2):
        torch.manual_seed(1)
        found.append([tuple(s) for s in loader("fork", Drawing(), None)])
    assert found[0] == found[1]
    assert len(set(found[0])) == 6


class Own(IterableDataset[Any]):
    """An iterator and a setting of its own, which thread workers must not share."""

    def __init__(self) -> None:
        self.start, self.at = 0, 0

    def __iter__(self) -> Own:
        self.at = self.start
        return self

    def __next__(self) -> int:
        if self.at >= self.start + 4:
            raise StopIteration
        self.at += 1
        time.sleep(0.001)
        return self.at


def set_start(worker: int) -> None:
    """As the documentation of `IterableDataset` shows."""
    info = get_worker_info()
    assert info is not None
    info.dataset.start = 10 * worker


@pytest.mark.parametrize("kind", FAST)
def test_every_worker_has_an_iterable_of_its_own(kind: str) -> None:
    source = Own()
    found = list(loader(kind, source, None, worker_init_fn=set_start))
    assert found == [1, 11, 2, 12, 3, 13, 4, 14]
    assert source.at == 0


def test_threads_share_a_dataset_with_samples_by_index() -> None:
    table = torch.zeros(4)
    for value in loader("thread", [table[k] for k in range(4)], None):
        value.fill_(7)
    assert table.tolist() == [7.0] * 4


def test_the_information_is_each_threads_own() -> None:
    seen = []

    class Meeting(Asking):
        barrier = threading.Barrier(2)

        def __getitem__(self, index: int) -> Any:
            self.barrier.wait(5)
            seen.append((threading.current_thread().name, super().__getitem__(index)[1]))
            return index

    assert list(loader("thread", Meeting(), None)) == list(range(8))
    assert set(seen) == {("flambeau-worker-0", 0), ("flambeau-worker-1", 1)}


def test_gradients_are_not_recorded_for_batches_of_plain_tensors() -> None:
    (batch,) = next(iter(loader("thread", TensorDataset(torch.ones(4)), 4)))
    assert not batch.requires_grad
