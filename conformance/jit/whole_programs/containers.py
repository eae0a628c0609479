"""Lists, dictionaries, tuples and their methods."""

from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor


class Box(NamedTuple):
    corner: Tensor
    size: List[int]
    label: str = "none"
    score: Optional[float] = None


def boxes(x: Tensor, n: int) -> Tuple[Box, List[Box], Tensor]:
    found = [Box(x * i, [i, i + 1], "number " + str(i), float(i)) for i in range(n)]
    first = Box(x, [1])
    total = torch.zeros_like(x)
    for box in found:
        corner, size, label, score = box
        if score is not None:
            total += corner * score + len(label)
        total += box.size[0]
    return first, found, total


def list_methods(values: List[int], other: List[int]) -> Tuple[List[int], List[int], int, bool]:
    copied = values.copy()
    copied.extend(other)
    copied.insert(1, 99)
    copied.sort()
    copied.reverse()
    popped = copied.pop() + copied.pop(0)
    if 4 in copied:
        copied.remove(4)
    count = copied.count(2)
    where = other.index(other[-1]) if len(other) > 0 else -1
    other.clear()
    ordered = sorted(values)
    del copied[0]
    return copied, ordered, popped * 100 + count * 10 + where, other == []


def slices(values: List[float]) -> Tuple[List[float], List[float], List[float], List[float]]:
    middle = values[1:-1]
    every = values[::2]
    values[0] += 10.0
    values[-1] *= 2.0
    values[1] -= 1.0
    tail = values[-2:]
    return middle, every, tail, values


def dictionary_methods(table: Dict[int, List[str]]) -> Tuple[Dict[int, List[str]], int, List[str]]:
    other: Dict[int, List[str]] = {}
    for key, words in table.items():
        if key not in other:
            other[key] = torch.jit.annotate(List[str], [])
        other[key].extend(words)
        other[key].append("end")
    other.update({100: ["x"]})
    kept = other.get(3, ["default"])
    taken = other.pop(100)
    nothing = other.get(12345)
    size = len(other)
    if nothing is None:
        size += 1000
    copied = other.copy()
    other.clear()
    size += len(other)
    set_by_default = copied.setdefault(7, ["seven"])
    return copied, size, kept + taken + set_by_default


def comprehensions(n: int, x: Tensor) -> Tuple[List[int], Dict[int, float], List[List[int]], Tensor]:
    squares = [i * i for i in range(n)]
    table = {i: float(i) / 2 for i in squares}
    rows = [[i + j for j in range(i)] for i in range(n)]
    parts = [x[i] * s for i, s in enumerate(squares[: x.size(0)])]
    return squares, table, rows, torch.stack(parts)


def tuples(pair: Tuple[int, Tensor], swap: bool) -> Tuple[Tuple[Tensor, int], int, Tensor]:
    a, b = pair
    c, (d, e) = a + 1, (b * 2, [a, a])
    if swap:
        c, a = a, c
    both = (d, c)
    joined = pair + (3, "x")
    first, _, length = joined[0], joined[2], len(joined)
    e.append(length)
    return both, first + len(e) + c + joined[-2], pair[1] + d


def sums(values: List[float], flags: List[bool], x: List[Tensor]) -> Tuple[float, bool, bool, float, Tensor]:
    return sum(values), all(flags), any(flags), max(values) - min(values), torch.stack(x).sum()


PROGRAMS = {
    "boxes": (boxes, [(torch.ones(2), 3), (torch.ones(1), 0)]),
    "list_methods": (
        list_methods,
        [([3, 1, 2], [2, 4, 2]), ([5], [5, 9]), ([1, 2], []), ([], [])],
    ),
    "slices": (slices, [([1.0, 2.0, 3.0, 4.0],), ([1.0, 2.0, 3.0],), ([],)]),
    "dictionary_methods": (
        dictionary_methods,
        [({3: ["a"], 1: ["b", "c"]},), ({},)],
    ),
    "comprehensions": (comprehensions, [(3, torch.ones(3, 2)), (1, torch.ones(2, 2))]),
    "tuples": (tuples, [((3, torch.ones(2)), True), ((3, torch.ones(2)), False)]),
    "sums": (
        sums,
        [
            ([1.0, 2.5], [True, False], [torch.ones(2), torch.ones(2)]),
            ([-1.0], [True], [torch.ones(2)]),
            ([], [], []),
        ],
    ),
}
