"""In which order a process runs microbatches through its stages, forwards and backwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

FORWARD, BACKWARD = "forward", "backward"


@dataclass(frozen=True)
class Step:
    """One microbatch through one stage: its place among those of the process, first to last."""

    kind: str
    number: int
    place: int = 0


def forwards(count: int) -> Iterator[Step]:
    """All microbatches forwards through the only stage."""
    return (Step(FORWARD, number) for number in range(count))


def one_forward_one_backward(count: int, behind: int) -> Iterator[Step]:
    """As many forwards as stages from here on, then one backwards and one forwards in turn."""
    ahead = min(count, behind)
    yield from forwards(ahead)
    for number in range(count):
        yield Step(BACKWARD, number)
        if number + ahead < count:
            yield Step(FORWARD, number + ahead)


def breadth_first(count: int, places: int, trains: bool) -> Iterator[Step]:
    """All microbatches through the first stage, then all through the next, and all the way back."""
    for place in range(places):
        yield from (Step(FORWARD, number, place) for number in range(count))
    for place in reversed(range(places) if trains else ()):
        yield from (Step(BACKWARD, number, place) for number in reversed(range(count)))


def interleaved(count: int, places: int, rank: int, size: int, trains: bool) -> Iterator[Step]:
    """Some microbatches through the first stage, the same through the next, and so on; once the
    pipeline is full, one step forwards and one backwards in turn.

    Args:
        count: how many microbatches; a multiple of the number of rounds.
        places: how many stages this process has.
    """
    together = count // rounds(count, size)
    total = count * places

    def made(kind: str, index: int) -> Step:
        turn, inside = divmod(index, together * places)
        place, number = divmod(inside, together)
        place = place if kind == FORWARD else places - 1 - place
        return Step(kind, turn * together + number, place)

    if not trains:
        yield from (made(FORWARD, index) for index in range(total))
        return
    ahead = min(total, (places - 1) * together + 2 * (size - 1 - rank))
    yield from (made(FORWARD, index) for index in range(ahead))
    for index in range(total):
        if index + ahead < total:
            yield made(FORWARD, index + ahead)
        yield made(BACKWARD, index)


def rounds(count: int, size: int) -> int:
    """How often the stages take turns, with at least as many microbatches as processes."""
    return max(1, count // size)
