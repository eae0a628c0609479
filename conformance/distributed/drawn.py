"""Random programs of collectives and groups: all ranks draw the same program."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from conformance.distributed.programs import numbers

TYPES = ("uint8", "int32", "int64", "float32", "float64", "bfloat16")
STEPS = 25


class Drawn:
    """What the steps of one rank need."""

    def __init__(self, torch: Any, dist: Any, rank: int, size: int, record: Any) -> None:
        self.torch, self.dist, self.rank, self.size, self.record = torch, dist, rank, size, record
        self.groups: list[tuple[Any, list[int]]] = [(None, list(range(size)))]
        self.pending: list[tuple[str, Any, Any]] = []

    def tensor(self, draw: random.Random) -> Any:
        """Elements of a drawn type and number, also many."""
        count = draw.choice((0, 1, 2, 7, 64, 1000, 9000, 50_000))
        return numbers(self.torch, draw.choice(TYPES), (count,), self.rank)

    def finish(self) -> None:
        """Wait for what was begun."""
        for name, work, tensors in self.pending:
            if work is not None:
                work.wait()
            self.record(name, lambda x=tensors: _summary(x))
        self.pending.clear()


def _summary(tensors: Any) -> Any:
    """Tensors in few numbers."""
    listed = tensors if isinstance(tensors, list) else [tensors]
    return [[len(x), float(x.double().sum()), x[:5].double().tolist()] for x in listed]


def _all_reduce(all_of: Drawn, draw: random.Random, group: Any, ranks: list[int]) -> Any:
    x = all_of.tensor(draw)
    op = getattr(all_of.dist.ReduceOp, draw.choice(("SUM", "MIN", "MAX")))
    return all_of.dist.all_reduce(x, op, group, async_op=draw.random() < 0.5), x


def _broadcast(all_of: Drawn, draw: random.Random, group: Any, ranks: list[int]) -> Any:
    x, root = all_of.tensor(draw), draw.choice(ranks)
    return all_of.dist.broadcast(x, root, group, async_op=draw.random() < 0.5), x


def _all_gather(all_of: Drawn, draw: random.Random, group: Any, ranks: list[int]) -> Any:
    x = all_of.tensor(draw)
    outputs = [x * 0 for _ in ranks]
    return all_of.dist.all_gather(outputs, x, group, async_op=draw.random() < 0.5), outputs


def _reduce_scatter(all_of: Drawn, draw: random.Random, group: Any, ranks: list[int]) -> Any:
    x = all_of.tensor(draw)
    output = x * 0
    inputs = [x + each for each in range(len(ranks))]
    return all_of.dist.reduce_scatter(output, inputs, group=group), output


def _all_to_all(all_of: Drawn, draw: random.Random, group: Any, ranks: list[int]) -> Any:
    x = all_of.tensor(draw)
    outputs = [x * 0 for _ in ranks]
    return all_of.dist.all_to_all(outputs, [x + each for each in range(len(ranks))], group), outputs


def _reduce(all_of: Drawn, draw: random.Random, group: Any, ranks: list[int]) -> Any:
    x, root = all_of.tensor(draw), draw.choice(ranks)
    work = all_of.dist.reduce(x, root, group=group)
    return work, x if all_of.rank == root else x * 0


def _gather(all_of: Drawn, draw: random.Random, group: Any, ranks: list[int]) -> Any:
    x, root = all_of.tensor(draw), draw.choice(ranks)
    outputs = [x * 0 for _ in ranks] if all_of.rank == root else None
    return all_of.dist.gather(x, outputs, root, group), outputs or x


def _scatter(all_of: Drawn, draw: random.Random, group: Any, ranks: list[int]) -> Any:
    x, root = all_of.tensor(draw), draw.choice(ranks)
    inputs = [x + each for each in range(len(ranks))] if all_of.rank == root else None
    output = x * 0
    return all_of.dist.scatter(output, inputs, root, group), output


def _ring(all_of: Drawn, draw: random.Random, group: Any, ranks: list[int]) -> Any:
    x, at = all_of.tensor(draw), ranks.index(all_of.rank)
    if len(ranks) == 1:
        return None, x
    into = x * 0
    receive = all_of.dist.irecv(into, ranks[at - 1], group)
    send = all_of.dist.isend(x, ranks[(at + 1) % len(ranks)], group)
    send.wait()
    receive.wait()
    return None, into


def _barrier(all_of: Drawn, draw: random.Random, group: Any, ranks: list[int]) -> Any:
    return all_of.dist.barrier(group), []


STEP: tuple[Callable[..., Any], ...] = (
    _all_reduce, _all_reduce, _broadcast, _all_gather, _reduce_scatter, _all_to_all, _reduce,
    _gather, _scatter, _ring, _barrier,
)  # fmt: skip


def drawn(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """A random program: groups come into being, collectives run in them, some at once."""
    draw = random.Random(seed)
    all_of = Drawn(torch, dist, rank, size, record)
    for number in range(STEPS):
        if draw.random() < 0.12:
            ranks = sorted(draw.sample(range(size), draw.randint(1, size)))
            all_of.groups.append((dist.new_group(ranks), ranks))
            continue
        group, ranks = draw.choice(all_of.groups)
        step, own = draw.choice(STEP), random.Random(draw.random())
        if rank in ranks:
            work, tensors = step(all_of, own, group, ranks)
            all_of.pending.append((f"{number} {step.__name__} {ranks}", work, tensors))
        if draw.random() < 0.3:
            all_of.finish()
    all_of.finish()


def many(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """Ten programs in one start of the processes."""
    _several(10, torch, dist, rank, size, record, seed)


def hundred(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """A hundred programs in one start of the processes: starts take longer than programs."""
    _several(100, torch, dist, rank, size, record, seed)


def _several(count: int, torch: Any, dist: Any, rank: int, size: int, record: Any,
             seed: int) -> None:  # fmt: skip
    for number in range(count):
        drawn(torch, dist, rank, size, record, seed * 1000 + number)
