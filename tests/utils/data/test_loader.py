"""Loaders without workers: what is drawn when, batches taken whole, what can't be changed."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import flambeau as torch
from flambeau.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset


def test_each_sample_once_in_a_new_order() -> None:
    loader = DataLoader(list(range(50)), batch_size=8, shuffle=True)
    first, second = ([k for batch in loader for k in batch.tolist()] for _ in range(2))
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second


class Counted(Dataset[int]):
    """Notes how it was asked."""

    def __init__(self, several: bool) -> None:
        self.asked: list[Any] = []
        if several:
            self.__getitems__ = self._several

    def __getitem__(self, index: int) -> int:
        self.asked.append(index)
        return index

    def _several(self, indices: list[int]) -> list[int]:
        self.asked.append(indices)
        return indices

    def __len__(self) -> int:
        return 4


def test_several_samples_are_asked_for_at_once() -> None:
    one, several = Counted(False), Counted(True)
    assert [b.tolist() for b in DataLoader(one, 2)] == [[0, 1], [2, 3]]
    assert [b.tolist() for b in DataLoader(several, 2)] == [[0, 1], [2, 3]]
    assert one.asked == [0, 1, 2, 3]
    assert several.asked == [[0, 1], [2, 3]]


def test_batches_taken_whole_are_new_memory() -> None:
    table = torch.arange(12.0).reshape(6, 2)
    part = Subset(Subset(TensorDataset(table, torch.arange(6)), [5, 3, 1]), [2, 0])
    batch, places = next(iter(DataLoader(part, 2)))
    assert batch.tolist() == [[2.0, 3.0], [10.0, 11.0]]
    assert places.tolist() == [1, 5]
    batch.zero_()
    assert table.sum() == 66


def test_a_wrong_index_raises_what_indexing_raises() -> None:
    loader = DataLoader(TensorDataset(torch.ones(3)), 2, sampler=[0, 7])
    with pytest.raises(IndexError, match="index 7 is out of bounds for dimension 0 with size 3"):
        list(loader)


def test_gradients_flow_through_batches() -> None:
    table = torch.ones(4, 2, requires_grad=True)
    for (batch,) in DataLoader(TensorDataset(table), 3):
        (batch * 2).sum().backward()
    assert table.grad.tolist() == [[2.0, 2.0]] * 4


class Endless(IterableDataset[int]):
    """1, 2, 3, …"""

    def __iter__(self) -> Any:
        k = 0
        while True:
            yield k
            k += 1


def test_iterable_data_is_read_as_needed() -> None:
    batches = iter(DataLoader(Endless(), 3))
    assert next(batches).tolist() == [0, 1, 2]
    assert next(batches).tolist() == [3, 4, 5]


def test_loaders_and_data_can_be_pickled_but_not_iterators() -> None:
    loader = DataLoader(TensorDataset(torch.arange(4)), 2)
    again = pickle.loads(pickle.dumps(loader))  # noqa: S301
    assert [b[0].tolist() for b in again] == [[0, 1], [2, 3]]
    with pytest.raises(NotImplementedError, match="cannot be pickled"):
        pickle.dumps(iter(loader))
