"""Orders of steps: everything once, nobody waits in a circle, and how much is kept at once."""

from __future__ import annotations

import itertools

import pytest

from flambeau.distributed.pipelining.orders import (
    BACKWARD,
    FORWARD,
    Step,
    breadth_first,
    interleaved,
    one_forward_one_backward,
    rounds,
)


def runs(orders: list[list[Step]], places: int) -> bool:
    """Whether processes that run these orders come to an end: sends only begin where they stand,
    receives wait."""
    size = len(orders)
    last = size * places - 1
    done: set[tuple[str, int, int]] = set()
    at = [0] * size

    def may(step: Step, rank: int) -> bool:
        stage = step.place * size + rank
        if step.kind == FORWARD:
            return stage == 0 or (FORWARD, step.number, stage - 1) in done
        own = (FORWARD, step.number, stage) in done
        return own and (stage == last or (BACKWARD, step.number, stage + 1) in done)

    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while at[rank] < len(order) and may(order[at[rank]], rank):
                step = order[at[rank]]
                done.add((step.kind, step.number, step.place * size + rank))
                at[rank] += 1
                moved = True
    return at == [len(order) for order in orders]


def whole(count: int, places: int, kinds: tuple[str, ...]) -> set[Step]:
    """Every step that there has to be."""
    return {Step(*each) for each in itertools.product(kinds, range(count), range(places))}


CASES = [
    (count, places, size)
    for count, places, size in itertools.product(range(1, 17), range(1, 5), range(1, 6))
    if count % rounds(count, size) == 0
]


@pytest.mark.parametrize("trains", [True, False])
def test_interleaved(trains: bool):
    kinds = (FORWARD, BACKWARD) if trains else (FORWARD,)
    for count, places, size in CASES:
        orders = [list(interleaved(count, places, rank, size, trains)) for rank in range(size)]
        for order in orders:
            assert len(order) == len(set(order))
            assert set(order) == whole(count, places, kinds)
        assert runs(orders, places), (count, places, size)


@pytest.mark.parametrize("trains", [True, False])
def test_breadth_first(trains: bool):
    kinds = (FORWARD, BACKWARD) if trains else (FORWARD,)
    for count, places, size in CASES:
        orders = [list(breadth_first(count, places, trains)) for _ in range(size)]
        assert set(orders[0]) == whole(count, places, kinds)
        assert runs(orders, places), (count, places, size)


def test_one_forward_one_backward_keeps_no_more_than_stages_behind():
    for count, size in itertools.product(range(4, 12), range(1, 5)):
        orders = [list(one_forward_one_backward(count, size - rank)) for rank in range(size)]
        assert runs(orders, 1)
        for rank, order in enumerate(orders):
            kept = list(itertools.accumulate(1 if s.kind == FORWARD else -1 for s in order))
            assert max(kept) == min(count, size - rank)


def test_an_order_that_waits_in_a_circle_is_seen():
    """The check itself: the first process wants the gradient before it gives all that it needs."""
    orders = [[Step(BACKWARD, 0), Step(FORWARD, 0)], [Step(FORWARD, 0), Step(BACKWARD, 0)]]
    assert not runs(orders, 1)


def test_interleaved_keeps_less_than_breadth_first():
    """16 microbatches, 2 stages for each of 4 processes."""

    def most(order: list[Step]) -> int:
        return max(itertools.accumulate(1 if s.kind == FORWARD else -1 for s in order))

    first = most(list(interleaved(16, 2, 0, 4, True)))
    assert first == 4 + 2 * 3 + 1
    assert most(list(breadth_first(16, 2, True))) == 32
