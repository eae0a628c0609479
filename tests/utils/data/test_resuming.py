"""Loaders that go on in the middle of a pass: what was given counts, not what was fetched ahead."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import flambeau as torch
from flambeau.utils.data import DataLoader, IterableDataset, Sampler, TarDataset, TensorDataset
from tests.utils.data.archives.making import numbered

KINDS = [(0, "process", False), (2, "process", False), (2, "process", True), (2, "thread", True)]
WHO = pytest.mark.parametrize(("workers", "kind", "persistent"), KINDS)


def batches(loader: Any) -> list[list[int]]:
    return [batch[0].tolist() for batch in loader]


def interrupted(loader: Any, count: int) -> tuple[list[list[int]], Any]:
    """The first batches of a pass, and the state after them, as a file would keep it."""
    iterator = iter(loader)
    found = [next(iterator)[0].tolist() for _ in range(count)]
    file = io.BytesIO()
    torch.save(loader.state_dict(), file)
    file.seek(0)
    return found, torch.load(file, weights_only=True)


# ---- archives


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return numbered(tmp_path_factory.mktemp("shards"), [5, 0, 13, 8])


def of_archive(paths: list[str], workers: int, kind: str = "process", persistent: bool = False,
               batch_size: int = 4, **options: Any) -> DataLoader[Any]:  # fmt: skip
    dataset = TarDataset(paths, ("cls",), **{"shuffle": 5, **options})
    return DataLoader(dataset, batch_size, num_workers=workers, worker_type=kind,
                      persistent_workers=persistent)  # fmt: skip


@WHO
def test_archives_go_on_exactly(paths: list[str], workers: int, kind: str, persistent: bool):
    def loader() -> DataLoader[Any]:
        return of_archive(paths, workers, kind, persistent)

    whole = loader()
    first, second = batches(whole), batches(whole)
    assert sorted(sum(first, [])) == sorted(sum(second, [])) == list(range(26))
    assert first != second
    assert len(whole) == len(first)
    for count in (0, 1, 4, len(first)):
        start, state = interrupted(loader(), count)
        again = loader()
        again.load_state_dict(state)
        assert start + batches(again) == first
        assert batches(again) == second


@settings(max_examples=25, deadline=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(st.data())
def test_each_sample_once_whoever_goes_on(paths: list[str], data: st.DataObject):
    """Other numbers of workers (threads: the same code) and batch sizes at each interruption."""
    ranks, shuffle = data.draw(st.integers(1, 2)), data.draw(st.integers(0, 6))
    found: list[int] = []
    for rank in range(ranks):
        state = None
        for part in range(data.draw(st.integers(1, 4)), 0, -1):
            loader = of_archive(
                paths, data.draw(st.integers(0, 2)), "thread", batch_size=data.draw(
                    st.integers(1, 5)), shuffle=shuffle, rank=rank, world_size=ranks,
            )  # fmt: skip
            if state is not None:
                loader.load_state_dict(state)
            iterator = iter(loader)
            for _ in range(data.draw(st.integers(0, 4)) if part > 1 else 99):
                found += next(iterator, [torch.empty(0)])[0].tolist()
            if loader._progress.ended:
                break
            state = loader.state_dict()
    assert sorted(found) == list(range(26))


def test_a_state_after_leaving_the_loop(paths: list[str]):
    loader = of_archive(paths, 2)
    found = []
    for (batch,) in loader:
        found += batch.tolist()
        if len(found) >= 8:
            break
    again = of_archive(paths, 0)
    again.load_state_dict(loader.state_dict())
    assert sorted(found + sum(batches(again), [])) == list(range(26))


def test_the_state_between_passes_is_the_next_pass(paths: list[str]):
    loader = of_archive(paths, 2)
    batches(loader)
    again = of_archive(paths, 2)
    again.load_state_dict(loader.state_dict())
    assert again.state_dict() == loader.state_dict()
    assert batches(again) == batches(loader)


@WHO
def test_set_epoch(paths: list[str], workers: int, kind: str, persistent: bool):
    loader = of_archive(paths, workers, kind, persistent)
    orders = [batches(loader) for _ in range(3)]
    loader.dataset.set_epoch(1)
    assert batches(loader) == orders[1]
    assert batches(loader) == orders[2]


def test_the_datasets_own_state(paths: list[str]):
    whole = list(TarDataset(paths, ("cls",), shuffle=5))
    dataset = TarDataset(paths, ("cls",), shuffle=5)
    samples = iter(dataset)
    start = [next(samples) for _ in range(9)]
    again = TarDataset(paths, ("cls",), shuffle=5)
    again.load_state_dict(dataset.state_dict())
    assert start + list(again) == whole
    assert list(samples) == whole[9:]
    assert dataset.state_dict() == again.state_dict()


def test_a_state_of_another_rank_is_refused(paths: list[str]):
    state = TarDataset(paths, rank=1, world_size=2).state_dict()
    with pytest.raises(ValueError, match="rank 1 of 2, not of rank 0 of 2"):
        TarDataset(paths, rank=0, world_size=2).load_state_dict(state)


# ---- samples by index


def by_index(workers: int, kind: str, persistent: bool, own: bool) -> DataLoader[Any]:
    generator = torch.Generator().manual_seed(5) if own else None
    return DataLoader(
        TensorDataset(torch.arange(23)), 4, shuffle=True, num_workers=workers, worker_type=kind,
        persistent_workers=persistent, generator=generator,
    )  # fmt: skip


@WHO
@pytest.mark.parametrize("own", [False, True])
def test_orders_go_on_exactly(workers: int, kind: str, persistent: bool, own: bool):
    def loader() -> DataLoader[Any]:
        return by_index(workers, kind, persistent, own)

    torch.manual_seed(1)
    whole = loader()
    first, second, third = (batches(whole) for _ in range(3))
    for count in (0, 1, 3, 6):
        torch.manual_seed(1)
        start, state = interrupted(loader(), count)
        stream = torch.get_rng_state()
        torch.manual_seed(99)
        again = loader()
        again.load_state_dict(state)
        torch.set_rng_state(stream)  # what the training draws itself is the training's to keep
        assert start + batches(again) == first
        if count:
            if persistent:  # a new loader's second pass draws no new seed for its workers either
                assert batches(again) == second
            else:
                assert [batches(again), batches(again)] == [second, third]


def test_batches_that_were_given_are_not_fetched_again():
    class Counted(list[int]):
        def __getitem__(self, index: Any) -> Any:
            fetched.append(index)
            return super().__getitem__(index)

    fetched: list[int] = []
    loader = DataLoader(Counted(range(10)), 3)
    iterator = iter(loader)
    next(iterator), next(iterator)
    again = DataLoader(loader.dataset, 3)
    again.load_state_dict(loader.state_dict())
    fetched.clear()
    assert [batch.tolist() for batch in again] == [[6, 7, 8], [9]]
    assert fetched == [6, 7, 8, 9]


def test_another_order_is_noticed():
    class Unseeded(Sampler[int]):
        def __iter__(self) -> Iterator[int]:
            return iter([next(orders)] * 9)

        def __len__(self) -> int:
            return 9

    orders = iter((1, 2))
    loader = DataLoader(list(range(9)), 3, sampler=Unseeded())
    next(iter(loader))
    loader.load_state_dict(loader.state_dict())
    with pytest.raises(RuntimeError, match="the sampler gives another order"):
        next(iter(loader))


def test_shorter_data_are_noticed():
    loader = DataLoader(list(range(9)), 3)
    iterator = iter(loader)
    next(iterator), next(iterator), next(iterator)
    again = DataLoader([0, 1, 2, 3], 3)
    again.load_state_dict(loader.state_dict())
    with pytest.raises(RuntimeError, match="the sampler gives another order"):
        next(iter(again))


# ---- what is refused


class Plain(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(9))


def test_other_iterable_datasets_say_so():
    loader = DataLoader(Plain(), 3)
    next(iter(loader))
    with pytest.raises(RuntimeError, match="Plain can't go on in the middle of a pass"):
        loader.state_dict()
    with pytest.raises(RuntimeError, match="Plain can't go on"):
        loader.load_state_dict({})


def test_states_of_other_loaders_are_refused(paths: list[str]):
    archive, index = of_archive(paths, 0), DataLoader([1, 2])
    for loader, other in ((archive, index), (index, archive)):
        with pytest.raises(ValueError, match="not the state of a DataLoader over such a dataset"):
            loader.load_state_dict(other.state_dict())
    own = by_index(0, "process", False, True)
    with pytest.raises(ValueError, match="other generators"):
        index.load_state_dict(own.state_dict())


# ---- names


def test_names_are_imported_when_used():
    program = (
        "import sys, flambeau.hook; flambeau.hook.install()\n"
        "import torch.utils.data\n"
        "print([m for m in ('PIL', 'tarfile', 'urllib.request') if m in sys.modules])\n"
        "from torch.utils.data import ImageFolder, TarDataset, TFRecordDataset, transforms\n"
        "import torch.utils.data.transforms as same\n"
        "print(TarDataset.__name__, same is transforms, 'PIL' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True,
        cwd=Path(__file__).parents[3], timeout=60,
    )  # fmt: skip
    assert result.stdout.split("\n")[:2] == ["[]", "TarDataset True False"]
