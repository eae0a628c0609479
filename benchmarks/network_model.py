"""What collectives cost on many machines: a model on paper against a simulated network.

    python benchmarks/network_model.py

The messages are those that the backend "fake" is asked to send, while one process plays a rank of
2 to 1,000. The network is simulated message by message: each machine sends one message after
another and takes one after another, at BANDWIDTH bytes a second; each costs it OVERHEAD, and comes
LATENCY later. On paper, with a = LATENCY, o = OVERHEAD, b = BANDWIDTH, n bytes, p ranks:

    all_reduce up to 32 KB     a + (p - 1) (o + n/b)              everybody sends all to all
    all_reduce above           2 (a + (p - 1) (o + n/(p b)))      shares are reduced, then given
    ring, for comparison       2 (p - 1) (a + o + n/(p b))
    all_gather_into_tensor, reduce_scatter_tensor of n bytes in all
                               a + (p - 1) (o + n/(p b))

These two are what `fully_shard` does. Last comes a step of DistributedDataParallel: 100 MB of
gradients in its buckets, which become ready one after another while backward takes BACKWARD, and
are reduced one after another; what is left when backward is over is what the processes wait.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import flambeau as torch  # noqa: E402
from flambeau import distributed as dist  # noqa: E402
from flambeau.distributed.patterns import SMALL  # noqa: E402
from flambeau.distributed.transport.call import Exchange  # noqa: E402

LATENCY = 20e-6
OVERHEAD = 2e-6
BANDWIDTH = 12.5e9
"""A network of 100 Gbit/s."""
BACKWARD = 60e-3
BUCKETS = (1 << 20, 25 << 20, 25 << 20, 25 << 20, 24 << 20)
"""Seconds of backward, and the bytes of the buckets in the order in which it fills them."""
RANKS = (2, 8, 64, 1000)
BYTES = (1 << 10, 1 << 15, 1 << 20, 25 << 20, 100 << 20)


class Recorder(Exchange):
    """An exchange that sends nothing, and notes the bytes for each rank."""

    def __init__(self) -> None:
        self.exchanges: list[np.ndarray] = []

    def run(self, call: Any, send: Any, sink: Any) -> None:
        """Note what is sent."""
        self.exchanges.append(np.array([0 if data is None else data.size for data in send]))

    def close(self) -> None:
        """Nothing is open."""


def call(name: str, size: int, count: int) -> None:
    """Call a collective of `count` bytes in all, or as many as are the same for each rank."""
    if name == "all_reduce":
        dist.all_reduce(torch.empty(count, dtype=torch.uint8))
        return
    part = torch.empty(count // size, dtype=torch.uint8)
    whole = torch.empty(count // size * size, dtype=torch.uint8)
    if name == "all_gather_into_tensor":
        dist.all_gather_into_tensor(whole, part)
    else:
        dist.reduce_scatter_tensor(part, whole)


def messages_of(rank: int, size: int, count: int, name: str) -> list[np.ndarray]:
    """For each exchange of a collective of `count` bytes, the bytes that a rank sends to each."""
    dist.init_process_group("fake", rank=rank, world_size=size)
    recorder = Recorder()
    dist.group.WORLD._exchange = recorder
    call(name, size, count)
    dist.destroy_process_group()
    return recorder.exchanges


def simulated(exchanges: list[list[np.ndarray]]) -> float:
    """Seconds until the last rank has all; for each exchange, what each rank sends to each."""
    ready = np.zeros(len(exchanges[0]))
    for sent in exchanges:
        ready = _one_exchange(np.stack(sent), ready)
    return float(ready.max())


def _one_exchange(sizes: np.ndarray, ready: np.ndarray) -> np.ndarray:
    """When each rank is done; in round k each sends to the k-th behind it."""
    ranks = np.arange(len(sizes))
    sending, taking, done = ready.copy(), np.zeros(len(sizes)), ready.copy()
    for distance in range(1, len(sizes)):
        to = (ranks + distance) % len(sizes)
        seconds = OVERHEAD + sizes[ranks, to] / BANDWIDTH
        begin = sending
        sending = begin + seconds
        begins_to_come = np.maximum(begin + LATENCY, taking[to])
        taking[to] = begins_to_come + seconds
        done[to] = np.maximum(done[to], taking[to])
    return np.maximum(done, sending)


def on_paper(size: int, count: int, name: str = "all_reduce") -> float:
    """Seconds of a collective by the formula."""
    if name == "all_reduce" and count <= SMALL:
        return LATENCY + (size - 1) * (OVERHEAD + count / BANDWIDTH)
    exchange = LATENCY + (size - 1) * (OVERHEAD + count / (size * BANDWIDTH))
    return 2 * exchange if name == "all_reduce" else exchange


def ring(size: int, count: int) -> float:
    """Seconds of a ring."""
    return 2 * (size - 1) * (LATENCY + OVERHEAD + count / (size * BANDWIDTH))


def row(size: int, count: int, name: str = "all_reduce") -> tuple[float, float]:
    """Seconds simulated, and on paper.

    The ranks that are played are the first, one in the middle and the last: the others send what
    the one before them sends.
    """
    played = sorted({0, size // 2, size - 1})
    kept = {rank: messages_of(rank, size, count, name) for rank in played}
    of_rank = [kept[max(each for each in played if each <= rank)] for rank in range(size)]
    exchanges = [[of_rank[rank][k] for rank in range(size)] for k in range(len(kept[0]))]
    return simulated(exchanges), on_paper(size, count, name)


def waited_after_backward(seconds: dict[int, float]) -> float:
    """Seconds from the end of backward to the last bucket; what a bucket of so many bytes takes."""
    done = ready = 0.0
    for count in BUCKETS:
        ready += BACKWARD * count / sum(BUCKETS)
        done = max(done, ready) + seconds[count]
    return done - BACKWARD


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="*", default=RANKS)
    options = parser.parse_args()
    print(" ranks      bytes   simulated    on paper  error        ring")
    for size in options.ranks:
        for count in BYTES:
            seen, paper = row(size, count)
            print(f"{size:6d} {count:10d} {seen * 1e3:8.3f} ms {paper * 1e3:8.3f} ms "
                  f"{paper / seen - 1:+6.1%} {ring(size, count) * 1e3:8.3f} ms")  # fmt: skip
    for name in ("all_gather_into_tensor", "reduce_scatter_tensor"):
        for size in options.ranks:
            seen, paper = row(size, 100 << 20, name)
            print(f"{name}, {size} ranks, 100 MB: simulated {seen * 1e3:.3f} ms, "
                  f"on paper {paper * 1e3:.3f} ms, {paper / seen - 1:+.1%}")  # fmt: skip
    for size in options.ranks:
        kinds = {count: row(size, count) for count in set(BUCKETS)}
        seen, paper = (
            waited_after_backward({count: kinds[count][k] for count in kinds}) for k in range(2)
        )
        print(f"DistributedDataParallel, {size} ranks: waits {seen * 1e3:.2f} ms after "
              f"{BACKWARD * 1e3:.0f} ms of backward; on paper {paper * 1e3:.2f} ms")  # fmt: skip


if __name__ == "__main__":
    main()
