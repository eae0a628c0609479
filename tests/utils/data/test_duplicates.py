"""Iterable datasets that give the same samples in every worker: one warning, no false alarm."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau.utils.data import DataLoader, IterableDataset, get_worker_info
from flambeau.utils.data.duplicates import ENOUGH, Watch, digest

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*multi-threaded, use of fork:DeprecationWarning", "ignore:This DataLoader will create"
)


class Made(IterableDataset[Any]):
    """Samples that a function makes of a number."""

    def __init__(self, count: int, make: Callable[[int], Any], shard: bool = False) -> None:
        self.count, self.make, self.shard = count, make, shard

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if self.shard and info else (0, 1)
        return (self.make(k) for k in range(first, self.count, step))


def warned(source: Any, workers: int = 2, passes: int = 1, **given: Any) -> list[str]:
    """The texts of the warnings of some passes."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        data = DataLoader(source, num_workers=workers, **given)
        for _ in range(passes):
            for _ in data:
                pass
    assert all(w.category is UserWarning for w in seen if "came more" in str(w.message))
    return [str(w.message) for w in seen if "came more" in str(w.message)]


SAMPLES: dict[str, Callable[[int], Any]] = {
    "numbers": lambda k: k,
    "tensors": lambda k: torch.full((40_000,), k),
    "pairs": lambda k: {"x": np.full((3, 5), k).T, "y": (str(k), bytes([k % 256]))},
}


@pytest.mark.parametrize("kind", ["process", "thread"])
@pytest.mark.parametrize("samples", SAMPLES)
def test_duplicates_are_counted(samples: str, kind: str) -> None:
    source = Made(30, SAMPLES[samples])
    (text,) = warned(source, 3, batch_size=4, worker_type=kind)
    assert text.startswith("60 samples came more than once")
    assert "the same samples in 3 workers" in text
    assert "get_worker_info" in text
    assert "TarDataset" in text


def test_few_samples_are_enough_and_short_passes_too() -> None:
    assert "12 samples" in warned(Made(6, int), 3)[0]
    assert warned(Made(2, int), 3) == []


def test_one_warning_early_where_there_is_no_end() -> None:
    texts = warned(Made(3 * ENOUGH, int), batch_size=100)
    assert len(texts) == 1
    count = int(texts[0].split()[0])
    assert ENOUGH <= count < 2 * ENOUGH


@pytest.mark.parametrize("kind", ["process", "thread"])
def test_no_false_alarm(kind: str) -> None:
    quiet: dict[str, Any] = {
        "sharded": Made(60, int, shard=True),
        "constant": Made(60, lambda k: 0),
        "two classes": Made(60, lambda k: k % 2),
        "alike in the beginning": Made(60, lambda k: max(k - 20, 0)),
        "random": Made(60, lambda k: random.SystemRandom().random()),
        "shards of alike": Made(60, lambda k: k // 4, shard=True),
    }
    for name, source in quiet.items():
        assert warned(source, worker_type=kind) == [], name
    assert warned(Made(60, int), workers=1, worker_type=kind) == []
    assert warned(list(range(60)), worker_type=kind) == []


def test_samples_that_cannot_be_digested_are_left_alone() -> None:
    assert digest(lambda: 0) is None
    assert warned(Made(20, lambda k: lambda: k), 2, collate_fn=len) == []


def test_who_parts_from_the_others_is_no_duplicate() -> None:
    watch = Watch(3)
    watch.note(0, [*range(40)])
    watch.note(1, [*range(20), -1])
    assert watch.going_on
    watch.note(2, [*range(30), -2])
    assert not watch.going_on
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        watch.end()


def test_truly_sharded_data_is_soon_no_longer_digested() -> None:
    watch = Watch(2)
    watch.note(0, [1, 2, 3])
    watch.note(1, [4])
    assert not watch.going_on
