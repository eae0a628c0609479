"""Branches, early returns, break and continue."""

from typing import List, Optional, Tuple

import torch
from torch import Tensor


def collatz(n: int, limit: int = 50) -> Tuple[int, bool]:
    """Steps until 1, with two ways out of the loop."""
    steps = 0
    while True:
        if n == 1:
            break
        if steps >= limit:
            return steps, False
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps, True


def find_row(x: Tensor, threshold: float) -> Optional[int]:
    for i in range(x.size(0)):
        row = x[i]
        if bool((row < 0).any()):
            continue
        for j in range(row.size(0)):
            if float(row[j]) > threshold:
                return i
    return None


def classify(x: Tensor) -> str:
    mean = x.mean().item()
    if mean < -1:
        return "low"
    elif mean < 0:
        if x.numel() > 3:
            return "slightly negative and long"
        return "slightly negative"
    return "high" if mean > 1 else "middle"


def primes(n: int) -> List[int]:
    found: List[int] = []
    candidate = 2
    while len(found) < n:
        composite = False
        for p in found:
            if p * p > candidate:
                break
            if candidate % p == 0:
                composite = True
                break
        if not composite:
            found.append(candidate)
        candidate += 1
    return found


def clipped_steps(x: Tensor, n: int) -> Tensor:
    """Both libraries follow one of several paths through the gradient."""
    y = x
    for i in range(n):
        if i == 1:
            continue
        y = y * x if i % 2 == 0 else y + x.sin()
        if bool(y.abs().max() > 100):
            return y.clamp(-100, 100)
    else_part = y.sum()
    return else_part * y


def nested(x: Tensor, rows: int, columns: int) -> Tuple[Tensor, List[int]]:
    visited: List[int] = []
    total = torch.zeros_like(x)
    for i in range(rows):
        j = 0
        while j < columns:
            j += 1
            if (i + j) % 3 == 0:
                continue
            if j > 4:
                break
            visited.append(10 * i + j)
            total += x * (i - j)
        if len(visited) > 9:
            break
    return total, visited


PROGRAMS = {
    "collatz": (collatz, [(7,), (27,), (27, 200), (1,)]),
    "find_row": (
        find_row,
        [
            (torch.tensor([[-1.0, 5.0], [1.0, 2.0], [3.0, 9.0]]), 2.5),
            (torch.ones(2, 2), 4.0),
            (torch.ones(0, 2), 0.0),
        ],
    ),
    "classify": (classify, [(torch.full((n,), v),) for n in (2, 5) for v in (-2.0, -0.5, 0.5, 3.0)]),
    "primes": (primes, [(0,), (1,), (12,)]),
    "clipped_steps": (clipped_steps, [(torch.linspace(-2, 2, 5), n) for n in (0, 2, 4, 9)]),
    "nested": (nested, [(torch.ones(2), 3, 6), (torch.ones(2), 6, 2), (torch.ones(2), 0, 0)]),
}
