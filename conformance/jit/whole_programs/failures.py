"""Errors that are raised, asserted, and that operators raise; fork and wait; recursion of callees."""

from typing import Dict, List, Optional, Tuple

import torch
from torch import Tensor, nn


def checked(x: Tensor, n: int) -> Tensor:
    assert x.dim() == 2
    assert n > 0, f"n is {n}, which is too small"
    if n > 10:
        raise ValueError("n is too large: " + str(n))
    if n == 7:
        raise RuntimeError("seven")
    if n == 8:
        raise NotImplementedError
    return x / n


def deep(x: Tensor, index: int) -> Tensor:
    return middle(x, index) + 1


def middle(x: Tensor, index: int) -> Tensor:
    y = x * 2
    return inner(y, index)


def inner(y: Tensor, index: int) -> Tensor:
    values = [1, 2, 3]
    return y.reshape(values[index], -1)


def keys(table: Dict[str, int], values: List[int], name: Optional[str]) -> int:
    assert name is not None
    return values[table[name]] // (len(values) - 2)


def part(x: Tensor, n: int) -> Tensor:
    return x.sin() * n


def forked(x: Tensor, n: int) -> Tuple[Tensor, List[Tensor]]:
    futures: List[torch.jit.Future[Tensor]] = []
    for i in range(n):
        futures.append(torch.jit.fork(part, x, i))
    results = [torch.jit.wait(future) for future in futures]
    single = torch.jit.fork(part, x, n=5)
    return torch.jit.wait(single), results


class Parallel(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList([nn.Linear(2, 2) for _ in range(2)])

    def forward(self, x: Tensor) -> Tensor:
        first = torch.jit.fork(self.heads[0], x)
        second = torch.jit.fork(self.heads[1], x)
        return first.wait() * second.wait()


def is_even(n: int) -> bool:
    return n % 2 == 0


def halve(n: int) -> int:
    return n // 2 if is_even(n) else 3 * n + 1


def orbit(n: int, x: Tensor) -> Tuple[List[int], Tensor]:
    """Callees of callees, with defaults and keywords."""
    seen = [n]
    while n != 1:
        n = halve(n=n)
        seen.append(n)
    return seen, scaled(x, factor=len(seen)) + scaled(x)


def scaled(x: Tensor, factor: int = 2, offset: Optional[Tensor] = None) -> Tensor:
    return x * factor if offset is None else x * factor + offset


PROGRAMS = {
    "checked": (
        checked,
        [(torch.ones(2, 2), n) for n in (2, 0, 7, 8, 11)] + [(torch.ones(2), 1)],
    ),
    "deep": (deep, [(torch.ones(6), i) for i in (0, 2, -2, 3)] + [(torch.ones(5), 1)]),
    "keys": (
        keys,
        [({"a": 1}, [1, 5, 6], "a"), ({}, [1], "b"), ({"a": 5}, [1], "a"), ({"a": 0}, [4, 4], "a"), ({}, [1], None)],
    ),
    "forked": (forked, [(torch.ones(2), 3), (torch.ones(1), 0)]),
    "parallel": (Parallel, [(torch.randn(3, 2),)]),
    "orbit": (orbit, [(6, torch.ones(2)), (1, torch.ones(2))]),
}
