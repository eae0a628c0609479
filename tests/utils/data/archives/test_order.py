"""Each sample exactly once, whoever reads, and however often a pass is interrupted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flambeau.utils.data.archives.order import Order, Pass, Shuffle

COUNTS = st.lists(st.integers(0, 25), min_size=1, max_size=6)
SHUFFLES = st.builds(Shuffle, st.booleans(), st.integers(0, 12), st.integers(0, 3))


def everything(counts: list[int]) -> list[tuple[int, int]]:
    return [(file, k) for file, count in enumerate(counts) for k in range(count)]


@settings(max_examples=150, deadline=None)
@given(COUNTS, SHUFFLES, st.integers(0, 3), st.integers(1, 4), st.integers(1, 5))
def test_ranks_and_workers_share_all_samples(
    counts: list[int], shuffle: Shuffle, epoch: int, ranks: int, workers: int
):
    found = []
    for rank in range(ranks):
        order = Order(counts, shuffle, Pass(epoch), rank, ranks)
        for worker in range(workers):
            found += order.of(worker, workers)
    assert sorted(found) == everything(counts)


@settings(max_examples=200, deadline=None)
@given(COUNTS, SHUFFLES, st.data())
def test_interrupted_passes_give_each_sample_once(
    counts: list[int], shuffle: Shuffle, data: st.DataObject
):
    ranks = data.draw(st.integers(1, 3))
    found = []
    for rank in range(ranks):
        one = Pass(data.draw(st.integers(0, 2)) if ranks == 1 else 1)
        for _ in range(data.draw(st.integers(0, 4))):
            workers = data.draw(st.integers(1, 4))
            taken = []
            for worker in range(workers):
                part = list(Order(counts, shuffle, one, rank, ranks).of(worker, workers))
                taken.append(data.draw(st.integers(0, len(part))))
                found += part[: taken[-1]]
            one = Pass.of(one.after(workers, taken).state())  # as a file would keep it
        workers = data.draw(st.integers(1, 4))
        for worker in range(workers):
            found += Order(counts, shuffle, one, rank, ranks).of(worker, workers)
    assert sorted(found) == everything(counts)


@settings(max_examples=100, deadline=None)
@given(COUNTS, SHUFFLES, st.integers(1, 4), st.data())
def test_the_same_workers_go_on_exactly(
    counts: list[int], shuffle: Shuffle, workers: int, data: st.DataObject
):
    def order(one: Pass, worker: int) -> list[tuple[int, int]]:
        return list(Order(counts, shuffle, one).of(worker, workers))

    whole = [order(Pass(4), worker) for worker in range(workers)]
    one, reached = Pass(4), [0] * workers
    for _ in range(2):
        more = [data.draw(st.integers(0, len(whole[w]) - reached[w])) for w in range(workers)]
        one = one.after(workers, more)
        reached = [a + b for a, b in zip(reached, more, strict=True)]
        for worker in range(workers):
            assert order(one, worker) == whole[worker][reached[worker] :]


def test_each_epoch_and_seed_has_its_own_order():
    def numbers(epoch: int, seed: int) -> list[Any]:
        return list(Order([50], Shuffle(True, 10, seed), Pass(epoch)).of(0, 1))

    assert numbers(0, 0) == numbers(0, 0)
    assert numbers(0, 0) != numbers(1, 0) != numbers(0, 1)
    assert numbers(0, 0) != sorted(numbers(0, 0))


def test_files_come_in_random_order_but_are_read_in_stretches():
    order = [file for file, _ in Order([5] * 8, Shuffle(True, 1, 0), Pass(0)).of(0, 1)]
    firsts = order[::5]
    assert order == [file for file in firsts for _ in range(5)]
    assert firsts != sorted(firsts)


def test_a_buffer_mixes_no_further_than_its_size():
    order = [k for _, k in Order([200], Shuffle(False, 20, 0), Pass(0)).of(0, 1)]
    assert order != list(range(200))
    assert all(k - place < 20 for place, k in enumerate(order))


@pytest.mark.parametrize(
    "state",
    [None, {}, {"epoch": 1}, {"epoch": "x", "before": []}, {"epoch": 0, "before": [[2, [1]]]},
     {"epoch": 0, "before": [[1, [-1]]]}, {"epoch": 0, "before": [[0, []]]}],
)  # fmt: skip
def test_what_is_no_state_is_refused(state: Any):
    with pytest.raises(ValueError, match="not the state of a pass"):
        Pass.of(state)
